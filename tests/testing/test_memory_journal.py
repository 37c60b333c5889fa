"""testing.journal."""

from interpose.contracts.journal import Record
from interpose.contracts.ports import Journal
from interpose.testing.journal import MemoryJournal


def test_it_keeps_records_in_order_and_finds_stories_and_steps() -> None:
    """The fake plays the port, and gives back exactly what was written."""
    journal = MemoryJournal()
    first, second = Record(1.0, "a1", "enter"), Record(2.0, "a2", "verdict", outcome="refused")

    journal.write(first)
    journal.write(second)

    assert isinstance(journal, Journal)
    assert journal.records == (first, second)
    assert journal.story("a1") == (first,)
    assert journal.of_step("verdict") == (second,)
    assert journal.flush() is True
