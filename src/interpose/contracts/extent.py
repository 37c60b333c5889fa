"""How far a value reaches: how deep it nests and how much of it is repeated, and the bounds of both.

Knows: what is in a value, also in data that is no container. Does not know: calls, copies, what is said of a value.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

ATOMS = frozenset({str, int, float, bool, type(None), bytes})
"""The types of what is never copied and holds nothing."""
_ATOM_KINDS = (str, bytes, int, float)
_COPIES_ITSELF = ("__deepcopy__", "__dataclass_fields__", "__attrs_attrs__")
_TABLES = (dict, MappingProxyType)
_ROWS = (list, tuple, set, frozenset, deque)

DEEPEST = 200
"""How deep arguments may nest; a JSON text of a model may not nest deeper either."""
REPEATS_MOST = 1_000_000
"""How many values arguments may repeat: those in a container count again in each further place that it is in."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """A bound that a value is beyond, in words for several and for one."""

    they: str
    it: str


TOO_DEEP = Beyond(
    f"hold themselves, or nest deeper than {DEEPEST} levels", f"it holds itself, or nests deeper than {DEEPEST} levels"
)
_MANY = f"more than {REPEATS_MOST:,} values, since the same ones are in many places"
_TOO_MANY = Beyond(f"repeat {_MANY}", f"it repeats {_MANY}")


class BeyondError(Exception):
    """A value is beyond a bound."""

    def __init__(self, beyond: Beyond) -> None:
        self.beyond = beyond
        super().__init__(beyond.it)


class Tally:
    """What a walk has met until now: how many values, and the deepest level. For one use.

    A walk sets `deepest` to the level of what it enters, and back to the greater of the two when it is through, so
    that in between it says how far down that reaches.
    """

    __slots__ = ("_repeats", "count", "deepest")

    def __init__(self) -> None:
        self.count = 0
        self.deepest = 0
        self._repeats = 0

    def again(self, count: int, height: int, depth: int) -> None:
        """What is known to hold `count` values in `height` levels was met again below `depth` others.

        Raises BeyondError.
        """
        if depth + height > DEEPEST:
            raise BeyondError(TOO_DEEP)
        self.deepest = max(self.deepest, depth + height)
        self.count += count
        self.repeated(count)

    def repeated(self, count: int) -> None:
        """So many values are there again. Raises BeyondError."""
        self._repeats += count
        if self._repeats > REPEATS_MOST:
            raise BeyondError(_TOO_MANY)


class Extents(Tally):
    """A walk over values that takes none of them apart twice, but for those that hold themselves. For one use.

    Written out, a value that holds itself ends where it comes again, so that the same parts have another extent in
    another place: these are looked through in each, as long as that stays within the bounds.

    `_known` holds, by id, each value on the way or done, how many values are in it, and in how many levels: no number
    for one on the way, or in which a value was met that was around it. Holding the values keeps their ids from being
    taken by others.
    """

    __slots__ = ("_circles", "_known", "_way")

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[Any, int | None, int]] = {}
        self._way: set[int] = set()
        self._circles = 0

    def of(self, value: Any, depth: int = 0) -> None:
        """Looks through any value that is below `depth` others. Raises BeyondError, and what the value's code does."""
        if type(value) in ATOMS:
            return
        known = self._known.get(id(value))
        if known is not None and id(value) in self._way:
            self._circles += 1
            return
        if known is not None and known[1] is not None:
            self.again(known[1], known[2], depth)
            return
        held = _held(value)
        if held is None:
            return
        if depth >= DEEPEST:
            raise BeyondError(TOO_DEEP)

        if known is not None:
            self.repeated(len(held))
        self._look(value, held, depth)

    def _look(self, value: Any, held: list[Any], depth: int) -> None:
        self._known[id(value)] = (value, None, 0)
        self._way.add(id(value))
        before, circles, outside, self.deepest = self.count, self._circles, self.deepest, depth + 1
        if not ATOMS.issuperset(map(type, held)):
            for item in held:
                self.of(item, depth + 1)
        self._way.remove(id(value))
        self.count += len(held)
        if self._circles == circles:
            self._known[id(value)] = (value, self.count - before, self.deepest - depth)
        self.deepest = max(outside, self.deepest)


def is_data(value: object) -> bool:
    """Whether a value is copied: a collection, a dataclass, an attrs class, or of a type that says how it is copied.

    A class says so by `__deepcopy__`, as those of pydantic do. Numbers, texts and bytes need no copy.
    """
    if isinstance(value, _ATOM_KINDS):
        return False
    return isinstance(value, Collection) or any(hasattr(type(value), name) for name in _COPIES_ITSELF)


def _held(value: Any) -> list[Any] | None:
    """What is in it; None of what is no data. Of a collection of a foreign kind no item is asked for."""
    if isinstance(value, _TABLES):
        pairs = value.items()
        return [item for _, item in pairs] + [key for key, _ in pairs if type(key) not in ATOMS]
    if isinstance(value, _ROWS):
        return [*value]
    return _state(value) if is_data(value) else None


def _state(value: Any) -> list[Any]:
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]


def _slots(kind: type) -> tuple[str, ...]:
    named = vars(kind).get("__slots__", ())
    return tuple(name for name in ((named,) if isinstance(named, str) else named) if not name.startswith("__"))
