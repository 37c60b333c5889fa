"""Ask, the third step: what nobody could tell is put to a person, about exactly what will run.

Knows: doubts, the port `Approvals`, what an answer means, which yes still holds.
Does not know: where the person sees it.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from interpose.contracts.digest import call_digest
from interpose.contracts.ports import ApprovalRequest, Approvals
from interpose.contracts.stages import ToolCall
from interpose.contracts.verdict import Answer, Reaction, Refusal
from interpose.contracts.wording import doubt_text
from interpose.kernel.boundary import fault_line, guarded
from interpose.kernel.waiting import in_thread
from interpose.policy.turns import Turns
from interpose.stages.executor import Doubt

ASK_TIMEOUT_S: Final = 120.0
"""How long a person has; silence refuses."""


@dataclass(frozen=True, slots=True)
class Question:
    """One call that a person must be asked about, as it will run, and everybody who wants that."""

    call: ToolCall
    request: ApprovalRequest
    doubts: tuple[Doubt, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of it: a refusal, or None for a yes; and the line for the journal, if anybody was asked."""

    refusal: Refusal | None = None
    reaction: Reaction | None = None


NOTHING_ASKED: Final = Asked()


class Asking:
    """Puts questions to a person. Any thread may ask, many at once; only True allows."""

    def __init__(self, approvals: Approvals | None, turns: Turns, *, timeout_s: float = ASK_TIMEOUT_S) -> None:
        self._approvals = approvals
        self._turns = turns
        self._timeout_s = timeout_s

    def about(self, call: ToolCall, doubts: tuple[Doubt, ...]) -> Question | Asked:
        """The question that is to be asked, or what comes of it where none need or can be.

        `call` is the final form in the agent's words. A yes to the same call holds for the rest of its turn.
        """
        if not doubts:
            return NOTHING_ASKED
        if call.problem is not None:  # nobody can be shown what would run
            return _refused(doubts, ", nor can anybody be shown it and asked")
        context = call.context
        digest = call_digest(call.tool_name, call.arguments)
        if self._turns.consented(context.session, context.turn, call.call_id, digest):
            return Asked(None, _reaction(doubts, "continue", "a person said yes to this before, in the same turn", 0.0))
        if not self._can_ask():
            return _refused(doubts, " and nobody could be asked")
        request = ApprovalRequest(
            tool_name=call.tool_name,
            arguments=call.arguments,
            digest=digest,
            reason=_reasons(doubts),
            handler=doubts[0].handler,
            session=context.session,
            workspace=context.workspace,
            agent=context.agent or "",
            call_id=call.call_id,
        )
        return Question(call, request, doubts)

    def ask(self, question: Question, *, given_up: threading.Event | None = None) -> Asked:
        """What the person says; waits for it in this thread. `given_up` takes the question back."""
        approvals = self._approvals
        assert approvals is not None  # noqa: S101 - without it there is no question
        doubts, request = question.doubts, question.request
        try:
            answer = approvals.ask(request, timeout_s=self._timeout_s, given_up=given_up)
        except Exception as error:  # noqa: BLE001 - whoever asks the person failed: closed
            return _refused(doubts, f" and asking a person failed ({fault_line(error)})", asked=True)
        if answer is True:
            context = question.call.context
            self._turns.consent(context.session, context.turn, request.call_id, request.digest)
            return Asked(None, _reaction(doubts, "continue", "a person said yes", 0.0))
        if answer is None:
            within = f" within {self._timeout_s:g} s" if self._can_ask() else ", and nobody can be asked any more"
            return _refused(doubts, f" and nobody answered{within}", asked=True)
        reason = f"a person was asked and said no: {request.reason}"
        return Asked(Refusal(doubts[0].handler, reason), _reaction(doubts, "cancel", "a person said no", 0.0))

    async def ask_async(self, question: Question) -> Asked:
        """As `ask`, from an event loop: a thread waits. Cancelling takes the question back."""
        given_up = threading.Event()
        try:
            return await in_thread(lambda: self.ask(question, given_up=given_up))
        finally:
            given_up.set()

    def _can_ask(self) -> bool:
        return self._approvals is not None and guarded(self._approvals.can_ask, failure=lambda _error: False)


def timed(asked: Asked, waited_s: float) -> Asked:
    """With how long the person took."""
    if asked.reaction is None:
        return asked
    return replace(asked, reaction=asked.reaction._replace(duration_ms=waited_s * 1000))


def _refused(doubts: Sequence[Doubt], then: str, *, asked: bool = False) -> Asked:
    text = doubt_text("tool.call", [doubt.reason for doubt in doubts], then)
    told = _reaction(doubts, "cancel", then.removeprefix(" and "), 0.0) if asked else None
    return Asked(Refusal(doubts[0].handler, text), told)


def _reaction(doubts: Sequence[Doubt], answer: Answer, reason: str, duration_ms: float) -> Reaction:
    first = doubts[0]
    return Reaction(first.handler, first.kind, "ask", answer, reason=reason, duration_ms=duration_ms)


def _reasons(doubts: Sequence[Doubt]) -> str:
    return "; ".join(dict.fromkeys(doubt.reason for doubt in doubts))
