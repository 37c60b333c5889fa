"""Tools made elsewhere behind a whole driver."""

import asyncio
from typing import Any

from interpose.contracts.sheet import DriverMeta
from interpose.contracts.tools import without_label
from interpose.drivers.hosted import HostedDriver
from interpose.drivers.orchestrator import Orchestrator
from tests.drivers.making import ECHO, Denying, Hiding, Leaf, Tracing


class Hosting(HostedDriver):
    """Whatever it is given."""

    meta = DriverMeta("test.hosting", "Hosting", "1")


def test_a_list_of_the_hosted_driver_runs() -> None:
    """However it is reached; the tools that it hides stay hidden."""
    denying, hiding = Denying(), Hiding("fail")
    leaf = Leaf(middleware=[denying, hiding])
    driver = Hosting(leaf, {})
    assert driver.offered_tools() == (ECHO,)
    assert driver.invoke_tool("echo", {}) == driver.execute_tool("echo", {}) == "denied"
    assert asyncio.run(driver.invoke_tool_async("echo", {})) == "denied"
    assert asyncio.run(driver.execute_tool_async("echo", {})) == "denied"
    assert (denying.count, leaf.runs) == (4, [])


def test_a_call_keeps_its_id_in_the_inner_list() -> None:
    """So that who judges at both levels sees one call."""
    seen: list[Any] = []

    class Noting(Tracing):
        def on_execute_tool(self, tool_name: str, arguments: Any, call_next: Any) -> Any:
            seen.append(call_next.call.call_id)
            return call_next(tool_name, arguments)

    Hosting(Leaf(middleware=[Noting()]), {"middleware": [Noting()]}).invoke_tool("echo", {}, call_id="c1")
    assert seen == ["c1", "c1"]


def test_the_leaf_of_a_name_is_what_the_innermost_driver_calls_it() -> None:
    """Through hosts and orchestrators; a name that nobody has is itself."""
    host = Orchestrator({"a": Leaf(), "b": Orchestrator({"c": Leaf(), "d": Leaf()})})
    for driver in (host, Hosting(host, {})):
        names = ("a__echo", "b__d__fail", "b__x__echo", "nobody", "x__echo")
        assert [driver.leaf_name(name) for name in names] == ["echo", "fail", "x__echo", "nobody", "x__echo"]


def test_without_label_is_for_whoever_has_a_name_alone() -> None:
    """The part behind the last separator; never nothing."""
    assert [without_label(name) for name in ("a__b__echo", "echo", "a__", "__echo")] == ["echo", "echo", "a__", "echo"]
