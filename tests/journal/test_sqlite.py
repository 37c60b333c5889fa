"""journal.sqlite."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpose.contracts.errors import StorageError
from interpose.contracts.journal import Record
from interpose.contracts.ports import Journal
from interpose.journal.codec import to_record
from interpose.journal.fanout import Relay
from interpose.journal.health import Health
from interpose.journal.query import Filter, JournalReader
from interpose.journal.sqlite import SqliteJournal
from interpose.kernel.clock import SystemClock

SECRETS = (
    "sk-ant-api03-abcdefghijklmnopqrstuvwx",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "hunter2hunter2hunter2",
    "abcdefghijklmnopqrstuvwxyz012345",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal file that does not exist yet."""
    return tmp_path / "state" / "journal.db"


@pytest.fixture
def journal(path: Path) -> Iterator[SqliteJournal]:
    """An open journal, closed at the end."""
    opened = SqliteJournal(path, clock=SystemClock())
    yield opened
    opened.close()


@pytest.fixture
def reader(path: Path) -> Iterator[JournalReader]:
    """A reader of the same file."""
    opened = JournalReader(path)
    yield opened
    opened.close()


def _actions(path: Path) -> list[str]:
    reader = JournalReader(path)
    found = [stored.record.action for stored in reader.find(limit=-1, order="oldest")]
    reader.close()
    return found


def test_records_are_committed_in_order(path: Path, journal: SqliteJournal) -> None:
    """After a flush that says True, another connection reads what was written, in order, with numbers that grow."""
    assert isinstance(journal, Journal)
    for number in range(5_000):
        journal.write(Record(float(number), f"a{number}", "enter", data={"n": number}))

    assert journal.flush() is True
    assert _actions(path) == [f"a{number}" for number in range(5_000)]
    assert (journal.lost, journal.problem) == (0, None)


def test_records_arrive_without_a_flush(reader: JournalReader, journal: SqliteJournal) -> None:
    """What is handed over is committed within moments, by itself."""
    journal.write(Record(1.0, "a", "enter"))

    found = reader.follow(0, wait_s=5)

    assert [stored.record.action for stored in found] == ["a"]


def test_what_the_caller_changes_later_is_not_what_was_written(reader: JournalReader, journal: SqliteJournal) -> None:
    """The record is cut loose from the caller's values when it is taken."""
    data = {"list": [1]}
    journal.write(Record(1.0, "a", "enter", data=data))
    data["list"].append(2)
    journal.flush()

    assert reader.story("a")[0].record.data == {"list": [1]}


def test_secrets_never_reach_the_file(path: Path, journal: SqliteJournal) -> None:
    """No byte of the file or of its write-ahead log holds a secret, wherever in the record it stood."""
    first, second, third, fourth, fifth = SECRETS
    journal.write(
        Record(
            1.0,
            "a",
            "answer",
            reason=f"refused {first}",
            tool=second,
            data={
                "input": {"command": f"curl -u x https://me:{fourth}@example.org/{third}", first: [second]},
                "headers": {"authorization": fourth, "x-api-key": [fourth]},
                "path": f"/l/{fifth}/v1/messages",
            },
        )
    )
    assert journal.flush()

    stored = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"refused sk-ant-api03-abcd" in stored
    assert [secret for secret in SECRETS if secret.encode() in stored] == []


def test_rows_are_never_changed_or_removed(path: Path, journal: SqliteJournal) -> None:
    """The table itself refuses updates and deletes."""
    journal.write(Record(1.0, "a", "enter"))
    journal.flush()

    with pytest.raises(StorageError, match="append-only"):
        journal._database.execute("UPDATE records SET action = 'b'")
    with pytest.raises(StorageError, match="append-only"):
        journal._database.execute("DELETE FROM records")


def test_close_writes_what_is_left_and_later_records_are_counted(path: Path) -> None:
    """Nothing that was taken is lost by closing, and closing twice is fine."""
    journal = SqliteJournal(path, clock=SystemClock(), hand_over_s=60)
    journal.write(Record(1.0, "a", "enter"))

    journal.close()
    journal.close()
    journal.write(Record(1.0, "b", "enter"))

    assert _actions(path) == ["a"]
    assert journal.lost == 1
    assert journal.flush(0.1) is False


def test_a_full_disk_never_raises_and_is_told(path: Path) -> None:
    """Records wait while nothing can be written, and their number is told; all are there when it works again."""
    told: list[Health] = []
    journal = SqliteJournal(path, clock=SystemClock(), on_health=told.append)
    journal._database.query("PRAGMA max_page_count = 20")

    for number in range(50):
        journal.write(Record(1.0, f"a{number}", "enter", data={"text": "x" * 10_000}))
    assert journal.flush() is False
    assert journal.flush() is False

    assert "journal.db: the disk is full: free some space" in str(told[0].fault)
    assert journal.problem == told[0].fault
    assert (journal.health.waiting, journal.lost) == (told[-1].waiting, 0)
    assert 0 < journal.health.missing <= 50

    journal._database.query("PRAGMA max_page_count = 100000")
    while journal.problem:
        journal.flush()
    journal.write(Record(1.0, "later", "enter"))
    journal.close()

    assert _actions(path) == [*(f"a{number}" for number in range(50)), "later"]
    assert [health.fault is None for health in told].count(True) == 1
    assert told[-1] == Health()


def test_what_cannot_be_written_at_the_end_is_told_as_lost(path: Path) -> None:
    """Whoever closes a journal on a full disk is told how many lines are gone, and why."""
    told: list[Health] = []
    journal = SqliteJournal(path, clock=SystemClock(), on_health=told.append)
    journal._database.query("PRAGMA max_page_count = 1")
    for number in range(5):
        journal.write(Record(1.0, f"a{number}", "enter", data={"text": "x" * 100_000}))
    journal.close()

    assert told[-1] == journal.health == Health(journal.problem, waiting=0, lost=5)
    assert "the disk is full" in str(journal.problem)


def test_a_listener_hears_all_without_secrets_also_while_nothing_can_be_written(path: Path) -> None:
    """It need not wait for the disk, hears each record once however often writing fails, and flush waits for it."""
    lines: list[bytes] = []
    relay = Relay(lines.extend)
    journal = SqliteJournal(path, clock=SystemClock(), relay=relay)
    journal._database.query("PRAGMA max_page_count = 20")

    for number in range(60):
        journal.write(Record(1.0, f"a{number}", "enter", reason=SECRETS[0], data={"text": "x" * 2_000}))
        journal.flush(0.5)
    assert journal.problem is not None
    assert relay.flush() is True
    assert [to_record(line).action for line in lines] == [f"a{number}" for number in range(60)]

    journal._database.query("PRAGMA max_page_count = 100000")
    assert journal.flush() is True
    assert [to_record(line).action for line in lines] == _actions(path)
    assert not any(SECRETS[0].encode() in line for line in lines)
    journal.close()
    assert relay.missed == 0


def test_a_full_queue_counts_and_a_gap_record_tells(path: Path, reader: JournalReader) -> None:
    """When the queue is full too, later records are counted, and the journal itself says how many are missing."""
    journal = SqliteJournal(path, clock=SystemClock(), queue_bytes=30_000)
    journal._database.query("PRAGMA max_page_count = 12")
    for number in range(10):
        journal.write(Record(1.0, f"a{number}", "enter", data={"text": "x" * 5_000}))
        journal.flush()

    lost = journal.lost
    assert 0 < lost < 10
    journal._database.query("PRAGMA max_page_count = 100000")
    while journal.problem:
        journal.flush()

    assert journal.flush() is True
    assert len(reader.find(Filter(step="enter"), limit=-1)) == 10 - lost
    gaps = reader.find(Filter(outcome="gap"))
    assert [gap.record.data["lost"] for gap in gaps] == [lost]
    assert str(lost) in gaps[0].record.reason
    journal.close()


def test_a_listener_of_its_health_that_raises_changes_nothing(path: Path) -> None:
    """The writing thread outlives it, and what could not be written when closing is counted."""

    def broken(_health: Health) -> None:
        raise RuntimeError("no")

    journal = SqliteJournal(path, clock=SystemClock(), on_health=broken)
    journal._database.query("PRAGMA max_page_count = 1")
    journal.write(Record(1.0, "a", "enter", data={"text": "x" * 100_000}))

    assert journal.flush() is False
    journal.close()
    assert journal.lost == 1


def test_a_file_that_is_moved_away_is_made_anew(path: Path, journal: SqliteJournal) -> None:
    """The way out that a damaged file's message names works while the program runs."""
    journal.write(Record(1.0, "a", "enter"))
    journal.flush()
    for file in list(path.parent.iterdir()):
        file.rename(file.with_name("old-" + file.name))

    journal.write(Record(1.0, "b", "enter"))

    assert journal.flush() is True
    assert _actions(path) == ["b"]


def test_a_damaged_file_is_named_when_it_is_opened_and_survived_when_it_breaks_later(path: Path) -> None:
    """Opening says which file and the way out; damage under a running journal is a problem and not an exception."""
    told: list[Health] = []
    journal = SqliteJournal(path, clock=SystemClock(), on_health=told.append)
    for file in path.parent.iterdir():
        with file.open("r+b") as opened:
            opened.truncate(0)
            opened.write(b"garbage" * 5_000)
    journal.write(Record(1.0, "a", "enter"))
    journal.write(Record(1.0, "b", "enter"))

    assert journal.flush() is False
    assert "journal.db: " in str(told[0].fault)
    journal.close()
    with pytest.raises(StorageError, match=r"journal\.db: .*move it away"):
        SqliteJournal(path, clock=SystemClock())


def test_many_threads_write_at_once(reader: JournalReader, journal: SqliteJournal) -> None:
    """Every record of every thread is there once, each thread's in its own order."""

    def write(name: int) -> None:
        for number in range(300):
            journal.write(Record(1.0, f"{name}", "enter", data={"n": number}))

    threads = [threading.Thread(target=write, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert journal.flush()

    for name in range(8):
        assert [line.record.data["n"] for line in reader.story(f"{name}")] == list(range(300))


WRITER = """
import sys
from pathlib import Path
from interpose.contracts.journal import Record
from interpose.journal.sqlite import SqliteJournal
from interpose.kernel.clock import SystemClock

name, journal = sys.argv[2], SqliteJournal(Path(sys.argv[1]), clock=SystemClock())
for number in range(int(sys.argv[3])):
    journal.write(Record(1.0, f"{name}", "enter", reason="x" * 2_000, data={"n": number, "end": True}))
    if number % 20 == 19 and journal.flush(30):
        print(number, flush=True)
"""


def test_twelve_processes_write_while_some_are_killed(path: Path, reader: JournalReader) -> None:
    """No line is torn, and every record that a flush acknowledged is there, in order, whoever was killed."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(name), "200" if name >= 5 else "1000000"],
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": "src"},
        )
        for name in range(12)
    ]
    acknowledged = []
    for name, process in enumerate(processes):
        assert process.stdout is not None
        if name < 5:
            lines = [process.stdout.readline() for _ in range(3)]
            os.kill(process.pid, signal.SIGKILL)
            lines += process.stdout.readlines()
        else:
            lines = process.stdout.readlines()
        process.stdout.close()
        process.wait(30)
        acknowledged.append(int([line for line in lines if line.endswith(b"\n")][-1]) + 1)

    for name in range(12):
        numbers = [line.record.data["n"] for line in reader.story(f"{name}")]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= acknowledged[name]
    everything = reader.find(limit=-1)
    assert all(line.record.data["end"] and len(line.record.reason) == 2_000 for line in everything)
    assert acknowledged[5:] == [200] * 7


def test_a_program_that_forgets_to_close_loses_nothing(path: Path) -> None:
    """At the end of the interpreter, what was handed over is written."""
    code = WRITER.replace("if number", "if False and number")

    subprocess.run([sys.executable, "-c", code, str(path), "x", "7"], env={"PYTHONPATH": "src"}, check=True, timeout=30)

    assert _actions(path) == ["x"] * 7
