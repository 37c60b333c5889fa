"""Trees of orchestrators, composites and leaves: no call gets past a list on its way, and every run is counted."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.drivers import Tool, ToolDriver
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.stages import Context, Point, ToolCall
from interpose.contracts.tools import Arguments, Flow, FlowMiddleware, SupportsToolMiddleware, ToolMiddleware
from interpose.contracts.verdict import Verdict
from interpose.drivers.children import invoke, invoke_async, tools_of
from interpose.drivers.driver import BaseDriver
from interpose.drivers.orchestrator import Orchestrator
from interpose.testing.fakes import FakePolicy, allow, refuse
from tests.drivers.making import Rewriting

WRONG = 2


@dataclass
class Ledger:
    """Counts: how often each list was passed, how often a terminal was reached, by which way, and with what."""

    passed: list[str] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)
    given: list[dict[str, Any]] = field(default_factory=list)


class Gate(FlowMiddleware):
    """Passes a call on `times` times, and notes each."""

    def __init__(self, name: str, times: int, ledger: Ledger) -> None:
        self.name, self.times, self.ledger = name, times, ledger

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """The last result, or a refusal."""
        result: Any = f"refused at {self.name}"
        for _ in range(self.times):
            self.ledger.passed.append(self.name)
            result = yield tool_name, arguments
        return result


class TreeLeaf(BaseDriver):
    """A tool with a side effect."""

    meta = DriverMeta("test.tree-leaf", "Leaf", "1")

    def __init__(self, name: str, ledger: Ledger, middleware: Sequence[ToolMiddleware]) -> None:
        super().__init__(middleware=middleware)
        self.name, self.ledger = name, ledger

    def list_tools(self) -> Sequence[Tool]:
        """The one tool."""
        return [Tool(f"t{self.name}", "A tool")]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """The side effect."""
        self.ledger.reached.append(self.name)
        self.ledger.given.append(arguments)
        return f"ran {self.name}"


class TreeBare(ToolDriver):
    """The same, without a list."""

    meta = DriverMeta("test.tree-bare", "Bare", "1")

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name, self.ledger = name, ledger

    def list_tools(self) -> Sequence[Tool]:
        """The one tool."""
        return [Tool(f"t{self.name}", "A tool")]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """The side effect."""
        self.ledger.reached.append(self.name)
        self.ledger.given.append(arguments)
        return f"ran {self.name}"


class Composite(BaseDriver):
    """Hands calls on by a table of its own; `waits` says whether it has an async way too."""

    meta = DriverMeta("test.composite", "Composite", "1")

    def __init__(self, parts: Sequence[ToolDriver], middleware: Sequence[ToolMiddleware]) -> None:
        super().__init__(middleware=middleware)
        self.table = {f"c{i}_{tool.name}": (part, tool) for i, part in enumerate(parts) for tool in tools_of(part)}

    def list_tools(self) -> Sequence[Tool]:
        """Those of the parts."""
        return [Tool(name, "A part's tool") for name in self.table]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """The part's tool, through the part's list."""
        part, tool = self.table[tool_name]
        return invoke(part, tool.name, arguments)


class WaitingComposite(Composite):
    """Awaits its parts."""

    async def execute_tool_async(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """The part's tool, awaited."""
        part, tool = self.table[tool_name]
        return await invoke_async(part, tool.name, arguments)


@dataclass(frozen=True)
class Shape:
    """One node of a tree: its kind, how often each gate of its list passes a call on, and its children."""

    kind: str
    gates: tuple[int, ...]
    children: tuple["Shape", ...] = ()


GATES = st.lists(st.integers(0, 2), max_size=2).map(tuple)


def trees(gates: st.SearchStrategy[tuple[int, ...]]) -> st.SearchStrategy[Shape]:
    """Trees whose lists are of these."""
    return st.recursive(
        st.builds(Shape, st.sampled_from(["leaf", "bare"]), gates),
        lambda inner: st.builds(
            Shape,
            st.sampled_from(["orchestrator", "composite", "waiting"]),
            gates,
            st.lists(inner, min_size=1, max_size=3).map(tuple),
        ),
        max_leaves=6,
    )


TREES = trees(GATES)
JUDGED_TREES = trees(st.lists(st.integers(0, 2), max_size=4).map(tuple))


Making = Callable[[str, int, Ledger], ToolMiddleware]


def judge_or_change(name: str, kind: int, ledger: Ledger) -> ToolMiddleware:
    """A policy that refuses an x of 2, or what makes x 1 or 2."""
    if kind:
        return Rewriting(lambda tool_name, _: (tool_name, {"x": kind}))

    def judging(point: Point) -> Verdict:
        if not isinstance(point, ToolCall):
            return allow(point)
        ledger.passed.append(f"{name} {point.arguments['x']}")
        return refuse(point) if point.arguments["x"] == WRONG else allow(point)

    return PolicyMiddleware(FakePolicy(judging), context=Context("process", "s1"))


def built(shape: Shape, ledger: Ledger, name: str = "r", making: Making = Gate) -> ToolDriver:
    """The drivers of a tree; gates are named after their node."""
    gates = [making(f"{name}#{i}", kind, ledger) for i, kind in enumerate(shape.gates)]
    children = [built(child, ledger, f"{name}-{i}", making) for i, child in enumerate(shape.children)]
    match shape.kind:
        case "leaf":
            return TreeLeaf(name, ledger, gates)
        case "bare":
            return TreeBare(name, ledger)
        case "composite":
            return Composite(children, gates)
        case "waiting":
            return WaitingComposite(children, gates)
        case _:
            return Orchestrator({f"d{i}": child for i, child in enumerate(children)}, middleware=gates)


def ways(shape: Shape, name: str = "r") -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
    """Each leaf with the gates on its way, outermost first, and how often each passes a call on."""
    own = () if shape.kind == "bare" else tuple((f"{name}#{i}", times) for i, times in enumerate(shape.gates))
    if not shape.children:
        yield name, own
    for i, child in enumerate(shape.children):
        for leaf, inner in ways(child, f"{name}-{i}"):
            yield leaf, own + inner


def expected(way: tuple[tuple[str, int], ...]) -> tuple[dict[str, int], int]:
    """How often each gate passes one call on, and how often the terminal is reached."""
    entered, passed = 1, {}
    for gate, times in way:
        entered *= times
        passed[gate] = entered
    return passed, entered


def run_sync(driver: ToolDriver, tool_name: str) -> Any:
    """One sync call."""
    return invoke(driver, tool_name, {"x": 0})


def run_async(driver: ToolDriver, tool_name: str) -> Any:
    """One async call."""
    return asyncio.run(invoke_async(driver, tool_name, {"x": 0}))


def run_reply(driver: ToolDriver, tool_name: str) -> Any:
    """As a model's reply, where the driver reads replies."""
    if not isinstance(driver, BaseDriver):
        return run_sync(driver, tool_name)
    return driver.process_llm_response({"tool": tool_name, "arguments": {"x": 0}}).tool_call_result


def hold(shape: Shape, run: Callable[[ToolDriver, str], Any]) -> None:
    """Calls every tool of a tree and compares what happened with what must happen."""
    ledger = Ledger()
    driver = built(shape, ledger)
    tools = [tool.name for tool in tools_of(driver)]
    leaves = list(ways(shape))
    assert len(tools) == len(leaves)
    for tool_name, (leaf, way) in zip(tools, leaves, strict=True):
        ledger.passed.clear()
        ledger.reached.clear()
        result = run(driver, tool_name)
        passed, count = expected(way)
        assert ledger.reached == [leaf] * count
        assert {gate: ledger.passed.count(gate) for gate, _ in way} == passed
        assert len(ledger.passed) == sum(passed.values())
        assert (result == f"ran {leaf}") == (count > 0)
        assert isinstance(driver, SupportsToolMiddleware) or shape.kind == "bare"


def hold_judged(shape: Shape, run: Callable[[ToolDriver, str], Any]) -> None:
    """Calls every tool of a tree of policies and what changes calls."""
    ledger = Ledger()
    driver = built(shape, ledger, making=judge_or_change)
    for tool_name, (_, way) in zip([tool.name for tool in tools_of(driver)], ways(shape), strict=True):
        ledger.passed.clear()
        ledger.given.clear()
        run(driver, tool_name)
        judges = [gate for gate, kind in way if not kind]
        for arguments in ledger.given:
            assert not judges or arguments["x"] != WRONG
            assert {f"{judge} {arguments['x']}" for judge in judges} <= {*ledger.passed}


@given(JUDGED_TREES)
def test_no_sync_call_runs_unjudged(shape: Shape) -> None:
    """What runs was judged as it is by every policy on its way, wherever and however often it was changed."""
    hold_judged(shape, run_sync)


@given(JUDGED_TREES)
def test_no_async_call_runs_unjudged(shape: Shape) -> None:
    """The same, awaited."""
    hold_judged(shape, run_async)


@given(TREES)
def test_no_sync_call_gets_past_a_list(shape: Shape) -> None:
    """Each gate on the way sees each call, none off the way sees any, and each reached terminal is one side effect."""
    hold(shape, run_sync)


@given(TREES)
def test_no_async_call_gets_past_a_list(shape: Shape) -> None:
    """The same, awaited, through parts that can only be called and parts that are awaited."""
    hold(shape, run_async)


@given(TREES)
def test_no_call_in_a_reply_gets_past_a_list(shape: Shape) -> None:
    """The same, from a model's reply."""
    hold(shape, run_reply)
