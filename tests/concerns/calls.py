"""A tool that counts its runs, and calls of it through a list, sync and async."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from interpose.chain.chain import Chain
from interpose.contracts.tools import Call, ToolMiddleware

Run = Callable[..., Any]


class Tool:
    """Writes down its runs and answers with what it is told to."""

    def __init__(self, result: Any = "out") -> None:
        self.result = result
        self.runs: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """The result, or the exception."""
        self.runs.append((tool_name, arguments))
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


def run_sync(
    middleware: Sequence[ToolMiddleware], tool: Tool, arguments: Any = None, *, call: Call | None = None
) -> Any:
    """One sync call of the tool `t`, with {"x": [1]} unless told otherwise."""
    return Chain(middleware).call("t", {"x": [1]} if arguments is None else arguments, tool, call)


def run_async(
    middleware: Sequence[ToolMiddleware], tool: Tool, arguments: Any = None, *, call: Call | None = None
) -> Any:
    """One async call of the same."""

    async def terminal(tool_name: str, arguments: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return tool(tool_name, arguments)

    chain = Chain(middleware)
    return asyncio.run(chain.call_async("t", {"x": [1]} if arguments is None else arguments, terminal, call))


both = pytest.mark.parametrize("run", [run_sync, run_async])
