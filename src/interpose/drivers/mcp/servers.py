"""Where an MCP server is, and how a connection to it is opened."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

_LAST_WORDS_BYTES: Final = 2_000
_LAST_WORDS_CHARS: Final = 300
_HTTP_READ_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A program that speaks MCP on its standard streams.

    It gets the few variables that the SDK passes on (PATH, HOME and the like) and those of `env`.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | Path | None = None


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server at a URL that speaks streamable HTTP; `headers` go with every request."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


class LastWords:
    """The end of what a server wrote to its standard error, for the error that says why it is gone."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def text(self) -> str:
        """The last line, "" when there is none."""
        lines = self._kept.decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip()[-_LAST_WORDS_CHARS:] if lines else ""

    def add(self, data: bytes) -> None:
        """Takes more; only the end is kept."""
        self._kept += data
        del self._kept[:-_LAST_WORDS_BYTES]


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told what happens on a connection: messages, its end, the server's last words."""

    on_message: MessageHandlerFnT
    on_end: Callable[[], None]
    last_words: LastWords


@asynccontextmanager
async def connected(server: StdioServer | HttpServer, watch: Watch, *, timeout_s: float) -> AsyncIterator[Client]:
    """A client after its handshake; the program or the connection ends with the block."""
    async with AsyncExitStack() as stack:
        if isinstance(server, StdioServer):
            errors = stack.enter_context(_Errors(watch.last_words))
            transport = stdio_client(
                StdioServerParameters(
                    command=server.command, args=list(server.args), env=dict(server.env), cwd=server.cwd
                ),
                errlog=errors.file,
            )
        else:
            http = httpx2.AsyncClient(
                headers=dict(server.headers), timeout=httpx2.Timeout(timeout_s, read=max(timeout_s, _HTTP_READ_S))
            )
            await stack.enter_async_context(http)
            transport = streamable_http_client(server.url, http_client=http)
        yield await stack.enter_async_context(
            Client(_watched(transport, watch.on_end), read_timeout_seconds=timeout_s, message_handler=watch.on_message)
        )


@asynccontextmanager
async def _watched(
    transport: AbstractAsyncContextManager[TransportStreams], on_end: Callable[[], None]
) -> AsyncIterator[TransportStreams]:
    async with transport as (read, write):
        yield _WatchedStream(read, on_end), write


class _WatchedStream:
    """A stream that says when it has ended, so that a server's death is known before the next call."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    @property
    def last_context(self) -> object:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


class _Errors:
    """A pipe for a program's standard error, read by the running loop."""

    def __init__(self, last_words: LastWords) -> None:
        self._last_words = last_words
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        self.file = os.fdopen(writer, "w")

    def __enter__(self) -> "_Errors":
        asyncio.get_running_loop().add_reader(self._reader, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        self._read()
        asyncio.get_running_loop().remove_reader(self._reader)
        os.close(self._reader)
        self.file.close()

    def _read(self) -> None:
        try:
            while data := os.read(self._reader, 65_536):
                self._last_words.add(data)
        except BlockingIOError:
            return
