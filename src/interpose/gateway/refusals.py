"""Connections that ended before anybody could judge what they asked: counted, and told to the journal.

Knows: how many lines that may be. Does not know: why a connection ends.
"""

from interpose.contracts.journal import Record
from interpose.contracts.ports import Clock, Journal
from interpose.gateway.heads import Refusal
from interpose.gateway.metrics import Metrics
from interpose.kernel.ids import random_id

LINES_MAX = 30
"""So many lines in `SPAN_S`; what is left out is counted in the next line. An attack must not fill the journal."""

SPAN_S = 60.0


class Refusals:
    """What a server tells of its connections. Belongs to that server's loop."""

    def __init__(self, journal: Journal, clock: Clock, metrics: Metrics) -> None:
        self._journal = journal
        self._clock = clock
        self._metrics = metrics
        self._span_began = -SPAN_S
        self._lines = 0
        self._left_out = 0

    def hear(self, refusal: Refusal) -> None:
        """Counts one, and writes its line where there are not too many."""
        self._metrics.refused(refusal.kind)
        now = self._clock.monotonic()
        if now - self._span_began >= SPAN_S:
            self._span_began, self._lines = now, 0
        if self._lines >= LINES_MAX:
            self._left_out += 1
            return
        self._lines += 1
        self._journal.write(
            Record(
                at=self._clock.now(),
                action=random_id("r", 10),
                step="failed",
                mount="wire",
                outcome="not_heard",
                reason=refusal.reason,
                data={
                    "api": refusal.api,
                    "status": refusal.status,
                    "connection": refusal.kind,
                    **({"left_out": self._left_out} if self._left_out else {}),
                },
            )
        )
        self._left_out = 0
