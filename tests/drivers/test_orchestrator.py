"""Several drivers as one: labels, names, nesting, health."""

import asyncio
import logging
import re
import threading
from typing import Any

import pytest

from interpose.contracts.drivers import Health, HealthStatus, SupportsHealthcheck, Tool
from interpose.contracts.errors import UnknownToolError
from interpose.contracts.tools import Arguments, CallNext, Linked, SupportsToolMiddleware, ToolMiddleware
from interpose.drivers.children import invoke, invoke_async
from interpose.drivers.orchestrator import Orchestrator
from tests.drivers.making import ECHO, FAIL, BareLeaf, Doing, Hiding, Leaf, Tracing, call_text


def names(driver: Leaf | Orchestrator) -> list[str]:
    """Of the offered tools."""
    return [tool.name for tool in driver.offered_tools()]


def test_one_child_keeps_its_names_and_several_get_labels() -> None:
    """Titles and parameters stay; the description says whose tool it is."""
    host = Orchestrator({"a": Leaf(tools=[ECHO])})
    assert host.offered_tools() == (ECHO,)
    host.add_driver(Leaf(tools=[ECHO]), label="b")
    assert names(host) == ["a__echo", "b__echo"]
    tool = host.offered_tools()[1]
    assert (tool.title, tool.description, tool.parameters) == ("Echo", "[b] Says it again.", ECHO.parameters)
    assert host.labels == ("a", "b")


def test_names_follow_what_a_child_offers() -> None:
    """They are made once for the same tools, and anew when a child offers others or another child has the label."""
    leaf = Leaf(tools=[ECHO])
    host = Orchestrator({"a": leaf, "b": Leaf(tools=[])})
    first = host.list_tools()
    assert host.list_tools()[0] is first[0]
    leaf.tools = [FAIL]
    assert names(host) == ["a__fail"]
    host.remove_driver("a")
    host.add_driver(Leaf(tools=[FAIL, ECHO]), label="a")
    assert names(host) == ["a__fail", "a__echo"]


class Mute(BareLeaf):
    """Cannot say which tools it has."""

    def list_tools(self) -> Any:
        """Raises."""
        raise OSError("no server")


def test_a_child_that_cannot_list_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """The others go on; its tools are unknown, and the log names it."""
    mute = Mute()
    host = Orchestrator({"mute": mute, "b": Leaf(tools=[ECHO])})
    assert host.invoke_tool("b__echo", {"text": "hi"}) == "hi"
    with pytest.raises(UnknownToolError):
        host.invoke_tool("mute__echo", {})
    assert Orchestrator({"mute": mute}).list_tools() == ()
    assert mute.runs == []
    assert "'mute' cannot say which tools it has and is left out: OSError: no server" in caplog.text


def test_a_call_reaches_the_child_that_its_name_says() -> None:
    """Sync, async and from a reply; the child sees its own name."""
    a, b = Leaf(), BareLeaf()
    host = Orchestrator({"a": a, "b": b})
    assert host.invoke_tool("b__echo", {"text": "hi"}) == "hi"
    assert asyncio.run(host.invoke_tool_async("a__echo", {"text": "ho"})) == "ho"
    assert host.process_llm_response(call_text("b__echo", text="ha")).tool_call_result == "ha"
    assert host.execute_tool("a__echo", {}) == asyncio.run(host.execute_tool_async("a__echo", {})) == {}
    assert a.runs == [("echo", {"text": "ho"}), ("echo", {}), ("echo", {})]
    assert b.runs == [("echo", {"text": "hi"}), ("echo", {"text": "ha"})]


@pytest.mark.parametrize("name", ["echo", "c__echo", "a__nobody", "__echo", "a_echo", ""])
def test_an_unknown_name_reaches_nobody(name: str) -> None:
    """No guess by the bare name; the model is told which tools there are."""
    a, b = Leaf(), Leaf()
    host = Orchestrator({"a": a, "b": b})
    with pytest.raises(UnknownToolError):
        host.invoke_tool(name, {})
    with pytest.raises(UnknownToolError):
        host.execute_tool(name, {})
    if name:
        response = host.process_llm_response(call_text(name))
        assert "a__echo, a__fail, b__echo, b__fail" in str(response.retry_prompt)
    assert a.runs == b.runs == []


def test_orchestrators_nest() -> None:
    """Names grow by one label for each level; every list on the way sees the call under the name of its level."""
    trace: list[str] = []
    leaf = Leaf(middleware=[Tracing("leaf", trace)])
    inner = Orchestrator({"x": leaf, "y": Leaf()}, middleware=[Tracing("inner", trace)])
    outer = Orchestrator({"in": inner, "z": BareLeaf()}, middleware=[Tracing("outer", trace)])
    assert outer.invoke_tool("in__x__echo", {"text": "hi"}) == "hi"
    assert trace[:3] == ["outer in in__x__echo", "inner in x__echo", "leaf in echo"]
    assert names(outer)[0] == "in__x__echo"


def test_one_call_has_one_id_on_every_level() -> None:
    """So that whoever judges at two places can count it once."""
    ids: list[str] = []

    def noting(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        call_next.call.call_id = call_next.call.call_id or "given"
        ids.append(call_next.call.call_id)
        return call_next(tool_name, arguments)

    host = Orchestrator({"a": Leaf(middleware=[Doing(noting)])}, middleware=[Doing(noting)])
    host.invoke_tool("echo", {})
    host.invoke_tool("echo", {}, call_id="mine")
    host.process_llm_response(
        {"role": "assistant", "tool_calls": [{"id": "models", "function": {"name": "echo", "arguments": "{}"}}]}
    )
    asyncio.run(host.invoke_tool_async("echo", {}, call_id="awaited"))
    assert ids == [name for name in ("given", "mine", "models", "awaited") for _ in range(2)]


@pytest.mark.parametrize("label", ["", "a__b", "_a", "a_", "a b", "ä", "a.b", "__"])
def test_a_label_that_would_make_names_unclear_is_refused(label: str) -> None:
    """It says what a label may hold."""
    with pytest.raises(ValueError, match="is no label: expected letters"):
        Orchestrator().add_driver(Leaf(), label=label)


def test_labels_are_unique_and_can_be_freed() -> None:
    """A removed driver is returned; an unknown label is nobody."""
    leaf = Leaf()
    host = Orchestrator({"a-1": leaf})
    with pytest.raises(ValueError, match="the label 'a-1' is taken"):
        host.add_driver(Leaf(), label="a-1")
    assert host.remove_driver("a-1") is leaf
    assert host.remove_driver("a-1") is None
    assert (host.labels, names(host)) == ((), [])


def test_drivers_that_hold_each_other_are_refused() -> None:
    """A call would never end."""
    inner = Orchestrator()
    outer = Orchestrator({"inner": inner})
    for driver in (inner, outer):
        with pytest.raises(ValueError, match="in a circle"):
            inner.add_driver(driver, label="again")


def test_what_a_child_hides_is_hidden_above() -> None:
    """And cannot be called from there."""
    leaf = Leaf()
    host = Orchestrator({"a": leaf, "b": Leaf(tools=[ECHO])})
    leaf.add_middleware(Hiding("fail"))
    assert names(host) == ["a__echo", "b__echo"]
    with pytest.raises(UnknownToolError):
        host.execute_tool("a__fail", {})


def test_an_orchestrator_shows_its_own_capabilities() -> None:
    """Whatever its children can do."""
    assert Orchestrator.meta.capabilities[-1] == "healthcheck"
    assert isinstance(Orchestrator(), SupportsHealthcheck | SupportsToolMiddleware)


class Ill(Leaf, SupportsHealthcheck):
    """Answers with what it is given, or raises."""

    def __init__(self, health: Health | Exception) -> None:
        super().__init__()
        self.health = health

    def healthcheck(self) -> Health:
        """As told."""
        if isinstance(self.health, Exception):
            raise self.health
        return self.health


def test_health_is_that_of_the_worst_child() -> None:
    """Children that cannot tell do not count; none is ok; one that raises is an error with its reason."""
    assert Orchestrator({"a": Leaf()}).healthcheck() == Health(HealthStatus.OK)
    ranks = [HealthStatus.OK, HealthStatus.UNKNOWN, HealthStatus.WARNING, HealthStatus.ERROR]
    for rank, status in enumerate(ranks):
        children = {f"c{i}": Ill(Health(each, "so")) for i, each in enumerate(ranks[: rank + 1])}
        assert Orchestrator({**children, "leaf": Leaf()}).healthcheck().status is status
    health = Orchestrator({"in": Orchestrator({"a": Ill(OSError("no disk"))})}).healthcheck()
    assert (health.status, health.detail) == (HealthStatus.ERROR, "in: a: OSError: no disk")
    assert health.parts["in"].parts["a"].status is HealthStatus.ERROR


def test_a_repeated_middleware_is_told_from_both_sides(caplog: pytest.LogCaptureFixture) -> None:
    """When the driver is added, and when the middleware is; two of a kind are no repeat."""
    shared = ToolMiddleware()
    leaf = Leaf(middleware=[ToolMiddleware()])
    inner = Orchestrator({"leaf": leaf})
    host = Orchestrator({"in": inner}, middleware=[ToolMiddleware()])
    assert caplog.records == []
    leaf.add_middleware(shared)
    with caplog.at_level(logging.WARNING):
        host.add_middleware(Linked(shared, "s"))
        host.add_driver(inner, label="more")
    assert ["'in'" in caplog.records[0].getMessage(), "'more'" in caplog.records[1].getMessage()] == [True, True]


class Foreign(BareLeaf, SupportsToolMiddleware):
    """A driver of somebody else that has a list of its own making."""

    @property
    def middleware(self) -> tuple[ToolMiddleware, ...]:
        """Nothing that can be seen."""
        return ()

    def add_middleware(self, middleware: ToolMiddleware | Linked) -> None:
        """Takes none."""

    def offered_tools(self) -> list[Any]:
        """One of its tools."""
        return [ECHO]

    def invoke_tool(self, tool_name: str, arguments: Arguments) -> Any:
        """Marked."""
        return f"listed {self.execute_tool(tool_name, dict(arguments))}"

    async def invoke_tool_async(self, tool_name: str, arguments: Arguments) -> Any:
        """Marked."""
        return f"listed {self.execute_tool(tool_name, dict(arguments))}"


def test_a_foreign_driver_is_reached_through_its_own_list() -> None:
    """The contract is enough, whoever implements it; one without a list is reached as it is."""
    host = Orchestrator({"f": Foreign()})
    assert names(host) == ["echo"]
    assert host.invoke_tool("echo", {"text": "hi"}) == "listed hi"
    assert asyncio.run(host.invoke_tool_async("echo", {"text": "hi"})) == "listed hi"
    assert invoke(BareLeaf(), "echo", {"text": "hi"}) == "hi"
    assert asyncio.run(invoke_async(BareLeaf(), "echo", {"text": "hi"})) == "hi"


def test_children_come_and_go_while_threads_call() -> None:
    """A call ends with its result or as unknown; the list is never half made."""
    host = Orchestrator({"a": Leaf(tools=[ECHO]), "b": Leaf(tools=[ECHO])})
    stop, answers = threading.Event(), set()

    def calling() -> None:
        while not stop.is_set():
            for name in ("a__echo", "c__echo"):
                try:
                    answers.add(host.invoke_tool(name, {"text": name}))
                except UnknownToolError:
                    answers.add("unknown")

    threads = [threading.Thread(target=calling) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        host.add_driver(Leaf(tools=[ECHO]), label="c")
        host.remove_driver("c")
    stop.set()
    for thread in threads:
        thread.join(20)
    assert answers <= {"a__echo", "c__echo", "unknown"}
    assert "a__echo" in answers


@pytest.mark.parametrize("several", [False, True])
def test_names_that_no_api_takes_are_shortened_and_still_reach_their_tool(several: bool) -> None:
    """Too long or with odd characters, alike but for their ends; the same names each time, also before any listing."""
    odd = ["x" * 70 + "1", "x" * 70 + "2", "mail.send now", "mail/send now", "é", "echo"]

    def host() -> Orchestrator:
        leaf = Leaf(tools=[Tool(name, name) for name in odd], act=lambda name, arguments: name)
        return Orchestrator({"inner": Orchestrator({"a": leaf, **({"b": Leaf()} if several else {})}), "z": Leaf()})

    driver = host()
    offered = [name for name in names(driver) if name.startswith("inner__")][: len(odd)]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in offered)
    assert len(set(names(driver))) == len(names(driver))
    assert [driver.invoke_tool(name, {}) for name in offered] == odd
    assert [driver.leaf_name(name) for name in offered] == odd
    assert [host().execute_tool(name, {}) for name in offered] == odd


def test_a_label_leaves_room_for_names() -> None:
    """The limit is in the message; what is no text is no label."""
    host = Orchestrator({"a" * 32: Leaf()})
    with pytest.raises(ValueError, match="has 33 characters: 32 at most leave room for names"):
        host.add_driver(Leaf(), label="a" * 33)
    label: Any = 5
    with pytest.raises(ValueError, match="5 is no label"):
        host.add_driver(Leaf(), label=label)


def test_a_child_that_lists_nonsense_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """With or without a list of its own; the log says what it listed."""

    class Odd(BareLeaf):
        def list_tools(self) -> Any:
            return None

    leaf = Leaf()
    leaf.tools = [ECHO, ECHO]
    assert names(Orchestrator({"odd": Odd(), "twice": leaf, "b": Leaf(tools=[ECHO])})) == ["b__echo"]
    assert "Odd.list_tools returned None" in caplog.text
    assert "Leaf.list_tools names 'echo' more than once" in caplog.text
