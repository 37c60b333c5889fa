"""Consent is bound to what runs: a change further in than the question is asked about before a driver runs the tool."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from interpose.concerns.permission.contract import ConsentError
from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.drivers import Tool
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.stages import Context, ToolCall
from interpose.contracts.tools import Arguments, Flow, FlowMiddleware, ToolMiddleware
from interpose.drivers.driver import BaseDriver
from interpose.testing.fakes import FakePolicy, allow, refuse
from tests.concerns.calls import Run


class Leaf(BaseDriver):
    """One tool that writes down its runs."""

    meta = DriverMeta("leaf", "Leaf", "1.0.0")

    def __init__(self, *, middleware: Sequence[ToolMiddleware]) -> None:
        super().__init__(middleware=middleware)
        self.runs: list[dict[str, Any]] = []

    def list_tools(self) -> list[Tool]:
        """The tool."""
        return [Tool("t", "A tool")]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Writes down, and answers."""
        self.runs.append(arguments)
        return "out"


class Person:
    """Says yes to the listed values of x."""

    def __init__(self, *yes: int) -> None:
        self.yes = yes
        self.asked: list[int] = []

    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> bool:
        """Whether it is one of them."""
        self.asked.append(arguments["x"])
        return arguments["x"] in self.yes


class Setting(FlowMiddleware):
    """Goes on once for each value of x, and returns all results."""

    def __init__(self, *values: int) -> None:
        self.values = values

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """The results."""
        results = []
        for value in self.values:
            result = yield tool_name, {"x": value}
            results.append(result)
        return results


def invoke(driver: Leaf) -> Any:
    """A sync call."""
    return driver.invoke_tool("t", {"x": 1})


def invoke_async(driver: Leaf) -> Any:
    """An async call."""
    return asyncio.run(driver.invoke_tool_async("t", {"x": 1}))


both = pytest.mark.parametrize("run", [invoke, invoke_async])


@both
def test_a_change_further_in_is_asked_about(run: Run) -> None:
    """The person sees the form that would run, and nothing runs without their yes to it."""
    person = Person(1)
    driver = Leaf(middleware=[PermissionMiddleware(consent=person), Setting(2)])
    (denied,) = run(driver)
    assert "permission_denied" in denied
    assert (person.asked, driver.runs) == ([1, 2], [])

    willing = Person(1, 2)
    other = Leaf(middleware=[PermissionMiddleware(consent=willing), Setting(2, 2)])
    assert run(other) == ["out", "out"]
    assert (willing.asked, other.runs) == ([1, 2], [{"x": 2}, {"x": 2}])


@both
def test_a_denied_change_cannot_be_tried_again(run: Run) -> None:
    """A policy that allows it does not make up for the no, however often it is tried."""
    person = Person(1)
    policy = PolicyMiddleware(FakePolicy(), context=Context("process", "s"))
    driver = Leaf(middleware=[policy, PermissionMiddleware(consent=person), Setting(2, 2, 1)])
    first, second, third = run(driver)
    assert "permission_denied" in first
    assert "permission_denied" in second
    assert third == "out"
    assert (person.asked, driver.runs) == ([1, 2, 2], [{"x": 1}])


@both
def test_the_policy_judges_a_change_before_the_person_is_asked(run: Run) -> None:
    """What it refuses, nobody is asked about."""
    person = Person(1, 2)
    policy = PolicyMiddleware(
        FakePolicy(
            lambda point: refuse(point) if isinstance(point, ToolCall) and point.arguments["x"] == 2 else allow(point)
        ),
        context=Context("process", "s"),
    )
    driver = Leaf(middleware=[policy, PermissionMiddleware(consent=person), Setting(2)])
    assert "t was refused by fake: no" in str(run(driver))
    assert (person.asked, driver.runs) == ([1], [])


@both
def test_neither_the_judged_nor_the_consented_form_runs_alone(run: Run) -> None:
    """Judged as 1 and consented to as 2: what runs needs both, in one form."""
    person = Person(2)
    policy = FakePolicy()
    driver = Leaf(
        middleware=[
            PolicyMiddleware(policy, context=Context("process", "s")),
            Setting(2),
            PermissionMiddleware(consent=person),
            Setting(1, 2),
        ]
    )
    ((back, kept),) = run(driver)
    assert "permission_denied" in back
    assert kept == "out"
    assert (person.asked, driver.runs) == ([2, 1], [{"x": 2}])
    judged = [point.arguments["x"] for point in policy.points if isinstance(point, ToolCall)]
    assert judged == [1, 2]


@both
def test_every_handler_on_the_way_is_asked_about_a_change(run: Run) -> None:
    """The yes of one is not the yes of another."""
    one, two = Person(1, 2), Person(1)
    driver = Leaf(middleware=[PermissionMiddleware(consent=one), PermissionMiddleware(consent=two), Setting(2)])
    (denied,) = run(driver)
    assert "permission_denied" in denied
    assert (one.asked, two.asked, driver.runs) == ([1, 2], [1, 2], [])


@both
def test_a_retry_outside_does_not_nag(run: Run) -> None:
    """The same form is asked about once within one call, and every form once."""
    person = Person(1, 2)
    driver = Leaf(middleware=[Setting(1, 2, 1), PermissionMiddleware(consent=person)])
    assert run(driver) == ["out", "out", "out"]
    assert (person.asked, driver.runs) == ([1, 2], [{"x": 1}, {"x": 2}, {"x": 1}])


@both
def test_a_handler_that_fails_at_a_change_denies_it(run: Run) -> None:
    """As at the first question."""

    def once(tool_name: str, arguments: dict[str, Any]) -> bool:
        if arguments["x"] == 2:
            raise LookupError
        return True

    driver = Leaf(middleware=[PermissionMiddleware(consent=once), Setting(2)])
    with pytest.raises(ConsentError, match="failed with LookupError"):
        run(driver)
    assert driver.runs == []


def test_a_denial_and_a_failure_are_told_as_such_to_the_model() -> None:
    """A no is a result; a handler that fails is a failed call; no handler is one without a hint to try again."""
    reply = '{"tool": "t", "arguments": {"x": 1}}'
    denied = Leaf(middleware=[PermissionMiddleware(consent=Person())]).process_llm_response(reply)
    assert (denied.call_executed, denied.tool_calls[0].outcome) == (True, "short_circuited")
    assert "permission_denied" in str(denied.tool_call_result)

    def broken(tool_name: str, arguments: dict[str, Any]) -> bool:
        raise LookupError

    failed = Leaf(middleware=[PermissionMiddleware(consent=broken)]).process_llm_response(reply)
    assert (failed.call_failed, failed.tool_calls[0].outcome) == (True, "failed")
    assert "broken failed with LookupError" in str(failed.call_detail)

    unset = Leaf(middleware=[PermissionMiddleware()]).process_llm_response(reply)
    assert unset.call_failed
    assert "PermissionMiddleware: no consent handler is set" in str(unset.call_detail)
    assert "Do not call it again" in str(unset.retry_prompt)
