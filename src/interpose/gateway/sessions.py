"""What edits the sessions' histories, in `state.db`, for the process that serves them next.

Knows: a table, a thread that writes it, how long a part is kept. Does not know: what a part means.
"""

import queue
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from interpose.contracts.errors import StorageError
from interpose.contracts.ports import Clock
from interpose.kernel.db import Migration, Schema, open_database

KEPT_S: Final = 30 * 24 * 3600.0
"""How long a session is remembered after its last change."""

SESSIONS_KEPT: Final = 1_000
"""How many sessions are remembered; those changed longest ago go first."""

PARTS_KEPT: Final = 10_000
"""How many parts of one session are remembered."""

FLUSH_TIMEOUT_S: Final = 5.0
_BATCH: Final = 500

_SCHEMA = Schema(
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
    ),
)

_Part: TypeAlias = tuple[str, str, str, str, bytes, float]


class SqliteLedgers:
    """The port `LedgerStore` on a table that any number of processes share. Any thread may call any method.

    Raises StorageError when it is made and the file cannot be opened. Later a part that cannot be written is `lost`,
    which is told once for each fault.
    """

    def __init__(self, path: Path, *, clock: Clock, lost: Callable[[str], None] = lambda _reason: None) -> None:
        self._clock = clock
        self._lost = lost
        self._database = open_database(path, _SCHEMA)
        self._queue: queue.SimpleQueue[_Part | threading.Event | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._writer: threading.Thread | None = None
        self._forget_old()

    def load(self, workspace: str, session: str) -> Iterable[tuple[str, str, bytes]]:
        """The parts of a session, those changed longest ago first; none when they cannot be read."""
        self.flush()
        try:
            rows = self._database.query(
                "SELECT kind, key, value FROM session_parts WHERE workspace = ? AND session = ? ORDER BY at, rowid",
                (workspace, session),
            )
        except StorageError as error:
            self._lost(f"what a session was told before cannot be read: {error}")
            return []
        return [(str(kind), str(key), bytes(value)) for kind, key, value in rows]

    def keep(self, workspace: str, session: str, kind: str, key: str, value: bytes) -> None:
        """Hands a part to the writing thread."""
        if self._writer is None:
            self._start()
        self._queue.put((workspace, session, kind, key, value, self._clock.now()))

    def flush(self, timeout_s: float = FLUSH_TIMEOUT_S) -> bool:
        """Waits until what was kept so far is written; False when that took longer than `timeout_s`."""
        if self._writer is None:
            return True
        written = threading.Event()
        self._queue.put(written)
        return written.wait(timeout_s)

    def close(self) -> None:
        """Writes what waits and lets the file go. May be called twice."""
        with self._starting:
            writer, self._writer = self._writer, None
        if writer is not None:
            self._queue.put(None)
            writer.join(FLUSH_TIMEOUT_S)
        self._database.close()

    def _start(self) -> None:
        with self._starting:
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="interpose-sessions", daemon=True)
                self._writer.start()

    def _write(self) -> None:
        while True:
            batch: list[_Part] = []
            waiting: list[threading.Event] = []
            item = self._queue.get()
            while item is not None:
                if isinstance(item, threading.Event):
                    waiting.append(item)
                else:
                    batch.append(item)
                if len(batch) >= _BATCH or self._queue.empty():
                    break
                item = self._queue.get()
            self._put(batch)
            for written in waiting:
                written.set()
            if item is None:
                return

    def _put(self, batch: list[_Part]) -> None:
        if not batch:
            return
        try:
            with self._database.transaction():
                self._database.execute_many(
                    "INSERT OR REPLACE INTO session_parts (workspace, session, kind, key, value, at)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    batch,
                )
                for workspace, session in {part[:2] for part in batch}:
                    self._database.execute(
                        "DELETE FROM session_parts WHERE rowid IN (SELECT rowid FROM session_parts"
                        " WHERE workspace = ? AND session = ? ORDER BY at DESC, rowid DESC LIMIT -1 OFFSET ?)",
                        (workspace, session, PARTS_KEPT),
                    )
        except StorageError as error:
            self._lost(f"{len(batch)} parts of sessions are not kept for the next process: {error}")

    def _forget_old(self) -> None:
        with suppress(StorageError), self._database.transaction():
            self._database.execute("DELETE FROM session_parts WHERE at < ?", (self._clock.now() - KEPT_S,))
            self._database.execute(
                "DELETE FROM session_parts WHERE (workspace, session) IN (SELECT workspace, session FROM session_parts"
                " GROUP BY workspace, session ORDER BY max(at) DESC LIMIT -1 OFFSET ?)",
                (SESSIONS_KEPT,),
            )
