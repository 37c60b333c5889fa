"""What a call through a middleware list costs, and each middleware more, against its peers.

The peers do the same work: each layer passes the call on and the result back. Hand-nested functions protect nothing and
their inner function can be kept and called later; pluggy's wrappers share one set of arguments that all may change.
Another peer is one more entry in SYNC or ASYNC.

`make bench` runs the grid; `python benchmarks/chain.py` prints the tables of docs/performance.md, in CPU time.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pluggy
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from interpose.chain.chain import Chain
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.ports import Policy
from interpose.contracts.stages import Context, Point, Stage
from interpose.contracts.tools import Arguments, CallNext, CallNextAsync, Flow, FlowMiddleware, ToolMiddleware
from interpose.contracts.verdict import Verdict

Calling: TypeAlias = Callable[[], Any]
CallingAsync: TypeAlias = Callable[[], Awaitable[Any]]

DEPTHS = (0, 1, 4, 8)
ARGUMENTS = {"command": "ls -la", "timeout_s": 3}
ROUNDS, CALLS = 600, 200

_spec = pluggy.HookspecMarker("peer")
_impl = pluggy.HookimplMarker("peer")


class Written(ToolMiddleware):
    """Both methods by hand."""

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Through."""
        return call_next(tool_name, arguments)

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Through."""
        return await call_next(tool_name, arguments)


class Flowing(FlowMiddleware):
    """Written once."""

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """Through."""
        return (yield tool_name, arguments)


class Allowing:
    """A policy without handlers: what is left is the price of the middleware."""

    def judge(self, point: Point) -> Verdict:
        """Allowed."""
        return Verdict("a", point.stage, "allowed")

    async def judge_async(self, point: Point) -> Verdict:
        """Allowed."""
        return Verdict("a", point.stage, "allowed")

    def wants(self, _stage: Stage) -> bool:
        """Everything."""
        return True

    def changes(self, _stage: Stage) -> bool:
        """Nothing."""
        return False


def tool(tool_name: str, _arguments: dict[str, Any]) -> str:
    """The terminal."""
    return tool_name


async def tool_async(tool_name: str, _arguments: dict[str, Any]) -> str:
    """The terminal, awaited."""
    return tool_name


def written(depth: int) -> Calling:
    """A chain of methods written by hand."""
    chain = Chain([Written() for _ in range(depth)])
    return lambda: chain.call("shell", ARGUMENTS, tool)


def flowing(depth: int) -> Calling:
    """A chain of flows."""
    chain = Chain([Flowing() for _ in range(depth)])
    return lambda: chain.call("shell", ARGUMENTS, tool)


def hand_nested(depth: int) -> Calling:
    """The same methods, each given the next one as a plain function."""

    def nest(middleware: Written, inner: Any) -> Callable[[str, Any], Any]:
        return lambda tool_name, arguments: middleware.on_execute_tool(tool_name, arguments, inner)

    step: Callable[[str, Any], Any] = tool
    for _ in range(depth):
        step = nest(Written(), step)
    return lambda: step("shell", ARGUMENTS)


def plugged(depth: int) -> Calling:
    """Pluggy hook wrappers around one implementation."""

    class Specification:
        @_spec(firstresult=True)
        def execute(self, tool_name: str, arguments: dict[str, Any]) -> Any:
            """The hook."""

    # Its layers are given the arguments as ours are.
    class Terminal:
        @_impl
        def execute(self, tool_name: str, arguments: dict[str, Any]) -> Any:  # noqa: ARG002
            return tool_name

    class Wrapper:
        @_impl(wrapper=True)
        def execute(self, tool_name: str, arguments: dict[str, Any]) -> Any:  # noqa: ARG002
            return (yield)

    manager = pluggy.PluginManager("peer")
    manager.add_hookspecs(Specification)
    manager.register(Terminal())
    for _ in range(depth):
        manager.register(Wrapper())
    return lambda: manager.hook.execute(tool_name="shell", arguments=ARGUMENTS)


def written_async(depth: int) -> CallingAsync:
    """A chain of async methods written by hand."""
    chain = Chain([Written() for _ in range(depth)])
    return lambda: chain.call_async("shell", ARGUMENTS, tool_async)


def flowing_async(depth: int) -> CallingAsync:
    """A chain of flows, awaited."""
    chain = Chain([Flowing() for _ in range(depth)])
    return lambda: chain.call_async("shell", ARGUMENTS, tool_async)


def hand_nested_async(depth: int) -> CallingAsync:
    """The same async methods, each given the next one as a plain coroutine function."""

    def nest(middleware: Written, inner: Any) -> Callable[[str, Any], Awaitable[Any]]:
        async def layer(tool_name: str, arguments: Any) -> Any:
            return await middleware.on_execute_tool_async(tool_name, arguments, inner)

        return layer

    step: Callable[[str, Any], Awaitable[Any]] = tool_async
    for _ in range(depth):
        step = nest(Written(), step)
    return lambda: step("shell", ARGUMENTS)


SYNC: dict[str, Callable[[int], Calling]] = {
    "hand-nested": hand_nested,
    "chain, method": written,
    "chain, flow": flowing,
    "pluggy": plugged,
}
ASYNC: dict[str, Callable[[int], CallingAsync]] = {
    "hand-nested": hand_nested_async,
    "chain, method": written_async,
    "chain, flow": flowing_async,
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("who", SYNC)
def test_sync_call(benchmark: BenchmarkFixture, who: str, depth: int) -> None:
    """One call through `depth` layers."""
    benchmark.group = f"sync call through {depth}"
    assert benchmark(SYNC[who](depth)) == "shell"


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("who", ASYNC)
def test_async_call(benchmark: BenchmarkFixture, who: str, depth: int) -> None:
    """One awaited call through `depth` layers; nothing in it waits, so it is driven without a loop."""
    benchmark.group = f"async call through {depth}"
    call = ASYNC[who](depth)
    assert benchmark(lambda: _drive(call())) == "shell"


def test_policy_middleware(benchmark: BenchmarkFixture) -> None:
    """What asking the port costs, twice, with a policy that costs nothing."""
    policy: Policy = Allowing()
    chain = Chain([PolicyMiddleware(policy, context=Context("process", "s"))])
    assert benchmark(lambda: chain.call("shell", ARGUMENTS, tool)) == "shell"


def _drive(awaitable: Awaitable[Any]) -> Any:
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("the call waits for something")


def _measured_ns(calls: dict[tuple[str, int], Calling]) -> dict[tuple[str, int], float]:
    """The best round of each, rounds interleaved so that a busy machine is busy for all alike."""
    rounds: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for key, call in calls.items():
                rounds[key].append(_round_ns(call))
            gc.collect()
    finally:
        gc.enable()
    return {key: min(values) for key, values in rounds.items()}


def _round_ns(call: Calling) -> float:
    started = time.process_time_ns()
    for _ in range(CALLS):
        call()
    return (time.process_time_ns() - started) / CALLS


def _print_table(title: str, measured: dict[tuple[str, int], float]) -> None:
    names = list(dict.fromkeys(name for name, _ in measured))
    per_layer = {name: (measured[name, 8] - measured[name, 1]) / 7 for name in names}
    print(f"| {title} | no layer | 1 | 4 | 8 | each layer more | against hand-nested |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in names:
        cells = " | ".join(f"{measured[name, depth] / 1000:.2f} µs" for depth in DEPTHS)
        ratio = per_layer[name] / per_layer["hand-nested"]
        print(f"| {name} | {cells} | {per_layer[name]:.0f} ns | {ratio:.1f}x |")
    if "pluggy" in per_layer:
        print(f"\na method is {per_layer['pluggy'] / per_layer['chain, method']:.2f}x cheaper than a pluggy wrapper")
    print()


def main() -> None:
    """Prints the tables of docs/performance.md."""
    _print_table("sync", _measured_ns({(who, depth): make(depth) for who, make in SYNC.items() for depth in DEPTHS}))

    def driven(make: Callable[[int], CallingAsync], depth: int) -> Calling:
        call = make(depth)
        return lambda: _drive(call())

    _print_table(
        "async", _measured_ns({(w, depth): driven(make, depth) for w, make in ASYNC.items() for depth in DEPTHS})
    )
    policy: Policy = Allowing()
    chain = Chain([PolicyMiddleware(policy, context=Context("process", "s"))])
    key = ("policy", 1)
    cost = _measured_ns({key: lambda: chain.call("shell", ARGUMENTS, tool)})[key]
    print(f"PolicyMiddleware over a policy without handlers: {cost / 1000:.2f} us a call")
    asyncio.run(_crossing())


async def _crossing() -> None:
    class SyncOnly(ToolMiddleware):
        def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            return call_next(tool_name, arguments)

    chain = Chain([SyncOnly()])
    started = time.perf_counter_ns()
    for _ in range(500):
        await chain.call_async("shell", ARGUMENTS, tool_async)
    elapsed_us = (time.perf_counter_ns() - started) / 500 / 1000
    print(f"a sync-only middleware in an async call: {elapsed_us:.0f} us (a thread and two hand-overs)")


if __name__ == "__main__":
    main()
