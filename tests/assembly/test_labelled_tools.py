"""A project's rules hold for a tool however many drivers put their labels before its name."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.middleware import default_middleware
from interpose.assembly.protection import load_policy_from
from interpose.contracts.drivers import DriverResponse, Tool, ToolDriver
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.tools import Arguments, Flow, FlowMiddleware
from interpose.drivers.driver import BaseDriver
from interpose.drivers.hosted import HostedDriver
from interpose.drivers.orchestrator import Orchestrator

RULES = """\
hooks:
  - id: no-delete
    on: before_tool
    kind: effect
    command: rm -r|-R|--recursive
    effect: {kind: block_tool, reason: Not deleted.}
  - id: no-secrets
    on: before_tool
    kind: effect
    path: .env
    effect: {kind: block_tool, reason: Not read.}
  - id: no-deploy
    on: before_tool
    kind: effect
    tools: [deploy]
    effect: {kind: block_tool, reason: Not deployed.}
"""

REFUSED = [
    ("run_command", {"command": "rm -rf build"}, "Not deleted."),
    ("read_file", {"path": ".env"}, "Not read."),
    ("deploy", {"to": "production"}, "Not deployed."),
]
ALLOWED = [("run_command", {"command": "ls"}), ("read_file", {"path": "notes.md"}), ("publish", {})]

Reply: TypeAlias = Callable[[str, dict[str, Any]], Any]
Process: TypeAlias = Callable[[BaseDriver, Any], DriverResponse]


class Machine(BaseDriver):
    """Tools that note what they were asked."""

    meta = DriverMeta("test.machine", "Machine", "1")

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[str] = []

    def list_tools(self) -> Sequence[Tool]:
        """A command, a file, and two that nobody knows."""
        return [Tool(name, name) for name in ("run_command", "read_file", "deploy", "publish")]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Notes it."""
        self.ran.append(tool_name)
        return "done"


def as_text(tool: str, arguments: dict[str, Any]) -> Any:
    """A call in the model's text."""
    return json.dumps({"tool": tool, "arguments": arguments})


def as_openai(tool: str, arguments: dict[str, Any]) -> Any:
    """A native call of a chat message."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}


def as_anthropic(tool: str, arguments: dict[str, Any]) -> Any:
    """A native call of a message of blocks."""
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": tool, "input": arguments}]}


def processed(driver: BaseDriver, reply: Any) -> DriverResponse:
    """Sync."""
    return driver.process_llm_response(reply)


def processed_async(driver: BaseDriver, reply: Any) -> DriverResponse:
    """On an event loop."""
    return asyncio.run(driver.process_llm_response_async(reply))


class Renaming(FlowMiddleware):
    """Makes a delete of every call."""

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """The changed call."""
        return (yield "box__run_command", {"command": "rm -rf build"})


class Hosting(HostedDriver):
    """A driver around the tools of another."""

    meta = DriverMeta("test.hosting", "Hosting", "1")


def one_above(machine: ToolDriver, middleware: list[Any]) -> tuple[Orchestrator, str]:
    """Two children, and what stands before the tool's name."""
    return Orchestrator({"box": machine, "other": Machine()}, middleware=middleware), "box__"


def two_above(machine: ToolDriver, middleware: list[Any]) -> tuple[Orchestrator, str]:
    """Two levels of two children each."""
    inner, prefix = one_above(machine, [])
    return Orchestrator({"in": inner, "beside": Machine()}, middleware=middleware), f"in__{prefix}"


def hosted(machine: ToolDriver, middleware: list[Any]) -> tuple[BaseDriver, str]:
    """A whole driver around two levels."""
    inner, prefix = two_above(machine, [])
    return Hosting(inner, {"middleware": middleware}), prefix


@pytest.mark.parametrize("process", [processed, processed_async])
@pytest.mark.parametrize("reply", [as_text, as_openai, as_anthropic])
@pytest.mark.parametrize("build", [one_above, two_above, hosted])
def test_rules_about_a_tool_hold_behind_labels(
    folders: Folders, tmp_path: Path, build: Any, reply: Reply, process: Process
) -> None:
    """Its command, its path and its name are judged as those of the tool itself; all else runs."""
    (tmp_path / ".interpose").mkdir()
    (tmp_path / ".interpose" / "hooks.yaml").write_text(RULES)
    with load_policy_from(folders, tmp_path) as policy:
        assert policy.problems == ()
        machine = Machine()
        driver, prefix = build(machine, default_middleware(policy))
        for tool, arguments, reason in REFUSED:
            response = process(driver, reply(prefix + tool, arguments))
            assert reason in str(response.tool_call_result)
            assert response.tool_calls[0].outcome == "short_circuited"
        assert machine.ran == []

        for tool, arguments in ALLOWED:
            assert process(driver, reply(prefix + tool, arguments)).tool_call_result == "done"
        assert machine.ran == [tool for tool, _ in ALLOWED]


def test_a_renamed_call_is_judged_as_the_tool_that_it_now_is(folders: Folders, tmp_path: Path) -> None:
    """A middleware inside of the policy cannot turn a harmless call into another child's forbidden one."""
    (tmp_path / ".interpose").mkdir()
    (tmp_path / ".interpose" / "hooks.yaml").write_text(RULES)
    with load_policy_from(folders, tmp_path) as policy:
        machine = Machine()
        driver, prefix = one_above(machine, [*default_middleware(policy), Renaming()])
        assert "Not deleted." in driver.invoke_tool(f"{prefix}publish", {})
        assert machine.ran == []
