"""The policy around a tool call, in a real chain, sync and async."""

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from interpose.chain.chain import Chain
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import ToolError
from interpose.contracts.stages import Annotation, Context, Point, ToolCall, ToolResult
from interpose.contracts.tools import Call
from interpose.contracts.verdict import Refusal, Verdict
from interpose.testing.fakes import FakePolicy, allow, refuse

CONTEXT = Context("process", "s1", "/w")
NOTE = Annotation("noter", "warn", "look out")
LATER = Annotation("noter", "info", "and more")


class Tool:
    """Counts its runs and answers with what it is told to."""

    def __init__(self, result: Any = "out") -> None:
        self.result = result
        self.runs: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """The result, or the exception."""
        self.runs.append((tool_name, arguments))
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


Run = Callable[..., Any]


def run_sync(policy: FakePolicy, tool: Tool, call: Call | None = None, **options: Any) -> Any:
    """One sync call of the tool `t` with {"x": 1}."""
    chain = Chain([PolicyMiddleware(policy, **({"context": CONTEXT} | options))])
    return chain.call("t", {"x": 1}, tool, call)


def run_async(policy: FakePolicy, tool: Tool, call: Call | None = None, **options: Any) -> Any:
    """One async call of the same."""

    async def terminal(tool_name: str, arguments: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return tool(tool_name, arguments)

    chain = Chain([PolicyMiddleware(policy, **({"context": CONTEXT} | options))])
    return asyncio.run(chain.call_async("t", {"x": 1}, terminal, call))


both = pytest.mark.parametrize("run", [run_sync, run_async])


def by_stage(call: Callable[[Point], Verdict] = allow, result: Callable[[Point], Verdict] = allow) -> FakePolicy:
    """A policy that answers calls and results differently."""
    return FakePolicy(lambda point: call(point) if point.stage == "tool.call" else result(point))


def verdict(outcome: Any, **fields: Any) -> Callable[[Point], Verdict]:
    """Answers every point with this."""
    return lambda point: Verdict("a", point.stage, outcome, **fields)


@both
def test_an_allowed_call_is_judged_twice_and_runs_once(run: Run) -> None:
    """Both points say who, what and which call; the result is untouched."""
    policy, tool, call = FakePolicy(), Tool(), Call("c1")
    assert run(policy, tool, call) == "out"
    assert tool.runs == [("t", {"x": 1})]
    asked, came_back = policy.points
    assert asked == ToolCall(CONTEXT, "c1", "t", {"x": 1})
    assert isinstance(came_back, ToolResult)
    assert (came_back.context, came_back.call_id, came_back.tool_name) == (CONTEXT, "c1", "t")
    assert (came_back.arguments, came_back.output, came_back.is_error) == ({"x": 1}, "out", False)
    assert came_back.duration_ms is not None
    assert came_back.duration_ms >= 0
    assert call.judged_digest == call_digest("t", {"x": 1})


@both
def test_a_refused_call_does_not_run(run: Run) -> None:
    """The result is a sentence that names who refused and why; nothing counts as judged."""
    tool, call = Tool(), Call("")
    policy = FakePolicy(lambda point: refuse(point, "deletes a tree", "no-rm"))
    assert run(policy, tool, call) == "t was refused by no-rm: deletes a tree"
    assert tool.runs == []
    assert len(policy.points) == 1
    assert call.judged_digest is None


@both
def test_a_patched_call_runs_as_patched(run: Run) -> None:
    """The tool, the result's point and the digest have the judged form."""
    tool, call = Tool(), Call("")
    policy = by_stage(verdict("patched", arguments={"x": 2}))
    assert run(policy, tool, call) == "out"
    assert tool.runs == [("t", {"x": 2})]
    assert isinstance(policy.points[1], ToolResult)
    assert policy.points[1].arguments == {"x": 2}
    assert call.judged_digest == call_digest("t", {"x": 2})


@both
def test_annotations_stand_below_a_text(run: Run) -> None:
    """Those of the call travel with the result's point; what its verdict lists is written."""
    policy = by_stage(verdict("allowed", annotations=(NOTE,)), verdict("allowed", annotations=(NOTE, LATER)))
    assert run(policy, Tool()) == "out\n\n[interpose:warn] look out\n[interpose:info] and more"
    assert isinstance(policy.points[1], ToolResult)
    assert policy.points[1].annotations == (NOTE,)


@both
@pytest.mark.parametrize("result", [{"a": [1, None]}, None, 7, {1: {2}}])
def test_a_result_that_is_no_text_stays_as_it_is(run: Run, result: Any) -> None:
    """The policy sees its JSON; annotations are for the journal alone."""
    policy = by_stage(result=verdict("allowed", annotations=(NOTE,)))
    assert run(policy, Tool(result)) is result
    assert isinstance(policy.points[1], ToolResult)
    assert policy.points[1].output == json.dumps(result, default=str)


def test_a_result_that_json_cannot_say_is_judged_by_its_repr() -> None:
    """A circle or an odd key does not stop the call after the tool has run."""
    circle: dict[Any, Any] = {(1, 2): 3}
    policy = FakePolicy()
    assert run_sync(policy, Tool(circle)) is circle
    assert isinstance(policy.points[1], ToolResult)
    assert policy.points[1].output == "{(1, 2): 3}"


@both
def test_a_refused_result_is_withheld(run: Run) -> None:
    """The reason stands in its place, whatever kind of result it was, and the annotations below it."""
    policy = by_stage(result=verdict("refused", refusal=Refusal("secrets", "holds a key"), annotations=(NOTE,)))
    assert run(policy, Tool({"key": "k"})) == (
        "the output of t was withheld by secrets: holds a key\n\n[interpose:warn] look out"
    )


@both
@pytest.mark.parametrize(
    ("error", "text"), [(ValueError("no such file"), "no such file"), (ValueError(), "ValueError")]
)
def test_what_the_tool_raises_is_judged_and_raised_on(run: Run, error: ValueError, text: str) -> None:
    """The point is an error with the exception's text; the very exception goes on."""
    policy = FakePolicy()
    with pytest.raises(ValueError, match=r"^(no such file)?$") as caught:
        run(policy, Tool(error))
    assert caught.value is error
    assert isinstance(policy.points[1], ToolResult)
    assert (policy.points[1].output, policy.points[1].is_error) == (text, True)


@both
def test_an_interruption_is_not_judged(run: Run) -> None:
    """Who stops the program is not kept waiting."""
    policy = FakePolicy()
    with pytest.raises(KeyboardInterrupt):
        run(policy, Tool(KeyboardInterrupt()))
    assert len(policy.points) == 1


def raising(point: Point) -> Verdict:
    """A broken policy."""
    raise LookupError("with a secret in it")


NONSENSE: list[tuple[Any, str]] = [
    (raising, "it failed with LookupError"),
    (lambda point: None, "it answered with NoneType, not a verdict"),
    (verdict("refused"), "its verdict is refused with refusal None"),
    (verdict("allowed", refusal=Refusal("h", "r")), "its verdict is allowed with refusal Refusal"),
    (verdict("patched"), "its verdict is patched with arguments None"),
    (verdict("allowed", arguments={}), "its verdict is allowed with arguments {}"),
]


@both
@pytest.mark.parametrize(("broken", "problem"), NONSENSE)
def test_a_broken_policy_refuses(run: Run, broken: Any, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    """The tool does not run, and the text names the policy and not what it held."""
    tool = Tool()
    with caplog.at_level(logging.CRITICAL):
        text = run(FakePolicy(broken), tool)
    assert text.startswith("t was refused by FakePolicy: the policy could not judge: ")
    assert problem in text
    assert "secret" not in text
    assert tool.runs == []


@both
def test_a_policy_that_breaks_on_the_way_back_withholds(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """The call's annotations stay; what the tool raised is withheld alike."""
    policy = by_stage(verdict("allowed", annotations=(NOTE,)), raising)
    assert run(policy, Tool()).startswith("the output of t was withheld by FakePolicy: the policy could not judge")
    assert run(policy, Tool()).endswith("[interpose:warn] look out")
    assert run(policy, Tool(ValueError("mine"))).startswith("the output of t was withheld by FakePolicy")
    assert "FakePolicy failed at tool.result" in caplog.text


@both
def test_judging_that_is_off_lets_pass(run: Run) -> None:
    """`off` is a verdict: the call runs and the result is untouched."""
    assert run(FakePolicy(verdict("off")), Tool()) == "out"


@both
def test_results_can_be_left_alone(run: Run) -> None:
    """With judge_results off there is one point, and the call's annotations are still written."""
    policy = by_stage(verdict("allowed", annotations=(NOTE,)), refuse)
    assert run(policy, Tool(), judge_results=False) == "out\n\n[interpose:warn] look out"
    with pytest.raises(ValueError, match="x"):
        run(policy, Tool(ValueError("x")), judge_results=False)
    assert [point.stage for point in policy.points] == ["tool.call", "tool.call"]


@both
def test_a_list_may_tell_a_refusal_in_its_own_way(run: Run) -> None:
    """A call and a result alike, by a value or an exception; the tool still does not run."""
    told: list[str] = []

    def answering(point: ToolCall | ToolResult, verdict: Verdict) -> Any:
        told.append(point.stage)
        return verdict.refusal

    tool = Tool()
    assert run(FakePolicy(refuse), tool, refused=answering) == Refusal("fake", "no")
    assert tool.runs == []
    assert run(by_stage(result=refuse), tool, refused=answering) == Refusal("fake", "no")
    assert told == ["tool.call", "tool.result"]

    def raising_it(point: ToolCall | ToolResult, verdict: Verdict) -> Any:
        raise PermissionError(point.tool_name)

    with pytest.raises(PermissionError, match="t"):
        run(FakePolicy(refuse), tool, refused=raising_it)
    assert len(tool.runs) == 1


@both
def test_the_context_may_be_asked_for_each_call(run: Run) -> None:
    """A function says who acts; a call without an id gets one, the same at both points."""
    sessions = iter(["s1", "s2"])
    policy, call = FakePolicy(), Call("")
    run(policy, Tool(), call, context=lambda: Context("process", next(sessions)))
    run(policy, Tool(), context=lambda: Context("process", "s3"))
    points = [point for point in policy.points if isinstance(point, ToolCall | ToolResult)]
    assert [point.context.session for point in points] == ["s1", "s1", "s3", "s3"]
    assert points[0].call_id == points[1].call_id == call.call_id != ""
    assert points[0].call_id != points[2].call_id


def test_one_instance_serves_many_chains_and_threads() -> None:
    """64 threads: each call is judged with its own arguments, and each refusal is its own."""
    policy = FakePolicy(
        lambda point: (
            refuse(point, str(point.arguments["n"]))
            if isinstance(point, ToolCall) and point.arguments["n"] % 2
            else allow(point)
        )
    )
    middleware = PolicyMiddleware(policy, context=CONTEXT)
    chains = [Chain([middleware]) for _ in range(4)]
    results: dict[int, Any] = {}
    barrier = threading.Barrier(64)

    def work(number: int) -> None:
        barrier.wait(10)
        results[number] = chains[number % 4].call("t", {"n": number}, lambda name, arguments: f"ran {arguments['n']}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: f"t was refused by fake: {n}" if n % 2 else f"ran {n}" for n in range(64)}


def test_a_cancelled_call_is_not_judged_again() -> None:
    """Cancelling goes through at once, and the tool is cancelled."""
    policy = FakePolicy()
    chain = Chain([PolicyMiddleware(policy, context=CONTEXT)])

    async def work() -> None:
        started = asyncio.Event()

        async def tool(tool_name: str, arguments: dict[str, Any]) -> Any:
            started.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(chain.call_async("t", {}, tool))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert len(policy.points) == 1


def patched(text: str) -> FakePolicy:
    """A policy that puts `text` in the place of every result."""
    return by_stage(result=verdict("patched", text=text, annotations=(NOTE,)))


@both
@pytest.mark.parametrize(
    ("result", "text", "expected"),
    [
        ("out", "***", "***\n\n[interpose:warn] look out"),
        ("out", "{}", "{}\n\n[interpose:warn] look out"),
        ({"a": 1}, '{"a": "***"}', {"a": "***"}),
        (7, "no number", "no number\n\n[interpose:warn] look out"),
    ],
)
def test_a_patched_result_is_what_the_verdict_says(run: Run, result: Any, text: str, expected: Any) -> None:
    """A text stays a text; any other kind is what the new text says."""
    assert run(patched(text), Tool(result)) == expected


@both
def test_a_patched_fault_says_the_new_text(run: Run) -> None:
    """The old one reaches nobody who reads what was raised."""
    with pytest.raises(ToolError) as caught:
        run(patched("***"), Tool(ValueError("token=abc")))
    assert str(caught.value) == "***"
    assert caught.value.__suppress_context__


@both
def test_a_withheld_fault_is_a_sentence(run: Run) -> None:
    """As a withheld result is."""
    policy = by_stage(result=lambda point: refuse(point, "secret", "guard"))
    assert run(policy, Tool(ValueError("token=abc"))) == "the output of t was withheld by guard: secret"


@both
@pytest.mark.parametrize("broken", [verdict("patched"), verdict("allowed", text="x"), verdict("patched", arguments={})])
def test_a_result_that_is_patched_with_nothing_is_withheld(run: Run, broken: Any) -> None:
    """A verdict that contradicts itself is none."""
    answer = run(by_stage(result=broken), Tool())
    assert answer.startswith("the output of t was withheld by FakePolicy: the policy could not judge")
