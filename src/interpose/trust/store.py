"""Questions and watchers in `state.db`, shared by every process of the same user.

Knows: rows, and that each change of a state happens once. Does not know: how long anybody waits.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interpose.contracts.errors import StorageError
from interpose.contracts.ports import ApprovalRequest
from interpose.kernel.db import Row, open_database
from interpose.kernel.ids import random_id
from interpose.kernel.processes import is_running, process_mark
from interpose.trust.questions import Question, State, shown_arguments, shown_text
from interpose.trust.schema import TRUST_SCHEMA

KEPT_S: Final = 7 * 86_400
"""How long a settled question is kept."""

KEPT_MAX: Final = 2_000
WAITING_MAX: Final = 200
"""So many questions wait at once; a person who has more of them is not there."""

WATCHER_FRESH_S: Final = 5.0
"""A watcher that was last seen longer ago than this is not counted on."""

_FIELDS = (
    "id, digest, tool_name, arguments, is_whole, reason, handler, agent, session, workspace, call_id, pid, mark, "
    "asked_at, expires_at, state, who, settled_at"
)
_EXPIRY_GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Watcher:
    """A terminal at which questions are shown to a person."""

    pid: int
    mark: str
    place: str
    seen_at: float


class QuestionStore:
    """The tables of this room. Any thread may call any method; all raise StorageError when the file cannot be used."""

    def __init__(self, path: Path, *, busy_timeout_s: float = 2.0) -> None:
        self._database = open_database(path, TRUST_SCHEMA, busy_timeout_s=busy_timeout_s)

    def add(self, request: ApprovalRequest, *, now: float, timeout_s: float) -> Question | None:
        """A new waiting question; None when too many wait already."""
        arguments, is_whole = shown_arguments(request.arguments)
        pid = os.getpid()
        texts = (request.reason, request.handler, request.agent, request.session, request.workspace, request.call_id)
        values = [request.digest, shown_text(request.tool_name), arguments, is_whole, *map(shown_text, texts)]
        values += [pid, process_mark(pid), now, now + timeout_s]
        with self._database.transaction():
            self._clean(now)
            if self.is_full(now):
                return None
            question_id = self._free_id()
            marks = ", ".join("?" * (len(values) + 1))
            columns = _FIELDS.removesuffix(", state, who, settled_at")
            self._database.execute(
                f"INSERT INTO questions ({columns}) VALUES ({marks})",  # noqa: S608 - our own names
                (question_id, *values),
            )
        return self.find(question_id)

    def find(self, question_id: str) -> Question | None:
        """The question with this id."""
        found = self._select("WHERE id = ?", (question_id,))
        return found[0] if found else None

    def waiting(self, now: float) -> tuple[Question, ...]:
        """What waits, the oldest first. What cannot be answered any more is settled on the way."""
        still: list[Question] = []
        for question in self._select("WHERE state = 'waiting' ORDER BY asked_at, id"):
            if now > question.expires_at + _EXPIRY_GRACE_S:
                self.settle(question.id, "expired", now=now)
            elif not is_running(question.pid, question.mark):
                self.settle(question.id, "gone", now=now)
            else:
                still.append(question)
        return tuple(still)

    def is_full(self, now: float) -> bool:
        """Whether as many questions wait as may."""
        count = int(self._database.query("SELECT count(*) FROM questions WHERE state = 'waiting'")[0][0])
        return count >= WAITING_MAX and len(self.waiting(now)) >= WAITING_MAX

    def recent(self, limit: int) -> tuple[Question, ...]:
        """What was settled, the newest first."""
        return self._select("WHERE state <> 'waiting' ORDER BY settled_at DESC, id LIMIT ?", (limit,))

    def settle(self, question_id: str, state: State, *, now: float, who: str = "", digest: str = "") -> bool:
        """Ends the waiting; False when it does not wait any more, or is not about `digest`, where that is given."""
        about = " AND digest = ?" if digest else ""
        changed = self._database.execute(
            f"UPDATE questions SET state = ?, who = ?, settled_at = ? WHERE id = ? AND state = 'waiting'{about}",  # noqa: S608 - our own words
            (state, who, now, question_id, *((digest,) if digest else ())),
        )
        return changed == 1

    def beat(self, watcher: Watcher) -> None:
        """Says that the watcher is there."""
        with self._database.transaction():
            self._database.execute("DELETE FROM watchers WHERE seen_at < ?", (watcher.seen_at - 3_600,))
            self._database.execute(
                "INSERT OR REPLACE INTO watchers (pid, mark, place, seen_at) VALUES (?, ?, ?, ?)",
                (watcher.pid, watcher.mark, watcher.place, watcher.seen_at),
            )

    def leave(self, watcher: Watcher) -> None:
        """Says that the watcher is not there any more."""
        self._database.execute(
            "DELETE FROM watchers WHERE pid = ? AND mark = ? AND place = ?", (watcher.pid, watcher.mark, watcher.place)
        )

    def watchers(self, now: float) -> tuple[Watcher, ...]:
        """The terminals where somebody can answer now."""
        rows = self._database.query(
            "SELECT pid, mark, place, seen_at FROM watchers WHERE abs(seen_at - ?) <= ? ORDER BY seen_at DESC",
            (now, WATCHER_FRESH_S),
        )
        found = (Watcher(*row) for row in rows)
        return tuple(watcher for watcher in found if is_running(watcher.pid, watcher.mark))

    def version(self) -> int:
        """A number that changes when another connection has written; cheap enough to poll."""
        return self._database.changes_by_others()

    def close(self) -> None:
        """Lets the file go."""
        self._database.close()

    def _select(self, condition: str, values: Sequence[object] = ()) -> tuple[Question, ...]:
        rows = self._database.query(f"SELECT {_FIELDS} FROM questions {condition}", values)  # noqa: S608 - our own words
        return tuple(_question(row, self._database.path) for row in rows)

    def _free_id(self) -> str:
        for length in (4, 4, 4, 8, 12):
            question_id = _short_id(length)
            if not self._database.query("SELECT 1 FROM questions WHERE id = ?", (question_id,)):
                return question_id
        return _short_id(16)

    def _clean(self, now: float) -> None:
        self._database.execute("DELETE FROM questions WHERE state <> 'waiting' AND settled_at < ?", (now - KEPT_S,))
        self._database.execute(
            "DELETE FROM questions WHERE id IN (SELECT id FROM questions WHERE state <> 'waiting' "
            "ORDER BY settled_at DESC LIMIT -1 OFFSET ?)",
            (KEPT_MAX,),
        )


def _short_id(length: int) -> str:
    return "q-" + random_id("", length + 2)[2:]  # without the moment, which makes ids of one minute look alike


def _question(row: Row, path: Path) -> Question:
    fields = dict(zip(_FIELDS.split(", "), row, strict=True))
    try:
        shown = json.loads(fields["arguments"])
    except ValueError as error:
        raise StorageError(f"{path}: the question {fields['id']} is damaged: move the file away") from error
    return Question(**(fields | {"arguments": shown, "is_whole": bool(fields["is_whole"])}))
