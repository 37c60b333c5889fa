"""State of guards: small, per session and turn, and always bounded.

Knows: maps that forget the oldest. Does not know: what is kept in them. Nothing here is locked: the guard that owns a
map holds its own lock around every use.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

SESSIONS_KEPT: Final = 1_024
"""Sessions a guard remembers; beyond it the one least recently used is forgotten."""

TURNS_KEPT: Final = 32
"""Turns remembered in each session; beyond it the oldest is forgotten."""

CALLS_KEPT: Final = 512
"""Call ids remembered in each session."""


class Recent(Generic[K, V]):
    """A map of at most `kept` entries. `touch=False` forgets the one made first, else the one used least recently."""

    __slots__ = ("_entries", "_kept", "_touch")

    def __init__(self, kept: int, *, touch: bool = True) -> None:
        self._kept = kept
        self._touch = touch
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """The value, or None."""
        value = self._entries.get(key)
        if value is not None and self._touch:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Keeps the value, and forgets another one when there are too many."""
        self._entries[key] = value
        if self._touch:
            self._entries.move_to_end(key)
        while len(self._entries) > self._kept:
            self._entries.popitem(last=False)

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """The value, made when there is none."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value

    def pop(self, key: K) -> None:
        """Forgets the key, if it is there."""
        self._entries.pop(key, None)


class TurnStates(Generic[V]):
    """One value for each turn of each session."""

    __slots__ = ("_make", "_sessions", "_turns_kept")

    def __init__(
        self, make: Callable[[], V], *, sessions_kept: int = SESSIONS_KEPT, turns_kept: int = TURNS_KEPT
    ) -> None:
        self._make = make
        self._turns_kept = turns_kept
        self._sessions: Recent[str, Recent[str, V]] = Recent(sessions_kept)

    def of(self, session: str, turn: str) -> V:
        """The value of this turn, made when there is none."""
        turns = self._sessions.get_or_make(session, lambda: Recent(self._turns_kept, touch=False))
        return turns.get_or_make(turn, self._make)

    def find(self, session: str, turn: str) -> V | None:
        """The value of this turn, or None."""
        turns = self._sessions.get(session)
        return turns.get(turn) if turns is not None else None


class SeenCalls:
    """Which calls of which sessions were seen before: one call judged at two mounts counts once.

    A call without an id is never seen before.
    """

    __slots__ = ("_sessions",)

    def __init__(self, *, sessions_kept: int = SESSIONS_KEPT) -> None:
        self._sessions: Recent[str, Recent[Hashable, bool]] = Recent(sessions_kept)

    def is_new(self, session: str, call_id: str | None, *more: Hashable) -> bool:
        """Whether this is the first time; from now on it was seen. `more` tells calls apart whose ids come again."""
        if not call_id:
            return True
        calls = self._sessions.get_or_make(session, lambda: Recent(CALLS_KEPT, touch=False))
        key = (call_id, *more)
        if key in calls:
            return False
        calls.put(key, True)
        return True
