"""Behaviour that the shipped drivers share: each is a whole driver whose list stands before its tools."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpose.contracts.drivers import Driver, SupportsHealthcheck, SupportsNativeTools, SupportsStreaming, ToolDriver
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.tools import Arguments, CallNext, CallNextAsync, SupportsToolMiddleware, ToolMiddleware
from interpose.drivers.driver import BaseDriver
from interpose.drivers.filesystem import FilesystemDriver
from interpose.drivers.mcp import McpDriver, StdioServer
from interpose.drivers.orchestrator import Orchestrator
from interpose.drivers.rest import RestDriver, Select
from interpose.drivers.shell import ShellDriver
from tests.drivers.web import Web, web_server

PETSTORE = Path(__file__).with_name("data") / "petstore.yaml"
MCP_SERVER = StdioServer(sys.executable, (str(Path(__file__).with_name("mcp_server.py")),))
SHIPPED: tuple[type[BaseDriver], ...] = (FilesystemDriver, ShellDriver, RestDriver, McpDriver)


class Trace(ToolMiddleware):
    """Keeps the names of calls, and answers those it is told to deny."""

    def __init__(self, *denied: str) -> None:
        self.seen: list[str] = []
        self._denied = denied

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Denies, or passes on."""
        self.seen.append(tool_name)
        return "denied" if tool_name in self._denied else call_next(tool_name, arguments)

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Denies, or passes on."""
        self.seen.append(tool_name)
        return "denied" if tool_name in self._denied else await call_next(tool_name, arguments)


@pytest.fixture
def web() -> Iterator[Web]:
    """A server that answers everything."""
    with web_server() as server:
        yield server


@pytest.mark.parametrize("driver", SHIPPED)
def test_a_sheet_is_read_without_building_the_driver(driver: type[BaseDriver]) -> None:
    """The class has a sheet with id, bindings and the flags of what it implements."""
    sheet = DriverMeta.of(driver)

    assert json.loads(sheet.to_json())["id"].startswith("interpose.")
    assert sheet.bindings
    for contract in (Driver, ToolDriver, SupportsToolMiddleware, SupportsNativeTools, SupportsStreaming):
        assert sheet.has_capability(contract)
        assert issubclass(driver, contract)
    assert sheet.has_capability(SupportsHealthcheck) == (driver is McpDriver)


def test_the_list_stands_before_every_shipped_driver(tmp_path: Path, web: Web) -> None:
    """A reply's call runs through the list, sync and async; what the list answers itself never reaches the tool."""
    denied = ("write_file", "run_command", "removePet", "mcp__desk__dies")
    trace = Trace(*denied)
    with (
        RestDriver(PETSTORE, base_url=web.url, middleware=[trace]) as rest,
        McpDriver("desk", MCP_SERVER, middleware=[trace]) as mcp,
    ):
        filesystem = FilesystemDriver(tmp_path, middleware=[trace])
        shell = ShellDriver(tmp_path, middleware=[trace])
        calls: list[tuple[BaseDriver, str, dict[str, Any], str]] = [
            (filesystem, "list_directory", {}, "nothing found"),
            (filesystem, "write_file", {"path": "a", "content": "a"}, "denied"),
            (shell, "execute_command", {"command": ["true"]}, "exit code 0"),
            (shell, "run_command", {"command": "touch a"}, "denied"),
            (rest, "getPet", {"petId": "1"}, '{"ok":true}'),
            (rest, "removePet", {"petId": "1", "X-Reason": "r"}, "denied"),
            (mcp, "mcp__desk__add", {"a": 1, "b": 2}, "3"),
            (mcp, "mcp__desk__dies", {"status": 1}, "denied"),
        ]
        for driver, name, arguments, expected in calls:
            reply = json.dumps({"tool": name, "arguments": arguments})
            response = driver.process_llm_response(reply)
            later = asyncio.run(driver.process_llm_response_async(reply))

            assert (response.tool_call_result, later.tool_call_result) == (expected, expected)
            assert response.call_executed
            assert response.tool_calls[0].outcome == ("short_circuited" if expected == "denied" else "executed")

    assert trace.seen == [name for _, name, _, _ in calls for _ in range(2)]
    assert list(tmp_path.iterdir()) == []
    assert [asked.method for asked in web.asked] == ["GET", "GET"]


def test_failures_tell_the_model_what_to_do(tmp_path: Path) -> None:
    """A tool's own words are in the retry text; an unknown tool is never run."""
    driver = FilesystemDriver(tmp_path)

    response = driver.process_llm_response('{"tool": "read_file", "arguments": {"path": "../a"}}')

    assert response.call_failed
    assert "it leads out of the root" in (response.retry_prompt or "")


def test_shipped_drivers_nest_in_an_orchestrator(tmp_path: Path, web: Web) -> None:
    """Under labels, with each child's own list still in the way."""
    trace = Trace("write_file")
    orchestrator = Orchestrator()
    orchestrator.add_driver(FilesystemDriver(tmp_path, middleware=[trace]), label="files")
    with RestDriver(PETSTORE, base_url=web.url, include=Select(operations=("getPet",))) as rest:
        orchestrator.add_driver(rest, label="pets")

        assert orchestrator.invoke_tool("pets__getPet", {"petId": "1"}) == '{"ok":true}'
        assert orchestrator.invoke_tool("files__write_file", {"path": "a", "content": ""}) == "denied"
    assert trace.seen == ["write_file"]


@pytest.mark.parametrize("driver", [FilesystemDriver, ShellDriver])
def test_an_unknown_option_is_a_type_error(driver: Any, tmp_path: Path) -> None:
    """A misspelt option is not swallowed."""
    with pytest.raises(TypeError, match="middlewares"):
        driver(tmp_path, middlewares=[])
