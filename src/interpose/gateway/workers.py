"""Several worker processes behind one address; a session stays on one of them.

Knows: accepting, reading a head, whose it is, starting workers again that died. Does not know: what a worker runs.
"""

import asyncio
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Self

from interpose.contracts.errors import ConfigError, MisuseError
from interpose.gateway.connection import Limits
from interpose.gateway.handing import HEAD_END, Handed, hand_over, owner_of, take_over
from interpose.gateway.server import DEFAULT_LIMITS, DRAIN_TIMEOUT_S, START_TIMEOUT_S, bind, listens_at, url_of
from interpose.gateway.service import STOP_S

READY = b"R"
"""What a worker writes into its channel when it serves."""

WAITING_MAX = 1_000
"""So many connections wait for a worker that is being started again; further ones are closed."""

END_S = 5.0
"""How long a worker may take to close its files behind its last reply; then it is killed."""

_QUICK_S = 1.0
_PAUSE_MAX_S = 5.0

StartWorker = Callable[[int, socket.socket], "subprocess.Popen[bytes]"]
"""Starts worker NUMBER, which takes its connections from the channel; the channel's descriptor must be passed on."""


@dataclass(frozen=True, slots=True)
class _Died:
    process: "subprocess.Popen[bytes]"


class WorkerPool:
    """`with WorkerPool(start, workers=4, host=..., port=...) as pool: pool.url`.

    `on_death` is told the number and the exit code of a worker that is started again, on a thread of ours. Leaving lets
    open streams end, at most `drain_timeout_s`. Raises ConfigError when the address cannot be bound or the platform
    cannot hand connections over.
    """

    def __init__(
        self,
        start: StartWorker,
        *,
        workers: int,
        host: str,
        port: int,
        on_death: Callable[[int, int], None],
        limits: Limits = DEFAULT_LIMITS,
        drain_timeout_s: float = DRAIN_TIMEOUT_S,
    ) -> None:
        if not hasattr(socket, "send_fds"):
            raise ConfigError("workers", "this platform cannot hand connections to other processes", "use one worker")
        self._listener = bind(host, port)
        self._limits = limits
        self._drain_timeout_s = drain_timeout_s
        self._workers = [_Worker(number, start, on_death, self._returned) for number in range(workers)]
        self._turns = count()
        self._unrouted = 0
        self._thread = threading.Thread(target=self._accept, name="interpose-accept", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """Where clients of this machine reach it."""
        return url_of(self._listener)

    @property
    def listens(self) -> str:
        """What it is bound to, as a URL; 0.0.0.0 and [::] are every address of this machine."""
        return listens_at(self._listener)

    @property
    def pids(self) -> list[int]:
        """The processes of the workers, by number."""
        return [worker.pid for worker in self._workers]

    def start(self) -> Self:
        """Starts the workers and waits until each one serves. Raises MisuseError when one does not."""
        for worker in self._workers:
            worker.start()
        deadline = time.monotonic() + START_TIMEOUT_S
        for worker in self._workers:
            if not worker.is_ready(deadline - time.monotonic()):
                self.stop()
                raise MisuseError(f"worker {worker.number} of the gateway did not start; see its messages above")
        self._thread.start()
        return self

    def stop(self) -> None:
        """Takes no more connections, lets open streams end, and ends the workers. Idempotent."""
        if self._loop is not None and self._stopped is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()
        self._listener.close()
        for worker in self._workers:
            worker.let_end()
        deadline = time.monotonic() + self._drain_timeout_s + STOP_S + END_S
        for worker in self._workers:
            worker.end(max(0.1, deadline - time.monotonic()))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _accept(self) -> None:
        asyncio.run(self._accepting())

    async def _accepting(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        with suppress(asyncio.CancelledError):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._accept_all(group))
                await self._stopped.wait()
                raise asyncio.CancelledError  # ends all that the group runs

    async def _accept_all(self, group: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:  # too many open files: those that end make room
                await asyncio.sleep(0.1)
                continue
            connection.setblocking(False)
            if self._unrouted >= self._limits.connections:
                connection.close()
                continue
            group.create_task(self._route(connection))

    async def _route(self, connection: socket.socket) -> None:
        """Reads the head of the first request and hands the connection to its owner."""
        self._unrouted += 1
        try:
            data = await self._head(connection)
        except OSError:
            data = b""
        except asyncio.CancelledError:
            connection.close()
            raise
        finally:
            self._unrouted -= 1
        if not data:
            connection.close()
            return
        owner = owner_of(data, len(self._workers))
        number = next(self._turns) % len(self._workers) if owner is None else owner
        if not self._workers[number].give(Handed(connection, data)):
            connection.close()

    def _returned(self, handed: Handed) -> None:
        """A connection whose next request belongs to another worker than the one before."""
        if not 0 <= handed.owner < len(self._workers) or not self._workers[handed.owner].give(handed):
            handed.connection.close()

    async def _head(self, connection: socket.socket) -> bytes:
        """What came until the head's end; less when it did not end in time or at all, which its worker answers."""
        data = b""
        loop = asyncio.get_running_loop()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.header_s):
                while HEAD_END not in data and len(data) <= self._limits.header_bytes:
                    chunk = await loop.sock_recv(connection, 65_536)
                    if not chunk:
                        break
                    data += chunk
        return data


class _Worker:
    """One place for a worker process: it is filled again when the process dies. Its thread owns the channel."""

    def __init__(
        self,
        number: int,
        start: StartWorker,
        on_death: Callable[[int, int], None],
        on_return: Callable[[Handed], None],
    ) -> None:
        self._on_return = on_return
        self.number = number
        self._start = start
        self._on_death = on_death
        self._queue: queue.Queue[Handed | _Died | None] = queue.Queue(WAITING_MAX)
        self._ready = threading.Event()
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name=f"interpose-worker-{number}", daemon=True)

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def start(self) -> None:
        self._thread.start()

    def is_ready(self, timeout_s: float) -> bool:
        return self._ready.wait(max(0.0, timeout_s)) and not self._stopping.is_set()

    def give(self, handed: Handed) -> bool:
        """False when too many wait already."""
        try:
            self._queue.put_nowait(handed)
        except queue.Full:
            return False
        return True

    def let_end(self) -> None:
        self._stopping.set()
        with suppress(queue.Full):
            self._queue.put_nowait(None)

    def end(self, timeout_s: float) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join(1)

    def _run(self) -> None:
        quick_deaths = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            self._serve_one()
            if self._stopping.is_set() or self._process is None:
                return
            self._on_death(self.number, self._process.wait())
            quick_deaths = quick_deaths + 1 if time.monotonic() - began < _QUICK_S else 0
            if not self._ready.is_set():
                self._stopping.set()
                self._ready.set()  # the first start failed: whoever waits is told
                return
            self._stopping.wait(min(0.1 * 2**quick_deaths, _PAUSE_MAX_S) if quick_deaths else 0)

    def _serve_one(self) -> None:
        """One life of a worker, from its start to its death or to our end."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._process = process = self._start(self.number, theirs)
            threading.Thread(target=self._watch, args=(process,), daemon=True).start()
            if ours.recv(1) != READY:
                return
            self._ready.set()
            returning = threading.Thread(target=self._take_all, args=(ours,), daemon=True)
            returning.start()
            self._hand_all(ours, process)
            with suppress(OSError):
                ours.shutdown(socket.SHUT_WR)  # the worker ends, and with it what it gives back
            returning.join()

    def _take_all(self, channel: socket.socket) -> None:
        with suppress(OSError):
            while (handed := take_over(channel)) is not None:
                self._on_return(handed)

    def _watch(self, process: "subprocess.Popen[bytes]") -> None:
        process.wait()
        self._queue.put(_Died(process))

    def _hand_all(self, channel: socket.socket, process: "subprocess.Popen[bytes]") -> None:
        while True:
            item = self._queue.get()
            match item:
                case None:
                    return
                case _Died(dead):
                    if dead is process:
                        return
                case Handed():
                    try:
                        hand_over(channel, item)
                    except OSError:
                        if not self.give(item):  # the next process is given it
                            item.connection.close()
                        return
