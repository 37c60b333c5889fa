"""The port `Approvals`: a question waits in `state.db` until a person answers it, in whichever process.

Knows: asking, waiting, answering, and who is there to answer. Does not know: how a question is shown, who is a person.
"""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from interpose.contracts.errors import StorageError
from interpose.contracts.journal import Record
from interpose.contracts.ports import ApprovalRequest, Clock, Journal
from interpose.kernel.ids import derived_id, random_id
from interpose.kernel.processes import ancestors, process_mark
from interpose.trust.questions import (
    NotWaitingError,
    OtherDigestError,
    OwnQuestionError,
    Question,
    State,
    UnknownQuestionError,
)
from interpose.trust.store import WAITING_MAX, QuestionStore, Watcher

POLL_S: Final = 0.1
"""An answer that another process gives is seen at most this many seconds later."""

BEAT_S: Final = 1.5
"""How often a watcher says that it is there."""

GLIMPSE_CHARS: Final = 200
"""How much of a command the journal's line about a question keeps."""

CLOSE_S: Final = 1.0
"""How long closing waits for those who ask to take back their questions."""


class SqliteApprovals:
    """The port `Approvals` on a table that any number of processes share. Any thread may call any method.

    Raises StorageError when it is made and the file cannot be opened; later from all methods but `can_ask`, and whoever
    asks takes that for a no.
    """

    def __init__(self, state_db: Path, *, clock: Clock, journal: Journal | None = None) -> None:
        """`journal` is told of each question and what became of it."""
        self._clock = clock
        self._journal = journal
        self._store = QuestionStore(state_db)
        self._changed = threading.Condition()
        self._revision = 0
        self._asking = 0
        self._stopped = False
        self._is_broken = False

    def ask(
        self, request: ApprovalRequest, *, timeout_s: float, given_up: threading.Event | None = None
    ) -> bool | None:
        """True for yes, False for no, None when nobody answered in `timeout_s`, or when too many questions wait.

        `given_up`, once set, withdraws the question within a tenth of a second: None then, too. Raises StorageError
        when the question cannot be kept or its answer not be read: nobody said yes.
        """
        with self._counted():
            question = self._store.add(request, now=self._clock.now(), timeout_s=timeout_s)
            if question is None:
                self._problem(f"{WAITING_MAX} questions wait for an answer already, so no more are asked")
                return None

            self._wake()
            self._tell(question, step="notice", outcome="waiting", reason=_asked(question, timeout_s))
            started = self._clock.monotonic()
            try:
                settled = self._settled(question, started + timeout_s, given_up)
            except BaseException:
                with suppress(StorageError):
                    self._store.settle(question.id, "withdrawn", now=self._clock.now())
                raise
        answer = "continue" if settled.state == "allowed" else "cancel"
        waited_ms = (self._clock.monotonic() - started) * 1000
        self._tell(settled, step="answer", answer=answer, reason=_answered(settled), duration_ms=waited_ms)
        if settled.state not in ("allowed", "denied"):
            return None
        return settled.state == "allowed" and settled.digest == request.digest

    def can_ask(self) -> bool:
        """Whether a terminal shows questions now, here or in another process; False when the file cannot be read."""
        if self._stopped:
            return False
        try:
            return bool(self.watchers()) and not self._store.is_full(self._clock.now())
        except StorageError as error:
            if not self._is_broken:
                self._is_broken = True
                self._problem(f"nobody can be asked: {error}")
            return False

    def answer(self, question_id: str, digest: str, *, yes: bool, who: str) -> Question:
        """Settles a waiting question; `digest` is that of the call that was shown, `who` says where a person answered.

        Raises UnknownQuestionError, OtherDigestError when the question is about another call, NotWaitingError when it
        is settled already, and OwnQuestionError when this process descends from the one that asks.
        """
        found = self.find(question_id)
        if found.pid in ancestors(os.getpid()):
            raise OwnQuestionError(found)
        if found.digest != digest:
            raise OtherDigestError(question_id, digest)
        if found.state != "waiting":
            raise NotWaitingError(found)
        state: State = "allowed" if yes else "denied"
        done = self._store.settle(question_id, state, now=self._clock.now(), who=who, digest=digest)
        self._wake()
        settled = self.find(question_id)
        if not done:
            raise NotWaitingError(settled)
        return settled

    def find(self, question_id: str) -> Question:
        """The question with this id, as it is now. Raises UnknownQuestionError."""
        self.waiting()  # what can no longer be answered is settled by looking
        found = self._store.find(question_id)
        if found is None:
            raise UnknownQuestionError(question_id)
        return found

    def waiting(self) -> tuple[Question, ...]:
        """What waits for an answer, the oldest first."""
        return self._store.waiting(self._clock.now())

    def recent(self, limit: int = 20) -> tuple[Question, ...]:
        """What was settled within the last week, the newest first."""
        return self._store.recent(limit)

    def watchers(self) -> tuple[Watcher, ...]:
        """The terminals that show questions now."""
        return self._store.watchers(self._clock.now())

    def version(self) -> tuple[int, int]:
        """What changes whenever a question may have changed; cheap enough to poll."""
        return self._store.version(), self._revision

    @contextmanager
    def watching(self, place: str) -> Iterator["Watch"]:
        """Counts as somebody who can answer, for as long as the `with` lasts and `Watch.beat` is called."""
        pid = os.getpid()
        watch = Watch(self._store, self._clock, pid, process_mark(pid), place)
        try:
            yield watch
        finally:
            with suppress(StorageError):
                watch.leave()

    def stop(self, pids: Iterable[int] = ()) -> None:
        """Withdraws what this process and those with these `pids` ask; this one asks no more.

        Whoever waits is told at once that nobody answered.
        """
        self._stopped = True
        self._wake()
        others = frozenset(pids)
        with suppress(StorageError):
            for question in self.waiting() if others else ():
                if question.pid in others:
                    self._store.settle(question.id, "withdrawn", now=self._clock.now())

    def close(self) -> None:
        """Stops, and lets the file go; later calls raise StorageError. Idempotent."""
        self.stop()
        with self._changed:
            self._changed.wait_for(lambda: not self._asking, CLOSE_S)
        self._store.close()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._changed:
            self._asking += 1
        try:
            yield
        finally:
            with self._changed:
                self._asking -= 1
                self._changed.notify_all()

    def _settled(self, question: Question, deadline: float, given_up: threading.Event | None) -> Question:
        seen: tuple[int, int] | None = None
        while True:
            version = self.version()
            if version != seen:
                seen = version
                question = self._store.find(question.id) or _lost(question)
                if question.state != "waiting":
                    return question
            left_s = deadline - self._clock.monotonic()
            if self._stopped or left_s <= 0 or (given_up is not None and given_up.is_set()):
                return self._ended(question, "expired" if left_s <= 0 else "withdrawn")
            with self._changed:
                if self._revision == seen[1]:
                    self._changed.wait(min(POLL_S, left_s))

    def _ended(self, question: Question, state: State) -> Question:
        """Settles it, unless an answer came at the last moment, which then counts."""
        self._store.settle(question.id, state, now=self._clock.now())
        self._wake()
        return self._store.find(question.id) or _lost(question)

    def _wake(self) -> None:
        with self._changed:
            self._revision += 1
            self._changed.notify_all()

    def _tell(self, question: Question, **fields: Any) -> None:
        if self._journal is None:
            return
        has_action = question.session and question.call_id
        self._journal.write(
            Record(
                at=self._clock.now(),
                # The same words lead to the same id where the call is judged, so that its story tells of the question.
                action=derived_id("a", question.session, question.call_id) if has_action else random_id("a", 10),
                stage="tool.call",
                workspace=question.workspace,
                session=question.session,
                agent=question.agent,
                wire_name=question.tool_name,
                call_id=question.call_id,
                handler=question.handler if question.state == "waiting" else question.who or question.handler,
                phase="ask",
                data={"question": question.id, "digest": question.digest, "input": _glimpse(question)},
                **fields,
            )
        )

    def _problem(self, reason: str) -> None:
        if self._journal is not None:
            self._journal.write(Record(at=self._clock.now(), action="approvals", step="problem", reason=reason))


class Watch:
    """One terminal that shows questions; `place` is what people call it. One thread at a time calls it."""

    def __init__(self, store: QuestionStore, clock: Clock, pid: int, mark: str, place: str) -> None:
        self._store = store
        self._clock = clock
        self._pid = pid
        self._mark = mark
        self.place = place
        self._last = float("-inf")

    def beat(self) -> None:
        """Says that somebody is there; writes at most every 1.5 seconds, so call it as often as you like."""
        now = self._clock.monotonic()
        if now - self._last < BEAT_S:
            return
        self._store.beat(self._watcher())
        self._last = now

    def leave(self) -> None:
        """Says that nobody is there any more, until the next `beat`."""
        if self._last != float("-inf"):
            self._store.leave(self._watcher())
            self._last = float("-inf")

    def _watcher(self) -> Watcher:
        return Watcher(self._pid, self._mark, self.place, self._clock.now())


def _asked(question: Question, timeout_s: float) -> str:
    # A handler's own reason stands in the line of the policy that asks.
    why = f": {question.reason}" if question.reason and not question.handler else ""
    return f"{question.id} waits for a person's yes, {timeout_s:g} s long{why}"


def _answered(question: Question) -> str:
    match question.state:
        case "allowed":
            return f"yes to {question.id}"
        case "denied":
            return f"no to {question.id}"
        case _:
            return f"{question.id} {question.ending}"


def _glimpse(question: Question) -> dict[str, str]:
    """Enough of the call for a line of the journal."""
    command = question.arguments.get("command")
    return {"command": command[:GLIMPSE_CHARS]} if isinstance(command, str) else {}


def _lost(question: Question) -> Question:
    """As withdrawn: somebody removed the row, and nobody said yes."""
    return replace(question, state="withdrawn")
