"""Copies of values all the way down, each value once, within bounds.

Knows: what must be copied so that nobody's change reaches anybody else, and what cannot be. Does not know: calls,
layers, tools.

Copied are dicts, lists, tuples and sets, and other *data* (see `is_data`). What is no data, such as a connection or a
callback, may be alive and is shared; so is data that cannot be copied. What is in many places is copied once, and is
the same in all of them in the copy too.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interpose.contracts.extent import ATOMS, DEEPEST, TOO_DEEP, BeyondError, Extents, Tally, is_data
from interpose.contracts.faults import error_words
from interpose.contracts.readonly import READ_ONLY, FlatDict, ReadOnlyDict, ReadOnlyList, ReadOnlySet


@dataclass(frozen=True, slots=True)
class Kinds:
    """What containers become. What is of one of the types `kept` stays as it is."""

    of_dict: type[dict[str, Any]]
    of_list: type[list[Any]]
    of_set: type[set[Any]]
    kept: frozenset[type]


PLAIN = Kinds(dict, list, set, frozenset())
_DICTS = frozenset({dict, ReadOnlyDict, FlatDict})
READING = Kinds(ReadOnlyDict, ReadOnlyList, ReadOnlySet, READ_ONLY)


def copied(value: Any) -> Any:
    """A copy of one value: dicts, lists, tuples and sets plain and apart all the way down, and other data copied.

    Of one that `beyond` tells something of it is the very value, as with all data that cannot be copied. Never raises.
    """
    if type(value) in ATOMS:
        return value
    try:
        return Copying(PLAIN, copies_objects=True, takes_circles=True).of(value)
    except Exception:  # noqa: BLE001 - beyond a bound, or the value's own code: what cannot be copied is shared
        return value


def beyond(value: Any) -> str | None:
    """In words what keeps a value from being copied or told, None for nothing: it nests too deep or repeats too much.

    The bounds are those of arguments, but for holding itself, which may be told. Costs about what a copy does.
    """
    if type(value) in ATOMS:
        return None
    try:
        Extents().of(value)
    except BeyondError as error:
        return error.beyond.it
    except RecursionError:
        return TOO_DEEP.it
    except Exception as error:  # noqa: BLE001 - the value's own code; what cannot be looked through is said to be so
        return f"it cannot be looked through: {type(error).__name__}: {error_words(error)}"
    return None


class Copying(Tally):
    """One walk over a value that copies each thing once, however many places it is in. For one use.

    `_known` holds, by id, each value on the way or done, its copy, how many values are in it, None on the way, and in
    how many levels. Holding the values keeps their ids from being taken by others.
    """

    __slots__ = (
        "_copies_objects",
        "_dict",
        "_extents",
        "_kept",
        "_known",
        "_list",
        "_memo",
        "_set",
        "_takes_circles",
    )

    def __init__(self, kinds: Kinds, *, copies_objects: bool, takes_circles: bool = False) -> None:
        super().__init__()
        self._dict, self._list, self._set, self._kept = kinds.of_dict, kinds.of_list, kinds.of_set, kinds.kept
        self._copies_objects = copies_objects
        self._takes_circles = takes_circles
        self._known: dict[int, tuple[Any, Any, int | None, int]] = {}
        self._memo: dict[int, Any] = {}
        self._extents: Extents | None = None

    def of_mapping(self, values: Mapping[str, Any], depth: int = 1) -> dict[str, Any]:
        """Of a dict, or of what has its methods, at this level."""
        made = dict.__new__(self._dict)
        before, outside, self.deepest = self.count, self.deepest, depth
        if type(values) in _DICTS and ATOMS.issuperset(map(type, values.values())):
            dict.update(made, values)
        else:
            self._known[id(values)] = (values, made, None, 0)
            items = values.items()
            dict.update(made, {key: item if type(item) in ATOMS else self.of(item, depth) for key, item in items})
        self.count += len(made)
        self._known[id(values)] = (values, made, self.count - before, self.deepest - depth + 1)
        if outside > self.deepest:
            self.deepest = outside
        return made

    def of(self, value: Any, depth: int = 0) -> Any:
        """Of any value, `depth` containers deep."""
        kind = type(value)
        if kind in ATOMS or kind in self._kept:
            return value
        known = self._known.get(id(value))
        if known is not None:
            return self._met_again(depth, *known)
        if depth >= DEEPEST:
            raise BeyondError(TOO_DEEP)

        if isinstance(value, dict):
            return self.of_mapping(value, depth + 1)
        return self._of_list(value, depth + 1) if isinstance(value, list) else self._of_other(value, depth + 1)

    def _of_list(self, values: list[Any], depth: int) -> list[Any]:
        made = list.__new__(self._list)
        before, outside, self.deepest = self.count, self.deepest, depth
        if ATOMS.issuperset(map(type, values)):
            list.extend(made, values)
        else:
            self._known[id(values)] = (values, made, None, 0)
            list.extend(made, [item if type(item) in ATOMS else self.of(item, depth) for item in values])
        self.count += len(made)
        self._known[id(values)] = (values, made, self.count - before, self.deepest - depth + 1)
        if outside > self.deepest:
            self.deepest = outside
        return made

    def _of_other(self, value: Any, depth: int) -> Any:
        before, outside, self.deepest = self.count, self.deepest, depth
        kind = type(value)
        self._known[id(value)] = (value, None, None, 0)
        if kind is tuple:
            made: Any = tuple([self.of(item, depth) for item in value])
            self.count += len(value)
        else:
            self._measure(value, depth)
            made = self._object(value)
        self._known[id(value)] = (value, made, self.count - before, self.deepest - depth + 1)
        if outside > self.deepest:
            self.deepest = outside
        return made

    def _object(self, value: Any) -> Any:
        if type(value) is set or type(value) is ReadOnlySet:
            made = set.__new__(self._set)
            set.update(made, value)
            return made
        if not self._copies_objects or not is_data(value):
            return value
        try:
            return copy.deepcopy(value, self._memo)
        except Exception:  # noqa: BLE001 - the copying is the object's own code; what it cannot copy is shared
            self._memo = {}  # it may hold halves
            return value

    def _measure(self, value: Any, depth: int) -> None:
        """How far down it reaches, and how much is in it; the bounds hold there too."""
        extents = self._extents = self._extents or Extents()
        before = extents.count
        extents.deepest = depth
        extents.of(value, depth - 1)
        self.deepest = extents.deepest
        self.count += max(extents.count - before, 1)

    def _met_again(self, depth: int, _value: Any, made: Any, count: int | None, height: int) -> Any:
        if count is not None:
            self.again(count, height, depth)
        elif not self._takes_circles or made is None:
            raise BeyondError(TOO_DEEP)
        return made
