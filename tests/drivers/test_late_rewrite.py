"""What runs is what was judged: a call that is changed inside of the policy is judged once more."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.stages import Annotation, Context, Point, ToolCall, ToolResult
from interpose.contracts.tools import Arguments, CallNext, ToolMiddleware
from interpose.contracts.verdict import Verdict
from interpose.drivers.driver import BaseDriver
from interpose.drivers.hosted import HostedDriver
from interpose.drivers.orchestrator import Orchestrator
from interpose.testing.fakes import FakePolicy, allow, refuse
from tests.drivers.making import Doing, Leaf, Rewriting
from tests.drivers.test_tree import Composite, WaitingComposite

CONTEXT = Context("process", "s1", "/w")


class Hosting(HostedDriver):
    """Tools behind a list."""

    meta = DriverMeta("test.hosting", "Hosting", "1")


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
        call_next.call.judged(foreign, "of something else")
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


def evil_inside() -> Rewriting:
    """Makes any call one of `echo` that says evil."""
    return Rewriting(lambda name, arguments: ("echo", {"text": "evil"}))


def below(leaf: Leaf, policy: FakePolicy, shape: str) -> tuple[BaseDriver, str]:
    """A driver with the policy in its list and the leaf somewhere below, and what it calls the leaf's `echo`."""
    judge = PolicyMiddleware(policy, context=CONTEXT)
    match shape:
        case "one":
            return Orchestrator({"a": leaf}, middleware=[judge]), "echo"
        case "several":
            return Orchestrator({"a": leaf, "b": Leaf()}, middleware=[judge]), "a__echo"
        case "nested":
            inner = Orchestrator({"a": leaf, "b": Leaf()})
            return Orchestrator({"x": inner, "y": Leaf()}, middleware=[judge]), "x__a__echo"
        case "hosted":
            return Hosting(leaf, {"middleware": [judge]}), "echo"
        case "composite":
            return Composite([leaf], [judge]), "c0_echo"
        case "waiting":
            return WaitingComposite([leaf], [judge]), "c0_echo"
        case _:
            inner = Orchestrator({"a": Hosting(leaf, {}), "b": Leaf()})
            return Orchestrator({"x": Composite([inner], []), "y": Leaf()}, middleware=[judge]), "x__c0_a__echo"


shapes = pytest.mark.parametrize("shape", ["one", "several", "nested", "hosted", "composite", "waiting", "deep"])


@both
@shapes
def test_a_change_in_the_list_of_a_driver_below_is_judged_above(run: Run, shape: str) -> None:
    """By the name that the policy knows the tool by; what it refuses does not run."""
    policy, leaf = FakePolicy(no_evil), Leaf(middleware=[evil_inside()])
    driver, name = below(leaf, policy, shape)
    assert "evil is not said" in run(driver, name, {"text": "good"})
    assert leaf.runs == []
    assert calls_of(policy) == [(name, {"text": "good"}), (name, {"text": "evil"})]


@both
@shapes
def test_an_unchanged_call_to_a_driver_below_is_judged_once(run: Run, shape: str) -> None:
    """Another name on the way is no change."""
    policy, leaf = FakePolicy(no_evil), Leaf(middleware=[Rewriting(lambda name, arguments: (name, {**arguments}))])
    driver, name = below(leaf, policy, shape)
    assert run(driver, name, {"text": "good"}) == "good"
    assert calls_of(policy) == [(name, {"text": "good"})]


@both
@pytest.mark.parametrize(
    ("shape", "known"),
    [("one", "fail"), ("several", "a__fail"), ("nested", "x__a__fail"), ("hosted", "fail"), ("composite", "fail")],
)
def test_a_call_renamed_below_is_judged_by_the_name_above(run: Run, shape: str, known: str) -> None:
    """A driver that says nothing of its names has the tool judged by the name that it has below."""
    policy, leaf = FakePolicy(), Leaf(middleware=[Rewriting(lambda _, arguments: ("fail", arguments))])
    leaf.act = lambda tool_name, _: tool_name
    driver, name = below(leaf, policy, shape)
    assert run(driver, name, {"text": "good"}) == "fail"
    assert [tool_name for tool_name, _ in calls_of(policy)] == [name, known]


@both
def test_a_change_below_is_judged_by_every_policy_on_the_way(run: Run) -> None:
    """The one above first; a no of either is enough."""
    strict, mild = FakePolicy(no_evil), FakePolicy()
    for outer, inner in ((strict, mild), (mild, strict)):
        leaf = judged_by(inner, evil_inside())
        driver = Orchestrator({"a": leaf, "b": Leaf()}, middleware=[PolicyMiddleware(outer, context=CONTEXT)])
        assert "evil is not said" in run(driver, "a__echo", {"text": "good"})
        assert leaf.runs == []
    assert calls_of(mild) == [("echo", {"text": "good"}), ("a__echo", {"text": "good"}), ("a__echo", {"text": "evil"})]


@both
def test_a_change_below_is_asked_about_above(run: Run) -> None:
    """A yes to one form is none to another, and one person is asked about each form once."""
    asked: list[tuple[str, str]] = []

    def person(tool_name: str, arguments: dict[str, Any]) -> bool:
        asked.append((tool_name, arguments["text"]))
        return bool(arguments["text"] != "evil")

    leaf = Leaf(middleware=[evil_inside(), PermissionMiddleware(consent=lambda *_: True)])
    driver = Orchestrator({"a": leaf, "b": Leaf()}, middleware=[PermissionMiddleware(consent=person)])
    assert "permission_denied" in run(driver, "a__echo", {"text": "good"})
    assert (leaf.runs, asked) == ([], [("a__echo", "good"), ("a__echo", "evil")])


@both
@pytest.mark.parametrize("kind", [Composite, WaitingComposite])
def test_what_a_driver_makes_of_a_call_by_itself_is_its_own_doing(run: Run, kind: type[Composite]) -> None:
    """Its tool was judged; what the list of a part makes of its call is judged as the part's tool."""

    class Louder(kind):  # type: ignore[valid-type, misc]
        """Says it louder."""

        def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
            """The part's tool."""
            return super().execute_tool(tool_name, {"text": f"{arguments['text']}!"})

        async def execute_tool_async(self, tool_name: str, arguments: dict[str, Any]) -> Any:
            """Awaited where the parts are."""
            if kind is Composite:
                return await BaseDriver.execute_tool_async(self, tool_name, arguments)
            return await super().execute_tool_async(tool_name, {"text": f"{arguments['text']}!"})

    policy = FakePolicy(no_evil)
    assert run(Louder([Leaf()], [PolicyMiddleware(policy, context=CONTEXT)]), "c0_echo", {"text": "good"}) == "good!"
    assert calls_of(policy) == [("c0_echo", {"text": "good"})]

    leaf = Leaf(middleware=[evil_inside()])
    changed = Louder([leaf], [PolicyMiddleware(policy, context=CONTEXT)])
    assert "evil is not said" in run(changed, "c0_echo", {"text": "good"})
    assert (calls_of(policy)[-1], leaf.runs) == (("echo", {"text": "evil"}), [])


@both
def test_late_rewrite_holds_for_the_list_of_its_own_driver(run: Run) -> None:
    """A driver below cannot say for the policy above it that its list is trusted; the driver of that policy can."""
    leaf = Leaf(middleware=[evil_inside()], late_rewrite=True)
    driver, name = below(leaf, FakePolicy(no_evil), "several")
    assert "evil is not said" in run(driver, name, {"text": "good"})

    judge = PolicyMiddleware(FakePolicy(no_evil), context=CONTEXT)
    trusting = Orchestrator({"a": leaf, "b": Leaf()}, middleware=[judge], late_rewrite=True)
    assert run(trusting, "a__echo", {"text": "good"}) == "evil"
