"""The journal on SQLite: callers hand over, one thread writes in batches.

Knows: the queue and its bound, the writing thread, what to do while the file cannot be written.
Does not know: what a record means, or who reads it.

A caller pays for packing and an append. The thread masks, inserts and commits what came within about twenty
milliseconds, or a hundred while thousands come in a second. While the disk is full or the file is broken, records wait
in the queue; when the queue is full too they are counted, and a gap record says how many are missing as soon as writing
works again. A commit survives the death of the process.
"""

import atexit
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from interpose.contracts.errors import StorageError
from interpose.contracts.journal import Record
from interpose.contracts.ports import Clock
from interpose.journal.codec import FIELDS, Masked, pack, to_row, without_secrets
from interpose.journal.fanout import Relay
from interpose.journal.health import Health
from interpose.journal.schema import JOURNAL_SCHEMA
from interpose.kernel.boundary import fault_line, guarded
from interpose.kernel.db import Database, open_database
from interpose.kernel.ids import random_id

QUEUE_BYTES = 64 * 1024 * 1024
HAND_OVER_S = 0.02

_BATCH_RECORDS = 2_000
_MANY_RECORDS = 50
_MANY_S = 0.08
"""Where so many wait already, more are gathered for as long: a batch costs those who write a moment, whatever its size.
"""
_CHECKPOINT_PAGES = 4_000
_RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0)
_COLUMNS = ("writer", *FIELDS)


class SqliteJournal:
    """The port `Journal` on one SQLite file, which any number of processes may write at the same time.

    All but `close` may be used from any thread. Do not share an instance across a fork.
    Raises StorageError when it is made and the file cannot be opened; after that nothing is raised to a caller.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        queue_bytes: int = QUEUE_BYTES,
        hand_over_s: float = HAND_OVER_S,
        on_health: Callable[[Health], None] | None = None,
        relay: Relay | None = None,
    ) -> None:
        """`on_health` is told by the writing thread, which waits for it: after each attempt that fails (about one a
        second), when writing works again, when lines were lost, and at the end if something was.

        `relay` is told all that is written, as it comes and whether or not the file can be written; it is closed with
        the journal.
        """
        self._path = path
        self._clock = clock
        self._queue_bytes = queue_bytes
        self._hand_over_s = hand_over_s
        self._on_health = on_health
        self._health_told = Health()  # the writing thread's own
        self._relay = relay
        self._writer = random_id("w")
        self._database = _opened(path)
        self._inode = _inode(path)

        self._lock = threading.RLock()  # taken by itself where every caller passes: a condition costs more to enter
        self._changed = threading.Condition(self._lock)
        self._waiting: list[bytes] = []
        self._masked: list[bytes] = []  # waits too; the writing thread's own
        self._waiting_bytes = 0
        self._accepted = 0
        self._settled = 0
        self._hurry_until = 0
        self._flushes = 0
        self._attempts_failed = 0
        self._lost = 0
        self._lost_told = 0
        self._problem: str | None = None
        self._closing = False
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="interpose-journal", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @property
    def lost(self) -> int:
        """How many records could not be kept since this instance was made."""
        return self._lost

    @property
    def problem(self) -> str | None:
        """Why nothing can be written at the moment, in words for a person; None while all is well."""
        return self._problem

    @property
    def health(self) -> Health:
        """How it stands now; once it is closed, what still waits was not written in time either."""
        with self._lock:
            return Health(self._problem, len(self._waiting) + len(self._masked), self._lost)

    def write(self, record: Record) -> None:
        """Takes one record. Never raises and never waits for the disk; a record that finds the queue full is lost."""
        packed = pack(record)
        with self._lock:
            if self._closing or self._waiting_bytes + len(packed) > self._queue_bytes:
                self._lost += 1
                return

            self._waiting.append(packed)
            self._waiting_bytes += len(packed)
            self._accepted += 1
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Waits until what was written so far is committed, and the relay's listener has seen it.

        False when that took longer than `timeout_s`, when an attempt to write failed meanwhile, or when a record has
        been lost that no gap record tells of yet.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            target, failed = self._accepted, self._attempts_failed
            self._hurry_until = target
            self._flushes += 1
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._is_kept(target) or self._attempts_failed > failed or self._stopped, timeout_s
            )
            kept = self._is_kept(target)
        heard = self._relay is None or self._relay.flush(max(0.0, deadline - time.monotonic()))
        return kept and heard

    def close(self, timeout_s: float = 5.0) -> None:
        """Writes what is left and stops; later records count as lost. May be called twice."""
        atexit.unregister(self.close)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        if self._relay is not None:
            self._relay.close(timeout_s)

    def _run(self) -> None:
        failures = 0
        while self._gather():
            is_last = self._closing
            fault = guarded(self._commit, failure=_words)
            failures = failures + 1 if fault else 0
            self._settle(fault)
            if fault and is_last:
                break
            if fault:
                self._pause(_RETRY_S[min(failures, len(_RETRY_S)) - 1])
        self._stop()

    def _gather(self) -> bool:
        """Waits until a few milliseconds' worth has come together; False when there is nothing left to do."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_busy or self._closing)
            # Each wake-up costs the callers more than their appends do.
            if len(self._waiting) < _BATCH_RECORDS:
                self._changed.wait_for(self._is_hurried, self._hand_over_s)
            if _MANY_RECORDS <= len(self._waiting) < _BATCH_RECORDS:
                self._changed.wait_for(self._is_hurried, _MANY_S)
            return self._is_busy

    def _is_hurried(self) -> bool:
        return self._settled < self._hurry_until or self._closing

    @property
    def _is_busy(self) -> bool:
        return bool(self._waiting or self._masked) or self._lost > self._lost_told

    def _commit(self) -> str | None:
        are_left = bool(self._masked)
        came = self._mask()
        rows = list(map(to_row, self._masked[:_BATCH_RECORDS])) if are_left else [one.row for one in came]
        database = self._usable_database()
        lost = self._lost
        if lost > self._lost_told:
            rows.append(to_row(pack(self._gap(lost - self._lost_told))))
        database.append("records", _COLUMNS, [(self._writer, *row) for row in rows])
        self._lost_told = lost
        return None

    def _mask(self) -> list[Masked]:
        """Masks what came since, once, however often it takes to write it; whoever listens hears of it now."""
        with self._lock:
            came = self._waiting[:_BATCH_RECORDS]
        masked = without_secrets(came)
        lines = [one.line for one in masked]
        with self._lock:
            del self._waiting[: len(came)]
            self._waiting_bytes += _size(lines) - _size(came)
        self._masked += lines
        if self._relay is not None and lines:
            self._relay.tell(lines)
        return masked

    def _usable_database(self) -> Database:
        # A file that was moved away or deleted is still open here: what is written to it, nobody would ever read.
        if _inode(self._path) != self._inode:
            self._database.close()
            self._database = _opened(self._path)
            self._inode = _inode(self._path)
        return self._database

    def _gap(self, missing: int) -> Record:
        return Record(
            at=self._clock.now(),
            action=random_id("g"),
            step="problem",
            outcome="gap",
            reason=f"{missing} records are missing: they came faster than they could be written",
            data={"lost": missing, "writer": self._writer},
        )

    def _settle(self, fault: str | None) -> None:
        with self._changed:
            self._problem = fault
            if fault is None:
                kept = self._masked[:_BATCH_RECORDS]
                self._waiting_bytes -= _size(kept)
                self._settled += len(kept)
                del self._masked[:_BATCH_RECORDS]
            else:
                self._attempts_failed += 1
            self._changed.notify_all()
        self._tell_health()

    def _tell_health(self) -> None:
        told, health = self._health_told, self.health
        is_news = health.fault or told.fault or told.waiting or health.lost != told.lost
        if is_news and self._on_health is not None:
            self._health_told = health
            guarded(partial(self._on_health, health), failure=_ignored)

    def _is_kept(self, target: int) -> bool:
        return self._settled >= target and self._lost == self._lost_told

    def _pause(self, delay_s: float) -> None:
        # Whoever flushes or closes wants to know now whether writing works again.
        with self._changed:
            flushes = self._flushes
            self._changed.wait_for(lambda: self._closing or self._flushes > flushes, delay_s)

    def _stop(self) -> None:
        self._database.close()
        with self._changed:
            self._lost += len(self._waiting) + len(self._masked)
            self._waiting.clear()
            self._masked.clear()
            self._stopped = True
            self._changed.notify_all()
        self._tell_health()


def _opened(path: Path) -> Database:
    database = open_database(path, JOURNAL_SCHEMA)
    # The pages that are written again and again, those of the indexes, then reach the file less often.
    database.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    return database


def _size(lines: Sequence[bytes]) -> int:
    return sum(map(len, lines))


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, StorageError) else fault_line(error)


def _ignored(_error: Exception) -> None:
    """A raising listener changes nothing."""
