"""Numbers for Prometheus, counted from what is journalled and summed over all workers.

Knows: the numbers and their places. Does not know: how they are written down, who serves them.
Every series has its place in one block of numbers for each worker, so that the blocks can lie in shared memory.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, get_args

from interpose.contracts.journal import Record
from interpose.contracts.ports import Journal
from interpose.gateway.heads import RefusalKind

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

_APIS = ("anthropic", "chat", "responses", "gemini")
_REQUESTS = ("ok", "error", "failed", "client_gone", "cancelled", "turned_away")
_STAGES = ("turn.start", "tool.call", "tool.result", "turn.end", "compaction", "other")
_VERDICTS = ("allowed", "patched", "refused", "off")
_FAILURES = ("open", "closed")
REQUEST_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
VERDICT_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0)

Labels: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[str, Labels]


def _places() -> Iterator[Place]:
    for api in _APIS:
        yield from (("requests", (api, outcome)) for outcome in _REQUESTS)
        yield from (("request_s", (api, str(bound))) for bound in (*REQUEST_S, "+Inf", "sum"))
    for stage in _STAGES:
        yield from (("verdicts", (stage, outcome)) for outcome in _VERDICTS)
        yield from (("failures", (stage, direction)) for direction in _FAILURES)
        yield from (("verdict_s", (stage, str(bound))) for bound in (*VERDICT_S, "+Inf", "sum"))
    yield from (("refused", (kind,)) for kind in get_args(RefusalKind))
    yield "unjudged", ()
    yield "open", ()
    yield "restarts", ()
    yield from ((name, ()) for name in ("journal_faults", "journal_waiting", "journal_lost"))
    yield "cut_off", ()


PLACES: dict[Place, int] = {place: number for number, place in enumerate(_places())}

_REQUEST_TIMES = {api: PLACES["request_s", (api, str(REQUEST_S[0]))] for api in _APIS}
_VERDICT_TIMES = {stage: PLACES["verdict_s", (stage, str(VERDICT_S[0]))] for stage in _STAGES}
"""Where the first bound stands; the others, `+Inf` and the sum follow it."""

BLOCK_BYTES = 8 * len(PLACES)
"""The size of one worker's block."""

_PENDING_MAX = 1_000
"""Of so many judgements at once it is remembered that a handler failed."""


class JournalNumbers(NamedTuple):
    """How it stands with the journal in all workers: whether each can write it, and how many lines wait or are lost."""

    written: bool
    waiting: int
    lost: int


class Metrics:
    """The numbers of one worker, and the text of all. Any thread may call it.

    `memory` holds a block for each worker, and is made here for a process of its own.
    """

    def __init__(self, memory: memoryview | None = None, *, worker: int = 0) -> None:
        self._all = (memory if memory is not None else memoryview(bytearray(BLOCK_BYTES))).cast("d")
        start = worker * len(PLACES)
        self._own = self._all[start : start + len(PLACES)]
        self._lock = threading.Lock()
        self._failed: dict[str, int] = {}
        self._lost_before = 0.0

    def begin(self) -> None:
        """For a worker that takes the place of one that died: what that one had open is closed, what waited is lost."""
        own = self._own
        own[PLACES["open", ()]] = 0.0
        self._lost_before = own[PLACES["journal_lost", ()]] + own[PLACES["journal_waiting", ()]]
        self.journal_stands(is_written=True, waiting=0, lost=0)

    def opened(self, change: int) -> None:
        """A request more (1) or less (-1) is being served."""
        self._add("open", (), change)

    def restarted(self) -> None:
        """A worker died and was started again."""
        self._add("restarts", ())

    def cut(self, number: int) -> None:
        """So many replies were cut off by the stop; told by the parent of all workers, as nobody can ask any more."""
        self._add("cut_off", (), number)

    def refused(self, kind: RefusalKind) -> None:
        """A connection was ended before it asked anything."""
        self._add("refused", (kind,))

    def journal_stands(self, *, is_written: bool, waiting: int, lost: int) -> None:
        """How it stands with this worker's journal since it was made; it is told here again when that changes."""
        own = self._own
        own[PLACES["journal_faults", ()]] = 0.0 if is_written else 1.0
        own[PLACES["journal_waiting", ()]] = float(waiting)
        own[PLACES["journal_lost", ()]] = self._lost_before + lost

    def journal(self) -> JournalNumbers:
        """How it stands with the journals of all workers together."""
        faults, waiting, lost = (
            int(self.total(name, ())) for name in ("journal_faults", "journal_waiting", "journal_lost")
        )
        return JournalNumbers(not faults, waiting, lost)

    def count(self, record: Record) -> None:
        """Counts what a line of the journal tells."""
        if record.step == "request":
            self._count_request(record)
        elif record.step == "verdict":
            self._count_verdict(record)
        elif record.step == "failed" and record.answer == "failed":
            self._note_failure(record.action)
        elif record.step == "failed" and record.outcome == "turned_away":
            self._add("requests", (str(record.data.get("api")), "turned_away"))
        elif record.outcome in ("unjudged", "not judged yet"):
            self._add("unjudged", ())

    def text(self) -> bytes:
        """All series, summed over the workers."""
        from interpose.gateway.exposition import exposition  # noqa: PLC0415 - few gateways are ever asked

        return exposition(self.total)

    def total(self, name: str, labels: Labels) -> float:
        """One number of all workers together."""
        return sum(self._all[PLACES[name, labels] :: len(PLACES)])

    def _count_request(self, record: Record) -> None:
        api = str(record.data.get("api"))
        if api not in _REQUEST_TIMES:
            return
        status = record.data.get("status")
        outcome = record.outcome or ("ok" if isinstance(status, int) and status < 400 else "error")
        place = PLACES.get(("requests", (api, outcome)))
        with self._lock:
            self._observe(place, _REQUEST_TIMES[api], REQUEST_S, record.duration_ms / 1000)

    def _count_verdict(self, record: Record) -> None:
        stage = record.stage if record.stage in _VERDICT_TIMES else "other"
        place = PLACES.get(("verdicts", (stage, record.outcome)))
        with self._lock:
            self._observe(place, _VERDICT_TIMES[stage], VERDICT_S, record.duration_ms / 1000)
            failures = self._failed.pop(record.action, 0) if self._failed else 0
        if failures:
            self._add("failures", (stage, "closed" if record.outcome == "refused" else "open"), failures)

    def _note_failure(self, action: str) -> None:
        """Which way a handler's failure went is told by the verdict that follows it."""
        with self._lock:
            self._failed[action] = self._failed.get(action, 0) + 1
            if len(self._failed) > _PENDING_MAX:
                del self._failed[next(iter(self._failed))]

    def _observe(self, place: int | None, times: int, bounds: tuple[float, ...], seconds: float) -> None:
        """Counts one more at `place` and, behind `times`, how long it took; whoever calls holds the lock."""
        own = self._own
        if place is not None:
            own[place] += 1.0
        own[times + bisect_left(bounds, seconds)] += 1.0
        own[times + len(bounds) + 1] += seconds

    def _add(self, name: str, labels: Labels, amount: float = 1.0) -> None:
        place = PLACES.get((name, labels))
        if place is None:
            return
        with self._lock:
            self._own[place] += amount


class MeteredJournal:
    """A journal whose records are counted on their way. As safe to share between threads as the inner one."""

    def __init__(self, inner: Journal, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics

    def write(self, record: Record) -> None:
        """Counts one record and passes it on."""
        self._metrics.count(record)
        self._inner.write(record)

    def flush(self, timeout_s: float = 5.0) -> bool:
        """As the inner journal says."""
        return self._inner.flush(timeout_s)
