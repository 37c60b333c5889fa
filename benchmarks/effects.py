"""What one `before_tool` evaluation costs, and whether that depends on how many registrations exist.

Five registrations match however many there are. The peer is a plain loop over the same five functions, which has no
isolation, no measuring and no record of who said what.
"""

import gc
import tracemalloc
from collections.abc import Sequence

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from interpose.contracts.effects import (
    AnnotateToolResult,
    Effect,
    EvaluationContext,
    HookInput,
    Registration,
)
from interpose.effects.budget import BudgetTracker
from interpose.effects.contract import MiddlewareContract, create_middleware
from interpose.effects.diagnostics import Diagnostic
from interpose.kernel.frozen import freeze

MATCHING = 5
SIZES = (10, 100, 1_000, 10_000)
CALL = HookInput(
    "before_tool",
    tool_name="shell",
    tool_aliases=("Bash",),
    tool_args=freeze({"command": "pytest -q"}),
    metadata=freeze({"turnToolCalls": 1}),
)


def silent(_hook_input: HookInput, _context: EvaluationContext) -> Sequence[Effect]:
    """Looks and says nothing, as nearly every guard does nearly every time."""
    return ()


def speaking(_hook_input: HookInput, _context: EvaluationContext) -> Sequence[Effect]:
    """Says one thing."""
    return (AnnotateToolResult("noted"),)


def unheard(_diagnostic: Diagnostic) -> None:
    """Takes diagnostics."""


def registrations(size: int) -> list[Registration]:
    """So many, of which five match, spread evenly; the others are about other tools."""
    step = size // MATCHING
    return [
        Registration(
            f"guard-{number}",
            "Looks at one tool.",
            ("before_tool",),
            ("shell",) if number % step == 0 else (f"tool-{number}",),
            evaluate=speaking if number == 0 else silent,
        )
        for number in range(size)
    ]


def engine(size: int) -> MiddlewareContract:
    """An engine with so many hosts."""
    made = create_middleware(registrations=registrations(size), on_diagnostic=unheard, budget=BudgetTracker())
    assert len(made.run_hook(CALL).emissions) == MATCHING
    return made


@pytest.mark.benchmark(group="effects: one before_tool evaluation, five match")
@pytest.mark.parametrize("size", SIZES)
def test_evaluation(benchmark: BenchmarkFixture, size: int) -> None:
    """Among 10 to 10,000 registrations."""
    made = engine(size)
    benchmark(made.run_hook, CALL)


@pytest.mark.benchmark(group="effects: one before_tool evaluation, five match")
def test_plain_loop(benchmark: BenchmarkFixture) -> None:
    """The peer: five functions in a list."""
    functions = [speaking, silent, silent, silent, silent]

    def loop() -> list[Effect]:
        effects: list[Effect] = []
        for function in functions:
            effects.extend(function(CALL, EvaluationContext(tuple(effects))))
        return effects

    benchmark(loop)


@pytest.mark.benchmark(group="effects: finding what matches, a name never seen before")
@pytest.mark.parametrize("size", SIZES)
def test_first_lookup(benchmark: BenchmarkFixture, size: int) -> None:
    """Nothing remembered: each round asks with another alias."""
    made = engine(size)
    numbers = iter(range(10**9))
    benchmark(lambda: made.candidates("before_tool", "shell", (f"alias-{next(numbers)}",)))


@pytest.mark.benchmark(group="effects: publishing an owned set of five")
@pytest.mark.parametrize("size", SIZES)
def test_replacement(benchmark: BenchmarkFixture, size: int) -> None:
    """A new generation beside so many hosts; order and index are made anew each time."""
    made = engine(size)
    generations = iter(range(1, 10**9))
    owned = [Registration(f"owned-{number}", "d", ("turn_end",), evaluate=silent) for number in range(5)]
    benchmark(lambda: made.replace_registrations("user-hooks", next(generations), owned))


@pytest.mark.benchmark(group="effects: memory")
def test_memory(benchmark: BenchmarkFixture) -> None:
    """Bytes that the table and its index keep per registration, and the registration itself; printed."""
    size = 10_000
    gc.collect()
    tracemalloc.start()
    offered = registrations(size)
    own, _ = tracemalloc.get_traced_memory()
    made = create_middleware(registrations=offered, on_diagnostic=unheard, budget=BudgetTracker())
    gc.collect()
    both, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    benchmark.extra_info["bytes per registration, itself"] = own // size
    benchmark.extra_info["bytes per registration, table and index"] = (both - own) // size
    print(f"\nmemory per registration: itself {own // size} bytes, table and index {(both - own) // size} bytes")
    benchmark(made.run_hook, CALL)


if __name__ == "__main__":
    raise SystemExit(
        "run it as `make bench`, or: python -m pytest benchmarks/effects.py -o addopts= -o python_files='*.py'"
    )
