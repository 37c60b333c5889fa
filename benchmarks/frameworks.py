"""A tool call through middlewares, beside the frameworks that people know, in one run.

FastMCP runs `on_call_tool` middlewares around `server.call_tool`; LangChain runs `awrap_tool_call` middlewares in the
tool node that `create_agent` builds. Both do more than a chain does (validation, results as messages), so this is the
price of a call as a user of each pays it.

`make bench` runs the grid; `python benchmarks/frameworks.py` prints the table of docs/performance.md.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from interpose.chain.chain import Chain
from interpose.contracts.tools import Arguments, CallNextAsync, ToolMiddleware

fastmcp = pytest.importorskip("fastmcp", reason="make bench installs the peers")
agents = pytest.importorskip("langchain.agents", reason="make bench installs the peers")

from fastmcp.server.middleware import Middleware  # noqa: E402 - a peer that may be absent
from langchain.agents.middleware import AgentMiddleware  # noqa: E402
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langgraph.runtime import Runtime  # noqa: E402

Calling: TypeAlias = Callable[[], Awaitable[Any]]

DEPTHS = (0, 1, 4, 8)
ARGUMENTS = {"command": "ls -la", "timeout_s": 3}
ROUNDS, CALLS = 15, 50


class Ours(ToolMiddleware):
    """A layer of a chain."""

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Through."""
        return await call_next(tool_name, arguments)


class Theirs(Middleware):  # type: ignore[misc, unused-ignore]
    """A layer of FastMCP."""

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Through."""
        return await call_next(context)


class Graphs(AgentMiddleware):  # type: ignore[misc, type-arg, unused-ignore]
    """A layer of LangChain."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Through."""
        return await handler(request)


def chained(depth: int) -> Calling:
    """A chain of written methods."""
    chain = Chain([Ours() for _ in range(depth)], serves="async")

    async def terminal(tool_name: str, _arguments: dict[str, Any]) -> str:
        return tool_name

    return lambda: chain.call_async("shell", ARGUMENTS, terminal)


def served(depth: int) -> Calling:
    """FastMCP's own way to call a tool of a server."""
    server = fastmcp.FastMCP("peer", middleware=[Theirs() for _ in range(depth)])

    @server.tool
    def shell(command: str, timeout_s: int) -> str:  # noqa: ARG001
        return "shell"

    return lambda: server.call_tool("shell", ARGUMENTS)


def graphed(depth: int) -> Calling:
    """The tool node of a LangChain agent."""

    @tool
    def shell(command: str, timeout_s: int) -> str:  # noqa: ARG001
        """Runs a command."""
        return "shell"

    layers = [type(f"Graphs{number}", (Graphs,), {})() for number in range(depth)]
    agent = agents.create_agent(GenericFakeChatModel(messages=iter([])), [shell], middleware=layers)
    node = agent.nodes["tools"].bound
    call = {"name": "shell", "args": ARGUMENTS, "id": "c1", "type": "tool_call"}
    state = {"messages": [AIMessage("", tool_calls=[call])]}
    return lambda: node.ainvoke(state, {"configurable": {"__pregel_runtime": Runtime()}})


PEERS: dict[str, Callable[[int], Calling]] = {"chain, method": chained, "FastMCP": served, "LangChain": graphed}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("who", PEERS)
def test_call(benchmark: BenchmarkFixture, who: str, depth: int) -> None:
    """One awaited call through `depth` layers, on a loop."""
    benchmark.group = f"frameworks, call through {depth}"
    with asyncio.Runner() as runner:
        call = PEERS[who](depth)
        assert benchmark(lambda: runner.run(call())) is not None  # type: ignore[arg-type, unused-ignore]


async def _measured_us() -> dict[tuple[str, int], float]:
    calls = {(who, depth): make(depth) for who, make in PEERS.items() for depth in DEPTHS}
    rounds: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    for _ in range(ROUNDS):
        for key, call in calls.items():
            started = time.perf_counter_ns()
            for _ in range(CALLS):
                await call()
            rounds[key].append((time.perf_counter_ns() - started) / CALLS / 1000)
    return {key: min(values) for key, values in rounds.items()}


def main() -> None:
    """Prints the table of docs/performance.md."""
    measured = asyncio.run(_measured_us())
    print("| a call, awaited | no layer | 1 | 4 | 8 | through four, against the chain |")
    print("|---|---:|---:|---:|---:|---:|")
    for who in PEERS:
        cells = " | ".join(f"{measured[who, depth]:.1f} µs" for depth in DEPTHS)
        print(f"| {who} | {cells} | {measured[who, 4] / measured['chain, method', 4]:.0f}x |")


if __name__ == "__main__":
    main()
