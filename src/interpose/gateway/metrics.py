"""Numbers for Prometheus, counted from what is journalled and summed over all workers.

Knows: the series and their places. Does not know: who serves them.
Every series has its place in one block of numbers for each worker, so that the blocks can lie in shared memory.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from interpose.contracts.journal import Record
from interpose.contracts.ports import Journal

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4.encode()

_APIS = ("anthropic", "chat", "responses", "gemini")
_REQUESTS = ("ok", "error", "failed", "client_gone", "cancelled", "turned_away")
_STAGES = ("turn.start", "tool.call", "tool.result", "turn.end", "compaction", "other")
_VERDICTS = ("allowed", "patched", "refused", "off")
_FAILURES = ("open", "closed")
_REQUEST_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_VERDICT_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0)

_Labels = tuple[str, ...]
_Place = tuple[str, _Labels]


def _places() -> Iterator[_Place]:
    for api in _APIS:
        yield from (("requests", (api, outcome)) for outcome in _REQUESTS)
        yield from (("request_s", (api, str(bound))) for bound in (*_REQUEST_S, "+Inf", "sum"))
    for stage in _STAGES:
        yield from (("verdicts", (stage, outcome)) for outcome in _VERDICTS)
        yield from (("failures", (stage, direction)) for direction in _FAILURES)
        yield from (("verdict_s", (stage, str(bound))) for bound in (*_VERDICT_S, "+Inf", "sum"))
    yield "unjudged", ()
    yield "open", ()
    yield "restarts", ()


_PLACES: dict[_Place, int] = {place: number for number, place in enumerate(_places())}

BLOCK_BYTES = 8 * len(_PLACES)
"""The size of one worker's block."""

_PENDING_MAX = 1_000
"""Of so many judgements at once it is remembered that a handler failed."""


class Metrics:
    """The numbers of one worker, and the text of all. Any thread may call it.

    `memory` holds a block for each worker, and is made here for a process of its own.
    """

    def __init__(self, memory: memoryview | None = None, *, worker: int = 0) -> None:
        self._all = (memory if memory is not None else memoryview(bytearray(BLOCK_BYTES))).cast("d")
        start = worker * len(_PLACES)
        self._own = self._all[start : start + len(_PLACES)]
        self._lock = threading.Lock()
        self._failed: dict[str, int] = {}

    def begin(self) -> None:
        """For a worker that takes the place of one that died: what that one had open is closed."""
        self._own[_PLACES["open", ()]] = 0.0

    def opened(self, change: int) -> None:
        """A request more (1) or less (-1) is being served."""
        self._add("open", (), change)

    def restarted(self) -> None:
        """A worker died and was started again."""
        self._add("restarts", ())

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
        return generate_latest(_Collected(self._families()))

    def _count_request(self, record: Record) -> None:
        api = str(record.data.get("api"))
        status = record.data.get("status")
        outcome = record.outcome or ("ok" if isinstance(status, int) and status < 400 else "error")
        self._add("requests", (api, outcome))
        self._observe("request_s", api, record.duration_ms / 1000, _REQUEST_S)

    def _count_verdict(self, record: Record) -> None:
        stage = record.stage if record.stage in _STAGES else "other"
        self._add("verdicts", (stage, record.outcome))
        self._observe("verdict_s", stage, record.duration_ms / 1000, _VERDICT_S)
        with self._lock:
            failures = self._failed.pop(record.action, 0)
        if failures:
            self._add("failures", (stage, "closed" if record.outcome == "refused" else "open"), failures)

    def _note_failure(self, action: str) -> None:
        """Which way a handler's failure went is told by the verdict that follows it."""
        with self._lock:
            self._failed[action] = self._failed.get(action, 0) + 1
            if len(self._failed) > _PENDING_MAX:
                del self._failed[next(iter(self._failed))]

    def _observe(self, name: str, label: str, seconds: float, bounds: tuple[float, ...]) -> None:
        number = bisect_left(bounds, seconds)
        self._add(name, (label, str(bounds[number]) if number < len(bounds) else "+Inf"))
        self._add(name, (label, "sum"), seconds)

    def _add(self, name: str, labels: _Labels, amount: float = 1.0) -> None:
        place = _PLACES.get((name, labels))
        if place is None:
            return
        with self._lock:
            self._own[place] += amount

    def _sum(self, name: str, labels: _Labels) -> float:
        return sum(self._all[_PLACES[name, labels] :: len(_PLACES)])

    def _families(self) -> Iterator[Metric]:
        yield self._counter("requests", "Requests by API and outcome.", "requests", ("api", "outcome"))
        yield self._counter("verdicts", "Verdicts by stage and outcome.", "verdicts", ("stage", "outcome"))
        meaning = "Handlers that failed, and whether the call went through (open) or not (closed)."
        yield self._counter("handler_failures", meaning, "failures", ("stage", "direction"))
        yield self._counter("unjudged", "Requests that nobody judged.", "unjudged", ())
        yield self._counter("worker_restarts", "Workers that died and were started again.", "restarts", ())
        open_now = self._sum("open", ())
        yield GaugeMetricFamily("interpose_streams_open", "Requests that are being served.", value=open_now)
        yield self._histogram("request_seconds", "From a request's head to its end.", "request_s", "api", _REQUEST_S)
        yield self._histogram("verdict_seconds", "What a verdict took.", "verdict_s", "stage", _VERDICT_S)

    def _counter(self, series: str, meaning: str, name: str, keys: _Labels) -> Metric:
        family = CounterMetricFamily(f"interpose_{series}", meaning, labels=keys)
        for known, labels in _PLACES:
            if known == name:
                family.add_metric(labels, self._sum(name, labels))
        return family

    def _histogram(self, series: str, meaning: str, name: str, key: str, bounds: tuple[float, ...]) -> Metric:
        family = HistogramMetricFamily(f"interpose_{series}", meaning, labels=(key,))
        for label in dict.fromkeys(labels[0] for known, labels in _PLACES if known == name):
            names = (*map(str, bounds), "+Inf")
            totals = accumulate(self._sum(name, (label, bound)) for bound in names)
            family.add_metric((label,), list(zip(names, totals, strict=True)), self._sum(name, (label, "sum")))
        return family


class _Collected(Collector):
    """Numbers of one moment, as the library wants them."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


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
