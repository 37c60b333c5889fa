"""What a session has been told beyond what its client keeps: verdicts that wait, and edits that are made again.

The client keeps its own history, without what the gateway wrote into it; so every edit is remembered and written
into each later request the same way, until the client drops the part. Bounded; what edits a history outlives the
process where there is a store.
Knows: keys and edits. Does not know: any API, how a verdict is rendered, where a store keeps things.
"""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from interpose.contracts.json import JsonObject
from interpose.contracts.verdict import Reminder, Verdict
from interpose.contracts.wording import framed
from interpose.gateway.api import Mark, NewResult, NewTurn, ProposedCall, ResultEdit, Resumed, TurnEdit
from interpose.gateway.conversations import Conversations
from interpose.gateway.kept import LedgerStore, Released, decoded, encoded, says_something
from interpose.gateway.once import Once
from interpose.gateway.recent import Recent
from interpose.kernel.canonical import canonical_hash

SESSIONS_MAX = 1_000
PARTS_MAX = 10_000
"""At most so many sessions, and parts of one session, are remembered; the longest unused go first."""

CALL_AGAIN_S = 600.0
"""So long the same call at the same place is the same under another id; clients wait about as long for a reply."""

NOTED_MAX = 100
"""At most so many things are said once in a session."""

K = TypeVar("K")
V = TypeVar("V")


class SessionLedger:
    """One session's memory, and the port `Edits`.

    Any thread may use it; what ends in `_once` belongs to one event loop.
    """

    def __init__(
        self,
        parts: int = PARTS_MAX,
        keep: Callable[[str, str, bytes], None] | None = None,
        wider: "SessionLedger | None" = None,
    ) -> None:
        """`keep` is told each part that a later process must know: its kind, key and value.

        `wider` has what was withheld in other sessions that one client may mix: it stays withheld in this one.
        """
        self._wider = wider
        self._lock = threading.Lock()
        self._keep = keep
        self._calls: Recent[str, tuple[ProposedCall, Verdict]] = Recent(parts)
        self._verdicts: Recent[str, tuple[Verdict, str, float]] = Recent(parts)
        self._results: Recent[tuple[str, str], tuple[str, ResultEdit]] = Recent(parts)
        self._turns: Recent[tuple[int, str], tuple[int, TurnEdit]] = Recent(parts)
        self._marks: Recent[tuple[str, str, int], tuple[tuple[str, str], Mark]] = Recent(parts)
        self._originals: Recent[tuple[str, str], tuple[str, JsonObject]] = Recent(parts)
        self._changed_calls: dict[str, int] = {}
        self._resumed: Recent[str, Resumed] = Recent(parts)
        self._followed: Recent[str, str] = Recent(parts)
        self._refused: Recent[str, TurnEdit] = Recent(parts)
        self.conversations = Conversations()
        self._lines: dict[tuple[str, str], int] = {}
        self._edited_calls: dict[str, int] = {}
        self._edited_positions: dict[int, int] = {}
        self._waiting: list[Reminder] = []
        self._noted: set[str] = set()
        self.restored = 0
        """How many parts an earlier process had kept."""
        self._once = Once()

    @property
    def edited_calls(self) -> Collection[str]:
        """The ids of calls whose result is edited."""
        wider = self._wider.edited_calls if self._wider is not None else ()
        return _Either(self._edited_calls.keys(), wider) if wider else self._edited_calls.keys()

    @property
    def edited_positions(self) -> Collection[int]:
        """The positions of prompts that are edited; all of them where a refused one may have moved."""
        return range(sys.maxsize) if self.has_refused else self._edited_positions.keys()

    @property
    def has_refused(self) -> bool:
        """Whether a prompt was refused in this session or the wider one."""
        return bool(self._refused.keys()) or (self._wider is not None and self._wider.has_refused)

    @property
    def changed_calls(self) -> Collection[str]:
        """The ids of calls whose arguments were changed for the agent."""
        return self._changed_calls.keys()

    @property
    def restores(self) -> bool:
        """Whether anything of the model's history may differ from what the client has of it."""
        return bool(self._lines or self._changed_calls)

    def remember_call(self, call: ProposedCall, verdict: Verdict, *, is_stored: bool = False) -> None:
        """Keeps a released call and its verdict, whose annotations wait for the result. A call needs an id for that.

        A later process is told of it where the verdict is to be heard, or the provider has `is_stored` the history:
        else all that matters is in the client's own.
        """
        if verdict.arguments is not None:
            self.keep_original(call.call_id, verdict.arguments, call.arguments)
        if not call.call_id:
            return
        with self._lock:
            before = self._calls.get(call.call_id)
            self._calls.put(call.call_id, (call, verdict))
        # Some providers count the ids of calls anew: what an earlier call had to say is not this one's.
        is_anew = before is not None and says_something(before[1])
        if is_stored or is_anew or says_something(verdict):
            self._store("call", [call.call_id], Released.of(call, verdict))

    def keep_original(self, call_id: str, given: JsonObject, own: JsonObject) -> None:
        """Keeps the arguments that the model gave a call which the agent was `given` with others.

        By both, since some providers count the ids of calls anew in each reply.
        """
        key = (call_id, _digest(given))
        self._put_original(key, own)
        self._store("original", list(key), own)

    def released_call(self, call_id: str) -> tuple[ProposedCall, Verdict] | None:
        """A call that was released, and its verdict, or None."""
        with self._lock:
            return self._calls.get(call_id)

    def result_edit(self, call_id: str, digest: str, nth: int = 0) -> ResultEdit | None:
        """The edit of this very result, or None; of equal ones in a history it is the `nth`, counted from 0."""
        found = self._own_result_edit(*_numbered((call_id, digest), nth))
        if found is None and self._wider is not None:
            return self._wider.result_edit(call_id, digest, nth)
        return found

    def turn_edit(self, position: int, digest: str) -> TurnEdit | None:
        """The edit of this very prompt, or None. One that was refused is so wherever it stands by now."""
        return self._own_turn_edit(position, digest) or self.refusal_of(digest)

    def lines(self, root: str) -> Collection[str]:
        """Our lines that stand for something in the conversation `root`, longest first."""
        if not self._lines:
            return ()
        with self._lock:
            return sorted((line for known, line in self._lines if known == root), key=len, reverse=True)

    def mark(self, root: str, line: str, nth: int) -> Mark | None:
        """What the `nth` such line in the conversation stands for, or None."""
        with self._lock:
            found = self._marks.get((root, line, nth))
        return found[1] if found else None

    def original(self, call_id: str, arguments: JsonObject) -> JsonObject | None:
        """The arguments that the model gave a call which the agent was given with these, or None."""
        if call_id not in self._changed_calls:
            return None
        with self._lock:
            found = self._originals.get((call_id, _digest(arguments)))
        return found[1] if found else None

    def resumed(self, response_id: str) -> Resumed | None:
        """What a response's id, as the client knows it, leads to at the provider; None when it is just that."""
        with self._lock:
            return self._resumed.get(response_id)

    def keep_mark(self, root: str, line: str, nth: int, mark: Mark) -> None:
        """Keeps what the `nth` such line in the conversation stands for."""
        self._put_mark((root, line, nth), mark)
        self._store("mark", [root, line, nth], mark)

    def keep_resumed(self, response_id: str, resumed: Resumed) -> None:
        """Keeps what a response's id leads to."""
        self._put(self._resumed, response_id, resumed)
        self._store("resumed", [response_id], resumed)

    def followed(self, response_id: str) -> str | None:
        """The session of whoever goes on from this response, or None."""
        with self._lock:
            return self._followed.get(response_id)

    def keep_followed(self, response_id: str, session: str) -> None:
        """Keeps whose a response is that the provider keeps the history of."""
        self._put(self._followed, response_id, session)
        self._store("followed", [response_id], session)

    def refusal_of(self, digest: str) -> TurnEdit | None:
        """The edit of a prompt that was refused in this session or the wider one, wherever it stands; or None."""
        with self._lock:
            found = self._refused.get(digest)
        if found is None and self._wider is not None:
            return self._wider.refusal_of(digest)
        return found if found is not None and found.refusal is not None else None

    def keep_refused(self, digest: str, edit: TurnEdit) -> None:
        """Keeps that a prompt was refused, or is not any more."""
        if edit.refusal is None and self.refusal_of(digest) is None:
            return
        self._put(self._refused, digest, edit)
        self._store("refused", [digest], edit)
        if self._wider is not None:
            self._wider.keep_refused(digest, edit)

    def keep_result(self, key: tuple[str, str], edit: ResultEdit) -> None:
        """Keeps the edit of a result, named by its call's id and its digest."""
        self._put_result(key, edit)
        self._store("result", list(key), edit, is_edit=not edit.is_empty)
        if self._wider is not None and edit.replacement is not None:
            self._wider.keep_result(key, edit)

    def add_to_turn(self, turn: NewTurn, reminder: str) -> None:
        """Adds a reminder to a prompt's edit, once."""
        key = (turn.position, turn.digest)
        edit = self._own_turn_edit(*key) or TurnEdit()
        if reminder not in edit.reminder:
            self._keep_turn(key, replace(edit, reminder=framed(edit.reminder, reminder)))

    def add_to_result(self, result: NewResult, reminder: str, nth: int = 0) -> None:
        """Adds a reminder below a result, the `nth` of equal ones, once."""
        key = _numbered((result.call_id, result.digest), nth)
        edit = self._own_result_edit(*key) or ResultEdit()
        if reminder not in edit.addition:
            self.keep_result(key, replace(edit, addition=framed(edit.addition, reminder)))

    def is_new(self, name: str) -> bool:
        """Whether nobody asked so of this name before; each is said once a session. Bounded."""
        with self._lock:
            if name in self._noted or len(self._noted) >= NOTED_MAX:
                return False
            self._noted.add(name)
            return True

    def wait_for_turn(self, reminders: Iterable[Reminder]) -> None:
        """Keeps reminders for the turn that starts next."""
        with self._lock:
            self._waiting += reminders
            waiting = tuple(self._waiting)
        self._store("waiting", [], waiting, is_edit=bool(waiting))

    def waiting(self) -> tuple[Reminder, ...]:
        """The reminders that waited for a turn; from then on they do not wait any more."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        self._store("waiting", [], (), is_edit=bool(waiting))
        return tuple(waiting)

    async def call_once(
        self, key: str, judge: Callable[[], Awaitable[Verdict]], *, call_id: str = "", now_s: float = 0.0
    ) -> Verdict:
        """The verdict on what `key` names; `judge` is asked only when it was not judged yet.

        Under another `call_id` it is the same for a while: a request that is sent again gets new ids of the provider.
        """
        async with self._once.of(key):
            known = self._verdicts.get(key)
            if known is not None and (known[1] == call_id or now_s - known[2] <= CALL_AGAIN_S):
                return known[0]
            verdict = await judge()
            if verdict.outcome != "off":
                with self._lock:
                    self._verdicts.put(key, (verdict, call_id, now_s))
            return verdict

    async def result_once(
        self,
        result: NewResult,
        judge: Callable[[], Awaitable[ResultEdit | None]],
        nth: Callable[[], int] = lambda: 0,
    ) -> ResultEdit:
        """The edit of `result`; `judge` is asked only when nobody judged it yet, by one request at a time.

        A `judge` that gives None decided nothing, and is asked again next time. Some providers count the ids of calls
        anew in each reply: `nth` tells which of equal results it is, and is asked only where that matters.
        """
        first = key = (result.call_id, result.digest)
        async with self._once.of(first):
            if self._own_result_edit(*first) is not None:
                key = _numbered(first, nth())
                known = self._own_result_edit(*key)
                if known is not None:
                    return known
            edit = await judge()
            if edit is None:
                return ResultEdit()
            if key == first and not edit.is_empty:
                key = _numbered(first, nth())
            if key != first and self._own_result_edit(*first) is None:
                self._put_result(first, ResultEdit())  # so that the next one is asked for its number
            self.keep_result(key, edit)
            return edit

    async def turn_once(
        self, turn: NewTurn, judge: Callable[[], Awaitable[TurnEdit | None]], *, is_anew: bool = False
    ) -> TurnEdit:
        """As `result_once`, for the person's newest message; one that was refused may be asked for anew."""
        key = (turn.position, turn.digest)
        async with self._once.of(key):
            known = self._own_turn_edit(*key)
            if known is not None and not (is_anew and known.refusal is not None):
                return known
            edit = await judge()
            if edit is not None:
                self._keep_turn(key, edit, is_known=known is not None)
            return edit or TurnEdit()

    def restore(self, kind: str, key: str, value: bytes) -> None:
        """Takes a part that an earlier process kept; what cannot be read is left out."""
        try:
            name = decoded(key.encode(), list[Any])
            match kind:
                case "result":
                    self._put_result((str(name[0]), str(name[1])), decoded(value, ResultEdit))
                case "turn":
                    self._put_turn((int(name[0]), str(name[1])), decoded(value, TurnEdit))
                case "mark":
                    self._put_mark((str(name[0]), str(name[1]), int(name[2])), decoded(value, Mark))
                case "call":
                    self._put(self._calls, str(name[0]), decoded(value, Released).known())
                case "original":
                    self._put_original((str(name[0]), str(name[1])), decoded(value, dict[str, Any]))
                case "resumed":
                    self._put(self._resumed, str(name[0]), decoded(value, Resumed))
                case "refused":
                    self._put(self._refused, str(name[0]), decoded(value, TurnEdit))
                case "followed":
                    self._put(self._followed, str(name[0]), decoded(value, str))
                case "waiting":
                    self._waiting = decoded(value, list[Reminder])
                case _:
                    return
            self.restored += 1
        except (ValueError, TypeError, IndexError):
            return

    def _own_result_edit(self, call_id: str, digest: str) -> ResultEdit | None:
        with self._lock:
            found = self._results.get((call_id, digest))
        return found[1] if found else None

    def _own_turn_edit(self, position: int, digest: str) -> TurnEdit | None:
        with self._lock:
            found = self._turns.get((position, digest))
        return found[1] if found else None

    def _keep_turn(self, key: tuple[int, str], edit: TurnEdit, *, is_known: bool = False) -> None:
        self._put_turn(key, edit)
        self.keep_refused(key[1], edit)
        self._store("turn", list(key), edit, is_edit=is_known or not edit.is_empty)

    def _store(self, kind: str, key: list[str | int], value: object, *, is_edit: bool = True) -> None:
        if self._keep is None or not is_edit:
            return
        with suppress(RecursionError):  # the next process does without what is nested too deep to be written
            self._keep(kind, encoded(key).decode(), encoded(value))

    def _put(self, parts: Recent[str, V], name: str, value: V) -> None:
        with self._lock:
            parts.put(name, value)

    def _put_result(self, key: tuple[str, str], edit: ResultEdit) -> None:
        with self._lock:
            gone = self._results.put(key, (key[0], edit))
            if not edit.is_empty:
                _count(self._edited_calls, key[0])
            _forget(self._edited_calls, [name for name, old in gone if not old.is_empty])

    def _put_turn(self, key: tuple[int, str], edit: TurnEdit) -> None:
        with self._lock:
            gone = self._turns.put(key, (key[0], edit))
            if not edit.is_empty:
                _count(self._edited_positions, key[0])
            _forget(self._edited_positions, [name for name, old in gone if not old.is_empty])

    def _put_original(self, key: tuple[str, str], own: JsonObject) -> None:
        with self._lock:
            gone = self._originals.put(key, (key[0], own))
            _count(self._changed_calls, key[0])
            _forget(self._changed_calls, [name for name, _ in gone])

    def _put_mark(self, key: tuple[str, str, int], mark: Mark) -> None:
        with self._lock:
            gone = self._marks.put(key, (key[:2], mark))
            _count(self._lines, key[:2])
            _forget(self._lines, [name for name, _ in gone])


class Ledger:
    """All sessions' memories. Any thread may use it; `session` belongs to one event loop."""

    def __init__(
        self, store: LedgerStore | None = None, *, sessions: int = SESSIONS_MAX, parts: int = PARTS_MAX
    ) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._parts = parts
        self._sessions: Recent[tuple[str, str], SessionLedger] = Recent(sessions)

    async def session(self, workspace: str, session: str, *, wider: SessionLedger | None = None) -> SessionLedger:
        """The memory of one session of one workspace; what the store has of it is read the first time, in a thread.

        So it is again when another process has served the session since. What has no session's name is shared by many:
        it is too much to be read whenever one of them adds to it.
        """
        key = (workspace, session)
        known = self._known(key)
        if known is not None:
            if session and self._store is not None and self._store.has_news(*key):
                await asyncio.to_thread(_restore, known, self._store, key)
            return known
        if self._store is None:
            return self._first(key, SessionLedger(self._parts, wider=wider))
        made = SessionLedger(self._parts, partial(self._store.keep, *key), wider)
        if self._store.may_know(*key):
            await asyncio.to_thread(_restore, made, self._store, key)
        return self._first(key, made)

    def _known(self, key: tuple[str, str]) -> SessionLedger | None:
        with self._lock:
            return self._sessions.get(key)

    def _first(self, key: tuple[str, str], made: SessionLedger) -> SessionLedger:
        """The ledger of a session that several requests may have asked for at once."""
        with self._lock:
            known = self._sessions.get(key)
            if known is None:
                known = made
                self._sessions.put(key, known)
            return known


class _Either(Collection[str]):
    """What is in one of two collections."""

    def __init__(self, first: Collection[str], second: Collection[str]) -> None:
        self._both = (first, second)

    def __contains__(self, item: object) -> bool:
        return any(item in one for one in self._both)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._both)

    def __len__(self) -> int:
        return sum(map(len, self._both))


def _restore(ledger: SessionLedger, store: LedgerStore, key: tuple[str, str]) -> None:
    for part in store.load(*key):
        ledger.restore(*part)


def _numbered(key: tuple[str, str], nth: int) -> tuple[str, str]:
    """The name of the `nth` result that has this one."""
    return key if nth == 0 else (key[0], f"{key[1]}#{nth}")


def _digest(arguments: JsonObject) -> str:
    try:
        return canonical_hash(arguments)
    except (ValueError, TypeError, RecursionError):
        return ""


def _count(counts: dict[K, int], name: K) -> None:
    counts[name] = counts.get(name, 0) + 1


def _forget(counts: dict[K, int], names: list[K]) -> None:
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]
