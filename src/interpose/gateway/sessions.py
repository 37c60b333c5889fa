"""What edits the sessions' histories, in `state.db`, for the process that serves them next.

Knows: a table, a thread that writes it, how long a part is kept. Does not know: what a part means.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from interpose.contracts.errors import StorageError
from interpose.contracts.ports import Clock
from interpose.kernel.db import Migration, Schema, open_database, open_reader

KEPT_S: Final = 30 * 24 * 3600.0
"""How long a session is remembered after its last change."""

SESSIONS_KEPT: Final = 1_000
"""How many sessions are remembered; those changed longest ago go first."""

PARTS_KEPT: Final = 10_000
"""How many parts of one session are remembered; the rest is forgotten when the session is taken up again."""

FLUSH_TIMEOUT_S: Final = 5.0
GATHER_S: Final = 0.05
"""How long a part may wait for others before it is written."""

LOOK_EVERY_S: Final = 0.05
"""How long the list of known sessions holds: nobody else's part is in the table sooner after it was kept."""

LOOK_WAIT_S: Final = 0.05
"""How long a look at the table may wait; a reader waits only while the file is put in order."""

LISTED_MAX: Final = 200_000
"""Of more sessions no list is held: each of them is looked for."""

WAITING_MAX: Final = 50_000
"""At most so many parts wait; where the disk is that far behind, the oldest are not kept."""

SCHEMA = Schema(
    "gateway",
    (
        Migration(
            1,
            (
                """
                CREATE TABLE session_parts (
                    workspace TEXT NOT NULL,
                    session TEXT NOT NULL,
                    kind TEXT NOT NULL,
                    key TEXT NOT NULL,
                    value BLOB NOT NULL,
                    at REAL NOT NULL,
                    PRIMARY KEY (workspace, session, kind, key)
                )
                """,
                "CREATE INDEX session_parts_by_age ON session_parts (at)",
            ),
        ),
        # Each part paid for it, and only a start ever looked for the old ones.
        Migration(2, ("DROP INDEX session_parts_by_age",)),
        # Nor is it looked for an earlier part of the same name when one is written, but when a session is read.
        Migration(
            3,
            (
                "ALTER TABLE session_parts RENAME TO named_session_parts",
                """
                CREATE TABLE session_parts (
                    workspace TEXT NOT NULL,
                    session TEXT NOT NULL,
                    kind TEXT NOT NULL,
                    key TEXT NOT NULL,
                    value BLOB NOT NULL,
                    at REAL NOT NULL
                )
                """,
                """
                INSERT INTO session_parts (workspace, session, kind, key, value, at)
                SELECT workspace, session, kind, key, value, at FROM named_session_parts ORDER BY at, rowid
                """,
                "DROP TABLE named_session_parts",
                "CREATE INDEX session_parts_by_session ON session_parts (session)",
            ),
        ),
    ),
)

_COLUMNS: Final = ("workspace", "session", "kind", "key", "value", "at")
_Part: TypeAlias = tuple[str, str, str, str, bytes, float]


class SqliteLedgers:
    """The port `LedgerStore` on a table that any number of processes share. Any thread may call any method.

    Raises StorageError when it is made and the file cannot be opened. Later a part that cannot be written is `lost`,
    which is told once for each fault.
    """

    def __init__(self, path: Path, *, clock: Clock, lost: Callable[[str], None] = lambda _reason: None) -> None:
        self._clock = clock
        self._lost = lost
        self._database = open_database(path, SCHEMA)
        self._reader = open_reader(path, SCHEMA, busy_timeout_s=LOOK_WAIT_S)
        self._keeping = threading.Lock()
        self._waiting: deque[_Part] = deque(maxlen=WAITING_MAX)
        self._listed: set[int] = set()
        """The hashes of the sessions that the table has, or will have."""
        self._due: dict[int, int] = {}
        """How many parts of a session were seen in the table beyond those that were kept here: below 0 while these are
        on their way.
        """
        self._news: set[int] = set()
        """The hashes of the sessions that others kept parts of."""
        self._last_row = 0
        self._flushing: deque[threading.Event] = deque()
        self._hurry = threading.Event()
        self._is_closed = False
        self._starting = threading.Lock()
        self._writer: threading.Thread | None = None
        self._forget_old()
        self._looked_at = clock.monotonic()
        self._is_current = self._look()

    def may_know(self, workspace: str, session: str) -> bool:
        """Whether parts of a session are in the table, or on their way there; True where that cannot be told.

        Asked for each new session, so a list is held, and the table is looked at for what others have added: each look
        costs a loop that others wait for as much as many answers.
        """
        with self._keeping:
            self._look_in_time()
            return not self._is_current or hash((workspace, session)) in self._listed

    def has_news(self, workspace: str, session: str) -> bool:
        """Whether another process has written parts of a session since it was loaded, as far as the last look tells."""
        with self._keeping:
            self._look_in_time()
            return hash((workspace, session)) in self._news

    def load(self, workspace: str, session: str) -> Iterable[tuple[str, str, bytes]]:
        """The parts of a session, those changed longest ago first; none when they cannot be read.

        What was kept anew, and of a session with more than `PARTS_KEPT` the rest, is forgotten for good.
        """
        self.flush()
        with self._keeping:
            self._is_current = self._look()  # so that no part is taken for another's when it is gone from the table
            self._news.discard(hash((workspace, session)))
        try:
            self._database.execute(
                "DELETE FROM session_parts WHERE workspace = ? AND session = ? AND rowid NOT IN"
                " (SELECT max(rowid) AS newest FROM session_parts WHERE workspace = ? AND session = ?"
                " GROUP BY kind, key ORDER BY newest DESC LIMIT ?)",
                (workspace, session, workspace, session, PARTS_KEPT),
            )
            rows = self._database.query(
                "SELECT kind, key, value FROM session_parts WHERE workspace = ? AND session = ? ORDER BY rowid",
                (workspace, session),
            )
        except StorageError as error:
            self._lost(f"what a session was told before cannot be read: {error}")
            return []
        return [(str(kind), str(key), bytes(value)) for kind, key, value in rows]

    def keep(self, workspace: str, session: str, kind: str, key: str, value: bytes) -> None:
        """Hands a part to the writing thread, which takes many of them at once."""
        name = hash((workspace, session))
        with self._keeping:
            self._waiting.append((workspace, session, kind, key, value, self._clock.now()))
            if len(self._listed) < LISTED_MAX:
                self._listed.add(name)
                self._due[name] = self._due.get(name, 0) - 1
        if self._writer is None:
            self._start()

    def flush(self, timeout_s: float = FLUSH_TIMEOUT_S) -> bool:
        """Waits until what was kept so far is written; False when that took longer than `timeout_s`."""
        if self._writer is None:
            return True
        written = threading.Event()
        self._flushing.append(written)
        self._hurry.set()
        return written.wait(timeout_s)

    def close(self) -> None:
        """Writes what waits and lets the file go; what is kept later is lost. May be called twice."""
        with self._starting:
            writer, self._writer = self._writer, None
            self._is_closed = True
        if writer is not None:
            self._hurry.set()
            writer.join(FLUSH_TIMEOUT_S)
        self._database.close()
        if self._reader is not None:
            self._reader.close()
        self._is_current = False

    def _start(self) -> None:
        with self._starting:
            if self._writer is None and not self._is_closed:
                self._writer = threading.Thread(target=self._write, name="interpose-sessions", daemon=True)
                self._writer.start()

    def _write(self) -> None:
        while True:
            # Nobody wakes it for a part: that would cost the caller more than the part itself.
            self._hurry.wait(GATHER_S)
            self._hurry.clear()
            is_last = self._is_closed
            flushing = [self._flushing.popleft() for _ in range(len(self._flushing))]
            self._put(self._taken())
            for written in flushing:
                written.set()
            if is_last:
                return

    def _taken(self) -> list[_Part]:
        with self._keeping:
            batch = list(self._waiting)
            self._waiting.clear()
        return batch

    def _look_in_time(self) -> None:
        now = self._clock.monotonic()
        if now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = now
            self._is_current = self._look()

    def _look(self) -> bool:
        """Adds the sessions of which parts were written since the last look; False where not all can be listed."""
        if self._reader is None or len(self._listed) >= LISTED_MAX:
            return False
        try:
            rows = self._reader.query(
                "SELECT workspace, session, count(*), max(rowid) FROM session_parts WHERE rowid > ?"
                " GROUP BY workspace, session",
                (self._last_row,),
            )
        except StorageError:
            return False
        for workspace, session, count, newest in rows:
            self._seen(hash((workspace, session)), int(str(count)))
            self._last_row = max(self._last_row, int(str(newest)))
        return len(self._listed) < LISTED_MAX

    def _seen(self, name: int, count: int) -> None:
        """Takes the parts of a session that are new in the table; those that were not kept here are another's."""
        self._listed.add(name)
        due = self._due.pop(name, 0) + count
        if due > 0:
            self._news.add(name)
        elif due < 0:
            self._due[name] = due

    def _put(self, batch: list[_Part]) -> None:
        if not batch:
            return
        try:
            self._database.append("session_parts", _COLUMNS, batch)
        except StorageError as error:
            with self._keeping:
                for workspace, session, *_ in batch:
                    self._seen(hash((workspace, session)), 1)  # it is waited for no more
            self._lost(f"{len(batch)} parts of sessions are not kept for the next process: {error}")

    def _forget_old(self) -> None:
        with suppress(StorageError), self._database.transaction():
            self._database.execute("DELETE FROM session_parts WHERE at < ?", (self._clock.now() - KEPT_S,))
            self._database.execute(
                "DELETE FROM session_parts WHERE (workspace, session) IN (SELECT workspace, session FROM session_parts"
                " GROUP BY workspace, session ORDER BY max(at) DESC LIMIT -1 OFFSET ?)",
                (SESSIONS_KEPT,),
            )
