"""Journals that stand before other journals: one to many, and one with a listener.

Knows: the port `Journal`.
Does not know: what the others do with a record.
"""

import queue
import threading
import time
from collections.abc import Callable
from functools import partial

from interpose.contracts.journal import Record
from interpose.contracts.ports import Journal
from interpose.journal.codec import masked
from interpose.kernel.boundary import guarded

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

    The listener may be slow or raise: nobody waits for it, the inner journal gets every record all the same, and what
    the listener misses is counted. Any thread may call `write` and `flush`.
    """

    def __init__(self, inner: Journal, listener: Callable[[Record], None], *, limit: int = LISTENER_QUEUE) -> None:
        self._inner = inner
        self._listener = listener
        self._missed = 0
        self._queue: queue.Queue[Record | threading.Event | None] = queue.Queue(limit)
        self._thread = threading.Thread(target=self._run, name="interpose-listener", daemon=True)
        self._thread.start()

    @property
    def missed(self) -> int:
        """How many records the listener did not see, because it was too slow or raised."""
        return self._missed

    def write(self, record: Record) -> None:
        """Takes one record. Never raises and never waits for the listener."""
        self._inner.write(record)
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self._missed += 1

    def flush(self, timeout_s: float = 5.0) -> bool:
        """True when the inner journal has committed and the listener has seen what was written so far."""
        deadline = time.monotonic() + timeout_s
        heard = threading.Event()
        try:
            self._queue.put(heard, timeout=timeout_s)
        except queue.Full:
            return False
        kept = self._inner.flush(max(0.0, deadline - time.monotonic()))
        return heard.wait(max(0.0, deadline - time.monotonic())) and kept

    def close(self, timeout_s: float = 5.0) -> None:
        """Lets the listener see what is left and stops its thread; the inner journal stays open. Call it once."""
        deadline = time.monotonic() + timeout_s
        try:
            self._queue.put(None, timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()
                continue
            guarded(partial(self._show, item), failure=self._count)

    def _show(self, record: Record) -> None:
        self._listener(masked(record))

    def _count(self, _error: Exception) -> None:
        self._missed += 1
