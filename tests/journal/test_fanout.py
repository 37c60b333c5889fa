"""journal.fanout."""

import threading
from collections.abc import Sequence

from interpose.contracts.journal import Record
from interpose.contracts.ports import Journal
from interpose.journal.codec import to_record
from interpose.journal.fanout import ListeningJournal, TeeJournal
from interpose.testing.journal import MemoryJournal

RECORDS = tuple(Record(float(number), f"a{number}", "enter") for number in range(20))


class _Stuck(MemoryJournal):
    def flush(self, timeout_s: float = 5.0) -> bool:
        return False


def test_a_tee_writes_to_each_and_is_flushed_when_all_are() -> None:
    """Each journal has every record; one that cannot flush makes the whole say False."""
    first, second = MemoryJournal(), MemoryJournal()
    tee = TeeJournal(first, second)

    for record in RECORDS:
        tee.write(record)

    assert isinstance(tee, Journal)
    assert first.records == second.records == RECORDS
    assert tee.flush() is True
    assert TeeJournal(_Stuck(), first).flush() is False


def test_a_listener_sees_each_record_masked_and_in_order() -> None:
    """The inner journal gets the record as it is, the listener a copy without secrets, once flush says so."""
    inner, heard = MemoryJournal(), list[Record]()
    journal = ListeningJournal(inner, lambda lines: heard.extend(map(to_record, lines)))
    secret = Record(1.0, "a", "enter", reason="Bearer abcdefghijklmnopqrst")

    for record in (*RECORDS, secret):
        journal.write(record)

    assert isinstance(journal, Journal)
    assert journal.flush() is True
    assert inner.records == (*RECORDS, secret)
    assert heard[:-1] == list(RECORDS)
    assert heard[-1].reason == "Bearer abcd…"
    journal.close()


def test_a_raising_listener_changes_nothing() -> None:
    """Every record is kept, later ones are still shown, and what it raised at counts as missed."""
    inner, heard = MemoryJournal(), list[str]()

    def listen(lines: Sequence[bytes]) -> None:
        heard.extend(to_record(line).action for line in lines)
        raise RuntimeError(str(lines))

    journal = ListeningJournal(inner, listen)
    for record in RECORDS:
        journal.write(record)
        assert journal.flush() is True

    assert inner.records == RECORDS
    assert heard == [record.action for record in RECORDS]
    assert journal.missed == len(RECORDS)
    journal.close()


def test_a_slow_listener_holds_nobody_up() -> None:
    """While it hangs, writing goes on; what finds the queue full passes it by and is counted."""
    inner, entered, release = MemoryJournal(), threading.Event(), threading.Event()

    def hang(_lines: Sequence[bytes]) -> None:
        entered.set()
        release.wait(30)

    journal = ListeningJournal(inner, hang, limit=4)
    journal.write(RECORDS[0])
    assert entered.wait(10)
    for record in RECORDS[1:]:
        journal.write(record)

    assert inner.records == RECORDS
    assert journal.missed == len(RECORDS) - 1 - 4
    assert journal.flush(0.05) is False
    release.set()
    assert journal.flush() is True
    journal.close()
