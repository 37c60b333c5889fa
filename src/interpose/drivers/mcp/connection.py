"""One MCP server, connected when it is needed and again after it went away.

Knows: when a connection is good, and why it is not any more. Does not know: tools of ours, threads; everything here
runs on one event loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.session import IncomingMessage

from interpose.contracts.errors import InterposeError, MisuseError, ToolError
from interpose.drivers.mcp.listing import Unusable
from interpose.drivers.mcp.servers import HttpServer, LastWords, StdioServer, Watch, connected
from interpose.kernel.boundary import fault_line

T = TypeVar("T")

PAGES_MOST: Final = 100
"""Pages of a listing that are fetched."""

_PATIENCE_SHARE: Final = 0.1
_PATIENCE_MOST_S: Final = 1.0
"""How long, after the time to connect, a server is waited for that must end."""
_TOLD_MOST: Final = 200
"""Facts about one server that are logged."""
_SHOWN_BYTES: Final = 100

_log = logging.getLogger(__name__)


class Connection:
    """Keeps at most one session. A call that finds none opens one; a call that loses it fails and is not repeated,
    since it may have been done.
    """

    def __init__(
        self,
        name: str,
        server: StdioServer | HttpServer,
        *,
        timeout_s: float,
        connect_timeout_s: float,
        on_tools_changed: Callable[[], None],
    ) -> None:
        self._name = name
        self._server = server
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._on_tools_changed = on_tools_changed
        self._opening = asyncio.Lock()
        self._session: _Session | None = None
        self._is_closed = False
        self._told: set[str] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    async def list_tools(self) -> list[types.Tool]:
        """All pages of the server's listing."""

        async def ask(client: Client) -> list[types.Tool]:
            tools: list[types.Tool] = []
            cursor: str | None = None
            for _ in range(PAGES_MOST):
                page = await client.list_tools(cursor=cursor, cache_mode="refresh")
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    return tools
            raise ToolError(f"the MCP server {self._name!r} lists its tools on more than {PAGES_MOST} pages")

        return await self._asked("the list of tools", ask)

    async def call_tool(self, tool: str, arguments: dict[str, object]) -> types.CallToolResult:
        """What the server returned, an error of its tool included."""
        return await self._asked(tool, lambda client: client.call_tool(tool, arguments))

    async def close(self) -> None:
        """Ends the session and what it started; calls on their way fail, and no other is begun."""
        self._is_closed = True
        await self._end_session()

    async def _asked(self, what: str, ask: Callable[[Client], Awaitable[T]]) -> T:
        session = await self._opened()
        try:
            return await ask(session.client)
        except MCPError as error:
            if error.code == types.REQUEST_TIMEOUT:
                raise ToolError(
                    f"the MCP server {self._name!r} gave no answer about {what} within {self._timeout_s:g} s; "
                    "it was told to stop, and may have done it all the same"
                ) from error
            if error.code != types.CONNECTION_CLOSED and session.is_alive:
                raise ToolError(f"the MCP server {self._name!r} refused {what}: {error.message}") from error
            raise await self._lost(session, what) from error
        except InterposeError:
            raise
        except Exception as error:
            # A broken peer may be answered with anything the SDK raises; the call has failed, whatever it was.
            raise ToolError(f"the MCP server {self._name!r} answered {what} wrongly: {fault_line(error)}") from error

    async def _opened(self) -> "_Session":
        async with self._opening:
            if self._is_closed:
                raise MisuseError(f"the MCP server {self._name!r} was closed")
            if self._session is not None and self._session.is_alive:
                return self._session
            await self._end_session()
            session = _Session(self._server, self._timeout_s, self._on_tools_changed, self._tell)
            try:
                async with asyncio.timeout(self._connect_timeout_s):
                    await session.start()
            except asyncio.CancelledError:
                await self._left(session)
                raise
            except Exception as error:
                await self._left(session)
                raise ToolError(f"the MCP server {self._name!r} {self._why(error)}{session.words()}") from error
            self._session = session
            return session

    async def _left(self, session: "_Session") -> None:
        """Ends what never began. It is not waited for long: the time to connect is up already."""
        patience_s = min(self._connect_timeout_s * _PATIENCE_SHARE, _PATIENCE_MOST_S)
        leaving = asyncio.create_task(session.end())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        await asyncio.wait([leaving], timeout=patience_s)

    def _tell(self, what: str) -> None:
        """Logs a fact about the server, once."""
        if what not in self._told and len(self._told) < _TOLD_MOST:
            self._told.add(what)
            _log.warning("the MCP server %r %s", self._name, what)

    def _why(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"did not greet within {self._connect_timeout_s:g} s"
        return f"could not be reached: {_innermost(error)}"

    async def _end_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.end()

    async def _lost(self, session: "_Session", what: str) -> ToolError:
        if self._session is session:
            self._session = None
        await session.end()
        return ToolError(
            f"the MCP server {self._name!r} went away while it worked on {what}, which may have been done or not; "
            f"the next call starts it again{session.words()}"
        )


class _Session:
    """One client in a task of its own: the SDK wants to be left by the task that entered it."""

    def __init__(
        self,
        server: StdioServer | HttpServer,
        timeout_s: float,
        on_tools_changed: Callable[[], None],
        tell: Callable[[str], None],
    ) -> None:
        self._server = server
        self._timeout_s = timeout_s
        self._on_tools_changed = on_tools_changed
        self._tell = tell
        self._has_junk = False
        self._last_words = LastWords()
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    @property
    def client(self) -> Client:
        return self._ready.result()

    @property
    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done() and not self._stop.is_set()

    async def start(self) -> None:
        """Returns when the server has greeted; raises what opening raised."""
        self._task = asyncio.create_task(self._live())
        await asyncio.shield(self._ready)

    async def end(self) -> None:
        self._stop.set()
        if self._task is None:
            return
        if not self._ready.done():
            self._task.cancel()
        await asyncio.wait([self._task])
        if self._ready.done() and not self._ready.cancelled():
            self._ready.exception()  # looked at, so that nobody warns about it

    def words(self) -> str:
        said = self._last_words.text()
        return f"; its last words: {said}" if said else ""

    async def _live(self) -> None:
        try:
            watch = Watch(
                self._on_message,
                on_end=self._stop.set,
                on_junk=self._on_junk,
                on_unusable=self._on_unusable,
                last_words=self._last_words,
            )
            async with connected(self._server, watch, timeout_s=self._timeout_s) as client:
                self._ready.set_result(client)
                listening = asyncio.create_task(self._listen(client))
                try:
                    await self._stop.wait()
                finally:
                    listening.cancel()
                    await asyncio.wait([listening])
        except Exception as error:  # noqa: BLE001 - the SDK raises what its own tasks met: the session is over
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            self._stop.set()
            self._ready.cancel()

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._on_tools_changed()

    def _on_junk(self, line: bytes) -> None:
        if self._has_junk:
            return
        self._has_junk = True
        shown = line[:_SHOWN_BYTES].decode("utf-8", "replace").rstrip()
        self._tell(f"writes lines that are no messages, such as {shown!r}; they are passed over")

    def _on_unusable(self, tool: Unusable) -> None:
        name, problem = tool
        self._tell(f"lists a tool that cannot be used, {name}: {problem}; it is left out")

    async def _listen(self, client: Client) -> None:
        """Asks to be told of new tools, where servers tell only who asks: since protocol version 2026-07-28."""
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._on_tools_changed()
        except Exception:  # noqa: BLE001 - a server that cannot tell: the listing is fetched anew by its age
            return


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return fault_line(error)
