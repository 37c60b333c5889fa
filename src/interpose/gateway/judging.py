"""The questions that one exchange asks the policy, and what their verdicts come to on the wire.

Knows: points, verdicts, the session's ledger. Does not know: any API's shape, sockets.
"""

from dataclasses import dataclass, field, replace
from functools import partial

from interpose.catalog.reading import canonical_name
from interpose.contracts.effects import MetadataValue
from interpose.contracts.journal import Record, Step
from interpose.contracts.ports import Clock, Journal, Policy
from interpose.contracts.stages import (
    Compaction,
    Context,
    LlmPoint,
    Point,
    Stage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from interpose.contracts.verdict import Refusal, ToolChoice, Verdict
from interpose.contracts.wording import framed, lines_in_front, withheld_text
from interpose.gateway.api import Dropped, NewResult, NewTurn, ProposedCall, RequestView, ResultEdit, TurnEdit
from interpose.gateway.ledger import SessionLedger
from interpose.gateway.wording import (
    changed_line,
    refusal_line,
    reminded,
    reminder_block,
    required_line,
    result_addition,
    withheld_prompt,
)
from interpose.kernel.boundary import fault_line
from interpose.kernel.canonical import canonical_hash
from interpose.kernel.ids import random_id

UNKNOWN_TOOL = "unknown"
"""What a result's tool is called when the history does not tell."""


@dataclass(frozen=True, slots=True)
class Judging:
    """The policy as one exchange sees it. Used by that exchange's task only.

    `place` names where in its conversation the reply will stand; the same for a request that is sent again. `is_aside`
    says that the request only shortens the history: it is no part of a turn. `is_anew` says that it is asked for anew,
    `is_stored` that the provider keeps the history.
    """

    policy: Policy
    context: Context
    ledger: SessionLedger
    journal: Journal
    clock: Clock
    place: str = ""
    is_aside: bool = False
    is_anew: bool = False
    is_stored: bool = False
    _equals: dict[str, int] = field(default_factory=dict)

    async def news(self, request: RequestView) -> tuple[TurnEdit, ToolChoice | None]:
        """Judges what is new in the request, results first; what the newest turn and the tools are told."""
        wanted: ToolChoice | None = None
        if self.is_aside:
            await self._judge(Compaction(context=self.context))
            return TurnEdit(), None
        for result in request.results:
            edit = await self.ledger.result_once(result, partial(self._result, result), partial(request.nth, result))
            wanted = edit.tool_choice or wanted
        turn = TurnEdit()
        if request.turn is not None:
            judge = partial(self._turn, request.turn, request)
            turn = await self.ledger.turn_once(request.turn, judge, is_anew=self.is_anew)
            wanted = turn.tool_choice  # what the turn before it said of tools is over
        return turn, self._as_called(wanted, request)

    def reminded_of_tool(self, request: RequestView, wanted: ToolChoice) -> bool:
        """Whether the model is now reminded of a tool that it cannot be forced to use; in what is new, and kept."""
        if wanted.mode != "required" or wanted.tool_name not in request.tool_names():
            return False
        reminder = reminded(required_line(wanted.tool_name))
        if request.turn is not None:
            self.ledger.add_to_turn(request.turn, reminder)
            return True
        if request.results:
            self.ledger.add_to_result(request.results[-1], reminder, request.nth(request.results[-1]))
            return True
        return False

    async def call(self, call: ProposedCall) -> Verdict:
        """The verdict on a proposed call; a policy that fails refuses it. The same call again has the same one."""
        now_s = self.clock.monotonic()
        verdict = await self.ledger.call_once(
            self._key(call), partial(self._call, call), call_id=call.call_id, now_s=now_s
        )
        if verdict.allowed:
            self.ledger.remember_call(call, verdict, is_stored=self.is_stored)
        return verdict

    async def turn_end(self, text: str, stop_reason: str | None) -> str | None:
        """Judges the final answer; the nudge that carries the turn onward, or None."""
        point = TurnEnd(context=self.context, text=text, stop_reason=stop_reason)
        key = f"turn.end {self.place} {len(text)} {hash(text)}"  # nobody can choose a text by its hash: it is keyed
        verdict = await self.ledger.call_once(key, partial(self._to_keep, point))
        self.ledger.wait_for_turn(verdict.reminders)
        return verdict.continuation

    async def traffic(self, point: LlmPoint) -> Verdict:
        """The verdict on a request, a reply or a part of one; a policy that fails lets it pass."""
        return await self._judge(point)

    async def _call(self, call: ProposedCall) -> Verdict:
        return await self._to_keep(
            ToolCall(
                context=self.context,
                call_id=call.call_id,
                tool_name=call.name,
                arguments=call.arguments,
                problem=call.problem,
            )
        )

    def _key(self, call: ProposedCall) -> str:
        """The same for a call that is proposed again at the same place, as when a request is sent again.

        Of equal calls in one reply each is another one.
        """
        try:
            key = canonical_hash(["tool.call", self.place, call.name, call.arguments, call.problem])
        except (ValueError, TypeError, RecursionError):
            return random_id("k")
        number = self._equals[key] = self._equals.get(key, 0) + 1
        return f"{key} {number}"

    def told(self, call: ProposedCall, verdict: Verdict) -> None:
        """Journals that what the verdict says has left for the client."""
        outcome = "released" if verdict.arguments is None else "rewritten"
        if not verdict.allowed:
            outcome = "refused"
        refusal = verdict.refusal or Refusal("", "")
        self._record(
            "applied",
            verdict.action,
            stage="tool.call",
            call=call,
            outcome=outcome,
            handler=refusal.handler,
            reason=refusal.reason,
        )

    def kept(self, verdict: Verdict) -> None:
        """Journals that an event cannot be dropped, since it tells that the reply is over."""
        refusal = verdict.refusal or Refusal("", "")
        self._record(
            "skipped",
            verdict.action,
            stage=verdict.stage,
            outcome="not_applicable",
            handler=refusal.handler,
            reason=f"an event that ends the reply can be changed, not dropped: {refusal.reason}",
        )

    def unreadable(self, stage: Stage, refusal: Refusal) -> Verdict:
        """Refuses what nobody could be shown, and journals why."""
        action = random_id("a")
        self._record("failed", action, stage=stage, outcome="refused", handler=refusal.handler, reason=refusal.reason)
        return Verdict(action=action, stage=stage, outcome="refused", refusal=refusal)

    def dropped(self, dropped: Dropped) -> None:
        """Journals that a held call never reaches the client."""
        call = ProposedCall(dropped.call_id, dropped.name, {})
        self._record("failed", random_id("a"), stage="tool.call", call=call, outcome="dropped", reason=dropped.reason)

    async def _result(self, result: NewResult) -> ResultEdit | None:
        known = self.ledger.released_call(result.call_id)
        called = known[1] if known else None
        if known is not None and not result.name:
            result = _as_released(result, *known)
        name = result.name or UNKNOWN_TOOL
        verdict = await self._judge(
            ToolResult(
                context=self.context,
                call_id=result.call_id,
                tool_name=name,
                arguments=result.arguments,
                output=result.output,
                is_error=result.is_error,
                annotations=called.annotations if called else (),
                problem=result.problem,
            )
        )
        if verdict.outcome == "off":
            return None
        withheld = None if verdict.allowed else withheld_text(name, verdict.refusal or Refusal("interpose", ""))
        return ResultEdit(
            front=lines_in_front(verdict.annotations),
            addition=framed(_changed(called), result_addition(verdict, called.reminders if called else ())),
            replacement=verdict.text if withheld is None else withheld,
            tool_choice=verdict.tool_choice or (called.tool_choice if called else None),
            keeps_rest=withheld is None and verdict.text is not None,
        )

    async def _turn(self, turn: NewTurn, request: RequestView) -> TurnEdit | None:
        facts: dict[str, MetadataValue] = {
            "conversationMessages": turn.earlier,
            "activeToolNames": self._active_tools(request),
        }
        verdict = await self._judge(TurnStart(context=self.context, prompt=turn.prompt, metadata=facts))
        if verdict.outcome == "off":
            return None
        if not verdict.allowed:
            refusal = verdict.refusal or Refusal("interpose", "no reason was given")
            return TurnEdit(replacement=withheld_prompt(refusal), refusal=refusal_line("the turn", refusal))
        return TurnEdit(
            reminder=reminder_block([*self.ledger.waiting(), *verdict.reminders]),
            replacement=verdict.text,
            tool_choice=verdict.tool_choice,
        )

    def _as_called(self, wanted: ToolChoice | None, request: RequestView) -> ToolChoice | None:
        """The choice with the required tool under the name that this agent has for it."""
        if wanted is None or wanted.tool_name is None:
            return wanted
        names = request.tool_names()
        if wanted.tool_name in names:
            return wanted
        called = (name for name in names if canonical_name(self.context.agent, name) == wanted.tool_name)
        return replace(wanted, tool_name=next(called, wanted.tool_name))

    def _active_tools(self, request: RequestView) -> str:
        names = [canonical_name(self.context.agent, name) for name in request.tool_names()]
        return ",".join(dict.fromkeys(names))

    async def _to_keep(self, point: Point) -> Verdict:
        """The verdict without what each handler said: the journal has that, and the ledger keeps verdicts for long."""
        return (await self._judge(point))._replace(reactions=())

    async def _judge(self, point: Point) -> Verdict:
        """The verdict; a policy that raises, which it must not, refuses what has not happened yet."""
        try:
            return await self.policy.judge_async(point)
        except Exception as error:  # noqa: BLE001 - the policy; closed for a call, which has not happened yet
            return self._failed(point, error)

    def _failed(self, point: Point, error: Exception) -> Verdict:
        action = random_id("a")
        reason = f"the policy failed: {fault_line(error)}"
        self._record("failed", action, stage=point.stage, reason=reason)
        if not isinstance(point, ToolCall):
            return Verdict(action=action, stage=point.stage, outcome="allowed")
        return Verdict(action=action, stage=point.stage, outcome="refused", refusal=Refusal("interpose", reason))

    def _record(
        self,
        step: Step,
        action: str,
        *,
        stage: str,
        call: ProposedCall | None = None,
        outcome: str = "",
        handler: str = "",
        reason: str = "",
    ) -> None:
        self.journal.write(
            Record(
                at=self.clock.now(),
                action=action,
                step=step,
                stage=stage,
                mount="wire",
                workspace=self.context.workspace,
                session=self.context.session,
                turn=self.context.turn or "",
                launch=self.context.launch or "",
                agent=self.context.agent or "",
                wire_name=call.name if call else "",
                call_id=call.call_id if call else "",
                handler=handler,
                outcome=outcome,
                reason=reason,
            )
        )


def _changed(called: Verdict | None) -> str:
    """What the model must know of a result whose call is in its history with its own arguments."""
    if called is None or called.arguments is None:
        return ""
    return changed_line(called.arguments)


def _as_released(result: NewResult, call: ProposedCall, verdict: Verdict) -> NewResult:
    """The result with its call as it was released; the history that has it may be kept by the provider."""
    arguments = call.arguments if verdict.arguments is None else verdict.arguments
    return replace(result, name=call.name, arguments=arguments, problem=call.problem)
