"""`judge`: the only place where the order lives: shape, check, ask."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from interpose.catalog.reading import HookForm, read_call
from interpose.contracts.effects import HookInput, HookResult, Registration
from interpose.contracts.ports import Approvals, Clock, Journal, Pause
from interpose.contracts.stages import HookPoint, LlmPoint, Point, Stage, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.contracts.verdict import Outcome, ToolChoice, Verdict
from interpose.effects.contract import MiddlewareContract
from interpose.kernel.ids import derived_id, random_id
from interpose.policy.asking import ASK_TIMEOUT_S, NOTHING_ASKED, Asked, Asking, Question, timed
from interpose.policy.consumption import Consumed, consume, merge, reactions
from interpose.policy.inputs import as_proposed, as_shaped, filled_keys, hook_input, with_validation
from interpose.policy.records import question_record, records_of
from interpose.policy.shaping import final_of, llm_verdict, says_nothing, shaped_fields
from interpose.policy.turns import Turns
from interpose.stages.executor import Shaping, shape, shape_async
from interpose.stages.table import StageTable

HOOK_STAGES: Final[frozenset[Stage]] = frozenset({"turn.start", "tool.call", "tool.result", "turn.end", "compaction"})
"""The stages at which the effect engine has a hook."""

ValidationOf: TypeAlias = Callable[[HookInput], str | None]
"""The command of a tool call that proves something (tests, a linter, a build), for people; None for every other."""


def nothing_validates(_given: HookInput) -> None:
    """Knows no command that proves anything."""


class _Case(NamedTuple):
    """A point under judgement: its hook form as proposed, what shape made of it, when it began."""

    point: HookPoint
    form: HookForm | None
    shaping: Shaping | None
    started: float


class EffectPolicy:
    """The port `Policy` over shape handlers, one effect engine, and a person.

    Any thread may judge; the state it keeps is per session and bounded.
    """

    def __init__(
        self,
        engine: MiddlewareContract,
        *,
        journal: Journal,
        clock: Clock,
        pause: Pause,
        validation: ValidationOf = nothing_validates,
        shapes: StageTable | None = None,
        approvals: Approvals | None = None,
        ask_timeout_s: float = ASK_TIMEOUT_S,
    ) -> None:
        """`validation` is asked about each tool point, on the judging thread; it must not raise.

        Without `approvals` nobody can be asked, and what nobody can tell is refused.
        """
        self._engine = engine
        self._journal = journal
        self._clock = clock
        self._pause = pause
        self._validation = validation
        self._turns = Turns()
        self._asking = Asking(approvals, self._turns, timeout_s=ask_timeout_s)
        self._shapes = shapes or StageTable.publish()
        self._generation = 0

    @property
    def engine(self) -> MiddlewareContract:
        """The registration table behind this policy."""
        return self._engine

    @property
    def shapes(self) -> StageTable:
        """The shape handlers in force."""
        return self._shapes

    def publish(self, shapes: StageTable) -> None:
        """Puts these shape handlers in force; a judgement under way keeps those it began with. Any thread may call."""
        self._shapes = shapes
        self._generation += 1

    @property
    def generation(self) -> int:
        """As the port says; what is published in the engine is for whoever does that."""
        return self._generation

    def judge(self, point: Point) -> Verdict:
        """The verdict on `point`: check runs on the caller's stack; its asynchronous half is left to `judge_async`."""
        started = self._clock.monotonic()
        if self._pause.is_off(point.context.workspace):
            return self._passed_off(point)
        form = _hook_form(point)
        handlers = self._shapes.matching(point, form)
        shaping = shape(point, handlers, form, monotonic=self._clock.monotonic) if handlers else None
        if isinstance(point, LlmPoint):
            return self._traffic(point, shaping, started)

        case = _Case(point, form, shaping, started)
        result = self._engine.run_hook(self._given(case))
        meaning = self._meaning(case, result)
        asked = self._question(case, meaning)
        if isinstance(asked, Question):
            since = self._opened(case, asked)
            asked = timed(self._asking.ask(asked), self._clock.monotonic() - since)
        return self._conclude(case, result, meaning, asked)

    async def judge_async(self, point: Point) -> Verdict:
        """The verdict on `point`: both halves of check; a blocking registration, and a person, wait in a thread."""
        started = self._clock.monotonic()
        if self._pause.is_off(point.context.workspace):
            return self._passed_off(point)
        form = _hook_form(point)
        handlers = self._shapes.matching(point, form)
        shaping = await shape_async(point, handlers, form, monotonic=self._clock.monotonic) if handlers else None
        if isinstance(point, LlmPoint):
            return self._traffic(point, shaping, started)

        case = _Case(point, form, shaping, started)
        given = self._given(case)
        captured = self._engine.candidates(given.hook, given.tool_name, given.tool_aliases)
        waits = any(registration.blocking or registration.evaluate_async for registration in captured)
        result = await self._checked_async(given, captured) if waits else self._engine.run_hook(given, captured)
        meaning = self._meaning(case, result)
        asked = self._question(case, meaning)
        if isinstance(asked, Question):
            since = self._opened(case, asked)
            asked = timed(await self._asking.ask_async(asked), self._clock.monotonic() - since)
        return self._conclude(case, result, meaning, asked)

    def wants(self, stage: Stage) -> bool:
        """True where the effect engine has a hook, whose lines the journal is told, and where a shape handler is."""
        return stage in HOOK_STAGES or bool(self._shapes.at(stage))

    def changes(self, stage: Stage) -> bool:
        """True for calls, which any check may refuse, and where a shape handler may cancel or patch."""
        return stage == "tool.call" or self._shapes.changes(stage)

    def _given(self, case: _Case) -> HookInput:
        """What check is told: the facts of what was proposed, about the final form."""
        point, shaping = case.point, case.shaping
        form = case.form if shaping is None else shaping.form
        context = point.context
        match point:
            case TurnStart():
                continues = bool(point.metadata.get("requestContinuation"))
                active = point.metadata.get("activeToolNames")
                self._turns.begin(context.session, context.turn, continues=continues, active_tools=active)
                if shaping is not None and isinstance(shaping.point, TurnStart):
                    point = shaping.point
            case ToolCall():
                name = form.name if form else point.tool_name
                self._turns.called(context.session, context.turn, point.call_id, name)
            case TurnEnd():
                return hook_input(point, form, self._turns.facts(context.session, context.turn))
            case _:
                pass
        given = hook_input(point, form)
        if isinstance(point, ToolResult):
            proposed = self._turns.proposed(context.session, point.call_id)
            given = given if proposed is None else as_proposed(given, proposed)
        if shaping is not None:
            given = as_shaped(given, shaping)
        command = self._validation(given) if form is not None else None
        return given if command is None else with_validation(given, command)

    async def _checked_async(self, given: HookInput, captured: tuple[Registration, ...]) -> HookResult:
        if any(registration.blocking for registration in captured):
            result = await asyncio.to_thread(self._engine.run_hook, given, captured)
        else:
            result = self._engine.run_hook(given, captured)
        if any(registration.evaluate_async for registration in captured):
            result = merge(result, await self._engine.run_async_hook(given, result.effects, captured))
        return result

    def _meaning(self, case: _Case, result: HookResult) -> Consumed:
        point, context = case.point, case.point.context
        match point:
            case ToolResult():
                return consume(result, prior=point.annotations)
            case TurnEnd() if result.effects:
                return consume(result, may_continue=self._turns.may_continue(context.session, context.turn))
            case _:
                return consume(result)

    def _question(self, case: _Case, meaning: Consumed) -> Question | Asked:
        """What a person is to be asked; nothing about what is refused already."""
        shaping = case.shaping
        doubts = meaning.doubts if shaping is None else (*shaping.doubts, *meaning.doubts)
        if not doubts or meaning.refusal is not None or (shaping is not None and shaping.refusal is not None):
            return NOTHING_ASKED

        call = final_of(case.point, shaping)
        return self._asking.about(call, doubts) if isinstance(call, ToolCall) else NOTHING_ASKED

    def _opened(self, case: _Case, question: Question) -> float:
        """Tells the journal that a person is asked; when that was."""
        self._journal.write(question_record(case.point, case.form, _action(case.point), self._clock.now(), question))
        return self._clock.monotonic()

    def _conclude(self, case: _Case, result: HookResult, meaning: Consumed, asked: Asked) -> Verdict:
        point, shaping = case.point, case.shaping
        session = point.context.session
        if meaning.continuation is not None:
            self._turns.spend_continuation(session)
        refusal = (shaping and shaping.refusal) or meaning.refusal or asked.refusal
        outcome: Outcome = "refused" if refusal else "allowed"
        text, arguments = None, None
        if refusal is None and shaping is not None and shaping.changed:
            outcome = "patched"
            text, arguments = shaped_fields(shaping.point)
            if isinstance(point, ToolCall):
                self._turns.propose(session, point.call_id, str(result.input.metadata["callFingerprint"]))
        said = reactions(result)
        if shaping is not None:
            said = (*shaping.reactions, *said)
        verdict = Verdict(
            action=_action(point),
            stage=point.stage,
            outcome=outcome,
            refusal=refusal,
            arguments=arguments,
            text=text,
            annotations=meaning.annotations,
            reminders=meaning.reminders,
            continuation=meaning.continuation,
            tool_choice=self._tool_choice(case, meaning, is_refused=refusal is not None),
            notices=meaning.notices if shaping is None else (*shaping.notices, *meaning.notices),
            reactions=said if asked.reaction is None else (*said, asked.reaction),
            duration_ms=(self._clock.monotonic() - case.started) * 1000,
        )
        return self._written(point, case.form, verdict, facts=filled_keys(result.input.metadata))

    def _tool_choice(self, case: _Case, meaning: Consumed, *, is_refused: bool) -> ToolChoice | None:
        """What holds for the next request, of what this verdict and those before it in the turn said."""
        point, form = case.point, case.form
        context = point.context
        standing = self._turns.choose(context.session, context.turn, meaning.tool_choice)
        if standing is None or not isinstance(point, ToolCall) or is_refused or form is None:
            return standing
        names = (form.name, *form.aliases)
        self._turns.started(context.session, context.turn, names)
        return None if standing.tool_name in names else standing

    def _traffic(self, point: LlmPoint, shaping: Shaping | None, started: float) -> Verdict:
        """The verdict on the model's traffic, which only shape sees; the journal is told what somebody said."""
        if shaping is None:
            return Verdict(_action(point), point.stage, "allowed")
        verdict = llm_verdict(point, shaping, _action(point), (self._clock.monotonic() - started) * 1000)
        return verdict if says_nothing(shaping) else self._written(point, None, verdict)

    def _passed_off(self, point: Point) -> Verdict:
        outcome: Outcome = "off"
        if isinstance(point, LlmPoint):
            return Verdict(_action(point), point.stage, outcome)
        annotations = point.annotations if isinstance(point, ToolResult) else ()
        verdict = Verdict(action=_action(point), stage=point.stage, outcome=outcome, annotations=annotations)
        return self._written(point, _hook_form(point), verdict)

    def _written(self, point: Point, form: HookForm | None, verdict: Verdict, *, facts: Sequence[str] = ()) -> Verdict:
        for record in records_of(point, form, verdict, self._clock.now(), facts):
            self._journal.write(record)
        return verdict


def _hook_form(point: Point) -> HookForm | None:
    match point:
        case ToolCall() | ToolResult():
            return read_call(point.context.agent, point.tool_name, point.arguments, point.leaf)
        case _:
            return None


def _action(point: Point) -> str:
    """A call and its result share one action, wherever and however often they are judged."""
    match point:
        case ToolCall() | ToolResult():
            return derived_id("a", point.context.session, point.call_id)
        case _:
            return random_id("a", 10)
