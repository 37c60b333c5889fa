"""Behaviour of the MCP tools against servers made with the SDK: a real process and a real HTTP server."""

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import uvicorn

from interpose.contracts.drivers import HealthStatus
from interpose.contracts.errors import ConfigError, MisuseError, ToolError
from interpose.drivers.mcp import HttpServer, McpLimits, McpTools, StdioServer
from tests.drivers.mcp_server import make_server

PROGRAM = str(Path(__file__).with_name("mcp_server.py"))


def program(*arguments: str) -> StdioServer:
    """The test server as a process."""
    return StdioServer(sys.executable, (PROGRAM, *arguments), env={"DESK_KEY": "given"})


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether it becomes true in time."""
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


def is_alive(number: str) -> bool:
    """Whether the process is there."""
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def http_server(port: int = 0) -> Iterator[HttpServer]:
    """The test server behind a URL."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        config = uvicorn.Config(
            make_server().streamable_http_app(), log_level="critical", ws="none", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield HttpServer(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", {"X-Team": "desk"})
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def over_http() -> Iterator[HttpServer]:
    """One HTTP server for the tests that leave it as it is."""
    with http_server() as server:
        yield server


@pytest.fixture
def desk(over_http: HttpServer) -> Iterator[McpTools]:
    """The tools of the HTTP server."""
    with McpTools("desk", over_http) as tools:
        yield tools


def test_lists_tools_under_names_that_rules_know(desk: McpTools) -> None:
    """Each tool is mcp__SERVER__TOOL in characters that every model's API takes, with the server's schema."""
    tools = {tool.name: tool for tool in desk.list_tools()}

    assert "mcp__desk__every_kind_of_block" in tools
    assert tools["mcp__desk__add"].description == "Adds two numbers."
    schema = tools["mcp__desk__add"].input_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert (schema["required"], schema["properties"]["a"]["type"]) == (["a", "b"], "integer")


def test_every_kind_of_content_becomes_text(desk: McpTools) -> None:
    """Text stays, what is no text is named with its size, structure is JSON where there is no text."""
    assert desk.execute_tool("mcp__desk__add", {"a": 1, "b": 2}) == "3"
    assert desk.execute_tool("mcp__desk__every_kind_of_block", {}) == (
        "words\n"
        "[image image/png, 4 bytes, not shown]\n"
        "[audio audio/wav, 4 bytes, not shown]\n"
        "[resource log at file:///log: the log]\n"
        "[resource file:///a]\ninside\n"
        "[resource file:///b, binary, 4 bytes, not shown]"
    )
    assert desk.execute_tool("mcp__desk__only_structure", {}) == '{"a":["ö"]}'


def test_results_as_json_keep_everything(over_http: HttpServer) -> None:
    """For programs: content blocks and structured content as JSON values."""
    with McpTools("desk", over_http, results="json") as tools:
        added: dict[str, Any] = tools.execute_tool("mcp__desk__add", {"a": 1, "b": 2})
        with pytest.raises(ToolError, match="the desk is closed"):
            tools.execute_tool("mcp__desk__fails", {})

    assert (added["structuredContent"], added["content"][0]["text"]) == ({"sum": 3}, "3")


def test_long_results_are_cut(over_http: HttpServer) -> None:
    """The cut says how long the whole is."""
    with McpTools("desk", over_http, limits=McpLimits(result_chars=5)) as tools:
        assert tools.execute_tool("mcp__desk__every_kind_of_block", {}).startswith("words\n[cut here: the result has ")


def test_failures_of_tools_and_servers_are_told(desk: McpTools) -> None:
    """A failing tool, arguments the server refuses, and a name it does not have each have their words."""
    with pytest.raises(ToolError, match=r"^mcp__desk__fails failed: .*the desk is closed"):
        desk.execute_tool("mcp__desk__fails", {})
    with pytest.raises(ToolError, match="valid integer"):
        desk.execute_tool("mcp__desk__add", {"a": "x", "b": 1})
    with pytest.raises(ValueError, match="the MCP server 'desk' has no tool 'add'"):
        desk.execute_tool("add", {})


def test_a_call_without_answer_ends_in_time(over_http: HttpServer, tmp_path: Path) -> None:
    """The server is told to stop, and the connection lives on."""
    with McpTools("desk", over_http, limits=McpLimits(timeout_s=0.5)) as tools:
        with pytest.raises(ToolError, match=r"gave no answer about sleeps within 0\.5 s"):
            tools.execute_tool("mcp__desk__sleeps", {"marker": str(tmp_path / "marker")})
        assert within(10, lambda: (tmp_path / "marker").read_text() == "cancelled")
        assert tools.execute_tool("mcp__desk__add", {"a": 1, "b": 2}) == "3"


def test_a_cancelled_caller_cancels_the_call(desk: McpTools, tmp_path: Path) -> None:
    """Cancelling the awaiting task reaches the server's tool."""
    marker = tmp_path / "marker"

    async def cancel() -> None:
        task = asyncio.ensure_future(desk.execute_tool_async("mcp__desk__sleeps", {"marker": str(marker)}))
        assert await asyncio.to_thread(within, 20, lambda: marker.exists() and marker.read_text() == "begun")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert within(10, lambda: marker.read_text() == "cancelled")


def test_threads_and_loops_share_one_connection(desk: McpTools) -> None:
    """Sync callers on many threads and async callers on several loops get their own answers."""

    def sync(number: int) -> str:
        return str(desk.execute_tool("mcp__desk__add", {"a": number, "b": 0}))

    async def several(numbers: range) -> list[str]:
        await desk.connect_async()
        return list(
            await asyncio.gather(*(desk.execute_tool_async("mcp__desk__add", {"a": each, "b": 0}) for each in numbers))
        )

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(sync, range(32))) == [str(number) for number in range(32)]
    for _ in range(2):
        assert asyncio.run(several(range(8))) == [str(number) for number in range(8)]


def test_a_listing_that_changed_is_fetched_again() -> None:
    """When the server says that its tools changed, the next listings have them."""
    with http_server() as server, McpTools("desk", server) as tools:
        assert "mcp__desk__newcomer" not in [tool.name for tool in tools.list_tools()]

        def has_grown() -> bool:
            tools.execute_tool("mcp__desk__grows", {})  # nobody hears of it before the server's own stream is open
            return "mcp__desk__newcomer" in [tool.name for tool in tools.list_tools()]

        assert within(10, has_grown)
        assert tools.execute_tool("mcp__desk__newcomer", {}) == "new"


def test_an_old_listing_is_fetched_in_the_background() -> None:
    """A listing past its age is returned at once and replaced soon."""
    with http_server() as server, McpTools("desk", server, limits=McpLimits(relist_s=0)) as tools:
        with McpTools("other", server) as other:
            tools.connect()
            other.execute_tool("mcp__other__grows", {})

        assert within(10, lambda: "mcp__desk__newcomer" in [tool.name for tool in tools.list_tools()])


def test_an_http_server_that_comes_back_is_used_again() -> None:
    """While it is away calls fail with a reason; afterwards they work on the same object."""
    with http_server() as server, McpTools("desk", server) as tools:
        assert tools.execute_tool("mcp__desk__add", {"a": 1, "b": 2}) == "3"
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        listed = tools.list_tools()
    with McpTools("desk", server) as tools:
        with pytest.raises(ToolError, match="the MCP server 'desk' could not be reached"):
            tools.list_tools()
        health = tools.healthcheck()
        assert health.status == HealthStatus.ERROR
        assert "could not be reached" in health.detail
        with http_server(port):
            assert [tool.name for tool in tools.list_tools()] == [tool.name for tool in listed]
            assert tools.healthcheck().status == HealthStatus.OK
        with pytest.raises(ToolError, match=r"went away|could not be reached"):
            tools.execute_tool("mcp__desk__add", {"a": 1, "b": 2})
        assert tools.list_tools()
        with http_server(port):
            assert tools.execute_tool("mcp__desk__add", {"a": 1, "b": 2}) == "3"


def test_a_process_is_started_used_restarted_and_ended() -> None:
    """A program that dies during a call fails that call with its last words, starts again, and ends with `close`."""
    with McpTools("desk", program()) as tools:
        first = tools.execute_tool("mcp__desk__pid", {})
        assert tools.execute_tool("mcp__desk__pid", {}) == first
        names = tools.execute_tool("mcp__desk__environment", {}).splitlines()
        assert ("DESK_KEY" in names, "PYTEST_CURRENT_TEST" in names) == (True, False)

        with pytest.raises(ToolError) as died:
            tools.execute_tool("mcp__desk__dies", {"status": 3})
        assert str(died.value) == (
            "the MCP server 'desk' went away while it worked on dies, which may have been done or not; "
            "the next call starts it again; its last words: about to die"
        )
        second = tools.execute_tool("mcp__desk__pid", {})
        assert second != first

    assert within(10, lambda: not is_alive(second))
    tools.close()
    with pytest.raises(MisuseError, match=r"the MCP server .desk. was closed"):
        tools.execute_tool("mcp__desk__pid", {})


def test_a_process_that_died_between_calls_is_started_again() -> None:
    """Its death is seen without a call, so the next one works."""
    with McpTools("desk", program()) as tools:
        first = tools.execute_tool("mcp__desk__pid", {})
        os.kill(int(first), signal.SIGKILL)
        assert within(10, lambda: not is_alive(first))
        connection = tools._connection
        assert connection is not None
        assert within(10, lambda: connection._session is None or not connection._session.is_alive)

        assert tools.execute_tool("mcp__desk__pid", {}) != first


def test_calls_on_their_way_fail_when_closed(tmp_path: Path) -> None:
    """Closing while a call runs ends it with an error rather than never."""
    tools = McpTools("desk", program())
    marker = tmp_path / "marker"

    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(tools.execute_tool, "mcp__desk__sleeps", {"marker": str(marker)})
        assert within(30, marker.exists)
        tools.close()
        with pytest.raises((ToolError, MisuseError)):
            call.result(timeout=10)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (program("broken"), "could not be reached: MCPError: Connection closed; its last words: no config found"),
        (program("silent"), "did not greet within 0.5 s"),
        (StdioServer("no-such-program-here"), "could not be reached: FileNotFoundError"),
        (HttpServer("http://127.0.0.1:1/mcp"), "could not be reached: ConnectError"),
    ],
    ids=["broken", "silent", "missing", "refused"],
)
def test_a_server_that_cannot_be_reached_is_told(server: StdioServer | HttpServer, words: str) -> None:
    """The error names the server, what happened and its last words, and comes in time."""
    limits = McpLimits(connect_timeout_s=0.5 if "greet" in words else 30)

    with McpTools("desk", server, limits=limits) as tools, pytest.raises(ToolError) as failed:
        tools.execute_tool("mcp__desk__pid", {})

    assert str(failed.value).startswith("the MCP server 'desk'")
    assert words in str(failed.value)


@pytest.mark.parametrize("name", ["", "a__b", "ä", "a b", "x" * 31])
def test_a_name_that_tools_could_not_carry_is_refused(name: str) -> None:
    """The name is part of every tool's name."""
    with pytest.raises(ConfigError, match="its name is part of each tool's name"):
        McpTools(name, program())


@pytest.mark.parametrize("url", ["ftp://x", "example.org/mcp", "http://", "", 5])
def test_a_server_that_is_no_web_address_is_refused(url: Any) -> None:
    """When it is made, and it is told what was expected."""
    with pytest.raises(MisuseError, match=r"^HttpServer\(.*expected a URL that begins with http:// or https://"):
        HttpServer(url)


def test_building_starts_nothing() -> None:
    """Neither a thread nor a process is there before the first call, and closing then is nothing."""
    before = threading.active_count()
    tools = McpTools("desk", StdioServer("no-such-program-here"))

    assert threading.active_count() == before
    tools.close()
    tools.close()
