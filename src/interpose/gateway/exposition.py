"""The numbers as Prometheus reads them.

Knows: the series and the text format's library. Does not know: how they are counted. Imported only when somebody asks.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import TypeAlias

from prometheus_client import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from interpose.gateway.metrics import PLACES, REQUEST_S, VERDICT_S, Labels

Total: TypeAlias = Callable[[str, Labels], float]
"""The number at a place, over all workers."""


def exposition(total: Total) -> bytes:
    """All series in the text format."""
    return generate_latest(_Collected(_families(total)))


class _Collected(Collector):
    """Numbers of one moment, as the library wants them."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _families(total: Total) -> Iterator[Metric]:
    yield _counter(total, "requests", "Requests by API and outcome.", "requests", ("api", "outcome"))
    yield _counter(total, "verdicts", "Verdicts by stage and outcome.", "verdicts", ("stage", "outcome"))
    meaning = "Handlers that failed, and whether the call went through (open) or not (closed)."
    yield _counter(total, "handler_failures", meaning, "failures", ("stage", "direction"))
    yield _counter(total, "unjudged", "Requests that nobody judged.", "unjudged", ())
    meaning = "Connections that were ended before they asked anything, or in the middle of it."
    yield _counter(total, "connections_refused", meaning, "refused", ("reason",))
    yield _counter(total, "worker_restarts", "Workers that died and were started again.", "restarts", ())
    is_written = not total("journal_faults", ())
    yield GaugeMetricFamily(
        "interpose_journal_writable", "1 while all can write the journal, else 0.", value=is_written
    )
    waiting = total("journal_waiting", ())
    yield GaugeMetricFamily("interpose_journal_waiting", "Lines that wait while it cannot be written.", value=waiting)
    yield _counter(total, "journal_lost", "Lines of the journal that could not be kept.", "journal_lost", ())
    yield GaugeMetricFamily("interpose_streams_open", "Requests that are being served.", value=total("open", ()))
    yield _histogram(total, "request_seconds", "From a request's head to its end.", "request_s", "api")
    yield _histogram(total, "verdict_seconds", "What a verdict took.", "verdict_s", "stage")


def _counter(total: Total, series: str, meaning: str, name: str, keys: Labels) -> Metric:
    family = CounterMetricFamily(f"interpose_{series}", meaning, labels=keys)
    for known, labels in PLACES:
        if known == name:
            family.add_metric(labels, total(name, labels))
    return family


def _histogram(total: Total, series: str, meaning: str, name: str, key: str) -> Metric:
    family = HistogramMetricFamily(f"interpose_{series}", meaning, labels=(key,))
    bounds = {"request_s": REQUEST_S, "verdict_s": VERDICT_S}[name]
    for label in dict.fromkeys(labels[0] for known, labels in PLACES if known == name):
        names = (*map(str, bounds), "+Inf")
        totals = accumulate(total(name, (label, bound)) for bound in names)
        family.add_metric((label,), list(zip(names, totals, strict=True)), total(name, (label, "sum")))
    return family
