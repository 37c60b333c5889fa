"""Drivers and middlewares that tests of this room share."""

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from interpose.contracts.drivers import Tool, ToolDriver, ToolParameter
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.tools import Arguments, CallNext, CallNextAsync, Flow, FlowMiddleware, ToolMiddleware
from interpose.drivers.driver import BaseDriver

ECHO = Tool("echo", "Echo", "Says it again.", (ToolParameter("text", "what to say", required=True),))
FAIL = Tool("fail", "Fail", "Raises.")

Act = Callable[[str, dict[str, Any]], Any]


def say_again(tool_name: str, arguments: dict[str, Any]) -> Any:
    """What the tools of `Leaf` do unless told otherwise."""
    if tool_name == "fail":
        raise LookupError(f"gone with sk-{'a' * 40}")
    return arguments.get("text", arguments)


class Leaf(BaseDriver):
    """Two tools, `echo` and `fail`; writes down each run."""

    meta = DriverMeta("test.leaf", "Leaf", "1")

    def __init__(self, *, tools: Sequence[Tool] = (ECHO, FAIL), act: Act = say_again, **settings: Any) -> None:
        super().__init__(**settings)
        self.tools = tools
        self.act = act
        self.runs: list[tuple[str, dict[str, Any]]] = []

    def list_tools(self) -> Sequence[Tool]:
        """The given ones."""
        return self.tools

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Notes the run and does what it was told to."""
        self.runs.append((tool_name, dict(arguments)))
        return self.act(tool_name, arguments)


class BareLeaf(ToolDriver):
    """A driver that takes no middleware."""

    meta = DriverMeta("test.bare", "Bare", "1", supported_llms=None)

    def __init__(self) -> None:
        self.runs: list[tuple[str, dict[str, Any]]] = []

    def list_tools(self) -> Sequence[Tool]:
        """Two tools."""
        return [ECHO, FAIL]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Notes the run."""
        self.runs.append((tool_name, dict(arguments)))
        return say_again(tool_name, arguments)


class Tracing(FlowMiddleware):
    """Writes down when it is entered and left, and with which tool."""

    def __init__(self, name: str = "m", trace: list[str] | None = None) -> None:
        self.name = name
        self.trace: list[str] = [] if trace is None else trace

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """In, on, out."""
        self.trace.append(f"{self.name} in {tool_name}")
        try:
            return (yield tool_name, arguments)
        finally:
            self.trace.append(f"{self.name} out")


class Doing(ToolMiddleware):
    """Does what the given function says; async calls of it run in a thread."""

    def __init__(self, hook: Callable[[str, Arguments, CallNext], Any]) -> None:
        self.hook = hook

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """The function."""
        return self.hook(tool_name, arguments, call_next)


class Denying(ToolMiddleware):
    """Answers every call itself, and counts."""

    def __init__(self) -> None:
        self.count = 0
        self.lock = threading.Lock()

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Never goes on."""
        with self.lock:
            self.count += 1
        return "denied"

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Never goes on either."""
        with self.lock:
            self.count += 1
        return "denied"


class Rewriting(FlowMiddleware):
    """Passes on what the given function makes of name and arguments."""

    def __init__(self, change: Callable[[str, Arguments], tuple[str, Arguments]]) -> None:
        self.change = change

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """The changed call."""
        return (yield self.change(tool_name, arguments))


class Hiding(ToolMiddleware):
    """Takes tools out of the list."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def on_list_tools(self, call_next: Callable[[], Sequence[Tool]]) -> Sequence[Tool]:
        """All others."""
        return [tool for tool in call_next() if tool.name not in self.names]


class AsyncOnly(ToolMiddleware):
    """Has only the async method."""

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Through, marked."""
        return f"async {await call_next(tool_name, arguments)}"


def call_text(tool: str, /, **arguments: Any) -> str:
    """A text reply that calls a tool."""
    return json.dumps({"tool": tool, "arguments": arguments})


def openai_message(*calls: tuple[str, str, Any], content: Any = None) -> dict[str, Any]:
    """A chat message with tool calls: id, name, arguments."""
    entries = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": content, "tool_calls": entries}


def anthropic_message(*calls: tuple[str, str, Any], stop_reason: str | None = "tool_use") -> dict[str, Any]:
    """A message with a text and a tool_use block for each call: id, name, input."""
    blocks = [{"type": "tool_use", "id": call_id, "name": name, "input": given} for call_id, name, given in calls]
    return {"role": "assistant", "content": [{"type": "text", "text": "so"}, *blocks], "stop_reason": stop_reason}
