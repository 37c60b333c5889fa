"""Journals that stand before other journals: one to many, and one with a listener.

Knows: the port `Journal`.
Does not know: what the others do with a record.
"""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from interpose.contracts.journal import Record
from interpose.contracts.ports import Journal
from interpose.journal.codec import pack, without_secrets
from interpose.kernel.boundary import guarded

HAND_OVER_S = 0.01
LISTENER_QUEUE = 10_000
"""How many records wait for a slow listener before later ones pass it by."""


class TeeJournal:
    """Every record to each journal, in their order. As safe to share between threads as those are."""

    def __init__(self, *journals: Journal) -> None:
        self._journals = journals

    def write(self, record: Record) -> None:
        """Takes one record for all of them."""
        for journal in self._journals:
            journal.write(record)

    def flush(self, timeout_s: float = 5.0) -> bool:
        """True when each one has committed what it was given, all within `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        kept = [journal.flush(max(0.0, deadline - time.monotonic())) for journal in self._journals]
        return all(kept)


class ListeningJournal:
    """A journal whose records are also shown to a listener, masked, in order, on a thread of its own.

    The listener is given what was written within about ten milliseconds at once, as packed records that
    `journal.codec` reads. It may be slow or raise: nobody waits for it, the inner journal gets every record all the
    same, and what the listener misses is counted. Any thread may call `write` and `flush`.
    """

    def __init__(
        self,
        inner: Journal,
        listener: Callable[[Sequence[bytes]], None],
        *,
        limit: int = LISTENER_QUEUE,
        hand_over_s: float = HAND_OVER_S,
    ) -> None:
        self._inner = inner
        self._listener = listener
        self._limit = limit
        self._hand_over_s = hand_over_s
        self._missed = 0
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: list[Record] = []
        self._accepted = 0
        self._heard = 0
        self._hurry_until = 0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="interpose-listener", daemon=True)
        self._thread.start()

    @property
    def missed(self) -> int:
        """How many records the listener did not see: it was too slow, or raised at them or at others beside them."""
        return self._missed

    def write(self, record: Record) -> None:
        """Takes one record. Never raises and never waits for the listener."""
        self._inner.write(record)
        with self._lock:
            if self._closing or self._accepted - self._heard > self._limit:  # one is being shown
                self._missed += 1
                return
            self._waiting.append(record)
            self._accepted += 1
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def flush(self, timeout_s: float = 5.0) -> bool:
        """True when the inner journal has committed and the listener has seen what was written so far."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            target = self._accepted
            self._hurry_until = target
            self._changed.notify_all()
        kept = self._inner.flush(max(0.0, deadline - time.monotonic()))
        with self._changed:
            left_s = max(0.0, deadline - time.monotonic())
            return self._changed.wait_for(lambda: self._heard >= target, left_s) and kept

    def close(self, timeout_s: float = 5.0) -> None:
        """Lets the listener see what is left and stops its thread; the inner journal stays open. Call it once."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while batch := self._gathered():
            if not guarded(partial(self._show, batch), failure=lambda _: False):
                self._missed += len(batch)
            with self._changed:
                self._heard += len(batch)
                self._changed.notify_all()

    def _gathered(self) -> list[Record]:
        """What has come together; nothing once the journal is closed and all was shown."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            # Each wake-up costs the caller more than its append does.
            self._changed.wait_for(lambda: self._heard < self._hurry_until or self._closing, self._hand_over_s)
            batch, self._waiting = self._waiting, []
            return batch

    def _show(self, batch: Sequence[Record]) -> bool:
        self._listener(without_secrets([pack(record) for record in batch]))
        return True
