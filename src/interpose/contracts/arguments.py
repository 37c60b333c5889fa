"""The forms of a call's arguments: read-only for whoever looks, a copy of its own for whoever may change it.

Knows: what is said to whoever gives what cannot be arguments. Does not know: layers, tools, policies, how values are
copied (`contracts.copying`).
"""

from collections.abc import Mapping
from typing import Any

from interpose.contracts.copying import PLAIN, READING, Copying
from interpose.contracts.errors import MisuseError
from interpose.contracts.extent import ATOMS, TOO_DEEP, BeyondError
from interpose.contracts.faults import error_words
from interpose.contracts.readonly import FlatDict, ReadOnlyDict

_MAPPINGS = (dict, Mapping)  # nearly all are dicts, and asking an abstract class takes long


def read_only(arguments: Any, giver: str) -> ReadOnlyDict:
    """Unchangeable all the way down through dicts, lists, tuples and sets; other data is copied.

    What is read-only already is returned as it is. Raises MisuseError naming `giver` when `arguments` is not a
    mapping, holds itself, nests deeper than 200 levels, or repeats more than a million values.
    """
    kind = type(arguments)
    if kind is dict and ATOMS.issuperset(map(type, arguments.values())):
        flat = dict.__new__(FlatDict)
        dict.update(flat, arguments)
        return flat
    if isinstance(arguments, ReadOnlyDict):
        return arguments

    made = _given(arguments, giver, Copying(READING, copies_objects=True))
    assert isinstance(made, ReadOnlyDict)  # noqa: S101 - what was asked for
    return made


def snapshot(arguments: Any, giver: str) -> ReadOnlyDict:
    """As `read_only`, for looking only: all that is no dict, list, tuple or set is shared."""
    made = _given(arguments, giver, Copying(READING, copies_objects=False))
    assert isinstance(made, ReadOnlyDict)  # noqa: S101 - what was asked for
    return made


def owned(arguments: Any, giver: str) -> dict[str, Any]:
    """A plain dict of its own, and so are all dicts, lists, tuples and sets in it; other data is copied.

    Raises MisuseError as `read_only` does.
    """
    kind = type(arguments)
    if kind is FlatDict or (kind is dict and ATOMS.issuperset(map(type, arguments.values()))):
        return {**arguments}

    return _given(arguments, giver, Copying(PLAIN, copies_objects=True))


def _given(arguments: Any, giver: str, copying: Copying) -> dict[str, Any]:
    if not isinstance(arguments, _MAPPINGS):
        kind = type(arguments).__name__
        raise MisuseError(f"{giver} gave arguments of type {kind}: expected a mapping of names to values")
    try:
        return copying.of_mapping(arguments)
    except BeyondError as error:
        raise MisuseError(f"{giver} gave arguments that {error.beyond.they}") from None
    except RecursionError:
        raise MisuseError(f"{giver} gave arguments that {TOO_DEEP.they}") from None
    except Exception as error:  # the values' own code
        kind = type(error).__name__
        raise MisuseError(f"{giver} gave arguments that cannot be read: {kind}: {error_words(error)}") from error
