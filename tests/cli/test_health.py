"""cli.health: what people are told of a journal that cannot be written."""

import os
import threading
from queue import SimpleQueue

from interpose.cli.health import JournalWatch, report, reported
from interpose.journal.health import Health

FULL = "/s/journal.db: the disk is full"


class Told:
    """A terminal that keeps its lines."""

    def __init__(self) -> None:
        self.lines: SimpleQueue[tuple[str, Health]] = SimpleQueue()

    def say(self, text: str, health: Health) -> None:
        """Keeps one line."""
        self.lines.put((text, health))

    def next(self) -> str:
        """The next line, waited for."""
        return self.lines.get(timeout=10)[0]


def test_each_change_is_one_line() -> None:
    """It begins, lines begin to be lost, it is over; numbers that only grow are no news."""
    told = Told()
    watch = JournalWatch(told.say)
    watch.start()

    watch.hear(Health(FULL, waiting=3))
    assert told.next() == f"the journal cannot be written: {FULL}; 3 lines wait"
    watch.hear(Health(FULL, waiting=90))
    watch.hear(Health(FULL, waiting=99, lost=1))
    assert told.next() == "the journal still cannot be written, 99 lines wait, and more are lost"
    watch.hear(Health(FULL, waiting=99, lost=7))
    watch.hear(Health(None, waiting=0, lost=7))
    assert told.next() == "the journal is written again: 7 lines were lost"
    watch.hear(Health(FULL, waiting=1, lost=7))
    assert told.next() == f"the journal cannot be written: {FULL}; 1 line waits"
    watch.hear(Health(None, waiting=0, lost=7))
    assert told.next() == "the journal is written again: all that waited is in it"

    watch.close()
    assert told.lines.empty()
    assert watch.loss() == (f"7 lines of the journal were lost: {FULL}", Health(lost=7))


def test_what_was_heard_before_the_start_is_told_then_and_nothing_after_the_end() -> None:
    """The first line of `up` comes first; the loss is told by whoever closes it."""
    told = Told()
    watch = JournalWatch(told.say)
    watch.hear(Health(FULL, waiting=1))
    assert told.lines.empty()
    watch.start()
    told.next()
    watch.close()
    watch.close()
    watch.hear(Health(FULL, lost=1))

    assert told.lines.empty()
    assert watch.loss() == (f"1 line of the journal was lost: {FULL}", Health(FULL, lost=1))


def test_without_losses_nothing_is_lost() -> None:
    """A watch that heard nothing, or only what ended well, has nothing to tell, and need not have been started."""
    watch = JournalWatch(Told().say)
    assert watch.loss() is None
    watch.hear(Health(FULL, waiting=1))
    watch.hear(Health())
    watch.close()

    assert watch.loss() is None


def test_workers_report_through_a_pipe() -> None:
    """All are told as one; of a worker that died, what waited is lost."""
    told = Told()
    watch = JournalWatch(told.say)
    watch.start()
    watch.hear(Health())
    pipes = [os.pipe() for _ in range(2)]
    threads = [threading.Thread(target=reported, args=(pipe[0], n, watch)) for n, pipe in enumerate(pipes)]
    for thread in threads:
        thread.start()

    report(pipes[0][1], Health(FULL + "!" * 5_000, waiting=2))
    assert told.next().startswith(f"the journal cannot be written: {FULL}!!!")
    report(pipes[1][1], Health(FULL, waiting=3, lost=4))
    assert told.next() == "the journal still cannot be written, 5 lines wait, and more are lost"
    report(pipes[1][1], Health(None, waiting=0, lost=4))
    os.write(pipes[0][1], b'{"fault": nu')
    for (_, writing), thread in zip(pipes, threads, strict=True):
        os.close(writing)
        thread.join(10)
    assert told.next() == "the journal is written again: 6 lines were lost"
    watch.close()

    loss = watch.loss()
    assert loss is not None
    assert loss[0].startswith("6 lines of the journal were lost: ")


def test_a_worker_that_ends_mends_nothing() -> None:
    """Its fault stands until something is written: by one that could not, or by whoever says so."""
    told = Told()
    watch = JournalWatch(told.say)
    watch.start()

    watch.hear(Health(FULL), 0)
    assert told.next() == f"the journal cannot be written: {FULL}"
    watch.hear(Health(FULL, lost=4), 0)
    assert told.next() == "the journal still cannot be written, 4 lines were lost"
    watch.gone(0)
    watch.hear(Health(), 1)
    watch.gone(1)
    watch.hear(Health(FULL, waiting=2, lost=1), 0)
    watch.hear(Health(None, lost=1), 0)
    assert told.next() == "the journal is written again: 5 lines were lost"
    watch.hear(Health(FULL, waiting=1, lost=1), 0)
    assert told.next() == f"the journal cannot be written: {FULL}; 1 line waits"
    watch.gone(0)
    assert told.next() == "the journal still cannot be written, 1 line was lost"
    watch.written()
    assert told.next() == "the journal is written again: 1 line was lost"
    watch.close()
    assert told.lines.empty()


def test_a_report_that_nobody_takes_stops_nobody() -> None:
    """A full pipe and one without a reader are passed over."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in range(5_000):
        report(writing, Health(FULL, waiting=number))
    os.close(reading)
    report(writing, Health())
    os.close(writing)
