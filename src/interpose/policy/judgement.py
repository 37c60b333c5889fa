"""`judge`: the only place where the order lives."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from interpose.catalog.reading import HookForm, read_call
from interpose.contracts.effects import HookInput, HookResult
from interpose.contracts.ports import Clock, Journal, Pause
from interpose.contracts.stages import HookPoint, LlmPoint, Point, Stage, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.contracts.verdict import Outcome, ToolChoice, Verdict
from interpose.effects.contract import MiddlewareContract
from interpose.kernel.ids import derived_id, random_id
from interpose.policy.consumption import Consumed, consume, merge, reactions
from interpose.policy.inputs import filled_keys, hook_input, with_validation
from interpose.policy.records import records_of
from interpose.policy.turns import Turns

HOOK_STAGES: Final[frozenset[Stage]] = frozenset({"turn.start", "tool.call", "tool.result", "turn.end", "compaction"})
"""The stages at which the effect engine has a hook."""

ValidationOf: TypeAlias = Callable[[HookInput], str | None]
"""The command of a tool call that proves something (tests, a linter, a build), for people; None for every other."""


def nothing_validates(_given: HookInput) -> None:
    """Knows no command that proves anything."""


class EffectPolicy:
    """The port `Policy` over one effect engine. Any thread may judge; the state it keeps is per session and bounded."""

    def __init__(
        self,
        engine: MiddlewareContract,
        *,
        journal: Journal,
        clock: Clock,
        pause: Pause,
        validation: ValidationOf = nothing_validates,
    ) -> None:
        """`validation` is asked about each tool point, on the judging thread; it must not raise."""
        self._engine = engine
        self._journal = journal
        self._clock = clock
        self._pause = pause
        self._validation = validation
        self._turns = Turns()

    @property
    def engine(self) -> MiddlewareContract:
        """The registration table behind this policy."""
        return self._engine

    def judge(self, point: Point) -> Verdict:
        """The verdict on `point`: check runs on the caller's stack; the asynchronous half is left to `judge_async`."""
        started = self._clock.monotonic()
        if self._pause.is_off(point.context.workspace):
            return self._passed_off(point)
        if isinstance(point, LlmPoint):
            return Verdict(_action(point), point.stage, "allowed")
        form = _hook_form(point)
        result = self._engine.run_hook(self._given(point, form))
        return self._conclude(point, form, result, started)

    async def judge_async(self, point: Point) -> Verdict:
        """The verdict on `point`: both halves of check; a pass with a blocking registration runs in a worker thread."""
        started = self._clock.monotonic()
        if self._pause.is_off(point.context.workspace):
            return self._passed_off(point)
        if isinstance(point, LlmPoint):
            return Verdict(_action(point), point.stage, "allowed")
        form = _hook_form(point)
        given = self._given(point, form)
        captured = self._engine.candidates(given.hook, given.tool_name, given.tool_aliases)
        if any(registration.blocking for registration in captured):
            result = await asyncio.to_thread(self._engine.run_hook, given, captured)
        else:
            result = self._engine.run_hook(given, captured)
        if any(registration.evaluate_async for registration in captured):
            result = merge(result, await self._engine.run_async_hook(given, result.effects, captured))
        return self._conclude(point, form, result, started)

    def wants(self, stage: Stage) -> bool:
        """True where the effect engine has a hook: its handlers may follow a reload, and the journal is told."""
        return stage in HOOK_STAGES

    def changes(self, stage: Stage) -> bool:
        """True for calls, which any check may refuse."""
        return stage == "tool.call"

    def _given(self, point: HookPoint, form: HookForm | None) -> HookInput:
        context = point.context
        match point:
            case TurnStart():
                continues = bool(point.metadata.get("requestContinuation"))
                active = point.metadata.get("activeToolNames")
                self._turns.begin(context.session, context.turn, continues=continues, active_tools=active)
            case ToolCall():
                name = form.name if form else point.tool_name
                self._turns.called(context.session, context.turn, point.call_id, name)
            case TurnEnd():
                return hook_input(point, form, self._turns.facts(context.session, context.turn))
            case _:
                pass
        given = hook_input(point, form)
        command = self._validation(given) if form is not None else None
        return given if command is None else with_validation(given, command)

    def _conclude(self, point: Point, form: HookForm | None, result: HookResult, started: float) -> Verdict:
        session = point.context.session
        meaning = consume(
            result,
            prior=point.annotations if isinstance(point, ToolResult) else (),
            continuation_spent=isinstance(point, TurnEnd) and self._turns.continuation_spent(session),
        )
        if meaning.continuation is not None:
            self._turns.spend_continuation(session)
        verdict = Verdict(
            action=_action(point),
            stage=point.stage,
            outcome="refused" if meaning.refusal else "allowed",
            refusal=meaning.refusal,
            annotations=meaning.annotations,
            reminders=meaning.reminders,
            continuation=meaning.continuation,
            tool_choice=self._tool_choice(point, form, meaning),
            notices=meaning.notices,
            reactions=reactions(result),
            duration_ms=(self._clock.monotonic() - started) * 1000,
        )
        return self._written(point, form, verdict, facts=filled_keys(result.input.metadata))

    def _tool_choice(self, point: Point, form: HookForm | None, meaning: Consumed) -> ToolChoice | None:
        """What holds for the next request, of what this verdict and those before it in the turn said."""
        context = point.context
        standing = self._turns.choose(context.session, context.turn, meaning.tool_choice)
        if standing is None or not isinstance(point, ToolCall) or meaning.refusal is not None or form is None:
            return standing
        names = (form.name, *form.aliases)
        self._turns.started(context.session, context.turn, names)
        return None if standing.tool_name in names else standing

    def _passed_off(self, point: Point) -> Verdict:
        outcome: Outcome = "off"
        annotations = point.annotations if isinstance(point, ToolResult) else ()
        verdict = Verdict(action=_action(point), stage=point.stage, outcome=outcome, annotations=annotations)
        return self._written(point, _hook_form(point), verdict)

    def _written(self, point: Point, form: HookForm | None, verdict: Verdict, *, facts: Sequence[str] = ()) -> Verdict:
        for record in records_of(point, form, verdict, self._clock.now(), facts):
            self._journal.write(record)
        return verdict


def _hook_form(point: Point) -> HookForm | None:
    if isinstance(point, ToolCall | ToolResult):
        return read_call(point.context.agent, point.tool_name, point.arguments, point.leaf)
    return None


def _action(point: Point) -> str:
    """A call and its result share one action, wherever and however often they are judged."""
    if isinstance(point, ToolCall | ToolResult):
        return derived_id("a", point.context.session, point.call_id)
    return random_id("a", 10)
