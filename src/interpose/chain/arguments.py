"""The two forms of a call's arguments: read-only for the layers, plain for the tool.

Knows: what must be copied so that nobody's change reaches anybody else. Does not know: layers, tools.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

from interpose.contracts.errors import MisuseError

_ATOMS = frozenset({str, int, float, bool, type(None)})
_MAPPINGS = (dict, Mapping)  # nearly all are dicts, and asking an abstract class takes long


def _refuse(self: object, *_args: Any, **_kwargs: Any) -> NoReturn:
    copied = '{**arguments, "name": value}' if isinstance(self, dict) else "[*values, value]"
    raise MisuseError(f"the arguments of a call are read-only: pass a changed copy on, such as {copied}")


class ReadOnlyDict(dict[str, Any]):
    """A dict whose mutators raise MisuseError; every copy of it, and what `|=` gives, is a plain dict."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse

    def __ior__(self, other: Any) -> dict[str, Any]:  # type: ignore[override,misc]
        return {**self, **dict(other)}

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, ({**self},))


class FlatDict(ReadOnlyDict):
    """A ReadOnlyDict in which no value holds other values, so that a shallow copy is a whole one."""

    __slots__ = ()


class ReadOnlyList(list[Any]):
    """A list whose mutators raise MisuseError; every copy of it, and what `+=` gives, is a plain list."""

    __slots__ = ()
    __setitem__ = __delitem__ = append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __iadd__(self, other: Any) -> list[Any]:  # type: ignore[override,misc]
        return [*self, *other]

    def __imul__(self, times: Any) -> list[Any]:  # type: ignore[override,misc]
        return [*self] * times

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, ([*self],))


_READ_ONLY = frozenset({ReadOnlyDict, FlatDict, ReadOnlyList})


def read_only(arguments: Any, giver: str) -> ReadOnlyDict:
    """Unchangeable all the way down through dicts, lists and tuples; other objects are shared.

    What is read-only already is returned as it is. Raises MisuseError naming `giver` when `arguments` is not a
    mapping, or holds itself.
    """
    kind = type(arguments)
    if kind is dict and _ATOMS.issuperset(map(type, arguments.values())):
        return FlatDict(arguments)
    if isinstance(arguments, ReadOnlyDict):
        return arguments

    _demand_mapping(arguments, giver)
    try:
        return ReadOnlyDict({key: _read_only(value) for key, value in arguments.items()})
    except RecursionError:
        raise MisuseError(_too_deep(giver)) from None


def owned(arguments: Any, giver: str) -> dict[str, Any]:
    """A plain dict of its own, all the way down through dicts, lists and tuples; other objects are shared.

    Raises MisuseError naming `giver` when `arguments` is not a mapping, or holds itself.
    """
    kind = type(arguments)
    if kind is FlatDict or (kind is dict and _ATOMS.issuperset(map(type, arguments.values()))):
        return {**arguments}

    _demand_mapping(arguments, giver)
    try:
        return {key: _copied(value) for key, value in arguments.items()}
    except RecursionError:
        raise MisuseError(_too_deep(giver)) from None


def _demand_mapping(arguments: Any, giver: str) -> None:
    if not isinstance(arguments, _MAPPINGS):
        kind = type(arguments).__name__
        raise MisuseError(f"{giver} gave arguments of type {kind}: expected a mapping of names to values")


def _too_deep(giver: str) -> str:
    return f"{giver} gave arguments that hold themselves, or nest too deep to be copied"


def _read_only(value: Any) -> Any:
    kind = type(value)
    if kind in _ATOMS or kind in _READ_ONLY:
        return value
    if isinstance(value, dict):
        return ReadOnlyDict({key: _read_only(item) for key, item in value.items()})
    if isinstance(value, list):
        return ReadOnlyList([_read_only(item) for item in value])
    return tuple([_read_only(item) for item in value]) if kind is tuple else value


def _copied(value: Any) -> Any:
    if type(value) in _ATOMS:
        return value
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return tuple([_copied(item) for item in value]) if type(value) is tuple else value
