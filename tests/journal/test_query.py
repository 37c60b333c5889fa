"""journal.query."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpose.contracts.errors import StorageError
from interpose.contracts.journal import Record
from interpose.journal.query import Filter, JournalReader, Order
from interpose.journal.sqlite import SqliteJournal
from interpose.kernel.clock import SystemClock

RECORDS = (
    Record(10.0, "a1", "enter", session="s1", launch="l1", workspace="/w", tool="shell", stage="tool.call"),
    Record(11.0, "a1", "answer", session="s1", launch="l1", workspace="/w", tool="shell", handler="no-rm"),
    Record(12.0, "a2", "verdict", session="s2", launch="l2", workspace="/v", tool="read", outcome="allowed"),
    Record(13.0, "a1", "verdict", session="s1", launch="l1", workspace="/w", tool="shell", outcome="refused"),
    Record(14.0, "a3", "request", session="s1", agent="codex"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with the five records."""
    journal = SqliteJournal(tmp_path / "journal.db", clock=SystemClock())
    for record in RECORDS:
        journal.write(record)
    journal.close()
    return tmp_path / "journal.db"


@pytest.fixture
def reader(path: Path) -> Iterator[JournalReader]:
    """A reader of it."""
    opened = JournalReader(path)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (Filter(), [1, 2, 3, 4, 5]),
        (Filter(action="a1"), [1, 2, 4]),
        (Filter(session="s1"), [1, 2, 4, 5]),
        (Filter(launch="l2"), [3]),
        (Filter(workspace="/w", step="verdict"), [4]),
        (Filter(tool="shell", outcome="refused"), [4]),
        (Filter(handler="no-rm"), [2]),
        (Filter(stage="tool.call"), [1]),
        (Filter(agent="codex"), [5]),
        (Filter(since=11.0, until=13.0), [2, 3]),
        (Filter(action="' OR 1=1 --"), []),
    ],
)
def test_each_filter_selects_its_records(reader: JournalReader, wanted: Filter, numbers: list[int]) -> None:
    """All conditions that are given must hold, and a value is a value, never SQL."""
    assert [stored.seq for stored in reader.find(wanted, order="oldest")] == numbers


def test_records_are_counted_by_what_they_have(reader: JournalReader) -> None:
    """One number for each set of values that occurs among those that pass the filter."""
    assert reader.tally(Filter(step="verdict"), "workspace", "outcome") == {
        ("/v", "allowed"): 1,
        ("/w", "refused"): 1,
    }
    assert reader.tally(Filter(action="a9"), "workspace") == {}


@pytest.mark.parametrize(("order", "numbers"), [("newest", [5, 4]), ("oldest", [1, 2])])
def test_a_limit_keeps_the_end_that_was_asked_for(reader: JournalReader, order: Order, numbers: list[int]) -> None:
    """Newest first by default, oldest first on request."""
    assert [stored.seq for stored in reader.find(limit=2, order=order)] == numbers


def test_a_story_is_all_of_one_action_in_order(reader: JournalReader) -> None:
    """What `explain` tells, and nothing of other actions."""
    assert [stored.record for stored in reader.story("a1")] == [RECORDS[0], RECORDS[1], RECORDS[3]]
    assert reader.story("a9") == ()


def test_following_waits_for_another_process_and_sees_each_record_once(path: Path, reader: JournalReader) -> None:
    """A record of another process arrives within the wait; nothing new means an empty answer when the time is over."""
    last = reader.last_seq()
    assert reader.follow(last, wait_s=0.05) == ()
    code = (
        "import sys; from pathlib import Path\n"
        "from interpose.contracts.journal import Record\n"
        "from interpose.journal.sqlite import SqliteJournal\n"
        "from interpose.kernel.clock import SystemClock\n"
        "j = SqliteJournal(Path(sys.argv[1]), clock=SystemClock()); j.write(Record(1.0, 'new', 'enter')); j.close()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], env={"PYTHONPATH": "src"}):
        found = reader.follow(last, wait_s=30)

    assert [stored.record.action for stored in found] == ["new"]
    assert reader.follow(found[-1].seq, wait_s=0.05) == ()


def test_following_with_a_filter_starts_at_the_number(reader: JournalReader) -> None:
    """Records up to the number and those that do not pass the filter are left out."""
    assert [stored.seq for stored in reader.follow(1, Filter(session="s1"))] == [2, 4, 5]


def test_following_starts_before_there_is_a_journal(tmp_path: Path) -> None:
    """A file that does not exist yet is empty, makes nothing, and is found as soon as somebody writes."""
    path = tmp_path / "late" / "journal.db"
    reader = JournalReader(path)
    assert (reader.find(), reader.story("a"), reader.last_seq()) == ((), (), 0)
    assert reader.tally(Filter(), "step") == {}
    assert not path.parent.exists()

    def write() -> None:
        journal = SqliteJournal(path, clock=SystemClock())
        journal.write(Record(1.0, "first", "enter"))
        journal.close()

    writer = threading.Thread(target=write)
    writer.start()
    found = reader.follow(0, wait_s=30)
    writer.join(10)

    assert [stored.record.action for stored in found] == ["first"]
    reader.close()


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    """The reader says which file and the way out."""
    path = tmp_path / "journal.db"
    path.write_bytes(b"garbage" * 1_000)

    with pytest.raises(StorageError, match=r"journal\.db: .*move it away"):
        JournalReader(path).find()
