"""What shape handlers cost, against a plain loop over the same functions.

The peer calls each function with the call as it came and takes what it answers: nothing is frozen, measured, isolated
or recorded. `passing` handlers all let the call pass; of `patching` ones every one rewrites the command.

`make bench` runs the grid; `python benchmarks/stages.py` prints the table of docs/performance.md.
"""

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from interpose.catalog.reading import read_call
from interpose.contracts.decisions import Continue, Patch
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.journal import Record
from interpose.contracts.stages import Context, LlmChunk, ToolCall
from interpose.effects.contract import create_middleware
from interpose.kernel.clock import SystemClock
from interpose.policy.judgement import EffectPolicy
from interpose.stages.executor import shape, shape_async
from interpose.stages.table import StageTable
from interpose.testing.fakes import FakePause

Calling: TypeAlias = Callable[[], Any]

COUNTS = (1, 5, 20)
HERE = Context("process", "s", agent="claude-code")
CALL = ToolCall(HERE, "c1", "Bash", {"command": "ls -la", "description": "look around"})
CHUNK = LlmChunk(HERE, "anthropic", 0, "content_block_delta", {"delta": {"text": "word "}})
FORM = read_call(HERE.agent, CALL.tool_name, CALL.arguments)
ROUNDS, CALLS = 30, 300


class Nowhere:
    """A journal that keeps nothing: what is left is the price of judging."""

    def write(self, record: Record) -> None:
        """Forgotten."""

    def flush(self, timeout_s: float = 5.0) -> bool:  # noqa: ARG002 - the port's
        """Nothing waits."""
        return True


def passing(_call: ToolCall) -> Continue:
    """Lets it pass."""
    return Continue()


async def passing_async(_call: ToolCall) -> Continue:
    """Lets it pass, awaited."""
    return Continue()


def patching(call: ToolCall) -> Patch:
    """Rewrites the command."""
    return Patch({**call.arguments, "command": call.arguments["command"] + "x"})


def handlers(run: Callable[[Any], Any], count: int, *, tools: tuple[str, ...] | None = None) -> list[ShapeHandler]:
    """So many handlers of calls and chunks with that function."""
    return [ShapeHandler(f"h{number:02}", ("tool.call", "llm.chunk"), run, tools) for number in range(count)]


def plain(run: Callable[[Any], Any], count: int) -> Calling:
    """The plain loop over the same functions."""
    functions = [run] * count

    def loop() -> Any:
        call = CALL
        for function in functions:
            answer = function(call)
            if isinstance(answer, Patch):
                call = ToolCall(HERE, "c1", "Bash", answer.payload)
        return call

    return loop


def shaped(run: Callable[[Any], Any], count: int) -> Calling:
    """The executor."""
    table = StageTable.publish(handlers(run, count))
    return lambda: shape(CALL, table.matching(CALL, FORM), FORM)


def awaited(run: Callable[[Any], Any], count: int) -> Calling:
    """The executor on an event loop, many times over, since a loop costs more than a call."""
    table = StageTable.publish(handlers(run, count))

    async def main() -> None:
        for _ in range(CALLS):
            await shape_async(CALL, table.matching(CALL, FORM), FORM)

    return lambda: asyncio.run(main())


def judged(count: int) -> Calling:
    """A whole judgement with so many handlers and no check."""
    table = StageTable.publish(handlers(passing, count))
    policy = EffectPolicy(
        create_middleware(registrations=()), journal=Nowhere(), clock=SystemClock(), pause=FakePause(), shapes=table
    )
    return lambda: policy.judge(CALL)


def missed(count: int) -> Calling:
    """A chunk that none of so many handlers is for."""
    table = StageTable.publish(
        ShapeHandler(f"h{n}", ("llm.chunk",), passing, protocols=("chat",)) for n in range(count)
    )
    return lambda: table.matching(CHUNK)


def absent(_count: int) -> Calling:
    """A chunk where no handler is at all."""
    table = StageTable.publish()
    return lambda: table.matching(CHUNK)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("run", [passing, patching])
@pytest.mark.parametrize("who", [plain, shaped])
def test_chain(benchmark: BenchmarkFixture, who: Any, run: Any, count: int) -> None:
    """A call through `count` handlers."""
    benchmark.group = f"{run.__name__} through {count}"
    assert benchmark(who(run, count)) is not None


@pytest.mark.parametrize("count", [0, *COUNTS])
def test_judgement(benchmark: BenchmarkFixture, count: int) -> None:
    """A whole judgement."""
    assert benchmark(judged(count)).allowed


@pytest.mark.parametrize("lookup", [absent, missed])
def test_nothing_matches(benchmark: BenchmarkFixture, lookup: Any) -> None:
    """Looking for handlers where there are none for it."""
    assert benchmark(lookup(20)) == ()


def _best_us(calls: dict[str, Calling], times: dict[str, int]) -> dict[str, float]:
    """The best of interleaved rounds of each, in microseconds of CPU for one call."""
    best = dict.fromkeys(calls, float("inf"))
    gc.disable()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            count = times.get(name, CALLS)
            started = time.process_time_ns()
            for _ in range(count):
                call()
            divisor = CALLS if name in times else count
            best[name] = min(best[name], (time.process_time_ns() - started) / divisor / 1_000)
    gc.enable()
    return best


def _table() -> None:
    rows: dict[str, Callable[[int], Calling]] = {
        "plain loop, passing": lambda count: plain(passing, count),
        "handlers, passing": lambda count: shaped(passing, count),
        "async handlers, passing": lambda count: awaited(passing_async, count),
        "plain loop, patching": lambda count: plain(patching, count),
        "handlers, patching": lambda count: shaped(patching, count),
        "a whole judgement, passing": judged,
    }
    calls = {f"{name} {count}": make(count) for name, make in rows.items() for count in COUNTS}
    calls |= {"judged 0": judged(0), "absent": absent(0), "missed": missed(20)}
    once = {name: 1 for name in calls if name.startswith("async")}
    best = _best_us(calls, once)
    print("| a call through | 1 | 5 | 20 | each more |\n|---|---:|---:|---:|---:|")
    for name in rows:
        one, five, twenty = (best[f"{name} {count}"] for count in COUNTS)
        print(f"| {name} | {one:.1f} µs | {five:.1f} µs | {twenty:.1f} µs | {(twenty - one) / 19:.2f} µs |")
    print(f"\njudged without handlers: {best['judged 0']:.1f} µs; no handler at the stage: {best['absent']:.3f} µs;")
    print(f"none of twenty matches: {best['missed']:.3f} µs")


if __name__ == "__main__":
    _table()
