"""The table of bad input in docs/rooms/concerns.md, a row each: one outcome, and a message that names the culprit."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from interpose.concerns.auth.middleware import AuthMiddleware
from interpose.concerns.hooks.middleware import HooksMiddleware
from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.auth import AuthChallenge
from interpose.contracts.drivers import DriverResponse, Tool
from interpose.contracts.errors import MisuseError
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.stages import Annotation, Context
from interpose.contracts.tools import Arguments, CallNext, CallNextAsync, Flow, FlowMiddleware, ToolMiddleware
from interpose.contracts.verdict import Refusal, Verdict
from interpose.drivers.driver import BaseDriver
from interpose.testing.fakes import FakePolicy


class Leaf(BaseDriver):
    """One tool that writes down its runs."""

    meta = DriverMeta("leaf", "Leaf", "1.0.0")

    def __init__(self, middleware: Sequence[ToolMiddleware]) -> None:
        super().__init__(middleware=middleware)
        self.runs: list[dict[str, Any]] = []

    def list_tools(self) -> list[Tool]:
        """The tool."""
        return [Tool("t", "A tool")]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Writes down, and answers."""
        self.runs.append(arguments)
        return "out"


def respond(middleware: ToolMiddleware, arguments: str = '{"x": 1}') -> tuple[DriverResponse, list[dict[str, Any]]]:
    """What comes of a model's call through this middleware, and what ran."""
    driver = Leaf([middleware])
    return driver.process_llm_response(f'{{"tool": "t", "arguments": {arguments}}}'), driver.runs


def editing(tool_name: str, arguments: dict[str, Any]) -> None:
    """An observer that edits what it is shown."""
    arguments["x"] = 2


def raising(tool_name: str, arguments: dict[str, Any]) -> None:
    """An observer that fails."""
    raise LookupError("observer broke")


class EditingInPlace(FlowMiddleware):
    """Edits what it is given."""

    def flow(self, tool_name: str, arguments: Any) -> Flow:
        """Nothing."""
        arguments["x"] = 2
        return (yield tool_name, arguments)


class Raising(ToolMiddleware):
    """Fails before it goes on."""

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """The failure."""
        raise LookupError("middleware broke")


class ReturningNothing(FlowMiddleware):
    """Goes on and forgets the result."""

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """Nothing."""
        yield tool_name, arguments


class CallingTwice(FlowMiddleware):
    """Goes on twice."""

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """The second result."""
        yield tool_name, arguments
        return (yield tool_name, arguments)


class CallingLate(ToolMiddleware):
    """Keeps its `call_next` for later."""

    kept: CallNext

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """The result of an older call_next, when there is one."""
        older = getattr(self, "kept", call_next)
        self.kept = call_next
        return older(tool_name, arguments)


class AsyncOnly(ToolMiddleware):
    """Has the async method alone."""

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Through."""
        return await call_next(tool_name, arguments)


class GivingAList(ToolMiddleware):
    """Goes on with arguments that are no object."""

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """The result."""
        return call_next(tool_name, [1])  # type: ignore[arg-type]


def test_no_consent_handler() -> None:
    """Not run; a failure that names the middleware and does not invite another try."""
    response, runs = respond(PermissionMiddleware())
    assert (response.call_failed, runs) == (True, [])
    assert "PermissionMiddleware: no consent handler is set, so t was not run" in str(response.call_detail)
    assert "Do not call it again" in str(response.retry_prompt)


@pytest.mark.parametrize("answer", ["yes", None])
def test_consent_that_is_no_bool(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Denied, as a result; the log names the handler and its answer."""

    def consent(tool_name: str, arguments: dict[str, Any]) -> Any:
        return answer

    response, runs = respond(PermissionMiddleware(consent=consent))
    assert (response.call_executed, response.tool_calls[0].outcome, runs) == (True, "short_circuited", [])
    assert "consent answered t with" in caplog.text
    assert repr(answer) in caplog.text


def test_an_observer_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    """The call goes on; the log names the observer. With "raise" it fails and does not run."""
    response, runs = respond(HooksMiddleware(pre=[raising]))
    assert (response.tool_call_result, runs) == ("out", [{"x": 1}])
    assert "the pre hook raising failed at t" in caplog.text

    strict, none = respond(HooksMiddleware(pre=[raising], on_hook_error="raise"))
    assert (strict.call_failed, none) == (True, [])
    assert str(strict.call_detail).startswith("HooksMiddleware failed: ")
    assert "observer broke" in str(strict.call_detail)


def test_an_observer_that_edits_arguments() -> None:
    """Edits its own copy."""
    assert respond(HooksMiddleware(pre=[editing]))[1] == [{"x": 1}]


def test_a_middleware_that_edits_arguments_in_place() -> None:
    """The call fails; the detail names the middleware and what to write, and the model is not asked to try again."""
    for arguments in ('{"x": 1}', '{"x": [1]}'):
        response, runs = respond(EditingInPlace(), arguments)
        assert (response.call_failed, runs) == (True, [])
        assert "EditingInPlace failed: the arguments of a call are read-only" in str(response.call_detail)
        assert '{**arguments, "name": value}' in str(response.call_detail)
        assert "Do not call it again" in str(response.retry_prompt)


def test_a_middleware_that_raises() -> None:
    """The call fails; the detail names the middleware."""
    response, runs = respond(Raising())
    assert (response.call_failed, runs) == (True, [])
    assert str(response.call_detail).startswith("Raising failed: ")
    assert "middleware broke" in str(response.call_detail)


def test_a_middleware_that_returns_nothing() -> None:
    """None is its result, and the model reads null."""
    response, runs = respond(ReturningNothing())
    assert (response.call_executed, response.tool_call_result, runs) == (True, "null", [{"x": 1}])


def test_a_middleware_that_calls_on_twice() -> None:
    """Legal while it is running: the tool runs twice, and the last result counts."""
    response, runs = respond(CallingTwice())
    assert (response.tool_call_result, runs) == ("out", [{"x": 1}, {"x": 1}])


def test_a_middleware_that_calls_on_after_it_has_returned() -> None:
    """The call fails; the detail names the middleware."""
    late = CallingLate()
    assert respond(late)[0].call_executed
    response, runs = respond(late)
    assert (response.call_failed, runs) == (True, [])
    assert "CallingLate used its call_next after it had returned" in str(response.call_detail)


def test_an_async_only_middleware_in_a_sync_list() -> None:
    """Refused when it is added, by name, with the way out."""
    with pytest.raises(TypeError, match=r"AsyncOnly has only on_execute_tool_async .* give it on_execute_tool too"):
        Leaf([AsyncOnly()])


@pytest.mark.parametrize("arguments", ["[1, 2]", '"text"', "7", "null"])
def test_arguments_of_a_model_that_are_no_object(arguments: str, caplog: pytest.LogCaptureFixture) -> None:
    """The call fails before any middleware sees it; the text to the model names the tool."""
    seen: list[Any] = []
    with caplog.at_level(logging.CRITICAL):
        response, runs = respond(HooksMiddleware(pre=[lambda *call: seen.append(call)]), arguments)
    assert (response.call_failed, runs, seen) == (True, [], [])
    assert "t did not run" in str(response.call_detail)


def test_arguments_of_a_middleware_that_are_no_object() -> None:
    """The call fails; the detail names the middleware and what it gave."""
    response, runs = respond(GivingAList())
    assert (response.call_failed, runs) == (True, [])
    assert "GivingAList gave arguments of type list: expected a mapping" in str(response.call_detail)


def doubled(leaf: Any, times: int) -> Any:
    """In two to the power of `times` places."""
    for _ in range(times):
        leaf = [leaf, leaf]
    return leaf


def nested(levels: int) -> Any:
    """Lists in lists."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


class Mute:
    """Nobody can read what is in it."""

    def __repr__(self) -> str:
        raise LookupError


@dataclass
class Node:
    """Data with more of it inside."""

    inner: Any


def nodes(levels: int) -> Any:
    """Data in data."""
    value: Any = None
    for _ in range(levels):
        value = Node(value)
    return value


TOO_MUCH = [
    (nested(300), "it holds itself, or nests deeper than 200 levels"),
    (nested(50_000), "it holds itself, or nests deeper than 200 levels"),
    (doubled([1], 60), "it repeats more than 1,000,000 values, since the same ones are in many places"),
    (nodes(250), "it holds itself, or nests deeper than 200 levels"),
]
UNREADABLE = [
    *TOO_MUCH,
    (Mute(), "it cannot be shown"),
    ({(1, 2): Mute(), "secret": "x"}, "it cannot be shown"),
    ({"secret": "x", "more": [Mute()]}, "it holds a Mute that cannot be shown"),
]
"""Results, and what is said of them."""


class Giving(Leaf):
    """Its tool gives what it was told to."""

    def __init__(self, result: Any, middleware: Sequence[ToolMiddleware]) -> None:
        super().__init__(middleware)
        self.result = result

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """That."""
        return self.result


@pytest.mark.parametrize(("result", "problem"), UNREADABLE)
def test_a_result_that_nobody_can_read_is_withheld(result: Any, problem: str) -> None:
    """Under the usual list, called directly or by a model, sync or async: the same sentence, which names the tool."""
    told: list[Any] = []
    usual: list[ToolMiddleware] = [
        HooksMiddleware(post=[lambda name, arguments, result: told.append(result)]),
        PolicyMiddleware(FakePolicy(), context=Context("process", session="s1")),
        PermissionMiddleware(consent=lambda name, arguments: True),
        AuthMiddleware(),
    ]
    driver = Giving(result, usual)
    said = f"the output of t was withheld by PolicyMiddleware: its result cannot be judged, since {problem}"
    assert driver.invoke_tool("t", {}) == said
    assert asyncio.run(driver.invoke_tool_async("t", {})) == said
    response = driver.process_llm_response('{"tool": "t", "arguments": {}}')
    assert (response.call_executed, response.tool_call_result) == (True, said)
    assert told == [said] * 3


@pytest.mark.parametrize(("result", "problem"), TOO_MUCH)
def test_without_a_policy_such_a_result_is_itself(result: Any, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    """Observers share it and none of them is blamed; the model reads what it is."""
    told: list[Any] = []
    driver = Giving(result, [HooksMiddleware(post=[lambda name, arguments, result: told.append(result)])])
    assert driver.invoke_tool("t", {}) is result
    response = driver.process_llm_response('{"tool": "t", "arguments": {}}')
    assert response.tool_call_result == f"a {type(result).__name__} that cannot be shown: {problem}"
    assert [each is result for each in told] == [True, True]
    assert caplog.records == []


def steps() -> dict[str, Any]:
    """Each value holds the one before it, however deep that is already."""
    out: dict[str, Any] = {}
    value: Any = [1]
    for number in range(10):
        for _ in range(150):
            value = [value]
        out[f"k{number}"] = value
    return out


@pytest.mark.parametrize(
    "layers",
    [
        [],
        [ToolMiddleware()],
        [HooksMiddleware()],
        [PolicyMiddleware(FakePolicy(), context=Context("process", session="s1"))],
        [PermissionMiddleware(consent=lambda name, arguments: True)],
    ],
)
def test_arguments_that_repeat_or_nest_too_much_are_refused_at_once(layers: list[ToolMiddleware]) -> None:
    """By the one who gave them, before anybody sees them."""
    driver = Leaf(layers)
    deep = "nest deeper than 200"
    wide = "repeat more than 1,000,000 values"
    for value, said in ((doubled([1], 60), wide), (nested(300), deep), (nodes(250), deep), (steps(), deep)):
        with pytest.raises(MisuseError, match=f"^the caller gave arguments that .*{said}"):
            driver.invoke_tool("t", {"x": value})
    assert driver.runs == []


NOTHING: Any = None
UNHASHABLE: Any = ["warn"]


class Saying:
    """A policy that says of a call or a result what it was told to, and lets the other pass."""

    def __init__(self, stage: str, verdict: Verdict) -> None:
        self.stage = stage
        self.verdict = verdict

    def judge(self, point: Any) -> Verdict:
        """That."""
        return self.verdict if point.stage == self.stage else Verdict("", point.stage, "allowed")

    async def judge_async(self, point: Any) -> Verdict:
        """The same."""
        return self.judge(point)


@pytest.mark.parametrize("stage", ["tool.call", "tool.result"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"outcome": "fine"}, "the outcome 'fine'"),
        ({"outcome": ["allowed"]}, "the outcome"),
        ({"outcome": "refused", "refusal": "no"}, "the refusal 'no'"),
        ({"annotations": 5}, "the annotations 5"),
        ({"annotations": ("note",)}, "the annotations"),
        ({"stage": "turn.start"}, "the stage 'turn.start', not 'tool."),
        ({"stage": None}, "the stage None"),
        ({"outcome": "refused", "refusal": Refusal(NOTHING, "no")}, "the refusal Refusal(handler=None"),
        ({"outcome": "refused", "refusal": Refusal("h", NOTHING)}, "the refusal Refusal(handler='h', reason=None"),
        ({"annotations": (Annotation(NOTHING, "info", "x"),)}, "the annotations"),
        ({"annotations": (Annotation("h", NOTHING, "x"),)}, "the annotations"),
        ({"annotations": (Annotation("h", UNHASHABLE, "x"),)}, "the annotations"),
        ({"annotations": (Annotation("h", "info", NOTHING),)}, "the annotations"),
        ({"annotations": (Annotation("h", "info", "x", NOTHING),)}, "the annotations"),
        ({"outcome": "patched", "arguments": {1: 2}}, "an argument whose name is 1, not a text"),
        ({"outcome": "patched", "arguments": {None: 2}}, "an argument whose name is None, not a text"),
        ({"outcome": "patched", "text": 5}, "a text of type int"),
        ({"outcome": "patched", "arguments": [1]}, "arguments of type list"),
        (
            {"outcome": "patched", "arguments": {"x": nested(300)}},
            "arguments that cannot run: it holds itself, or nests",
        ),
    ],
)
def test_a_verdict_that_is_none_refuses(stage: Any, wrong: dict[str, Any], said: str) -> None:
    """Before the call and after it; the policy and what is wrong with its verdict are named."""
    verdict = Verdict("", stage, "allowed")._replace(**wrong)
    policy: Any = Saying(stage, verdict)
    driver = Leaf([PolicyMiddleware(policy, context=Context("process", session="s1"))])
    for answer in (driver.invoke_tool("t", {}), asyncio.run(driver.invoke_tool_async("t", {}))):
        assert f"by Saying: the policy could not judge: its verdict has {said}" in answer
    assert len(driver.runs) == (0 if stage == "tool.call" else 2)


def test_a_context_that_is_none_fails_the_call() -> None:
    """The function that gave it is named, and so is one that raises."""

    def nobody() -> Any:
        return None

    def failing() -> Any:
        raise LookupError("no session")

    response, runs = respond(PolicyMiddleware(FakePolicy(), context=nobody))
    assert "nobody gave: is None (expected a Context)" in str(response.call_detail)
    response, runs = respond(PolicyMiddleware(FakePolicy(), context=failing))
    assert "no session\nraised by the context function" in str(response.call_detail)
    assert runs == []


def test_a_failure_that_has_no_text_stays_what_it_is() -> None:
    """Also under a policy, which is not blamed for it."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise LookupError

    class Failing(Leaf):
        def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
            raise MuteError

    driver = Failing([PolicyMiddleware(FakePolicy(), context=Context("process", session="s1"))])
    with pytest.raises(MuteError):
        driver.invoke_tool("t", {})
    response = driver.process_llm_response('{"tool": "t", "arguments": {}}')
    assert response.call_detail == "Tool 't' failed: MuteError: its text cannot be read"


def test_an_observer_or_a_person_that_is_async_and_hides_it(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is left that nobody awaits: the observer is told in the log, the person's answer is no yes."""

    async def later(*given: Any) -> bool:
        return True

    class Later:
        async def __call__(self, *given: Any) -> bool:
            return True

    response, runs = respond(HooksMiddleware(pre=[lambda *given: later()]))
    assert (response.call_executed, len(runs)) == (True, 1)
    assert "it returned a coroutine, and observers are not awaited" in caplog.text
    response, runs = respond(PermissionMiddleware(consent=lambda *given: later()))
    assert (runs, "permission_denied" in str(response.tool_call_result)) == ([], True)
    with pytest.raises(MisuseError, match="is a coroutine function: observers are called and not awaited"):
        HooksMiddleware(pre=[Later()])


def test_a_challenge_of_no_text_is_the_tools_mistake() -> None:
    """Told where it is made."""
    wrong: Any = b"https://a.example"
    with pytest.raises(MisuseError, match=r"^AuthChallenge\(url\) is of type bytes: expected a text"):
        AuthChallenge("Sign in", url=wrong)
    with pytest.raises(MisuseError, match=r"^AuthChallenge\(message\) is of type NoneType"):
        AuthChallenge(None)  # type: ignore[arg-type]
