"""A journal in memory: the fake of the port `Journal`."""

import threading

from interpose.contracts.journal import Record, Step


class MemoryJournal:
    """Keeps every record as it was written, unmasked, in order. Any thread may call it."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._lock = threading.Lock()

    @property
    def records(self) -> tuple[Record, ...]:
        """What was written so far."""
        with self._lock:
            return tuple(self._records)

    def write(self, record: Record) -> None:
        """Keeps one record."""
        with self._lock:
            self._records.append(record)

    def flush(self, timeout_s: float = 5.0) -> bool:  # noqa: ARG002 - the port's signature
        """Nothing waits in memory: always True."""
        return True

    def story(self, action: str) -> tuple[Record, ...]:
        """The records of one action, in order."""
        return tuple(record for record in self.records if record.action == action)

    def of_step(self, step: Step) -> tuple[Record, ...]:
        """The records that were written at `step`, in order."""
        return tuple(record for record in self.records if record.step == step)
