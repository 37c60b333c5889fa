"""The MCP driver: the tools of one MCP server.

Knows: names, memory of the listing, sync and async. Does not know: the protocol, prompts, policy.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, Unpack, get_args

import mcp_types as types

from interpose.contracts.drivers import Health, HealthStatus, SupportsHealthcheck, Tool, ToolDriver
from interpose.contracts.errors import ConfigError, InterposeError, ToolError
from interpose.contracts.settings import a_count, an_age, each_checked, of_kind, one_of, seconds
from interpose.contracts.sheet import DriverBinding, DriverMeta
from interpose.drivers.hosted import DriverOptions, HostedDriver, limits_of
from interpose.drivers.mcp.connection import Connection
from interpose.drivers.mcp.loop import LoopThread
from interpose.drivers.mcp.results import plain, told
from interpose.drivers.mcp.servers import HttpServer, StdioServer
from interpose.drivers.naming import tool_name
from interpose.kernel.boundary import fault_line

Results: TypeAlias = Literal["text", "json"]

_NAME: Final = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,29}")


@dataclass(frozen=True, slots=True)
class McpLimits:
    """Bounds of one server. Raises ConfigError naming the field for what none of them can be.

    Attributes:
        timeout_s: seconds for one call.
        connect_timeout_s: seconds until the server has greeted.
        result_chars: characters of a text result.
        relist_s: age in seconds at which the listing is fetched anew, in the background.
    """

    timeout_s: float = 60.0
    connect_timeout_s: float = 30.0
    result_chars: int = 200_000
    relist_s: float = 60.0

    def __post_init__(self) -> None:
        each_checked(
            self, {"timeout_s": seconds, "connect_timeout_s": seconds, "relist_s": an_age, "result_chars": a_count}
        )


@dataclass(frozen=True, slots=True)
class _Listing:
    tools: tuple[Tool, ...]
    originals: dict[str, str]
    fetched_at: float


class McpTools(ToolDriver, SupportsHealthcheck):
    """The tools of one MCP server, each named `mcp__NAME__TOOL`, as rules about MCP tools expect.

    The server is started or connected to by the first listing or call, on an event loop of its own, and again by the
    first call after it went away. A call that loses it fails and is not repeated. The listing is kept; it is fetched
    anew when the server says that it changed, and in the background when it is old. `results` is "text" for a model,
    or "json" for the whole result as JSON values.

    Raises ToolError when the server cannot be reached, its tool fails or nothing comes back in time, ValueError for an
    unknown tool, MisuseError after `close`, ConfigError for a setting that cannot be, such as a name that
    could not be told apart in a tool's name. Any thread and any event loop may call, many at once.
    """

    meta = DriverMeta(
        "interpose.mcp",
        "MCP",
        "1.0",
        bindings=(DriverBinding("mcp", "stdio"), DriverBinding("mcp", "streamable-http")),
        supported_llms=None,
    )

    def __init__(
        self,
        name: str,
        server: StdioServer | HttpServer,
        *,
        results: Results = "text",
        limits: McpLimits | None = None,
    ) -> None:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise ConfigError(
                f"the MCP server {name!r}",
                "its name is part of each tool's name",
                "letters, digits, - and single _, at most 30",
            )
        self._name = name
        self._server = of_kind(
            f"McpTools({name!r}, server)", server, StdioServer | HttpServer, "StdioServer(…) or HttpServer(…)"
        )
        self._results: Results = one_of("McpTools(results=…)", results, get_args(Results))
        self._limits = limits_of("McpTools", limits, McpLimits)
        self._thread = LoopThread(f"mcp-{name}", f"the MCP server {name!r}")
        self._connection: Connection | None = None
        self._listing: _Listing | None = None
        self._is_fetching = False

    def connect(self) -> None:
        """Connects and lists now rather than with the first call."""
        self._thread.run(self._fetch())

    async def connect_async(self) -> None:
        """As `connect`, from an event loop, which then never waits in `list_tools`."""
        await self._thread.run_async(self._fetch())

    def list_tools(self) -> Sequence[Tool]:
        """The listing from memory; the very first time it is fetched."""
        listing = self._listing
        if listing is None:
            listing = self._thread.run(self._fetch())
        elif time.monotonic() - listing.fetched_at > self._limits.relist_s and not self._is_fetching:
            self._thread.start(self._refresh())
        return listing.tools

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Calls the server's tool."""
        return self._shaped(tool_name, self._thread.run(self._called(tool_name, arguments)))

    async def execute_tool_async(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """As `execute_tool`; when the caller is cancelled the server is told to stop."""
        return self._shaped(tool_name, await self._thread.run_async(self._called(tool_name, arguments)))

    def healthcheck(self) -> Health:
        """Whether the server lists its tools, within the time limits. Never raises, after `close` neither."""
        try:
            listing = self._thread.run(self._fetch())
        except InterposeError as error:
            return Health(HealthStatus.ERROR, str(error))
        except Exception as error:  # noqa: BLE001 - a health check reports what is wrong, whatever it is
            return Health(HealthStatus.ERROR, f"the MCP server {self._name!r}: {fault_line(error)}")
        return Health(HealthStatus.OK, f"{len(listing.tools)} tools")

    def close(self) -> None:
        """Ends the connection and a program that was started for it; a second time nothing happens."""
        self._thread.close(self._disconnect())

    def __enter__(self) -> "McpTools":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _shaped(self, tool: str, result: types.CallToolResult) -> Any:
        return plain(result, tool) if self._results == "json" else told(result, tool, self._limits.result_chars)

    async def _called(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        listing = self._listing or await self._fetch()
        original = listing.originals.get(name)
        if original is None:
            raise ValueError(f"the MCP server {self._name!r} has no tool {name!r}")
        return await self._connected().call_tool(original, arguments)

    async def _fetch(self) -> _Listing:
        self._is_fetching = True
        try:
            found = await self._connected().list_tools()
        finally:
            self._is_fetching = False
        self._listing = listing = _listed(self._name, found)
        return listing

    async def _refresh(self) -> None:
        """Keeps the old listing when the server cannot be reached; the next call says why."""
        try:
            await self._fetch()
        except ToolError:
            return

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(
                self._name,
                self._server,
                timeout_s=self._limits.timeout_s,
                connect_timeout_s=self._limits.connect_timeout_s,
                on_tools_changed=lambda: self._thread.start(self._refresh()),
            )
        return self._connection

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class McpDriver(HostedDriver, SupportsHealthcheck):
    """`McpTools` with prompts, extraction and a middleware list; further options are those of `BaseDriver`."""

    meta = replace(McpTools.meta, supported_llms=("*",))

    def __init__(
        self,
        name: str,
        server: StdioServer | HttpServer,
        *,
        results: Results = "text",
        limits: McpLimits | None = None,
        **options: Unpack[DriverOptions],
    ) -> None:
        self._mcp = McpTools(name, server, results=results, limits=limits)
        super().__init__(self._mcp, options)

    def connect(self) -> None:
        """Connects and lists now rather than with the first call."""
        self._mcp.connect()

    async def connect_async(self) -> None:
        """As `connect`, from an event loop, which then never waits for a listing."""
        await self._mcp.connect_async()

    def healthcheck(self) -> Health:
        """Whether the server lists its tools, within the time limits."""
        return self._mcp.healthcheck()

    def close(self) -> None:
        """Ends the connection and a program that was started for it; a second time nothing happens."""
        self._mcp.close()

    def __enter__(self) -> "McpDriver":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _listed(server: str, found: list[types.Tool]) -> _Listing:
    tools: list[Tool] = []
    originals: dict[str, str] = {}
    for each in found:
        name = tool_name(f"mcp__{server}__{each.name}", originals)
        originals[name] = each.name
        title = each.title or each.name
        tools.append(Tool(name, title, each.description or title, schema=dict(each.input_schema)))
    return _Listing(tuple(tools), originals, time.monotonic())
