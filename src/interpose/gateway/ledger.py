"""What a session has been told beyond what its client keeps: verdicts that wait, and edits that are made again.

The client keeps its own history, without what the gateway wrote into it; so every edit is remembered and written
into each later request the same way, until the client drops the part. In memory, bounded.
Knows: keys and edits. Does not know: any API, how a verdict is rendered.
"""

import asyncio
import threading
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from interpose.contracts.verdict import Verdict
from interpose.gateway.api import NewResult, NewTurn, ProposedCall, ResultEdit, TurnEdit

SESSIONS_MAX = 1_000
PARTS_MAX = 10_000
"""At most so many sessions, and parts of one session, are remembered; the longest unused go first."""

K = TypeVar("K")
V = TypeVar("V")


class _Recent(Generic[K, V]):
    """A bounded map that forgets what was not used for longest. Not for several threads by itself."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        found = self._items.get(key)
        if found is not None:
            self._items.move_to_end(key)
        return found

    def put(self, key: K, value: V) -> list[V]:
        """Remembers `value` and returns what was forgotten or replaced for it."""
        gone = [self._items.pop(key)] if key in self._items else []
        self._items[key] = value
        while len(self._items) > self._limit:
            gone.append(self._items.popitem(last=False)[1])
        return gone


class SessionLedger:
    """One session's memory. Any thread may use it; `result_once` and `turn_once` belong to one event loop."""

    def __init__(self, parts: int = PARTS_MAX) -> None:
        self._lock = threading.Lock()
        self._calls: _Recent[str, tuple[ProposedCall, Verdict]] = _Recent(parts)
        self._results: _Recent[tuple[str, str], tuple[str, ResultEdit]] = _Recent(parts)
        self._turns: _Recent[tuple[int, str], tuple[int, TurnEdit]] = _Recent(parts)
        self._edited_calls: Counter[str] = Counter()
        self._edited_positions: Counter[int] = Counter()
        self._judging: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()

    @property
    def edited_calls(self) -> Collection[str]:
        """The ids of calls whose result is edited."""
        return self._edited_calls.keys()

    @property
    def edited_positions(self) -> Collection[int]:
        """The positions of prompts that are edited."""
        return self._edited_positions.keys()

    def remember_call(self, call: ProposedCall, verdict: Verdict) -> None:
        """Keeps a released call and its verdict, whose annotations wait for the result. A call needs an id for that."""
        if call.call_id:
            with self._lock:
                self._calls.put(call.call_id, (call, verdict))

    def released_call(self, call_id: str) -> tuple[ProposedCall, Verdict] | None:
        """A call that was released, and its verdict, or None."""
        with self._lock:
            return self._calls.get(call_id)

    def result_edit(self, call_id: str, digest: str) -> ResultEdit | None:
        """The edit of this very result, or None."""
        with self._lock:
            found = self._results.get((call_id, digest))
        return found[1] if found else None

    def turn_edit(self, position: int, digest: str) -> TurnEdit | None:
        """The edit of this very prompt, or None."""
        with self._lock:
            found = self._turns.get((position, digest))
        return found[1] if found else None

    async def result_once(self, result: NewResult, judge: Callable[[], Awaitable[ResultEdit | None]]) -> ResultEdit:
        """The edit of `result`; `judge` is asked only when nobody judged it yet, by one request at a time.

        A `judge` that gives None decided nothing, and is asked again next time.
        """
        key = (result.call_id, result.digest)
        async with self._turn_to_judge(key):
            known = self.result_edit(*key)
            if known is not None:
                return known
            edit = await judge()
            if edit is not None:
                self._keep_result(key, edit)
            return edit or ResultEdit()

    async def turn_once(self, turn: NewTurn, judge: Callable[[], Awaitable[TurnEdit | None]]) -> TurnEdit:
        """As `result_once`, for the person's newest message."""
        key = (turn.position, turn.digest)
        async with self._turn_to_judge(key):
            known = self.turn_edit(*key)
            if known is not None:
                return known
            edit = await judge()
            if edit is not None:
                self._keep_turn(key, edit)
            return edit or TurnEdit()

    def _turn_to_judge(self, key: object) -> asyncio.Lock:
        return self._judging.setdefault(key, asyncio.Lock())

    def _keep_result(self, key: tuple[str, str], edit: ResultEdit) -> None:
        with self._lock:
            gone = self._results.put(key, (key[0], edit))
            if not edit.is_empty:
                self._edited_calls[key[0]] += 1
            _forget(self._edited_calls, [name for name, old in gone if not old.is_empty])

    def _keep_turn(self, key: tuple[int, str], edit: TurnEdit) -> None:
        with self._lock:
            gone = self._turns.put(key, (key[0], edit))
            if not edit.is_empty:
                self._edited_positions[key[0]] += 1
            _forget(self._edited_positions, [name for name, old in gone if not old.is_empty])


class Ledger:
    """All sessions' memories. Any thread may use it."""

    def __init__(self, *, sessions: int = SESSIONS_MAX, parts: int = PARTS_MAX) -> None:
        self._lock = threading.Lock()
        self._parts = parts
        self._sessions: _Recent[tuple[str, str], SessionLedger] = _Recent(sessions)

    def session(self, launch: str | None, session: str) -> SessionLedger:
        """The memory of one session of one launch; a new one when it is not known."""
        key = (launch or "", session)
        with self._lock:
            known = self._sessions.get(key)
            if known is None:
                known = SessionLedger(self._parts)
                self._sessions.put(key, known)
            return known


def _forget(counts: Counter[K], names: list[K]) -> None:
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]
