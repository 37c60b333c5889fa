"""Where an MCP server is, and how a connection to it is opened."""

import functools
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from interpose.contracts.errors import MisuseError
from interpose.contracts.settings import a_path, a_text, an_environment, each_checked, headers, texts
from interpose.drivers.mcp.listing import Unusable, sorted_out
from interpose.drivers.mcp.process import Program, running

_HTTP_URL: Final = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_LAST_WORDS_BYTES: Final = 2_000
_LAST_WORDS_CHARS: Final = 300
_HTTP_READ_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A program that speaks MCP on its standard streams.

    It gets the few variables that the SDK passes on (PATH, HOME and the like) and those of `env`. Raises
    ConfigError naming the field for what none of them can be.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | Path | None = None

    def __post_init__(self) -> None:
        each_checked(
            self,
            {
                "command": functools.partial(a_text, expected="the name or the path of a program"),
                "args": functools.partial(texts, expected='a tuple of texts, such as ("-m", "server")'),
                "env": an_environment,
            },
        )
        if self.cwd is not None:
            a_path("StdioServer.cwd", self.cwd, "the path of a folder")


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server at a URL that speaks streamable HTTP; `headers` go with every request.

    Raises MisuseError for what is no http or https URL, ConfigError for what is no header.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        url: Any = self.url
        if not isinstance(url, str) or not _HTTP_URL.match(url):
            raise MisuseError(f"HttpServer({url!r:.200}): expected a URL that begins with http:// or https://")
        each_checked(self, {"headers": headers})


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
    """Who is told what happens on a connection: messages, its end, and what of it was of no use.

    Attributes:
        on_message: notifications of the server.
        on_end: the server has gone.
        on_junk: a line that is no message.
        on_unusable: a tool that is left out of a listing, and why.
        last_words: the end of what the server wrote to its standard error.
    """

    on_message: MessageHandlerFnT
    on_end: Callable[[], None]
    on_junk: Callable[[bytes], None]
    on_unusable: Callable[[Unusable], None]
    last_words: LastWords


@asynccontextmanager
async def connected(server: StdioServer | HttpServer, watch: Watch, *, timeout_s: float) -> AsyncIterator[Client]:
    """A client after its handshake; the program or the connection ends with the block."""
    async with AsyncExitStack() as stack:
        if isinstance(server, StdioServer):
            transport = _started(server, watch)
        else:
            http = httpx2.AsyncClient(
                headers=dict(server.headers), timeout=httpx2.Timeout(timeout_s, read=max(timeout_s, _HTTP_READ_S))
            )
            await stack.enter_async_context(http)
            transport = streamable_http_client(server.url, http_client=http)
        client = Client(
            _watched(transport, watch, lambda: client.protocol_version),
            read_timeout_seconds=timeout_s,
            message_handler=watch.on_message,
        )
        yield await stack.enter_async_context(client)


def _started(server: StdioServer, watch: Watch) -> AbstractAsyncContextManager[TransportStreams]:
    if sys.platform == "win32":  # no process groups: the SDK's job objects end what belongs to a server
        return stdio_client(
            StdioServerParameters(command=server.command, args=list(server.args), env=dict(server.env), cwd=server.cwd)
        )
    program = Program(server.command, server.args, server.env, server.cwd)
    return running(program, on_words=watch.last_words.add, on_junk=watch.on_junk)


@asynccontextmanager
async def _watched(
    transport: AbstractAsyncContextManager[TransportStreams], watch: Watch, version: Callable[[], str]
) -> AsyncIterator[TransportStreams]:
    async with transport as (read, write):
        yield _WatchedStream(read, watch, version), write


class _WatchedStream:
    """A stream that says when it has ended, so that a server's death is known before the next call, and that leaves
    out of listings what would make them unreadable.
    """

    def __init__(
        self, stream: ReadStream[SessionMessage | Exception], watch: Watch, version: Callable[[], str]
    ) -> None:
        self._stream = stream
        self._watch = watch
        self._version = version

    @property
    def last_context(self) -> object:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._readable(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return self._readable(await self._stream.__anext__())
        except StopAsyncIteration:
            self._watch.on_end()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)

    def _readable(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, Exception) or not isinstance(item.message, types.JSONRPCResponse):
            return item
        result = item.message.result
        if "content" in result or not isinstance(result.get("tools"), list):
            return item  # a tool's own result may well have a field of that name

        result["tools"], unusable = sorted_out(result, self._version())
        for each in unusable:
            self._watch.on_unusable(each)
        return item
