"""Tools made elsewhere behind a whole driver."""

import asyncio
from typing import Any

import pytest

from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.tools import without_label
from interpose.drivers.driver import BaseDriver
from interpose.drivers.hosted import HostedDriver
from interpose.drivers.orchestrator import Orchestrator
from tests.drivers.making import ECHO, Denying, Hiding, Leaf, Rewriting, Tracing


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


class Asking:
    """A consent handler that always agrees, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> bool:
        """Yes."""
        self.asked.append(tool_name)
        return True


def run_async(driver: BaseDriver, name: str) -> Any:
    """On an event loop."""
    return asyncio.run(driver.invoke_tool_async(name, {"text": "x"}))


def run_sync(driver: BaseDriver, name: str) -> Any:
    """In this thread."""
    return driver.invoke_tool(name, {"text": "x"})


@pytest.mark.parametrize("run", [run_sync, run_async])
def test_one_handler_in_lists_above_each_other_is_asked_once_about_one_call(run: Any) -> None:
    """Whatever the levels call the tool; about another call, or a changed one, it is asked anew."""
    asking = Asking()

    def permission() -> PermissionMiddleware:
        return PermissionMiddleware(consent=asking)

    leaf = Leaf(middleware=[permission()])
    inner = Orchestrator({"a": leaf, "b": Leaf()}, middleware=[permission()])
    host = Orchestrator({"in": Hosting(inner, {"middleware": [permission()]}), "z": Leaf()}, middleware=[permission()])
    assert run(host, "in__a__echo") == "x"
    assert asking.asked == ["in__a__echo"]
    run(host, "in__a__echo")
    assert asking.asked == ["in__a__echo"] * 2


@pytest.mark.parametrize("run", [run_sync, run_async])
def test_a_yes_to_one_childs_tool_is_none_to_anothers(run: Any) -> None:
    """Also where both call it the same, and where a middleware in between renames or edits the call."""
    asking = Asking()
    changes: list[tuple[str, Any]] = [
        ("b__echo", {"text": "x"}),
        ("a__echo", {"text": "other"}),
        ("a__fail", {"text": "x"}),
    ]
    for name, arguments in changes:
        asking.asked.clear()
        changing = Rewriting(lambda _, __, to=name, given=arguments: (to, given))  # type: ignore[misc]
        children = {label: Leaf(middleware=[PermissionMiddleware(consent=asking)], act=ok) for label in "ab"}
        host = Orchestrator(children, middleware=[PermissionMiddleware(consent=asking), changing])
        assert run(host, "a__echo") == "ok"
        assert asking.asked == ["a__echo", name]

    asking.asked.clear()
    inside = Rewriting(lambda _, arguments: ("fail", arguments))
    leaf = Leaf(middleware=[inside, PermissionMiddleware(consent=asking)], act=ok)
    assert run(Orchestrator({"a": leaf}, middleware=[PermissionMiddleware(consent=asking)]), "echo") == "ok"
    assert asking.asked == ["echo", "fail"]


def ok(tool_name: str, arguments: dict[str, Any]) -> str:
    """What every tool here says."""
    return "ok"
