"""The requirements of the middleware contract, one test each, on real drivers."""

import asyncio
import inspect
import json
import logging
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import interpose.chain
import interpose.concerns
import interpose.contracts
import interpose.drivers
from interpose.concerns.auth.contract import SupportsAuth
from interpose.concerns.auth.middleware import AuthMiddleware
from interpose.concerns.hooks.contract import SupportsHooks
from interpose.concerns.hooks.middleware import HooksMiddleware
from interpose.concerns.permission.contract import SupportsConsent
from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.contracts.auth import AuthChallenge
from interpose.contracts.drivers import (
    Driver,
    Health,
    HealthStatus,
    SupportsHealthcheck,
    SupportsNativeTools,
    SupportsStreaming,
    Tool,
    ToolDriver,
)
from interpose.contracts.errors import UnknownToolError
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.tools import Arguments, CallNext, SupportsToolMiddleware, ToolMiddleware
from interpose.drivers.driver import BaseDriver
from interpose.drivers.orchestrator import Orchestrator
from tests.drivers.making import (
    ECHO,
    BareLeaf,
    Denying,
    Doing,
    Hiding,
    Leaf,
    Rewriting,
    Tracing,
    call_text,
)

ASK = call_text("echo", text="hi")
PROJECT = Path(__file__).resolve().parents[2]


def test_m01_one_around_hook() -> None:
    """The port has one hook around a call, in a sync and an async form, and both pass through."""
    parameters = list(inspect.signature(ToolMiddleware.on_execute_tool).parameters)
    assert parameters == ["self", "tool_name", "arguments", "call_next"]
    around_a_call = [name for name in vars(ToolMiddleware) if name.startswith("on_execute")]
    assert around_a_call == ["on_execute_tool", "on_execute_tool_async"]
    assert Leaf(middleware=[ToolMiddleware()]).invoke_tool("echo", {"text": "hi"}) == "hi"


def test_m02_call_next_ends_in_execute_tool() -> None:
    """The rest of the list runs, and at its end the driver's own tool, with what was passed on."""
    trace: list[str] = []
    driver = Leaf(middleware=[Tracing("a", trace), Tracing("b", trace)])
    driver.act = lambda name, arguments: trace.append(f"tool {name} {arguments}")
    driver.invoke_tool("echo", {"text": "hi"})
    assert trace == ["a in echo", "b in echo", "tool echo {'text': 'hi'}", "b out", "a out"]


def test_m03_observe_rewrite_answer_catch() -> None:
    """A middleware may look on, change name, arguments and result, answer itself, or make a result of an error."""

    def catching(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        try:
            return call_next(tool_name, arguments)
        except LookupError:
            return "caught"

    rewriting = Rewriting(lambda name, arguments: ("echo", {"text": arguments["text"].upper()}))
    shouting = Doing(lambda name, arguments, call_next: f"{call_next(name, arguments)}!")
    assert Leaf(middleware=[rewriting, shouting]).invoke_tool("fail", {"text": "hi"}) == "HI!"
    denied = Leaf(middleware=[Denying()])
    assert (denied.invoke_tool("echo", {}), denied.runs) == ("denied", [])
    assert Leaf(middleware=[Doing(catching)]).invoke_tool("fail", {}) == "caught"


def test_m04_a_list_at_construction_and_added_later() -> None:
    """`middleware=[...]` and `add_middleware` make one list, which can be read."""
    first, second = Tracing("a"), Tracing("b")
    driver = Leaf(middleware=[first])
    driver.add_middleware(second)
    assert driver.middleware == (first, second)
    with pytest.raises(ValueError, match="already in the list"):
        driver.add_middleware(first)


def test_m05_an_empty_list_changes_nothing() -> None:
    """Response and record are those of a list that only passes on."""
    bare = Leaf().process_llm_response(ASK)
    passing = Leaf(middleware=[ToolMiddleware(), Tracing()]).process_llm_response(ASK)
    assert bare.tool_call_result == passing.tool_call_result == "hi"
    assert bare.messages == passing.messages
    without_time = [
        {
            key: getattr(response.tool_calls[0], key)
            for key in ("outcome", "executed_name", "executed_arguments", "result")
        }
        for response in (bare, passing)
    ]
    assert without_time[0] == without_time[1]


def test_m06_errors_are_shaped_alike_wherever_they_arise() -> None:
    """The tool's and a middleware's errors both become a failed call with a text for the model, naming the culprit."""

    def broken(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        raise LookupError("no quota")

    from_tool = Leaf(middleware=[Tracing()]).process_llm_response(call_text("fail"))
    from_list = Leaf(middleware=[Tracing(), Doing(broken)]).process_llm_response(call_text("fail"))
    for response in (from_tool, from_list):
        assert response.call_failed
        assert not response.call_executed
        assert response.retry_prompt is not None
        assert response.tool_calls[0].outcome == "failed"
        assert [message["role"] for message in response.messages] == ["assistant", "system"]
    assert str(from_tool.tool_calls[0].error).startswith("Tool 'fail' failed: LookupError: gone")
    assert from_list.tool_calls[0].error == from_list.call_detail == "Doing failed: LookupError: no quota"
    assert from_list.tool_calls[0].executed_name is None


def test_m07_list_order_outermost_first() -> None:
    """The first sees the call first and the result last; what is added comes closest to the tool."""
    trace: list[str] = []
    driver = Leaf(middleware=[Tracing("a", trace), Tracing("b", trace)])
    driver.add_middleware(Tracing("c", trace))
    driver.process_llm_response(ASK)
    assert trace == ["a in echo", "b in echo", "c in echo", "c out", "b out", "a out"]


def test_m08_order_is_configuration_only() -> None:
    """Neither the class of a middleware nor that of a driver says anything about the order."""

    class Derived(Tracing):
        """A subclass."""

    class Narrow(Leaf):
        """A subclass of the driver, with its own default list in no way."""

    trace: list[str] = []
    driver = Narrow(middleware=[Derived("derived", trace), Tracing("plain", trace)])
    driver.invoke_tool("echo", {})
    assert trace[0] == "derived in echo"
    assert driver.explain_middleware().splitlines() == [
        "1. Derived (Derived): list order",
        "2. Tracing (Tracing): list order",
    ]


def test_m09_one_instance_serves_many_drivers_and_threads() -> None:
    """64 threads over four drivers that share one middleware: each call gets its own result, and none is lost."""
    shared = Tracing("s")
    drivers = [Leaf(middleware=[shared]) for _ in range(4)]
    results: dict[tuple[int, int], Any] = {}
    barrier = threading.Barrier(64)

    def work(number: int) -> None:
        barrier.wait(20)
        for turn in range(10):
            text = f"{number}.{turn}"
            results[number, turn] = drivers[number % 4].process_llm_response(call_text("echo", text=text))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert {key: response.tool_call_result for key, response in results.items()} == {
        (number, turn): f"{number}.{turn}" for number in range(64) for turn in range(10)
    }
    assert sum(len(driver.runs) for driver in drivers) == 640
    assert len(shared.trace) == 1280


def test_m10_identity_is_never_hidden() -> None:
    """With a list the driver is still everything that it is: same object, same class, same texts, same sheet."""
    bare, listed = Leaf(), Leaf(middleware=[Denying(), Tracing()])
    contracts = (Driver, ToolDriver, SupportsToolMiddleware, SupportsNativeTools, SupportsStreaming)
    assert all(isinstance(listed, contract) for contract in contracts)
    assert not isinstance(listed, SupportsHealthcheck)
    assert isinstance(Orchestrator(middleware=[Denying()]), SupportsHealthcheck)
    assert listed.get_driver_system_message() == bare.get_driver_system_message()
    assert listed.get_native_tool_context() == bare.get_native_tool_context()
    assert listed.is_complete_tool_call(ASK) == bare.is_complete_tool_call(ASK) is True
    assert listed.meta == bare.meta


def test_m11_the_sheet_is_static() -> None:
    """No middleware writes a flag on it; it is read from the class as JSON and XML, and no driver is built."""

    class Unbuildable(Leaf):
        """Raises when it is built."""

        meta = DriverMeta("test.unbuildable", "Unbuildable", "3")

        def __init__(self) -> None:
            raise AssertionError("the sheet must not need this")

    flags = ["standalone", "orchestratable", "tool_middleware", "native_tools", "streaming"]
    assert json.loads(Unbuildable.meta.to_json())["capabilities"] == flags
    assert '<driver id="test.unbuildable" name="Unbuildable" version="3">' in Unbuildable.meta.to_xml()
    assert list(Leaf(middleware=[Denying()]).meta.capabilities) == flags


def test_m12_detection_is_isinstance() -> None:
    """There is no other way to ask a driver what it can do."""

    class Healthy(Leaf, SupportsHealthcheck):
        """Says how it is."""

        def healthcheck(self) -> Health:
            """Well."""
            return Health(HealthStatus.OK)

    assert isinstance(Healthy(middleware=[Denying()]), SupportsHealthcheck)
    assert "healthcheck" in Healthy.meta.capabilities
    source = "".join(path.read_text() for path in Path(interpose.drivers.__path__[0]).rglob("*.py"))
    for gone in ("resolve_capability", "SupportsCapabilityResolution", "BaseDecorator"):
        assert gone not in source


def test_m13_the_client_keeps_what_it_built() -> None:
    """A middleware is configured through the reference that the client has, while drivers use it."""
    shared = Hiding()
    drivers = [Leaf(middleware=[shared]), Leaf(middleware=[shared])]
    shared.names = ("echo",)
    assert [[tool.name for tool in driver.offered_tools()] for driver in drivers] == [["fail"], ["fail"]]


def test_m14_hooks_observe_and_change_nothing() -> None:
    """Before, after and on failure, added and taken away at run time; what they return is ignored."""
    seen: list[str] = []

    def before(tool_name: str, arguments: dict[str, Any]) -> str:
        seen.append(f"before {tool_name}")
        return "ignored"

    hooks = HooksMiddleware(pre=[before], on_failure=[lambda name, arguments, error: seen.append(f"failed {name}")])
    hooks.add_post_hook(lambda name, arguments, result: seen.append(f"after {name} {result}"))
    assert isinstance(hooks, SupportsHooks)
    driver = Leaf(middleware=[hooks])
    assert driver.invoke_tool("echo", {"text": "hi"}) == "hi"
    assert driver.process_llm_response(call_text("fail")).call_failed
    hooks.remove_pre_hook(before)
    driver.invoke_tool("echo", {"text": "ho"})
    assert seen == ["before echo", "after echo hi", "before fail", "failed fail", "after echo ho"]


def test_m15_consent_is_asked_before_the_tool_runs() -> None:
    """With name and arguments; a denial is a payload and nothing ran; without a handler it is a wrong configuration."""
    asked: list[tuple[str, dict[str, Any]]] = []

    def refuse(tool_name: str, arguments: dict[str, Any]) -> bool:
        asked.append((tool_name, arguments))
        return False

    permission = PermissionMiddleware(consent=refuse)
    assert isinstance(permission, SupportsConsent)
    driver = Leaf(middleware=[permission])
    response = driver.process_llm_response(ASK)
    payload = json.loads(str(response.tool_call_result))
    assert (payload["permission_denied"], payload["tool"]) == (True, "echo")
    assert (response.call_executed, response.tool_calls[0].outcome) == (True, "short_circuited")
    assert (asked, driver.runs) == ([("echo", {"text": "hi"})], [])
    permission.set_consent_handler(lambda name, arguments: True)
    assert driver.process_llm_response(ASK).tool_call_result == "hi"
    permission.set_consent_handler(None)
    misconfigured = driver.process_llm_response(ASK)
    assert "PermissionMiddleware" in str(misconfigured.call_detail)
    assert "Do not call it again" in str(misconfigured.retry_prompt)
    assert len(driver.runs) == 1


def test_m16_a_challenge_is_answered_in_band() -> None:
    """The person is told what to do through the model; any other error passes through."""

    def challenging(tool_name: str, arguments: dict[str, Any]) -> Any:
        raise AuthChallenge("Sign in.", url="https://example.org/device", code="AB-CD")

    driver = Leaf(middleware=[AuthMiddleware()], act=challenging)
    assert isinstance(driver.middleware[0], SupportsAuth)
    response = driver.process_llm_response(ASK)
    assert json.loads(str(response.tool_call_result)) == {
        "auth_required": True,
        "message": "Sign in.",
        "url": "https://example.org/device",
        "code": "AB-CD",
    }
    assert (response.call_executed, response.tool_calls[0].outcome) == (True, "short_circuited")
    assert Leaf(middleware=[AuthMiddleware()]).process_llm_response(call_text("fail")).call_failed


def test_m17_the_core_knows_no_concern() -> None:
    """Drivers, chain and contracts name no package of concerns, and take no parameter for one."""
    for room in (interpose.contracts, interpose.chain, interpose.drivers):
        for path in Path(room.__path__[0]).rglob("*.py"):
            assert "interpose.concerns" not in path.read_text(), path
    parameters = set(inspect.signature(BaseDriver.__init__).parameters)
    assert parameters == {"self", "middleware", "prompts", "extraction", "redact", "late_rewrite", "serves"}


def test_m18_a_list_for_all_and_one_for_a_single_driver() -> None:
    """What all share and what only one has stand in one list each."""
    trace: list[str] = []
    shared, own = Tracing("shared", trace), Tracing("own", trace)
    plain, special = Leaf(middleware=[shared]), Leaf(middleware=[shared, own])
    plain.invoke_tool("echo", {})
    assert trace == ["shared in echo", "shared out"]
    special.invoke_tool("echo", {})
    assert trace[2:] == ["shared in echo", "own in echo", "own out", "shared out"]


def test_m19_an_orchestrator_hosts_the_list_of_a_leaf_that_cannot() -> None:
    """A driver without a list has none; above it the orchestrator's list holds for every call."""
    leaf, denying = BareLeaf(), Denying()
    assert not isinstance(leaf, SupportsToolMiddleware)
    host = Orchestrator({"bare": leaf}, middleware=[denying])
    assert host.invoke_tool("echo", {"text": "hi"}) == "denied"
    assert host.process_llm_response(ASK).tool_calls[0].outcome == "short_circuited"
    assert (leaf.runs, denying.count) == ([], 2)


def test_m20_two_axes() -> None:
    """A middleware is no driver and a driver is no middleware; neither can be put in the other's place."""
    assert not isinstance(Denying(), ToolDriver)
    not_a_middleware: Any = BareLeaf()
    not_a_driver: Any = Denying()
    with pytest.raises(TypeError, match="is no middleware"):
        Leaf(middleware=[not_a_middleware])
    with pytest.raises(TypeError, match="is no tool driver"):
        Orchestrator().add_driver(not_a_driver, label="x")


def test_m21_the_list_of_tools_goes_through_the_middlewares() -> None:
    """A hidden tool is in no prompt and no native tools, and cannot be called; those without the hook still work."""

    class Old:
        """Knows nothing of lists of tools."""

        def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            """Through."""
            return call_next(tool_name, arguments)

    old: Any = Old()
    driver = Leaf(middleware=[old, Hiding("fail")])
    assert [tool.name for tool in driver.offered_tools()] == ["echo"]
    assert '"fail"' not in driver.get_driver_system_message()
    tools = driver.get_native_tool_context().tools
    assert tools is not None
    assert [tool["function"]["name"] for tool in tools] == ["echo"]
    assert driver.process_llm_response(call_text("fail")).tool_calls == ()
    with pytest.raises(UnknownToolError, match="there is no tool 'fail'"):
        driver.invoke_tool("fail", {})
    with pytest.raises(UnknownToolError):
        asyncio.run(driver.invoke_tool_async("fail", {}))
    with pytest.raises(UnknownToolError):
        Orchestrator({"leaf": driver}).invoke_tool("fail", {})
    assert driver.runs == []


def test_m21_a_middleware_may_offer_a_tool_of_its_own() -> None:
    """One that it answers itself, or one that it rewrites to a tool of the driver."""

    class Aliasing(ToolMiddleware):
        """Offers `say` in place of `echo`."""

        def on_list_tools(self, call_next: Any) -> Sequence[Tool]:
            """Renamed."""
            return [Tool("say", "Say") if tool.name == "echo" else tool for tool in call_next()]

        def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            """Under its real name."""
            return call_next("echo" if tool_name == "say" else tool_name, arguments)

    driver = Leaf(middleware=[Aliasing()])
    record = driver.process_llm_response(call_text("say", text="hi")).tool_calls[0]
    assert (record.tool_name, record.executed_name, record.result) == ("say", "echo", "hi")
    with pytest.raises(UnknownToolError, match="echo"):
        driver.invoke_tool("echo", {})


def test_m22_every_program_goes_through_the_list() -> None:
    """What people copy from runs tools through the list and asks by isinstance; of the old way there is no word."""
    shown = {path: path.read_text() for path in (*PROJECT.glob("examples/*.py"), *PROJECT.glob("docs/**/*.md"))}
    shown[PROJECT / "README.md"] = (PROJECT / "README.md").read_text()
    source = {path: path.read_text() for path in (PROJECT / "src").rglob("*.py")}

    past_the_list = re.compile(r"\.execute_tool(_async)?\(")
    assert [path for path, text in shown.items() if past_the_list.search(text)] == []
    drivers = PROJECT / "src" / "interpose" / "drivers"
    terminals = {
        drivers / "driver.py",
        drivers / "children.py",
        PROJECT / "src" / "interpose" / "contracts" / "drivers.py",
    }
    assert {path for path, text in source.items() if past_the_list.search(text)} == terminals

    old_way = re.compile(
        r"resolve_capability|with_capability|SupportsCapabilityResolution|(Base|Auth)Decorator|AuthMixin"
    )
    assert [path for path, text in (shown | source).items() if old_way.search(text)] == []
    assert "isinstance(desk, Supports" in shown[PROJECT / "docs" / "guides" / "write-a-driver.md"]
    assert "Chain([" in shown[PROJECT / "examples" / "chain_in_ten_lines.py"]  # run by tests/examples


def test_the_same_instance_on_two_levels_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """It runs on both, since a list is literal, and the log says so."""
    shared = Tracing("s")
    with caplog.at_level(logging.WARNING):
        Orchestrator({"leaf": Leaf(tools=[ECHO], middleware=[shared])}, middleware=[shared]).invoke_tool("echo", {})
    assert [line.split(" out")[0] for line in shared.trace] == ["s in echo", "s in echo", "s", "s"]
    assert "it sees each of its calls twice" in caplog.text
