"""gateway.refusals: connections that never asked anything are counted, and do not fill the journal."""

from interpose.gateway.heads import Refusal
from interpose.gateway.metrics import Metrics
from interpose.gateway.refusals import LINES_MAX, SPAN_S, Refusals
from interpose.testing.fakes import FakeClock
from interpose.testing.journal import MemoryJournal


def test_each_is_counted_and_its_line_says_why() -> None:
    """With what the client was told, and in which API's shape."""
    metrics, journal = Metrics(), MemoryJournal()
    refusals = Refusals(journal, FakeClock(), metrics)
    refusals.hear(Refusal("slow", 408, "it did not come", "chat"))
    refusals.hear(Refusal("crowded", 0, "too many"))

    lines = [(record.step, record.outcome, record.reason) for record in journal.records]
    assert lines == [("failed", "not_heard", "it did not come"), ("failed", "not_heard", "too many")]
    assert journal.records[0].data == {"api": "chat", "status": 408, "connection": "slow"}
    assert b'interpose_connections_refused_total{reason="slow"} 1.0\n' in metrics.text()
    assert b'interpose_connections_refused_total{reason="stalled"} 0.0\n' in metrics.text()


def test_lines_are_few_and_numbers_are_not() -> None:
    """What was left out is told by the next line, once its time has come."""
    metrics, journal, clock = Metrics(), MemoryJournal(), FakeClock()
    refusals = Refusals(journal, clock, metrics)
    for _ in range(LINES_MAX + 70):
        refusals.hear(Refusal("malformed", 400, "no"))
    clock.advance(SPAN_S)
    refusals.hear(Refusal("malformed", 400, "no"))
    refusals.hear(Refusal("malformed", 400, "no"))

    assert len(journal.records) == LINES_MAX + 2
    assert [record.data.get("left_out") for record in journal.records[-2:]] == [70, None]
    assert b'interpose_connections_refused_total{reason="malformed"} 102.0\n' in metrics.text()
