"""policy.judgement: the order, one action for a call and its result, the switch, and what the journal is told."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import (
    AnnotateToolResult,
    BlockTool,
    Effect,
    EvaluationContext,
    Hook,
    HookInput,
    InjectReminder,
    LockTools,
    Registration,
    RequestContinuation,
    RequireTool,
)
from interpose.contracts.stages import Context, Point, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.contracts.verdict import Refusal, ToolChoice, Verdict
from interpose.effects.contract import create_middleware
from interpose.kernel.clock import SystemClock
from interpose.policy.judgement import EffectPolicy
from interpose.testing.journal import MemoryJournal

HERE = Context(mount="process", session="s1", workspace="/w", agent="claude-code")


class Switch:
    """The port Pause, held by the test."""

    def __init__(self) -> None:
        self.off = False

    def is_off(self, workspace: str) -> bool:
        """As the test says."""
        return self.off and workspace == "/w"


class House:
    """A policy with what it writes to."""

    def __init__(self, *registrations: Registration) -> None:
        self.journal = MemoryJournal()
        self.switch = Switch()
        self.policy = EffectPolicy(
            create_middleware(registrations=registrations),
            journal=self.journal,
            clock=SystemClock(),
            pause=self.switch,
        )


def handler(
    name: str, hook: Hook, *effects: Effect, seen: list[HookInput] | None = None, tools: tuple[str, ...] | None = None
) -> Registration:
    """A registration that notes what it is given and says `effects`."""

    def evaluate(given: HookInput, _context: EvaluationContext) -> Sequence[Effect]:
        if seen is not None:
            seen.append(given)
        return effects

    return Registration(name, "", (hook,), tools, evaluate)


def call(command: str = "ls", *, context: Context = HERE, problem: str | None = None) -> ToolCall:
    """A proposed shell call, as Claude Code writes it."""
    return ToolCall(context, "c1", "Bash", {} if problem else {"command": command}, problem=problem)


def result(output: str = "out") -> ToolResult:
    """Its result."""
    return ToolResult(HERE, "c1", "Bash", {"command": "ls"}, output, duration_ms=5)


def both(house: House, point: Point) -> tuple[Verdict, Verdict]:
    """The verdict from a thread and from an event loop."""
    return house.policy.judge(point), asyncio.run(house.policy.judge_async(point))


def test_a_call_is_judged_in_its_canonical_form() -> None:
    """Handlers see the canonical name and the hook form; the wire name still matches."""
    seen: list[HookInput] = []
    house = House(
        handler("canonical", "before_tool", seen=seen, tools=("shell",)),
        handler("wire", "before_tool", BlockTool("no"), seen=seen, tools=("Bash",)),
    )

    first, second = both(house, call())

    assert first.refusal == second.refusal == Refusal("wire", "no")
    assert [given.tool_name for given in seen] == ["shell"] * 4
    assert seen[0].tool_args == {"command": "ls"}
    assert seen[0].metadata["actionClass"] == "execute"
    assert seen[0].metadata["requestedToolName"] == "Bash"


def test_what_handlers_see_cannot_be_changed() -> None:
    """A handler that tries to edit its input fails; the next one sees the call as it was."""
    seen: list[HookInput] = []

    def meddle(given: HookInput, _context: EvaluationContext) -> Sequence[Effect]:
        assert given.tool_args is not None
        given.tool_args["command"] = "rm"  # type: ignore[index]
        return ()

    house = House(
        Registration("meddler", "", ("before_tool",), None, meddle), handler("next", "before_tool", seen=seen)
    )
    point = call()

    verdict = house.policy.judge(point)

    assert verdict.allowed
    assert [(r.handler, r.answer) for r in verdict.reactions] == [("meddler", "failed"), ("next", "continue")]
    assert seen[0].tool_args == {"command": "ls"}
    assert point.arguments == {"command": "ls"}


def test_a_call_and_its_result_share_one_action() -> None:
    """The journal tells both under one id, in order; other sessions have other ids."""
    house = House(handler("a", "before_tool", AnnotateToolResult("before")), handler("b", "after_tool"))

    before = house.policy.judge(call())
    after = house.policy.judge(result())
    elsewhere = house.policy.judge(call(context=Context(mount="wire", session="s2")))

    assert before.action == after.action != elsewhere.action
    told = [(r.stage, r.step, r.handler) for r in house.journal.records if r.action == before.action]
    assert told == [("tool.call", "answer", "a"), ("tool.call", "verdict", ""), ("tool.result", "verdict", "")]


def test_the_calls_annotations_stand_before_the_results() -> None:
    """What before_tool noted comes first on the result."""
    house = House(
        handler("a", "before_tool", AnnotateToolResult("before")),
        handler("b", "after_tool", AnnotateToolResult("after")),
    )

    noted = house.policy.judge(call()).annotations
    point = ToolResult(HERE, "c1", "Bash", {"command": "ls"}, "out", annotations=noted)

    assert [a.message for a in house.policy.judge(point).annotations] == ["before", "after"]


def test_arguments_that_cannot_be_read_are_told_to_handlers() -> None:
    """The reason stands in the input, and a guard that answers unknown refuses with it."""

    def guard(given: HookInput, _context: EvaluationContext) -> Sequence[Effect] | Unknown:
        return Unknown(given.unreadable) if given.unreadable else ()

    house = House(Registration("guard", "", ("before_tool",), None, guard))

    verdict = house.policy.judge(call(problem="the arguments hold a key twice"))

    assert verdict.outcome == "refused"
    assert "the arguments hold a key twice" in (verdict.refusal.reason if verdict.refusal else "")
    assert house.policy.judge(ToolCall(HERE, "c2", "Bash", {"command": 5})).outcome == "refused"


def test_while_switched_off_everything_passes_on_record() -> None:
    """The verdict is `off`, no handler runs, and the journal says so."""
    seen: list[HookInput] = []
    house = House(handler("a", "before_tool", BlockTool("no"), seen=seen))
    house.switch.off = True

    first, second = both(house, call())

    assert (first.outcome, second.outcome, first.allowed, seen) == ("off", "off", True, [])
    assert [(r.step, r.outcome) for r in house.journal.records] == [("verdict", "off")] * 2
    elsewhere = Context(mount="process", session="s", workspace="/other")
    assert house.policy.judge(call(context=elsewhere)).outcome == "refused"


def test_one_continuation_per_prompt() -> None:
    """The second turn end of a prompt is not carried on; a new prompt is."""
    house = House(handler("a", "turn_end", RequestContinuation("go on")))
    end = TurnEnd(HERE, "I will do it", "stop")

    continuations = [house.policy.judge(end).continuation, house.policy.judge(end).continuation]
    house.policy.judge(TurnStart(HERE, "more"))
    continuations.append(house.policy.judge(end).continuation)
    house.policy.judge(TurnStart(HERE, "", {"requestContinuation": True}))
    continuations.append(house.policy.judge(end).continuation)

    assert continuations == ["go on", None, "go on", None]


def choosing(effects: dict[str, Effect]) -> Registration:
    """A handler that emits an effect for calls, and results, of commands it knows."""

    def evaluate(given: HookInput, _context: EvaluationContext) -> Sequence[Effect]:
        found = effects.get(f"{given.hook} {(given.tool_args or {}).get('command', given.tool_name)}")
        return (found,) if found else ()

    return Registration("chooser", "", ("before_tool", "after_tool", "turn_start"), None, evaluate)


def choices(house: House, *steps: str) -> list[ToolChoice | None]:
    """What holds for the next request after each step of one turn: a call of `TOOL` or its result, `TOOL!`."""
    context = Context(mount="process", session="s1", workspace="/w", agent="claude-code", turn="t1")
    found: list[ToolChoice | None] = []
    for number, step in enumerate(steps):
        tool, is_result = step.removesuffix("!"), step.endswith("!")
        if step == "prompt":
            found.append(house.policy.judge(TurnStart(context, "go")).tool_choice)
        elif is_result:
            found.append(house.policy.judge(ToolResult(context, f"c{number}", tool, {}, "out")).tool_choice)
        else:
            found.append(house.policy.judge(ToolCall(context, f"c{number}", tool, {})).tool_choice)
    return found


def test_a_required_tool_stays_required_until_it_is_called() -> None:
    """Other tools do not clear it, the tool itself does, under any of its names; a later one replaces it."""
    house = House(choosing({"after_tool edit": RequireTool("shell"), "after_tool write": RequireTool("Read")}))
    shell, read = ToolChoice("required", "shell"), ToolChoice("required", "Read")

    assert choices(house, "prompt", "Edit!", "Write", "Glob!", "Bash", "Bash!") == [
        None, shell, shell, shell, None, None,
    ]  # fmt: skip
    assert choices(house, "Edit!", "Write!", "Bash", "Read") == [shell, read, read, None]


def test_a_refused_call_does_not_fulfil_a_requirement() -> None:
    """Only a call that runs is a start."""
    guard = handler("guard", "before_tool", BlockTool("no"), tools=("shell",))
    house = House(choosing({"after_tool edit": RequireTool("shell")}), guard)

    assert choices(house, "prompt", "Edit!", "Bash")[-1] == ToolChoice("required", "shell")


def test_locked_tools_stay_locked_until_the_next_turn() -> None:
    """No later requirement opens them; a new prompt does, also one that only carries the turn onward."""
    house = House(choosing({"before_tool edit": LockTools(), "after_tool write": RequireTool("shell")}))
    locked = ToolChoice("none")

    assert choices(house, "prompt", "Edit", "Edit!", "Write!", "prompt") == [None, locked, locked, locked, None]


def test_where_no_turn_starts_a_choice_lasts_one_verdict() -> None:
    """A lock that nobody would ever open is not kept."""
    house = House(choosing({"before_tool edit": LockTools()}))

    assert choices(house, "Edit", "Edit!") == [ToolChoice("none"), None]


def test_both_halves_of_check_run_on_a_loop() -> None:
    """Asynchronous handlers run after the synchronous ones and see their effects."""
    prior: list[Effect] = []

    async def later(_given: HookInput, context: EvaluationContext) -> Sequence[Effect]:
        prior.extend(context.prior_effects)
        return (InjectReminder("later"),)

    house = House(
        handler("a", "turn_start", InjectReminder("first")),
        Registration("b", "", ("turn_start",), evaluate_async=later),
    )

    verdict = asyncio.run(house.policy.judge_async(TurnStart(HERE, "hi")))

    assert [reminder.message for reminder in verdict.reminders] == ["first", "later"]
    assert prior == [InjectReminder("first")]


@pytest.mark.parametrize("blocking", [True, False])
def test_only_a_blocking_handler_leaves_the_loops_thread(blocking: bool) -> None:
    """A pass with a blocking handler runs in a worker thread, in the same order; any other stays on the caller's."""
    threads: list[bool] = []

    def note(_given: HookInput, _context: EvaluationContext) -> Sequence[Effect]:
        threads.append(threading.current_thread() is threading.main_thread())
        return (BlockTool("no"),)

    house = House(
        Registration("a", "", ("before_tool",), None, note),
        Registration("b", "", ("before_tool",), None, note, blocking=blocking),
    )

    verdict = asyncio.run(house.policy.judge_async(call()))

    assert verdict.refusal == Refusal("a", "no")
    assert threads == [not blocking] * 2


def test_the_journal_keeps_long_texts_short() -> None:
    """A payload over 2,000 characters is kept by head and tail, with its true length."""
    house = House()

    house.policy.judge(result("x" * 50_000))

    data = house.journal.records[-1].data
    assert data["chars"] == 50_000
    assert len(data["output"]) < 2_200
