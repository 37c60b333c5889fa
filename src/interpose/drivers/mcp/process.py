"""An MCP server as a process of its own group: its messages, its last words, its end.

Knows: JSON-RPC messages a line each, process groups, how long a server may take to leave. Does not know: sessions,
tools. Everything here runs on one event loop. POSIX; elsewhere `servers` lets the SDK start programs.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import mcp_types as types
from anyio import ClosedResourceError, EndOfStream
from mcp.client._transport import TransportStreams
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

LINE_BYTES_MOST: Final = 64 * 1024 * 1024
"""Of one message; a server that writes a longer line is left."""

_GRACE_S: Final = 2.0
"""From the end of its input until a server is told to end, and from then until it is killed."""
_LAST_WORDS_S: Final = 0.05
"""For what it wrote before it ended; a process that left the group may hold the pipe open for ever."""
_POLL_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Program:
    """What is started: the command, variables beside the few that every server gets, the folder."""

    command: str
    args: Sequence[str]
    env: Mapping[str, str]
    cwd: str | Path | None


@asynccontextmanager
async def running(
    program: Program, *, on_words: Callable[[bytes], None], on_junk: Callable[[bytes], None]
) -> AsyncIterator[TransportStreams]:
    """The streams of the started program; with the block it ends, and every process of its group.

    `on_words` is given what it writes to its standard error, `on_junk` each line that is no message; such a line is
    passed over. A block that raises or is cancelled kills it at once, else it may leave by itself first. Raises OSError
    or ValueError when it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        program.command,
        *program.args,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**get_default_environment(), **program.env},
        cwd=program.cwd,
        limit=LINE_BYTES_MOST,
        start_new_session=True,
    )
    listening = asyncio.create_task(_pass_on(process, on_words))
    try:
        yield _Messages(process, on_junk), _Input(process)
        await _leave(process)
    finally:
        _signal(process.pid, signal.SIGKILL)
        await _until(lambda: process.returncode is not None, _GRACE_S)
        await asyncio.wait([listening], timeout=_LAST_WORDS_S)
        listening.cancel()
        await asyncio.wait([listening])
        _release(process)


class _Messages:
    """The program's standard output as the SDK reads it."""

    def __init__(self, process: Process, on_junk: Callable[[bytes], None]) -> None:
        assert process.stdout is not None  # noqa: S101 - asked for with PIPE
        self._lines = process.stdout
        self._on_junk = on_junk

    async def receive(self) -> SessionMessage | Exception:
        while True:
            try:
                line = await self._lines.readline()
            except (OSError, ValueError) as error:  # ValueError: a line beyond the limit
                raise EndOfStream from error
            if not line:
                raise EndOfStream
            try:
                return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                if line.strip():
                    self._on_junk(line)

    async def aclose(self) -> None:
        """Nothing: the pipe ends with the process."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self.aclose()


class _Input:
    """The program's standard input as the SDK writes it."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None  # noqa: S101 - asked for with PIPE
        self._pipe = process.stdin
        self._writing = asyncio.Lock()

    async def send(self, item: SessionMessage, /) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        async with self._writing:
            try:
                self._pipe.write(text.encode() + b"\n")
                await self._pipe.drain()
            except (OSError, RuntimeError) as error:  # RuntimeError: the loop's words for a closed pipe
                raise ClosedResourceError from error

    async def aclose(self) -> None:
        self._pipe.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self.aclose()


async def _pass_on(process: Process, on_words: Callable[[bytes], None]) -> None:
    assert process.stderr is not None  # noqa: S101 - asked for with PIPE
    while data := await process.stderr.read(65_536):
        on_words(data)


async def _leave(process: Process) -> None:
    """Ends its input and waits for it to go; what it still writes is read, or it could never end."""
    assert process.stdin is not None  # noqa: S101 - asked for with PIPE
    assert process.stdout is not None  # noqa: S101 - asked for with PIPE
    process.stdin.close()
    draining = asyncio.create_task(_discard(process.stdout))
    try:
        await _until(lambda: process.returncode is not None, _GRACE_S)
        _signal(process.pid, signal.SIGTERM)
        await _until(lambda: not _signal(process.pid, 0), _GRACE_S)
    finally:
        draining.cancel()
        await asyncio.wait([draining])


async def _discard(lines: asyncio.StreamReader) -> None:
    while await lines.read(65_536):
        pass


async def _until(holds: Callable[[], bool], seconds: float) -> None:
    """Polls: waiting for a process also waits for its pipes, which its children may hold open."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not holds() and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - nobody tells of a group's end
        await asyncio.sleep(_POLL_S)


def _signal(group: int, number: int) -> bool:
    """Whether there was anybody in the group to signal; a group keeps its number while one of its processes lives."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody is, and is not ours
        return True
    return True


def _release(process: Process) -> None:
    """Closes the pipes even where a process that left the group holds their other ends."""
    transport = getattr(process, "_transport", None)
    if isinstance(transport, asyncio.SubprocessTransport):
        with suppress(ProcessLookupError, PermissionError):
            transport.close()
