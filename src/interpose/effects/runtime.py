"""The evaluation loops: every matching registration once, in order, each apart from the others.

Knows: order, prior effects, isolation, the text cap, time. Does not know: the table, or what an effect leads to.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import (
    HOOK_TEXT_MAX_CHARS,
    BlockTool,
    Effect,
    Emission,
    EvaluationContext,
    HookInput,
    HookResult,
    Registration,
)
from interpose.effects.answers import failure_text, read_answer
from interpose.effects.budget import BudgetTracker
from interpose.effects.diagnostics import BudgetExceeded, Diagnostic, DiagnosticOutlet, HookFailed
from interpose.effects.scope import select
from interpose.kernel.frozen import FrozenDict, freeze

_NOTHING_BEFORE: Final = EvaluationContext()

_M = TypeVar("_M", bound=Mapping[str, object] | None)


class Instruments:
    """What a run measures and tells with; one per engine, shared by all its runs and threads.

    Attributes:
        tracker: takes one sample for each evaluation that answered.
        emit: takes diagnostics and never raises.
        monotonic: seconds that only grow; read exactly twice per evaluation.
    """

    __slots__ = ("emit", "monotonic", "tracker")

    def __init__(
        self,
        tracker: BudgetTracker | None = None,
        emit: Callable[[Diagnostic], None] | None = None,
        monotonic: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.tracker = tracker or BudgetTracker()
        self.emit = emit or DiagnosticOutlet().emit
        self.monotonic = monotonic


def run(
    hook_input: HookInput, registrations: Iterable[Registration], instruments: Instruments | None = None
) -> HookResult:
    """Evaluates those of `registrations` that match, on the caller's stack; never raises for what one of them does.

    A `block_tool` does not end the run: every matching registration is heard, and the caller decides what it means.
    Those without `evaluate` are left out.
    """
    return run_matching(hook_input, select(hook_input, registrations), instruments)


def run_matching(
    hook_input: HookInput, registrations: tuple[Registration, ...], instruments: Instruments | None = None
) -> HookResult:
    """As `run`, over registrations that are known to match."""
    tools = instruments or Instruments()
    monotonic = tools.monotonic
    progress = _Progress(frozen_input(hook_input), (), tools)
    for registration in registrations:
        evaluate = registration.evaluate
        if evaluate is None:
            continue

        started = monotonic()
        try:
            effects, unknown = read_answer(evaluate(progress.input, progress.context))
        except Exception as error:  # noqa: BLE001 - one registration; open, or as its `fail_closed` says
            progress.failed(registration, error, (monotonic() - started) * 1000)
            continue
        progress.answered(registration, effects, unknown, (monotonic() - started) * 1000)
    return progress.result()


async def run_async(
    hook_input: HookInput,
    registrations: Iterable[Registration],
    prior_effects: tuple[Effect, ...] = (),
    instruments: Instruments | None = None,
) -> HookResult:
    """The asynchronous half, after `run`: one awaited after the other, in order; the result holds its effects alone.

    Each sees `prior_effects` and then what the asynchronous ones before it emitted. The list is taken once, at the
    start. Cancelling the caller's task cancels the run; a cancellation of a registration's own making is its failure.
    """
    return await run_async_matching(hook_input, select(hook_input, registrations), prior_effects, instruments)


async def run_async_matching(
    hook_input: HookInput,
    registrations: tuple[Registration, ...],
    prior_effects: tuple[Effect, ...] = (),
    instruments: Instruments | None = None,
) -> HookResult:
    """As `run_async`, over registrations that are known to match."""
    tools = instruments or Instruments()
    monotonic = tools.monotonic
    progress = _Progress(frozen_input(hook_input), tuple(prior_effects), tools)
    for registration in registrations:
        evaluate = registration.evaluate_async
        if evaluate is None:
            continue

        started = monotonic()
        try:
            effects, unknown = read_answer(await evaluate(progress.input, progress.context))
        except asyncio.CancelledError as error:
            if _caller_is_cancelled():
                raise
            progress.failed(registration, error, (monotonic() - started) * 1000)
            continue
        except Exception as error:  # noqa: BLE001 - one registration; open, or as its `fail_closed` says
            progress.failed(registration, error, (monotonic() - started) * 1000)
            continue
        progress.answered(registration, effects, unknown, (monotonic() - started) * 1000)
    return progress.result()


def frozen_input(hook_input: HookInput) -> HookInput:
    """The input as registrations may see it: nested values frozen, text cut to 16,000 characters.

    What is already so is returned as it is, so a caller who freezes once per judgement pays once.
    """
    text = hook_input.text
    arguments, details = hook_input.tool_args, hook_input.tool_result_details
    if (
        (text is None or len(text) <= HOOK_TEXT_MAX_CHARS)
        and type(hook_input.metadata) is FrozenDict
        and (arguments is None or type(arguments) is FrozenDict)
        and (details is None or type(details) is FrozenDict)
    ):
        return hook_input

    return replace(
        hook_input,
        metadata=_frozen(hook_input.metadata),
        tool_args=_frozen(arguments),
        tool_result_details=_frozen(details),
        text=text[:HOOK_TEXT_MAX_CHARS] if text is not None else None,
    )


class _Progress:
    """One run so far. Belongs to that run alone."""

    __slots__ = ("_effects", "_emissions", "_hook", "_ids", "_tools", "context", "input")

    def __init__(self, hook_input: HookInput, prior_effects: tuple[Effect, ...], tools: Instruments) -> None:
        self.input = hook_input
        self.context = EvaluationContext(prior_effects) if prior_effects else _NOTHING_BEFORE
        self._hook = hook_input.hook
        self._effects: tuple[Effect, ...] = ()
        self._emissions: list[Emission] = []
        self._ids: dict[str, None] = {}
        self._tools = tools

    def answered(
        self, registration: Registration, effects: tuple[Effect, ...], unknown: Unknown | None, elapsed_ms: float
    ) -> None:
        hook = self._hook
        reading = self._tools.tracker.overrun(registration.id, hook, elapsed_ms)
        if reading is not None:
            self._tools.emit(
                BudgetExceeded(registration.id, hook, elapsed_ms, reading.budget_ms, reading.warn, reading.stats)
            )
        self._emissions.append(Emission(registration, effects, unknown, None, elapsed_ms))
        if effects:
            self._take(registration, effects)

    def failed(self, registration: Registration, error: BaseException, elapsed_ms: float) -> None:
        failure = failure_text(error)
        self._tools.emit(HookFailed(registration.id, self._hook, failure))
        effects: tuple[Effect, ...] = ()
        if registration.fail_closed and self._hook == "before_tool":
            effects = (BlockTool(f"{registration.id} failed, and what it guards does not run without it"),)
        self._emissions.append(Emission(registration, effects, None, failure, elapsed_ms))
        if effects:
            self._take(registration, effects)

    def result(self) -> HookResult:
        return HookResult(self._hook, self.input, self._effects, tuple(self._ids), tuple(self._emissions))

    def _take(self, registration: Registration, effects: tuple[Effect, ...]) -> None:
        if registration.mode == "observe":
            return

        self._ids[registration.id] = None
        self._effects += effects
        self.context = EvaluationContext(self.context.prior_effects + effects)


def _frozen(value: _M) -> _M:
    if value is None or type(value) is FrozenDict:
        return value
    return freeze(dict(value))  # type: ignore[no-any-return]


def _caller_is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
