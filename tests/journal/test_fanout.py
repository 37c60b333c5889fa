"""journal.fanout."""

import threading
from collections.abc import Sequence

from interpose.contracts.journal import Record
from interpose.contracts.ports import Journal
from interpose.journal.codec import pack, to_record
from interpose.journal.fanout import Relay, TeeJournal
from interpose.testing.journal import MemoryJournal

RECORDS = tuple(Record(float(number), f"a{number}", "enter") for number in range(20))
LINES = [pack(record) for record in RECORDS]


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


def test_a_listener_sees_what_it_is_told_in_order() -> None:
    """Once flush says so it has seen everything."""
    heard: list[Record] = []
    relay = Relay(lambda lines: heard.extend(map(to_record, lines)))

    for line in LINES:
        relay.tell([line])
    relay.tell(LINES)

    assert relay.flush() is True
    assert heard == [*RECORDS, *RECORDS]
    assert relay.missed == 0
    relay.close()


def test_a_raising_listener_changes_nothing() -> None:
    """Later records are still shown, and what it raised at counts as missed."""
    heard: list[str] = []

    def listen(lines: Sequence[bytes]) -> None:
        heard.extend(to_record(line).action for line in lines)
        raise RuntimeError(str(lines))

    relay = Relay(listen)
    for line in LINES:
        relay.tell([line])
        assert relay.flush() is True

    assert heard == [record.action for record in RECORDS]
    assert relay.missed == len(RECORDS)
    relay.close()


def test_a_slow_listener_holds_nobody_up() -> None:
    """While it hangs, telling goes on; what finds the queue full passes it by and is counted."""
    entered, release = threading.Event(), threading.Event()

    def hang(_lines: Sequence[bytes]) -> None:
        entered.set()
        release.wait(30)

    relay = Relay(hang, limit=4)
    relay.tell(LINES[:1])
    assert entered.wait(10)
    relay.tell(LINES[1:4])
    relay.tell(LINES[4:])

    assert relay.missed == len(RECORDS) - 1 - 4
    assert relay.flush(0.05) is False
    release.set()
    assert relay.flush() is True
    relay.close()


def test_what_is_told_after_the_end_is_missed() -> None:
    """Closing shows what is left; nothing waits for a thread that is gone."""
    heard: list[bytes] = []
    relay = Relay(heard.extend)
    relay.tell(LINES[:3])

    relay.close()
    relay.close()
    relay.tell(LINES[3:5])

    assert heard == LINES[:3]
    assert relay.missed == 2
    assert relay.flush() is True
