"""gateway.metrics: what is counted from the journal, and how it is written down."""

import re
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from interpose.contracts.journal import Record, Step
from interpose.gateway.metrics import BLOCK_BYTES, MeteredJournal, Metrics
from interpose.testing.journal import MemoryJournal


def line(step: Step, **fields: Any) -> Record:
    """A line of the journal."""
    return Record(at=0.0, action=fields.pop("action", "a"), step=step, **fields)


def value(metrics: Metrics, series: str) -> float:
    """The number behind one series."""
    name, _, labels = series.partition("{")
    wanted = dict(re.findall(r'([a-z]+)="([^"]*)"', labels))
    families = text_string_to_metric_families(metrics.text().decode())
    samples = [sample for family in families for sample in family.samples]
    (found,) = (sample.value for sample in samples if sample.name == name and sample.labels == wanted)
    return float(found)


def test_requests_and_verdicts_are_counted_from_what_is_journalled() -> None:
    """Each line finds its series; what has none is let pass."""
    metrics = Metrics()
    inner = MemoryJournal()
    journal = MeteredJournal(inner, metrics)
    journal.write(line("request", duration_ms=70.0, data={"api": "chat", "status": 200}))
    journal.write(line("request", duration_ms=400_000.0, data={"api": "chat", "status": 502}))
    journal.write(line("request", outcome="client_gone", data={"api": "anthropic", "status": 200}))
    journal.write(line("request", outcome="mystery", data={"api": "mystery"}))
    journal.write(line("failed", outcome="turned_away", data={"api": "gemini"}))
    journal.write(line("skipped", outcome="unjudged"))
    journal.write(line("verdict", stage="tool.call", outcome="refused", duration_ms=0.3))
    journal.write(line("verdict", stage="app.own", outcome="allowed", duration_ms=9_999.0))

    assert len(inner.records) == 8
    assert journal.flush()
    assert value(metrics, 'interpose_requests_total{api="chat",outcome="ok"}') == 1
    assert value(metrics, 'interpose_requests_total{api="chat",outcome="error"}') == 1
    assert value(metrics, 'interpose_requests_total{api="anthropic",outcome="client_gone"}') == 1
    assert value(metrics, 'interpose_requests_total{api="gemini",outcome="turned_away"}') == 1
    assert value(metrics, "interpose_unjudged_total") == 1
    assert value(metrics, 'interpose_verdicts_total{stage="tool.call",outcome="refused"}') == 1
    assert value(metrics, 'interpose_request_seconds_bucket{api="chat",le="0.05"}') == 0
    assert value(metrics, 'interpose_request_seconds_bucket{api="chat",le="0.1"}') == 1
    assert value(metrics, 'interpose_request_seconds_bucket{api="chat",le="300.0"}') == 1
    assert value(metrics, 'interpose_request_seconds_bucket{api="chat",le="+Inf"}') == 2
    assert value(metrics, 'interpose_request_seconds_count{api="chat"}') == 2
    assert value(metrics, 'interpose_request_seconds_sum{api="chat"}') == 400.07
    assert value(metrics, 'interpose_verdict_seconds_bucket{stage="tool.call",le="0.0005"}') == 1
    assert value(metrics, 'interpose_verdict_seconds_count{stage="other"}') == 1


def test_the_verdict_tells_which_way_a_failure_went() -> None:
    """A handler that failed before an allowed call failed open, before a refused one closed."""
    metrics = Metrics()
    for action, outcome in (("a", "allowed"), ("b", "refused"), ("c", "allowed")):
        for _ in range(2 if action != "c" else 0):
            metrics.count(line("failed", action=action, stage="tool.call", answer="failed"))
        metrics.count(line("verdict", action=action, stage="tool.call", outcome=outcome))

    assert value(metrics, 'interpose_handler_failures_total{stage="tool.call",direction="open"}') == 2
    assert value(metrics, 'interpose_handler_failures_total{stage="tool.call",direction="closed"}') == 2


def test_workers_are_summed_and_a_new_one_takes_the_old_ones_place() -> None:
    """Each writes its own block and reads all; what a dead one had open is closed."""
    memory = memoryview(bytearray(2 * BLOCK_BYTES))
    first, second = Metrics(memory, worker=0), Metrics(memory, worker=1)
    first.opened(1)
    second.opened(1)
    second.opened(1)
    second.count(line("skipped", outcome="unjudged"))
    assert value(first, "interpose_streams_open") == 3

    again = Metrics(memory, worker=1)
    again.begin()
    again.restarted()

    assert value(first, "interpose_streams_open") == 1
    assert value(again, "interpose_unjudged_total") == 1
    assert value(first, "interpose_worker_restarts_total") == 1


def test_a_journal_that_cannot_be_written_is_a_number() -> None:
    """Each worker tells of its own; what waited in one that died is lost, and its successor counts on from there."""
    memory = memoryview(bytearray(2 * BLOCK_BYTES))
    first, second = Metrics(memory, worker=0), Metrics(memory, worker=1)
    assert value(first, "interpose_journal_writable") == 1
    first.journal_stands(is_written=False, waiting=5, lost=1)
    second.journal_stands(is_written=True, waiting=0, lost=2)
    assert value(second, "interpose_journal_writable") == 0
    assert value(second, "interpose_journal_waiting") == 5
    assert value(second, "interpose_journal_lost_total") == 3

    again = Metrics(memory, worker=0)
    again.begin()
    again.journal_stands(is_written=True, waiting=0, lost=1)
    assert second.journal() == (True, 0, 9)
    assert value(second, "interpose_journal_writable") == 1


def test_the_text_is_what_prometheus_reads() -> None:
    """Its own reader finds every series, each with all its labels, from the first scrape on."""
    families = {family.name: family for family in text_string_to_metric_families(Metrics().text().decode())}

    assert {name: family.type for name, family in families.items()} == {
        "interpose_requests": "counter",
        "interpose_verdicts": "counter",
        "interpose_handler_failures": "counter",
        "interpose_unjudged": "counter",
        "interpose_connections_refused": "counter",
        "interpose_worker_restarts": "counter",
        "interpose_journal_writable": "gauge",
        "interpose_journal_waiting": "gauge",
        "interpose_journal_lost": "counter",
        "interpose_streams_open": "gauge",
        "interpose_request_seconds": "histogram",
        "interpose_verdict_seconds": "histogram",
    }
    apis = {sample.labels["api"] for sample in families["interpose_requests"].samples}
    assert apis == {"anthropic", "chat", "responses", "gemini"}
