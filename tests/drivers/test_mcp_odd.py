"""Behaviour of the MCP tools with servers that lie, chatter, hang or leave children behind."""

import asyncio
import logging
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from interpose.contracts.drivers import HealthStatus
from interpose.contracts.errors import MisuseError, ToolError
from interpose.drivers.mcp import HttpServer, McpDriver, McpLimits, McpTools, StdioServer
from interpose.drivers.mcp.listing import sorted_out
from tests.drivers.odd_mcp_server import GOOD, ODD_TOOLS

PROGRAM = str(Path(__file__).with_name("odd_mcp_server.py"))


def program(*arguments: str) -> StdioServer:
    """The odd server as a process."""
    return StdioServer(sys.executable, (PROGRAM, *arguments))


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether it becomes true in time."""
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


def is_running(number: int) -> bool:
    """Whether the process is there and no mere zombie that nobody has waited for yet."""
    try:
        os.kill(number, 0)
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_one_wrong_tool_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """A tool that the protocol does not allow is left out, said once with server and tool; the others work."""
    with caplog.at_level(logging.WARNING), McpDriver("desk", program("odd")) as driver:
        health = driver.healthcheck()
        driver.connect()
        assert [tool.name for tool in driver.list_tools()] == ["mcp__desk__good"]
        assert driver.invoke_tool("mcp__desk__good", {}) == "done well"

    assert (health.status, health.detail) == (HealthStatus.OK, "1 tools")
    said = [record.getMessage() for record in caplog.records if record.name.startswith("interpose")]
    assert len(said) == len(set(said)) == len(ODD_TOOLS)
    assert all(line.startswith("the MCP server 'desk' lists a tool that cannot be used, ") for line in said)
    assert any("'no_schema': inputSchema: Field required; it is left out" in line for line in said)
    assert any("it has no name" in line for line in said)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28", "no such version"])
def test_entries_are_sorted_out_for_every_version(version: str) -> None:
    """Without a name nothing is usable; a listing that is wrong as a whole is left to who reads it."""
    envelope = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if version == "2026-07-28" else {}
    usable, unusable = sorted_out(
        {**envelope, "tools": [GOOD, {"name": "", **GOOD, "title": ""}, ODD_TOOLS[0]]}, version
    )

    assert GOOD in usable
    assert [problem for _, problem in unusable] == ["it has no name"]
    if version == "2025-11-25":
        assert sorted_out({"tools": [5], "nextCursor": []}, version) == ([5], [])


def test_junk_is_passed_over_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Lines that are no messages stop nothing; there is one line in the log and no traceback."""
    with caplog.at_level(logging.WARNING), McpTools("desk", program("junk")) as tools:
        assert tools.execute_tool("mcp__desk__good", {}) == "done well"

    (record,) = caplog.records
    assert record.getMessage() == (
        "the MCP server 'desk' writes lines that are no messages, such as 'starting up...'; they are passed over"
    )
    assert record.exc_info is None


@pytest.mark.parametrize("arguments", [("mute",), ("mute", "stubborn")])
def test_the_time_to_connect_is_kept(arguments: tuple[str, ...]) -> None:
    """A program that never greets is killed at once, even one that does not listen to signals."""
    with McpTools("desk", program(*arguments), limits=McpLimits(connect_timeout_s=1)) as tools:
        started = time.monotonic()
        with pytest.raises(ToolError, match="the MCP server 'desk' did not greet within 1 s"):
            tools.connect()
        assert time.monotonic() - started < 1.5

        assert tools.healthcheck().status is HealthStatus.ERROR


def test_the_time_to_connect_is_kept_by_urls() -> None:
    """A server that takes the connection and says nothing is left as quickly."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = HttpServer(f"http://127.0.0.1:{silent.getsockname()[1]}/mcp")
        with McpTools("desk", server, limits=McpLimits(connect_timeout_s=1)) as tools:
            started = time.monotonic()
            health = tools.healthcheck()
            assert time.monotonic() - started < 1.5

    assert (health.status, health.detail) == (HealthStatus.ERROR, "the MCP server 'desk' did not greet within 1 s")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc which processes there are")
@pytest.mark.parametrize("greets", [True, False])
def test_children_of_a_server_end_with_it(tmp_path: Path, *, greets: bool) -> None:
    """Closing ends the whole process group, and so does giving up a server that never greets."""
    noted = tmp_path / "pid"
    arguments = ("parent", str(noted)) if greets else ("parent", "mute", str(noted))
    with McpTools("desk", program(*arguments), limits=McpLimits(connect_timeout_s=30 if greets else 1)) as tools:
        if greets:
            assert tools.execute_tool("mcp__desk__good", {}) == "done well"
            assert is_running(int(noted.read_text()))
        else:
            assert tools.healthcheck().status is HealthStatus.ERROR

    child = int(noted.read_text())
    assert within(5, lambda: not is_running(child))


def test_a_closed_driver_is_told_by_its_name() -> None:
    """After closing, a check says so and a call is misuse; both name the server."""
    driver = McpDriver("desk", program())
    driver.connect()
    driver.close()

    health = driver.healthcheck()

    assert (health.status, health.detail) == (HealthStatus.ERROR, "the MCP server 'desk' was closed")
    with pytest.raises(MisuseError, match="the MCP server 'desk' was closed"):
        driver.connect()
    with pytest.raises(MisuseError, match="the MCP server 'desk' was closed"):
        asyncio.run(driver.connect_async())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc which processes there are")
def test_closing_fails_calls_of_an_event_loop_with_an_error(tmp_path: Path) -> None:
    """Who awaits a server while somebody closes gets an error that names it, no cancellation, and nothing is left."""
    noted = tmp_path / "pid"

    async def call(tools: McpTools) -> None:
        connecting = asyncio.create_task(tools.connect_async())
        assert await asyncio.to_thread(within, 10, lambda: noted.exists() and noted.read_text().endswith("\n"))
        await asyncio.to_thread(tools.close)
        await connecting

    tools = McpTools("desk", program("parent", "mute", str(noted)), limits=McpLimits(connect_timeout_s=30))

    with pytest.raises((MisuseError, ToolError), match="the MCP server 'desk'"):
        asyncio.run(asyncio.wait_for(call(tools), 20))

    child = int(noted.read_text())
    assert within(5, lambda: not is_running(child))
