"""Who else hears of a record: several journals in place of one, and a listener beside one.

Knows: the port `Journal`.
Does not know: what the others do with a record.
"""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from interpose.contracts.journal import Record
from interpose.contracts.ports import Journal
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


class Relay:
    """Shows a listener what a journal writes, as packed records without secrets, in order, on a thread of its own.

    The listener is given what came together at once; `journal.codec` reads it. It may be slow or raise: nobody waits
    for it, nothing else changes, and what it misses is counted. Any thread may call every method.
    """

    def __init__(self, listener: Callable[[Sequence[bytes]], None], *, limit: int = LISTENER_QUEUE) -> None:
        self._listener = listener
        self._limit = limit
        self._missed = 0
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._accepted = 0
        self._heard = 0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="interpose-listener", daemon=True)
        self._thread.start()

    @property
    def missed(self) -> int:
        """How many records the listener did not see: it was too slow, or raised at them or at others beside them."""
        return self._missed

    def tell(self, lines: Sequence[bytes]) -> None:
        """Takes packed records without secrets. Never raises and never waits for the listener."""
        with self._changed:
            taken = lines[: max(0, self._limit - len(self._waiting))] if not self._closing else ()
            self._missed += len(lines) - len(taken)
            self._waiting.extend(taken)
            self._accepted += len(taken)
            self._changed.notify_all()

    def flush(self, timeout_s: float = 5.0) -> bool:
        """True when the listener has seen what it was told so far, or missed it."""
        with self._changed:
            target = self._accepted
            return self._changed.wait_for(lambda: self._heard >= target, timeout_s)

    def close(self, timeout_s: float = 5.0) -> None:
        """Lets the listener see what is left and stops its thread. May be called twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while batch := self._gathered():
            told = guarded(partial(self._show, batch), failure=lambda _: False)
            with self._changed:
                self._missed += 0 if told else len(batch)
                self._heard += len(batch)
                self._changed.notify_all()

    def _gathered(self) -> list[bytes]:
        """What has come together; nothing once it is closed and all was shown."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            batch, self._waiting = self._waiting, []
            return batch

    def _show(self, batch: Sequence[bytes]) -> bool:
        self._listener(batch)
        return True
