"""The server behind `interpose up`: in this process, or in workers of which each is a process of its own."""

import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import socket
from typing import Self

from interpose.assembly.runtime import Runtime
from interpose.cli.feed import Feed
from interpose.cli.health import JournalWatch, reported
from interpose.contracts.errors import StorageError
from interpose.contracts.journal import Record, StoredRecord
from interpose.gateway.metrics import BLOCK_BYTES, Metrics
from interpose.gateway.server import ThreadedServer
from interpose.gateway.workers import WorkerPool
from interpose.journal.query import Filter, JournalReader
from interpose.kernel.ids import random_id
from interpose.kernel.memory import settle

FILES_WANTED = 16_384
"""How many files the gateway may have open at once, where the system lets it."""

_WAIT_S = 0.2


@contextmanager
def serving(
    runtime: Runtime, watch: JournalWatch, *, host: str, port: int, workers: int, on_cut: Callable[[int], None]
) -> Iterator[ThreadedServer | WorkerPool]:
    """A server that runs until the end of the `with`, and as long as running replies may go on.

    `watch` is told how it stands with the journals of workers, also how it stood when they ended. `on_cut` is told how
    many replies did not end in time, where there are any. Raises ConfigError when the address cannot be had.
    """
    _allow_files()
    drain_s = runtime.settings.file.gateway.drain_s
    if workers == 1:
        gateway = runtime.gateway(host=host)
        with ThreadedServer(
            gateway, host=host, port=port, drain_timeout_s=drain_s, on_refused=gateway.refused, on_cut=gateway.cut
        ) as server:
            settle()
            yield server
        if server.cut_off:
            on_cut(server.cut_off)
        return

    runtime.gateway(host=host)  # what is wrong with the settings is told once, and here
    with tempfile.TemporaryFile() as shared:
        shared.truncate(workers * BLOCK_BYTES)
        with mmap.mmap(shared.fileno(), 0) as memory, _Reports(watch) as reports:

            def start(number: int, channel: socket) -> "subprocess.Popen[bytes]":
                with reports.of(number) as report:
                    passed = (channel.fileno(), shared.fileno(), report)
                    words = [str(word) for word in (number, workers, *passed, host)]
                    command = [sys.executable, "-m", "interpose.cli.worker", *words]
                    return subprocess.Popen(command, pass_fds=passed, stdin=subprocess.DEVNULL)  # noqa: S603 - our own

            def on_death(number: int, code: int) -> None:
                with memoryview(memory) as view:
                    Metrics(view, worker=number).restarted()
                runtime.journal.write(
                    Record(
                        at=runtime.clock.now(),
                        action=random_id("a"),
                        step="problem",
                        mount="wire",
                        reason=f"worker {number} of the gateway ended (exit code {code}) and is started again",
                    )
                )
                if runtime.journal.flush(1):
                    watch.written()

            with WorkerPool(
                start, workers=workers, host=host, port=port, on_death=on_death, drain_timeout_s=drain_s
            ) as pool:
                yield pool
            with memoryview(memory) as view:
                number = int(Metrics(view).total("cut_off", ()))
            if number:
                on_cut(number)


class _Reports:
    """What workers tell of their journals: a pipe and a thread each."""

    def __init__(self, watch: JournalWatch) -> None:
        self._watch = watch
        self._threads: dict[int, threading.Thread] = {}

    @contextmanager
    def of(self, worker: int) -> Iterator[int]:
        """Where a worker that starts within the `with` reports to."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        try:
            yield writing
        finally:
            os.close(writing)  # only the worker has it then, and the pipe ends with it
            thread = threading.Thread(target=reported, args=(reading, worker, self._watch), daemon=True)
            thread.start()
            self._threads[worker] = thread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exit_info: object) -> None:
        for thread in self._threads.values():
            thread.join(1)


@contextmanager
def followed(runtime: Runtime, feed: Feed) -> Iterator[None]:
    """Shows what all processes journal, for as long as the `with` lasts, also where another file takes its place."""
    ended = threading.Event()
    lines = _Lines(runtime.folders.journal_db)

    def follow() -> None:
        is_last_round = is_told = False
        while not is_last_round:
            is_last_round = ended.is_set()
            try:
                came = lines.come()
            except (StorageError, ValueError) as error:  # a damaged row is no JSON
                if not is_told:
                    feed.say(f"what happens cannot be shown until the journal can be read again: {error}")
                is_told = True
                ended.wait(_WAIT_S)
                continue
            is_told = False
            for stored in came:
                feed.hear(stored.record)
        lines.close()

    thread = threading.Thread(target=follow, name="interpose-follow", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5)


class _Lines:
    """The lines that come into the journal, each once, whichever file stands at its path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = JournalReader(path)
        self._inode = _inode(path)
        self._last = next(iter(self._reader.find(limit=1)), None)
        self._after = self._last.seq if self._last else 0
        self._since: float | None = None
        self._is_placed = True

    def come(self) -> tuple[StoredRecord, ...]:
        """The next lines, waited for a moment. Raises StorageError or ValueError while they cannot be read."""
        try:
            if not self._is_placed and not self._find_place():
                time.sleep(_WAIT_S)
                return ()
            came = self._reader.follow(self._after, Filter(since=self._since), wait_s=_WAIT_S)
        except (StorageError, ValueError):
            self._let_go()
            raise
        if came:
            self._last, self._after = came[-1], came[-1].seq
        elif _inode(self._path) != self._inode:
            self._let_go()
        return came

    def close(self) -> None:
        """Lets the file go."""
        self._reader.close()

    def _let_go(self) -> None:
        self._reader.close()
        self._is_placed = False

    def _find_place(self) -> bool:
        """Where to go on in the file that is there now; False when there is none."""
        self._inode = _inode(self._path)
        if self._inode is None:
            return False
        last = self._last
        is_known = last is not None and self._reader.follow(last.seq - 1, wait_s=0)[:1] == (last,)
        # Another file counts anew, and may be a copy that lacks the last lines: what it has of before was shown.
        self._after = last.seq if last is not None and is_known else 0
        self._since = None if last is None or is_known else last.record.at
        self._is_placed = True
        return True


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _allow_files() -> None:
    """Every stream takes two files, and some systems allow 1,024 unless asked for more."""
    try:
        import resource
    except ImportError:  # not on every platform
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
