"""What runs is what was judged: a call that is changed inside of the policy is judged once more."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.stages import Annotation, Context, Point, ToolCall, ToolResult
from interpose.contracts.tools import Arguments, CallNext, ToolMiddleware
from interpose.contracts.verdict import Verdict
from interpose.drivers.driver import BaseDriver
from interpose.testing.fakes import FakePolicy, allow, refuse
from tests.drivers.making import Doing, Leaf, Rewriting

CONTEXT = Context("process", "s1", "/w")

Run = Callable[[BaseDriver, str, Mapping[str, Any]], Any]


def run_sync(driver: BaseDriver, tool_name: str, arguments: Mapping[str, Any]) -> Any:
    """One sync call."""
    return driver.invoke_tool(tool_name, arguments)


def run_async(driver: BaseDriver, tool_name: str, arguments: Mapping[str, Any]) -> Any:
    """One async call."""
    return asyncio.run(driver.invoke_tool_async(tool_name, arguments))


both = pytest.mark.parametrize("run", [run_sync, run_async])


def judged_by(policy: FakePolicy, *inner: ToolMiddleware, **settings: Any) -> Leaf:
    """A driver with the policy outermost."""
    return Leaf(middleware=[PolicyMiddleware(policy, context=CONTEXT), *inner], **settings)


def calls_of(policy: FakePolicy) -> list[tuple[str, dict[str, Any]]]:
    """What was judged before it ran."""
    return [(point.tool_name, dict(point.arguments)) for point in policy.points if isinstance(point, ToolCall)]


def no_evil(point: Point) -> Verdict:
    """Refuses calls whose text is evil."""
    if isinstance(point, ToolCall) and point.arguments.get("text") == "evil":
        return refuse(point, "evil is not said", "no-evil")
    return allow(point)


@both
def test_an_unchanged_call_is_judged_once(run: Run) -> None:
    """One judgement before, one about the result."""
    policy = FakePolicy()
    driver = judged_by(policy, Rewriting(lambda name, arguments: (name, dict(arguments))))
    assert run(driver, "echo", {"text": "hi"}) == "hi"
    assert [point.stage for point in policy.points] == ["tool.call", "tool.result"]


@both
def test_a_changed_call_is_judged_once_more_and_runs(run: Run) -> None:
    """Under the same id, renamed too; the result is judged as that of what ran."""
    policy = FakePolicy()
    driver = judged_by(policy, Rewriting(lambda name, arguments: ("echo", {"text": "other"})))
    assert run(driver, "fail", {}) == "other"
    assert calls_of(policy) == [("fail", {}), ("echo", {"text": "other"})]
    result = policy.points[-1]
    assert isinstance(result, ToolResult)
    assert (result.tool_name, result.arguments, result.output) == ("echo", {"text": "other"}, "other")
    assert len({point.call_id for point in policy.points if isinstance(point, ToolCall | ToolResult)}) == 1


@both
def test_a_changed_call_that_is_refused_does_not_run(run: Run) -> None:
    """The refusal stands in the place of the result."""
    driver = judged_by(FakePolicy(no_evil), Rewriting(lambda name, arguments: (name, {"text": "evil"})))
    assert run(driver, "echo", {"text": "good"}) == "echo was refused by no-evil: evil is not said"
    assert driver.runs == []


@both
def test_a_changed_call_that_would_be_changed_again_is_refused_with_both_forms(run: Run) -> None:
    """Two who rewrite each other's words do not go on for ever."""

    def patching(point: Point) -> Verdict:
        if isinstance(point, ToolCall) and point.arguments["text"] != "mine":
            return Verdict("a", point.stage, "patched", arguments={"text": "mine"})
        return allow(point)

    driver = judged_by(FakePolicy(patching), Rewriting(lambda name, arguments: (name, {"text": "theirs"})))
    answer = run(driver, "echo", {"text": "first"})
    assert 'judged as echo {"text": "mine"}' in answer
    assert 'changed to echo {"text": "theirs"}, wanted as {"text": "mine"}' in answer
    assert driver.runs == []


@both
def test_late_rewrite_lets_it_run_unjudged(run: Run) -> None:
    """Whoever builds the driver may say that the inner list is trusted."""
    policy = FakePolicy(no_evil)
    driver = judged_by(policy, Rewriting(lambda name, arguments: (name, {"text": "evil"})), late_rewrite=True)
    assert run(driver, "echo", {"text": "good"}) == "evil"
    assert calls_of(policy) == [("echo", {"text": "good"})]


@both
def test_annotations_of_the_second_judgement_count(run: Run) -> None:
    """They stand behind those of the first."""

    def noting(point: Point) -> Verdict:
        if not isinstance(point, ToolCall):
            return allow(point)
        return Verdict("a", point.stage, "allowed", annotations=(Annotation("n", "info", point.arguments["text"]),))

    driver = judged_by(FakePolicy(noting), Rewriting(lambda name, arguments: (name, {"text": "b"})))
    assert run(driver, "echo", {"text": "a"}) == "b\n\n[interpose:info] a\n[interpose:info] b"


def test_a_retry_inside_is_judged_as_what_it_is() -> None:
    """Each form that runs was judged right before, also when a later one goes back to the first."""

    def twice(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        call_next(tool_name, {"text": "b"})
        return call_next(tool_name, arguments)

    policy = FakePolicy()
    driver = judged_by(policy, Doing(twice))
    assert driver.invoke_tool("echo", {"text": "a"}) == "a"
    assert calls_of(policy) == [("echo", {"text": t}) for t in ("a", "b", "a")]
    assert [arguments["text"] for _, arguments in driver.runs] == ["b", "a"]


@both
def test_a_digest_without_a_judge_refuses_what_differs(run: Run) -> None:
    """Somebody else's policy wrote the digest and offers no second judgement: then nothing changed may run."""

    def foreign(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        call_next.call.judged_digest = "of something else"
        return call_next(tool_name, arguments)

    driver = Leaf(middleware=[Doing(foreign)])
    assert "nobody can judge it again" in run(driver, "echo", {"text": "a"})
    assert driver.runs == []


def test_a_policy_that_fails_at_the_second_judgement_refuses() -> None:
    """Fails closed, as at the first."""

    def failing(point: Point) -> Verdict:
        if isinstance(point, ToolCall) and point.arguments["text"] == "b":
            raise OSError("gone")
        return allow(point)

    driver = judged_by(FakePolicy(failing), Rewriting(lambda name, arguments: (name, {"text": "b"})))
    assert "could not judge" in driver.invoke_tool("echo", {"text": "a"})
    assert driver.runs == []


@both
def test_data_that_a_handler_edits_is_judged_once_more(run: Run) -> None:
    """A handler that changes an object in place, in place of a patch, has made another call of it."""

    def editing(point: Point) -> Verdict:
        if isinstance(point, ToolCall):
            evil = "evil" in point.arguments["text"]
            point.arguments["text"].append("evil")
            return refuse(point, "evil is not said", "no-evil") if evil else allow(point)
        return allow(point)

    policy = FakePolicy(editing)
    driver, given = judged_by(policy), deque(["hi"])
    assert "evil is not said" in run(driver, "echo", {"text": given})
    assert (driver.runs, given) == ([], deque(["hi"]))
