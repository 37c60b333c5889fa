"""One program run within bounds, and nothing of it left behind.

Knows: processes, groups, pipes and deadlines. Does not know: tools, which program it is.

The program gets a session and process group of its own. When it ends, or has to, every process of the group is killed;
on Linux also those that left the group, found by a random mark in their environment, so that only one that clears its
environment as well lives on. Output in a pipe that such a process holds open is waited for half a second.
"""

import asyncio
import os
import secrets
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from interpose.contracts.errors import ToolError
from interpose.drivers.shell.output import Capped

Ended: TypeAlias = Literal["exited", "timed_out", "cancelled"]

MARK: Final = "INTERPOSE_RUN_"
"""How variables begin that mark every process of a run; runs inside of a run carry the marks of both."""

_TICK_S: Final = 0.05
_DRAIN_S: Final = 0.5
_KILL_ROUNDS: Final = 20


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of a program. `exit_code` is negative when a signal ended it; the outputs are cut to their bound."""

    ended: Ended
    exit_code: int
    stdout: str
    stderr: str
    seconds: float


def run(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout_s: float,
    output_bytes: int,
    cancelled: threading.Event | None = None,
) -> Finished:
    """Runs the program to its end, `timeout_s` or `cancelled`, whichever is first; no input, outputs kept apart.

    Raises ToolError when it cannot be started. Any thread may call it, many at once; an exception raised into the
    caller, KeyboardInterrupt among them, ends the program too.
    """
    mark = MARK + secrets.token_hex(16)
    started = time.monotonic()
    outputs = Capped(output_bytes), Capped(output_bytes)
    with _started(argv, cwd, {**env, mark: "1"}) as process, _Pipes(process, outputs) as pipes:
        try:
            ended = _until_the_end(process, pipes, started + timeout_s, cancelled)
        finally:
            _kill_all(process, mark)
            process.wait()
        pipes.drain(time.monotonic() + _DRAIN_S)
    stdout, stderr = outputs
    return Finished(ended, process.returncode, stdout.text(), stderr.text(), time.monotonic() - started)


async def run_async(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout_s: float, output_bytes: int
) -> Finished:
    """As `run`, in a worker thread; a cancelled caller gets its cancellation when the program is dead."""
    cancelled = threading.Event()
    running = asyncio.ensure_future(
        asyncio.to_thread(
            run, argv, cwd=cwd, env=env, timeout_s=timeout_s, output_bytes=output_bytes, cancelled=cancelled
        )
    )
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.wait([running])
        raise


@contextmanager
def _started(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        process = subprocess.Popen(  # noqa: S603 - running programs is what this is for; who may is a middleware's work
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ToolError(f"{argv[0]} could not be started: {reason}") from error
    with process:
        yield process


class _Pipes:
    """The two outputs of a process, read as they come."""

    def __init__(self, process: subprocess.Popen[bytes], outputs: tuple[Capped, Capped]) -> None:
        self._selector = selectors.DefaultSelector()
        for pipe, output in zip((process.stdout, process.stderr), outputs, strict=True):
            assert pipe is not None  # noqa: S101 - asked for with PIPE
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe.fileno(), selectors.EVENT_READ, output)

    def __enter__(self) -> "_Pipes":
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    def read(self, wait_s: float) -> bool:
        """Takes what is there, waiting at most `wait_s` for it; whether there was anything."""
        ready = self._selector.select(max(wait_s, 0))
        for key, _ in ready:
            self._take(key.fd, key.data)
        return bool(ready)

    def drain(self, deadline: float) -> None:
        """Takes the rest, until both outputs are closed or `deadline`."""
        while self._selector.get_map() and (left_s := deadline - time.monotonic()) > 0:
            self.read(left_s)

    def _take(self, descriptor: int, output: Capped) -> None:
        try:
            data = os.read(descriptor, 65_536)
        except BlockingIOError:
            return
        if data:
            output.add(data)
            return
        self._selector.unregister(descriptor)


def _until_the_end(
    process: subprocess.Popen[bytes], pipes: _Pipes, deadline: float, cancelled: threading.Event | None
) -> Ended:
    wait_s = 0.001
    while True:
        if cancelled is not None and cancelled.is_set():
            return "cancelled"
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return "timed_out"
        wait_s = 0.001 if pipes.read(min(wait_s, left_s)) else min(wait_s * 2, _TICK_S)
        if _has_exited(process):
            return "exited"


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether it ended; its number stays taken until `wait`, so that no other process is killed for it."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None

    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True  # somebody else in this program waited for it


def _kill_all(process: subprocess.Popen[bytes], mark: str) -> None:
    wanted = f"{mark}=1".encode()
    for _ in range(_KILL_ROUNDS):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if not _kill_marked(wanted, apart_from=process.pid):
            return


def _kill_marked(wanted: bytes, *, apart_from: int) -> bool:
    """Kills every process with the mark in its environment; whether there was one. Linux only, elsewhere False."""
    processes = Path("/proc")
    if not hasattr(os, "pidfd_open") or not processes.is_dir():
        return False

    found = False
    for folder in processes.iterdir():
        if folder.name.isdecimal() and int(folder.name) != apart_from:
            found = _kill_if_marked(int(folder.name), wanted) or found
    return found


def _kill_if_marked(number: int, wanted: bytes) -> bool:
    try:
        if wanted not in Path(f"/proc/{number}/environ").read_bytes().split(b"\0"):
            return False
        handle = os.pidfd_open(number)
    except OSError:
        return False  # gone, or not ours
    try:
        # Read again now that the handle holds the process: the number may have been given to another one.
        if wanted not in Path(f"/proc/{number}/environ").read_bytes().split(b"\0"):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
