"""The guard `guard.loop`: an agent that repeats itself is refused, then loses its tools, then is stopped.

Knows: attempts, results, turns, and the numbers below. Does not know: what a tool does.

State, per session (the 1,024 used last): the attempts of the last 30 seconds, 128 calls that succeeded, 512
answers by call id, and 32 turns with their counters. Any thread may evaluate; one lock is held for the bookkeeping
and never while an event is told. A call judged at two mounts counts once, by its id. Where a mount knows neither
turns nor prompts nothing that lasts a turn applies: identical calls alone are refused, without lockout and budget.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from interpose.contracts.effects import (
    AnnotateToolResult,
    BlockTool,
    Effect,
    EvaluationContext,
    HookInput,
    LockTools,
    Registration,
)
from interpose.contracts.ports import Clock
from interpose.guards.given import (
    NO_TURN,
    call_identity,
    is_continuation,
    session_of,
    succeeded,
    text_of,
    tool_turn,
)
from interpose.guards.repetition import REPEATS, Attempts, Stagnation, is_empty_stub, shape_of
from interpose.guards.settings import DEFAULT_TURN_TOOL_BUDGET
from interpose.guards.state import CALLS_KEPT, SESSIONS_KEPT, TURNS_KEPT, Recent
from interpose.kernel.boundary import guarded

LOOP_ID: Final = "guard.loop"
BLOCK_BUDGET: Final = 2
"""Refusals in one turn at which its tools are locked."""

DENIALS: Final = 2
"""Further model rounds in which a locked turn may ask for tools before it is stopped."""

HARD_MARGIN: Final = 15
"""Calls after the budget at which the turn is stopped."""

SUCCESSES_KEPT: Final = 128

Disposition: TypeAlias = Literal["block", "lockout", "stop"]


@dataclass(frozen=True, slots=True)
class LoopBlocked:
    """A call was refused as a loop, or because the turn has lost its tools. `stop` asks to end the turn."""

    session: str
    turn: str | None
    tool: str
    repeat_count: int
    blocks_this_turn: int
    budget: int
    disposition: Disposition
    at: float

    @property
    def interrupted(self) -> bool:
        """Whether the turn should be ended."""
        return self.disposition == "stop"


@dataclass(frozen=True, slots=True)
class ToolBudgetExceeded:
    """A turn has used up its tool calls. `interrupted` is true the second time: the turn should be ended."""

    session: str
    turn: str | None
    tool: str
    calls: int
    budget: int
    interrupted: bool
    at: float


LoopEvent: TypeAlias = LoopBlocked | ToolBudgetExceeded
LoopSink: TypeAlias = Callable[[LoopEvent], None]


@dataclass(slots=True)
class _Turn:
    blocks: int = 0
    calls: int = 0
    locked: bool = False
    rounds: set[str] = field(default_factory=set)
    denials: int = 0
    results: Stagnation = field(default_factory=Stagnation)


@dataclass(slots=True)
class _Session:
    attempts: Attempts = field(default_factory=Attempts)
    successes: Recent[bytes, bool] = field(default_factory=lambda: Recent(SUCCESSES_KEPT, touch=False))
    turns: Recent[str, _Turn] = field(default_factory=lambda: Recent(TURNS_KEPT, touch=False))
    answers: Recent[str, "_Answered"] = field(default_factory=lambda: Recent(CALLS_KEPT, touch=False))
    results: Recent[str, bool] = field(default_factory=lambda: Recent(CALLS_KEPT, touch=False))
    outputs: Recent[bytes, str] = field(default_factory=lambda: Recent(SUCCESSES_KEPT, touch=False))


@dataclass(frozen=True, slots=True)
class _Answered:
    identity: bytes | None
    round: str | None
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class _Said:
    effects: tuple[Effect, ...] = ()
    event: LoopEvent | None = None


class LoopGuard:
    """Judges the calls of one workspace.

    `turn_tool_budget` None sets no bound on the calls of a turn. `sink` is told each event after the lock is let go;
    what it raises is lost.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        turn_tool_budget: int | None = DEFAULT_TURN_TOOL_BUDGET,
        block_budget: int = BLOCK_BUDGET,
        sink: LoopSink | None = None,
    ) -> None:
        self._clock = clock
        self._soft = sys.maxsize if turn_tool_budget is None else turn_tool_budget
        self._hard = self._soft + HARD_MARGIN
        self._block_budget = block_budget
        self._sink = sink
        self._lock = threading.Lock()
        self._sessions: Recent[str, _Session] = Recent(SESSIONS_KEPT)
        self._prompts: Recent[str, int] = Recent(SESSIONS_KEPT)  # apart: most sessions never call a tool

    def registration(self) -> Registration:
        """The guard's entry in the table."""
        return Registration(
            id=LOOP_ID,
            description="refuses an agent that repeats itself, then takes its tools until the next prompt",
            hooks=("before_tool", "after_tool", "turn_start"),
            evaluate=self.evaluate,
            fail_closed=True,
            reads=("callFingerprint", "resultKind"),
        )

    def evaluate(self, given: HookInput, _context: EvaluationContext) -> tuple[Effect, ...]:
        """The refusal or warning that this call or result earns, if any."""
        name = session_of(given)
        with self._lock:
            if given.hook == "turn_start":
                self._prompt(name, given)
                return ()
            session = self._sessions.get_or_make(name, _Session)
            said = self._before(given, session) if given.hook == "before_tool" else self._after(given, session)
        self._tell(said.event)
        return said.effects

    def _prompt(self, session: str, given: HookInput) -> None:
        """A new prompt ends whatever lasts a turn, also where turns have no ids."""
        if not is_continuation(given):
            self._prompts.put(session, (self._prompts.get(session) or 0) + 1)

    def _before(self, given: HookInput, session: _Session) -> _Said:
        identity = call_identity(given)
        answered = session.answers.get(given.tool_call_id) if given.tool_call_id else None
        if answered is not None and _is_same_call(answered, given, identity):
            return _Said(answered.effects)

        said = self._judge(given, session, identity)
        if given.tool_call_id:
            session.answers.put(given.tool_call_id, _Answered(identity, given.correlation_id, said.effects))
            session.results.pop(given.tool_call_id)
        return said

    def _judge(self, given: HookInput, session: _Session, identity: bytes | None) -> _Said:
        name, lasts = self._turn_of(given)
        turn = session.turns.get_or_make(name, _Turn)
        if turn.locked:
            return self._deny(given, turn)
        if identity is not None:
            count = session.attempts.count(_key(name, identity), self._clock.monotonic())
            if count >= REPEATS:
                return self._block(
                    given, turn, count, _repeated(given, count, identity in session.successes), lasts=lasts
                )
            if lasts and turn.results.is_stuck(given):
                return self._block(given, turn, turn.results.repeats + 1, _stuck(given, turn), lasts=lasts)
        return self._spend(given, turn) if lasts else _Said()

    def _block(self, given: HookInput, turn: _Turn, count: int, reason: str, *, lasts: bool) -> _Said:
        turn.blocks += 1
        if lasts and turn.blocks >= self._block_budget:
            turn.locked = True
            if given.correlation_id:
                turn.rounds.add(given.correlation_id)
            return _Said(_refused(_locked(given), lock=True), self._blocked(given, turn, count, "lockout"))
        return _Said(_refused(reason), self._blocked(given, turn, count, "block"))

    def _deny(self, given: HookInput, turn: _Turn) -> _Said:
        if turn.denials <= DENIALS and given.correlation_id not in turn.rounds:
            turn.denials += 1
            if given.correlation_id:
                turn.rounds.add(given.correlation_id)
        if turn.denials > DENIALS:
            return _Said(_refused(_stopped(given), lock=True), self._blocked(given, turn, 0, "stop"))
        return _Said(_refused(_locked(given), lock=True), self._blocked(given, turn, 0, "lockout"))

    def _spend(self, given: HookInput, turn: _Turn) -> _Said:
        turn.calls += 1
        if turn.calls < self._soft:
            return _Said()
        event = None
        if turn.calls in (self._soft, self._hard):
            event = ToolBudgetExceeded(
                session=session_of(given),
                turn=given.turn_id,
                tool=given.tool_name or "",
                calls=turn.calls,
                budget=self._soft,
                interrupted=turn.calls == self._hard,
                at=self._clock.now(),
            )
        if turn.calls >= self._hard:
            return _Said(_refused(_over_hard(turn.calls), lock=True), event)
        return _Said(_refused(_over_soft(turn.calls, self._soft)), event)

    def _after(self, given: HookInput, session: _Session) -> _Said:
        if given.tool_call_id:
            if given.tool_call_id in session.results:
                return _Said()
            session.results.put(given.tool_call_id, True)
            session.answers.pop(given.tool_call_id)
        identity = call_identity(given)
        name, _ = self._turn_of(given)
        if identity is not None and succeeded(given) and not is_empty_stub(given.tool_result_details):
            session.successes.put(identity, True)
        if identity is not None:
            _let_go(given, session, identity, _key(name, identity))
        turn = session.turns.get_or_make(name, _Turn)
        if turn.results.take(given, shape_of(given)):
            return _Said((AnnotateToolResult(_asked_differently(given), "warn"),))
        return _Said()

    def _turn_of(self, given: HookInput) -> tuple[str, bool]:
        """The turn's key, and whether it is known when it ends."""
        turn = tool_turn(given)
        if turn != NO_TURN:
            return turn, True
        prompts = self._prompts.get(session_of(given)) or 0
        return f"{NO_TURN}:{prompts}", prompts > 0

    def _blocked(self, given: HookInput, turn: _Turn, count: int, disposition: Disposition) -> LoopBlocked:
        return LoopBlocked(
            session=session_of(given),
            turn=given.turn_id,
            tool=given.tool_name or "",
            repeat_count=count,
            blocks_this_turn=turn.blocks,
            budget=self._block_budget,
            disposition=disposition,
            at=self._clock.now(),
        )

    def _tell(self, event: LoopEvent | None) -> None:
        sink = self._sink
        if event is None or sink is None:
            return
        guarded(lambda: sink(event), failure=lambda _: None)


def _is_same_call(answered: _Answered, given: HookInput, identity: bytes | None) -> bool:
    """Whether a call with the same id is the same one at another mount, and not a later one of a lazy counter."""
    if answered.identity != identity:
        return False
    return None in (answered.round, given.correlation_id) or answered.round == given.correlation_id


def _key(turn: str, identity: bytes) -> str:
    return f"{turn}|{identity.hex()}"


def _let_go(given: HookInput, session: _Session, identity: bytes, key: str) -> None:
    """Forgets attempts that are no repetition any more.

    A file was changed, so the same test is another question; or the same call gave another result, so whoever waits
    for something is not going round in circles.
    """
    if succeeded(given) and given.metadata.get("actionClass") == "write":
        session.attempts.forget(but=key)
        return
    output = text_of(given, "resultFingerprint")
    if output is None:
        return
    before = session.outputs.get(identity)
    session.outputs.put(identity, output)
    if before is not None and before != output:
        session.attempts.forget(key=key)


def _refused(reason: str, *, lock: bool = False) -> tuple[Effect, ...]:
    return (BlockTool(reason), LockTools()) if lock else (BlockTool(reason),)


def _repeated(given: HookInput, count: int, has_succeeded: bool) -> str:
    known = " It has already succeeded: its result stands above, use that." if has_succeeded else ""
    return (
        f"{given.tool_name} was called with the same arguments {count} times.{known} "
        "Do something else, or answer with what you have."
    )


def _stuck(given: HookInput, turn: _Turn) -> str:
    return (
        f"{given.tool_name} gave the same result {turn.results.repeats} times for this request, and asking for another "
        "part of it changed nothing. Use the result above, or ask for something else."
    )


def _locked(given: HookInput) -> str:
    return f"{given.tool_name} did not run: tools are off until the next prompt. Answer now with what you have."


def _stopped(given: HookInput) -> str:
    return f"{given.tool_name} did not run: tools are off and were asked for again, so this turn is being stopped."


def _over_soft(calls: int, budget: int) -> str:
    return (
        f"this is tool call {calls} of the turn and its budget is {budget}. Call no more tools: sum up what is done, "
        "what is left, and stop."
    )


def _over_hard(calls: int) -> str:
    return f"this is tool call {calls} of the turn, far over its budget, so the turn is being stopped."


def _asked_differently(given: HookInput) -> str:
    return (
        f"{given.tool_name} was asked in three different ways and gave the same result each time. "
        "A fourth way will not change it: work with this result."
    )
