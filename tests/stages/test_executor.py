"""stages.executor: the chain over one point, and each way in which a handler can fail."""

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from interpose.catalog.reading import read_call
from interpose.contracts.decisions import Cancel, Continue, Patch, Unknown
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.stages import (
    Compaction,
    Context,
    LlmChunk,
    LlmRequest,
    LlmResponse,
    Point,
    Stage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from interpose.stages.executor import Shaping, shape, shape_async
from interpose.stages.registry import STAGE_RULES

HERE = Context("process", "s", agent="claude-code")
CALL = ToolCall(HERE, "c1", "Bash", {"command": "ls", "description": "look", "timeout": 5})
RESULT = ToolResult(HERE, "c1", "Bash", {"command": "ls"}, "out", duration_ms=5.0)
START = TurnStart(HERE, "hi", {"queued": False})
POINTS: dict[Stage, Point] = {
    "turn.start": START,
    "tool.call": CALL,
    "tool.result": RESULT,
    "turn.end": TurnEnd(HERE, "done"),
    "compaction": Compaction(HERE),
    "llm.request": LlmRequest(HERE, "chat", {"model": "m"}),
    "llm.chunk": LlmChunk(HERE, "chat", 3, None, {"choices": []}),
    "llm.response": LlmResponse(HERE, "chat", 200, {"choices": []}, streamed=False),
}


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def handler(name: str, run: Callable[[Any], Any], **more: Any) -> ShapeHandler:
    """A handler of every stage."""
    return ShapeHandler(name, tuple(STAGE_RULES), run, **more)


def saying(name: str, decision: Any, **more: Any) -> ShapeHandler:
    """A handler that always answers alike."""
    return handler(name, lambda _point: decision, **more)


def run(point: Point, *handlers: ShapeHandler) -> Shaping:
    """What they make of it, the same from a thread and from an event loop."""
    form = None
    if isinstance(point, ToolCall | ToolResult):
        form = read_call(point.context.agent, point.tool_name, point.arguments, point.leaf)
    clock = Clock()
    first = shape(point, handlers, form, monotonic=clock)
    assert first == asyncio.run(shape_async(point, handlers, form, monotonic=clock))
    return first


def said(shaping: Shaping) -> list[tuple[str, str]]:
    """Who said what."""
    return [(reaction.handler, reaction.answer) for reaction in shaping.reactions]


def arguments(shaping: Shaping) -> Any:
    """The arguments of a shaped call."""
    assert isinstance(shaping.point, ToolCall)
    return shaping.point.arguments


def test_without_a_change_the_point_stays_itself() -> None:
    """Continue and silence let it pass as it is."""
    shaping = run(CALL, saying("a", Continue()), saying("b", None))
    assert said(shaping) == [("a", "continue"), ("b", "silent")]
    assert (shaping.changed, shaping.refusal, shaping.doubts, shaping.point) == (False, None, (), CALL)


def test_handlers_see_the_hook_form() -> None:
    """The canonical name, the agent's own among the aliases, what the hook form knows of the arguments."""
    seen: list[Any] = []
    run(CALL, handler("a", seen.append))
    run(RESULT, handler("a", seen.append))
    call, _, result, _ = seen
    assert (call.tool_name, call.aliases, call.arguments) == ("shell", ("Bash",), {"command": "ls", "timeout": 5})
    assert (result.tool_name, result.aliases, result.output) == ("shell", ("Bash",), "out")


def test_each_sees_the_last_patch() -> None:
    """And the agent gets it in its own words, with the fields that have no place in the hook form."""
    first = handler("a", lambda call: Patch({**call.arguments, "command": call.arguments["command"] + " -l"}))
    second = handler("b", lambda call: Patch({**call.arguments, "command": "nice " + call.arguments["command"]}))
    shaping = run(CALL, first, second)
    assert shaping.changed
    assert arguments(shaping) == {"command": "nice ls -l", "description": "look", "timeout": 5}
    assert shaping.form is not None
    assert shaping.form.input == {"command": "nice ls -l", "timeout": 5}
    assert [reaction.changes for reaction in shaping.reactions] == [
        {"command": {"before": "ls", "after": "ls -l"}},
        {"command": {"before": "ls -l", "after": "nice ls -l"}},
    ]


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_patches_compose_in_every_order(order: tuple[str, ...]) -> None:
    """Three that add a letter: the text tells in which order they ran."""
    handlers = [
        handler(name, lambda point, name=name: Patch({"prompt": point.prompt + name}))  # type: ignore[misc]
        for name in order
    ]
    shaping = run(START, *handlers)
    assert shaping.point == replace(START, prompt="hi" + "".join(order))


def test_a_patch_replaces_the_payload() -> None:
    """A field of the hook form that it leaves out is gone."""
    assert arguments(run(CALL, saying("a", Patch({"command": "pwd"})))) == {"command": "pwd", "description": "look"}


@pytest.mark.parametrize(
    ("point", "payload", "expected"),
    [
        (START, {"prompt": "ho"}, replace(START, prompt="ho")),
        (RESULT, {"output": "***"}, replace(RESULT, output="***")),
        (RESULT, {"output": "***", "call_id": "c1", "name": "shell", "input": {"command": "ls"}, "duration_ms": 5.0},
         replace(RESULT, output="***")),
        (POINTS["llm.request"], {"model": "n", "x": 1}, LlmRequest(HERE, "chat", {"model": "n", "x": 1})),
        (POINTS["llm.chunk"], ["any"], LlmChunk(HERE, "chat", 3, None, ["any"])),
        (POINTS["llm.response"], {}, LlmResponse(HERE, "chat", 200, {}, streamed=False)),
    ],
)  # fmt: skip
def test_what_a_patch_holds_at_each_stage(point: Point, payload: Any, expected: Point) -> None:
    """As the table of the guide says."""
    shaping = run(point, saying("a", Patch(payload)))
    assert (shaping.point, shaping.changed) == (expected, True)


@pytest.mark.parametrize(
    "stage", ["turn.start", "tool.call", "tool.result", "llm.request", "llm.chunk", "llm.response"]
)
def test_the_whole_point_will_do_as_well(stage: Stage) -> None:
    """Made with `dataclasses.replace`, as a typed handler likes it."""
    field, value = {
        "turn.start": ("prompt", "ho"),
        "tool.call": ("arguments", {"command": "pwd"}),
        "tool.result": ("output", "***"),
        "llm.chunk": ("data", {"a": 1}),
    }.get(stage, ("body", {"a": 1}))
    change: dict[str, Any] = {field: value}
    shaping = run(POINTS[stage], handler("a", lambda point: Patch(replace(point, **change))))
    assert shaping.changed
    assert shaping.reactions[0].failure is None


@pytest.mark.parametrize(
    ("point", "payload", "told"),
    [
        (CALL, replace(CALL, tool_name="Read"), "changes 'tool_name', which must stay as it is"),
        (CALL, "ls", "is str, expected an object (the tool's arguments in their hook form)"),
        (CALL, {1: 2}, "expected an object"),
        (CALL, {}, "cannot be read: Bash needs command"),
        (CALL, {"command": ["ls", 1]}, "cannot be read: Bash: command is ['ls', 1]"),
        (replace(CALL, problem="two keys"), {"command": "ls"}, "cannot be rewritten: two keys"),
        (RESULT, {"output": "x", "call_id": "c2"}, "changes 'call_id'"),
        (RESULT, {"output": "x", "name": "read"}, "changes 'name'"),
        (RESULT, {"output": "x", "note": "y"}, "has 'note', which tool.result does not know ({\"output\": …})"),
        (RESULT, {"output": None}, "says output is NoneType"),
        (RESULT, {}, "says output is NoneType"),
        (START, {"prompt": ["hi"]}, 'says prompt is list, expected {"prompt": …} with a text'),
        (START, {"text": "hi"}, "has 'text', which turn.start does not know"),
        (POINTS["llm.request"], [], "is list, expected an object (the whole body)"),
        (POINTS["llm.chunk"], LlmChunk(HERE, "chat", 4, None, {"choices": []}), "changes 'sequence'"),
        (POINTS["turn.end"], {"text": "x"}, "nothing can be patched at turn.end"),
        (POINTS["compaction"], {}, "nothing can be patched at compaction"),
    ],
)
def test_a_patch_that_cannot_be_taken_is_a_failure(point: Point, payload: Any, told: str) -> None:
    """Of that handler: the point goes on as it was, and the words say what is wrong."""
    made = handler(
        "a", lambda seen: Patch(replace(seen, **_differing(point, payload)) if _is_point(payload) else payload)
    )
    shaping = run(point, made, saying("b", None))
    assert said(shaping) == [("a", "failed"), ("b", "silent")]
    assert (shaping.changed, shaping.point) == (False, point)
    assert shaping.reactions[0].failure == "invalid_answer"
    assert told in str(shaping.reactions[0].reason)


def _is_point(payload: Any) -> bool:
    return isinstance(payload, ToolCall | LlmChunk)


def _differing(point: Any, payload: Any) -> dict[str, Any]:
    fields = ("tool_name", "sequence")
    return {
        name: getattr(payload, name) for name in fields if getattr(payload, name, None) != getattr(point, name, None)
    }


def test_a_patch_that_nests_without_end_is_a_failure() -> None:
    """A circle would end in a RecursionError elsewhere."""
    circle: dict[str, Any] = {"command": "ls"}
    circle["self"] = circle
    for point in (CALL, POINTS["llm.request"]):
        shaping = run(point, saying("a", Patch(circle)))
        assert "nested deeper than 200 levels" in str(shaping.reactions[0].reason)


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_what_handlers_see_cannot_be_changed(point: Point) -> None:
    """One that edits what it is given fails, and the next sees it as it was."""

    def meddle(seen: Any) -> None:
        for name in ("arguments", "body", "data", "metadata"):
            if hasattr(seen, name):
                getattr(seen, name)["x"] = 1
        seen.stage = "other"

    shaping = run(point, handler("meddler", meddle), saying("next", None))
    assert said(shaping) == [("meddler", "failed"), ("next", "silent")]
    assert shaping.point == point


def test_what_it_patched_with_cannot_be_changed_later() -> None:
    """A handler that keeps its payload has no hand in it any more."""
    mine = {"command": "ls", "list": [1]}

    def meddle(_call: Any) -> Continue:
        mine["list"].append(2)  # type: ignore[attr-defined]
        return Continue()

    shaping = shape(
        CALL, (saying("a", Patch(mine)), handler("b", meddle)), read_call("claude-code", "Bash", CALL.arguments)
    )
    assert arguments(shaping)["list"] == [1]


def test_a_cancel_ends_the_chain() -> None:
    """Those behind it are not reached, and nobody is asked any more."""
    shaping = run(CALL, saying("u", Unknown("?")), saying("a", Cancel("no")), saying("b", Cancel("never")))
    assert said(shaping) == [("u", "unknown"), ("a", "cancel"), ("b", "not_reached")]
    assert shaping.refusal is not None
    assert (shaping.refusal.handler, shaping.refusal.reason) == ("a", "no")
    assert shaping.doubts == ()


@pytest.mark.parametrize("reason", ["", "  ", None, 7])
def test_a_cancel_without_a_reason_is_a_cancel(reason: Any) -> None:
    """A veto is not lost on a formality: the words name the handler."""
    shaping = run(RESULT, saying("strict", Cancel(reason), fail_closed=False))
    assert shaping.refusal is not None
    assert shaping.refusal.reason == "cancelled by strict, without a reason"


@pytest.mark.parametrize("stage", ["turn.end", "compaction"])
@pytest.mark.parametrize("decision", [Cancel("no"), Unknown("?")])
def test_a_cancel_where_it_means_nothing_is_a_failure(stage: Stage, decision: Any) -> None:
    """Those stages are looked at only; a fail-closed handler stops nothing there either."""
    shaping = run(POINTS[stage], saying("a", decision, fail_closed=True), saying("b", None))
    assert said(shaping) == [("a", "failed"), ("b", "silent")]
    assert shaping.refusal is None
    assert f"means nothing at {stage}" in str(shaping.reactions[0].reason)


@pytest.mark.parametrize("decision", [Cancel("no"), Unknown("?"), Patch({"prompt": "x"})])
def test_who_says_it_only_looks_may_only_look(decision: Any) -> None:
    """Anything else is a failure that says so."""
    shaping = run(START, saying("a", decision, can_change=False))
    assert (shaping.changed, shaping.refusal) == (False, None)
    assert shaping.reactions[0].failure == "invalid_answer"
    assert "only looks" in str(shaping.reactions[0].reason)


def test_an_observed_handler_changes_nothing() -> None:
    """What it would have done is told."""
    shaping = run(
        START,
        saying("p", Patch({"prompt": "x"}), mode="observe"),
        saying("c", Cancel("no"), mode="observe"),
        saying("u", Unknown("?"), mode="observe", on_unknown="refuse"),
        saying("f", 7, mode="observe", fail_closed=True),
        saying("last", None),
    )
    assert [answer for _, answer in said(shaping)] == ["patch", "cancel", "unknown", "failed", "silent"]
    assert (shaping.changed, shaping.refusal, shaping.doubts) == (False, None, ())
    assert shaping.reactions[0].changes == {"prompt": {"before": "hi", "after": "x"}}


def test_unknown_leads_where_the_handler_says() -> None:
    """Asked at the end about the final form, refused now, or let pass."""
    asking = run(CALL, saying("a", Unknown("which?")), saying("b", Patch({"command": "pwd"})), saying("c", Unknown("")))
    assert [(doubt.handler, doubt.reason) for doubt in asking.doubts] == [("a", "which?"), ("c", "c does not say why")]
    assert asking.changed
    refusing = run(CALL, saying("a", Unknown("which?"), on_unknown="refuse"), saying("b", None))
    assert refusing.refusal is not None
    assert refusing.refusal.reason.startswith("it cannot be told what this call would do: which?.")
    assert said(refusing)[1] == ("b", "not_reached")
    assert run(CALL, saying("a", Unknown("which?"), on_unknown="pass")).refusal is None


def test_who_trips_over_arguments_that_cannot_be_read_cannot_tell() -> None:
    """A guard that looks for a command is not got around by writing one that nobody can read."""
    unread = ToolCall(HERE, "c1", "Bash", {}, problem="a key stands twice")
    looking = handler("guard", lambda call: Cancel("no") if "rm" in call.arguments["command"] else None)
    asked = run(unread, looking, saying("b", None))
    assert said(asked) == [("guard", "failed"), ("b", "silent")]
    assert [(doubt.handler, doubt.reason) for doubt in asked.doubts] == [("guard", "a key stands twice")]
    assert run(unread, replace(looking, on_unknown="refuse")).refusal is not None
    for harmless in (
        replace(looking, on_unknown="pass"),
        replace(looking, can_change=False),
        replace(looking, mode="observe"),
    ):
        passed = run(unread, harmless)
        assert (passed.doubts, passed.refusal) == ((), None)
    assert run(CALL, handler("guard", raising)).doubts == ()


def test_nobody_is_asked_where_there_is_nothing_to_ask_about() -> None:
    """Only a call can wait for a person; elsewhere an unknown refuses and says so."""
    shaping = run(START, saying("a", Unknown("which?")))
    assert shaping.refusal is not None
    told = "it cannot be told whether this may pass and nobody can be asked here: which?."
    assert shaping.refusal.reason == told


def raising(_point: Any) -> None:
    """A handler with a fault."""
    raise LookupError("gone")


async def raising_async(_point: Any) -> None:
    """A handler with a fault, awaited."""
    raise LookupError("gone")


async def cancelling(_point: Any) -> None:
    """A handler that cancels itself."""
    raise asyncio.CancelledError


async def waiting(_point: Any) -> None:
    """A handler that never answers."""
    await asyncio.Event().wait()


async def timing_out(_point: Any) -> None:
    """A handler whose own limit passes."""
    raise TimeoutError("upstream")


@pytest.mark.parametrize(
    ("faulty", "failure", "told"),
    [
        (raising, "raised", "raised LookupError: gone"),
        (raising_async, "raised", "raised LookupError: gone"),
        (cancelling, "raised", "raised CancelledError"),
        (timing_out, "raised", "raised TimeoutError: upstream"),
        (waiting, "too_slow", "too slow: no answer within 0.02 s"),
        (lambda _point: True, "invalid_answer", "invalid answer: bool is no decision"),
        (lambda _point: Cancel, "invalid_answer", "invalid answer: type is no decision"),
    ],
)
def test_each_failure_has_its_name(faulty: Callable[[Any], Any], failure: str, told: str) -> None:
    """Open by default: the next is asked. Closed where the handler says so: it cancels, naming the handler."""
    opened = run(CALL, handler("a", faulty, timeout_s=0.02), saying("b", None))
    assert said(opened) == [("a", "failed"), ("b", "silent")]
    assert (opened.reactions[0].failure, opened.reactions[0].reason) == (failure, told)
    assert opened.refusal is None
    closed = run(CALL, handler("a", faulty, timeout_s=0.02, fail_closed=True), saying("b", None))
    assert said(closed) == [("a", "failed"), ("b", "not_reached")]
    assert closed.refusal is not None
    assert closed.refusal.handler == "a"
    assert closed.refusal.reason.startswith("a failed (")
    assert "what it guards does not happen without it" in closed.refusal.reason


def test_what_cannot_be_shown_fails_whoever_should_see_it() -> None:
    """A body that nests too deep: open for most, closed for a guard."""
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    point = LlmRequest(HERE, "chat", deep)
    shaping = run(point, saying("a", None), saying("b", None, fail_closed=True), saying("c", None))
    assert said(shaping) == [("a", "failed"), ("b", "failed"), ("c", "not_reached")]
    assert shaping.reactions[0].failure == "unreadable"
    assert shaping.refusal is not None


def test_deep_arguments_are_a_problem_of_the_call() -> None:
    """Handlers see that it cannot be read, and nothing else of them."""
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    seen: list[Any] = []
    run(ToolCall(HERE, "c1", "Mystery", deep), handler("a", seen.append))
    assert seen[0].arguments == {}
    assert "nested deeper" in seen[0].problem


def test_a_slow_answer_of_a_plain_function_counts() -> None:
    """It cannot be stopped; a veto is not lost, and the operator is told."""
    clock = Clock()

    def slow(_call: Any) -> Cancel:
        clock.now += 7
        return Cancel("no")

    shaping = shape(CALL, (handler("a", slow),), read_call(None, "Bash", CALL.arguments), monotonic=clock)
    assert shaping.refusal is not None
    assert [(notice.handler, notice.message) for notice in shaping.notices] == [
        ("a", "a took 7.00 s at tool.call, of 5 s; only an async handler is cut off")
    ]
    assert shaping.reactions[0].duration_ms == 7000


def test_an_async_handler_answers() -> None:
    """Awaited on the loop, or run to its end from a plain thread; the loop is not left behind."""

    async def later(point: Any) -> Patch:
        await asyncio.sleep(0)
        return Patch({"prompt": point.prompt + "!"})

    before = threading.active_count()
    assert run(START, handler("a", later)).point == replace(START, prompt="hi!")
    assert threading.active_count() == before


def test_a_cancelled_judgement_is_cancelled() -> None:
    """Whoever gave up gets its CancelledError, and the handler its own."""
    ended: list[str] = []

    async def noting(_point: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def main() -> None:
        task = asyncio.create_task(shape_async(START, (handler("a", noting, fail_closed=True),)))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)

    asyncio.run(main())
    assert ended == ["cancelled"]


def test_a_patch_back_to_what_it_was_is_no_change() -> None:
    """Two that undo each other leave the point as it was."""
    shaping = run(START, saying("a", Patch({"prompt": "ho"})), saying("b", Patch({"prompt": "hi"})))
    assert not shaping.changed


def test_an_awaitable_of_any_make_is_awaited() -> None:
    """A future as well as a coroutine."""

    class Later:
        def __await__(self) -> Any:
            yield from asyncio.sleep(0).__await__()
            return Cancel("later")

    made: Callable[[Any], Awaitable[Cancel]] = lambda _point: Later()  # noqa: E731
    assert run(START, handler("a", made)).refusal is not None
