"""From a model's reply to a response: which calls run in which order, and what the model is told about each.

Knows: that a first failure stops the rest, and how a failure is told. Does not know: how a call runs; whoever drives
the steps runs each call it is given and sends back the answer, sync or async.
"""

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from interpose.chain.layers import innermost, renamer
from interpose.contracts.drivers import CallOutcome, DriverResponse, ToolCallRecord
from interpose.contracts.errors import InterposeError, MisuseError, UnknownToolError
from interpose.drivers.attempt import Attempt
from interpose.drivers.calls import ProposedCall
from interpose.drivers.extraction import ExtractionStrategy, Reply, Told, told_text
from interpose.drivers.prompts import PromptStrategy, filled
from interpose.drivers.results import error_text, redacted, told


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from a reply, and by whom."""

    reply: Reply
    strategy: ExtractionStrategy
    calls: tuple[ProposedCall, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of one call, and what the model is told about it."""

    record: ToolCallRecord
    text: str


@dataclass(frozen=True, slots=True)
class Wording:
    """How a failure is told: the texts, and what takes secrets out of them."""

    prompts: PromptStrategy
    redact: Callable[[str], str]


Steps: TypeAlias = Generator[ProposedCall, Answered, DriverResponse]
"""Yields the calls to run, receives what became of each, returns the response."""


def read(
    reply: Reply, strategies: Sequence[ExtractionStrategy], prompts: PromptStrategy, *, streaming: bool
) -> Reading | None:
    """The calls in a reply; None when it has none, or, while it is being received, when more may come."""
    for strategy in strategies:
        calls = strategy.read(reply, prompts, streaming=streaming)
        if calls is not None:
            return Reading(reply, strategy, calls) if calls else None
    return None


def is_ours(reading: Reading, offered: Collection[str], prompts: PromptStrategy) -> bool:
    """Whether to act on a reply: one whose calls are all of unknown tools may be another driver's."""
    if prompts.unknown_tool == "retry_with_list":
        return True
    return any(not call.tool_name or call.tool_name in offered for call in reading.calls)


def steps(reading: Reading, wording: Wording) -> Steps:
    """All calls in order; after the first failure the rest is skipped."""
    answers: list[Answered] = []
    first_failure: Answered | None = None
    for call in reading.calls:
        if first_failure is not None:
            answers.append(_skipped(call, wording.prompts))
            continue
        answer = (yield call) if call.problem is None else malformed(call, call.problem, wording)
        answers.append(answer)
        if answer.record.outcome == "failed":
            first_failure = answer
    return _response(reading, answers, first_failure, wording.prompts)


def succeeded(call: ProposedCall, attempt: Attempt, result: Any, duration_ms: float) -> Answered:
    """The answer for a call that came back with `result`, from the tool or from a middleware."""
    text = told(result)
    name, arguments = attempt.run.executed or (None, None)
    outcome: CallOutcome = "executed" if attempt.run.returned else "short_circuited"
    record = ToolCallRecord(
        call.call_id, call.tool_name, call.arguments, outcome, name, arguments, result, text, duration_ms=duration_ms
    )
    return Answered(record, text)


def failed(
    call: ProposedCall,
    attempt: Attempt | None,
    error: Exception,
    duration_ms: float,
    wording: Wording,
) -> Answered:
    """The answer for a call that raised; `attempt` is None when not even the list of tools could be had."""
    from_tool = attempt is not None and attempt.tool_error is error
    layer = None if from_tool else _raiser(error)
    text = error_text(error)
    who = layer or _failing(call, attempt, by_misuse=isinstance(error, MisuseError) and not from_tool)
    detail = "\n".join([f"{who} failed: {text}", *notes_of(error)])
    name, arguments = (attempt and attempt.run.executed) or (None, None)
    record = ToolCallRecord(
        call.call_id,
        call.tool_name,
        call.arguments,
        "failed",
        name,
        arguments,
        error=redacted(detail, wording.redact),
        duration_ms=duration_ms,
    )
    return Answered(record, redacted(_retry_text(call, error, text, wording.prompts), wording.redact))


def blame(attempt: Attempt, error: BaseException) -> None:
    """Notes on an exception which middleware raised it, where neither the tool nor a note says so already."""
    layer = None if attempt.tool_error is error else _raiser(error)
    if layer is not None and not notes_of(error):
        error.add_note(f"raised by the middleware {layer}")


def _failing(call: ProposedCall, attempt: Attempt | None, *, by_misuse: bool) -> str:
    """What failed, where no layer did; of misuse the text says whose it is."""
    if attempt is None:
        return "the list of tools"
    return f"the call of {call.tool_name!r}" if by_misuse else f"Tool {call.tool_name!r}"


def _raiser(error: BaseException) -> str | None:
    """The layer that an exception came from; of a tool that there is not, the one that made up its name."""
    return (renamer(error) if isinstance(error, UnknownToolError) else None) or innermost(error)


def notes_of(error: BaseException) -> list[str]:
    """What was noted on an exception, such as who raised it."""
    return [str(note) for note in getattr(error, "__notes__", ())]


def malformed(call: ProposedCall, problem: str, wording: Wording) -> Answered:
    """The answer for a call that cannot be read; nothing ran."""
    detail = redacted(f"{call.tool_name or 'a call'} did not run: {problem}", wording.redact)
    text = filled(wording.prompts.retry_malformed, {"tool": call.tool_name or "a tool", "problem": problem})
    record = ToolCallRecord(call.call_id, call.tool_name, {}, "failed", error=detail)
    return Answered(record, redacted(text, wording.redact))


def _skipped(call: ProposedCall, prompts: PromptStrategy) -> Answered:
    return Answered(ToolCallRecord(call.call_id, call.tool_name, call.arguments, "skipped"), prompts.skipped)


def _retry_text(call: ProposedCall, error: Exception, text: str, prompts: PromptStrategy) -> str:
    values = {"tool": call.tool_name, "error": text}
    match error:
        case UnknownToolError():
            values["available"] = ", ".join(error.available) or "none"
            return filled(prompts.retry_unknown_tool, {**values, "tool": error.tool})
        case InterposeError(retry_helps=False):
            return filled(prompts.retry_misconfigured, values)
        case _:
            return filled(prompts.retry_failed, values)


def _response(
    reading: Reading, answers: Sequence[Answered], failed: Answered | None, prompts: PromptStrategy
) -> DriverResponse:
    answered = [
        Told(call, answer.text, answer.record.outcome in {"failed", "skipped"})
        for call, answer in zip(reading.calls, answers, strict=True)
    ]
    came_back = [each for each in answered if not each.failed]
    return DriverResponse(
        call_executed=failed is None,
        call_failed=failed is not None,
        tool_call_result=told_text(came_back) if came_back else None,
        call_detail=None if failed is None else failed.record.error,
        retry_prompt=None if failed is None else told_text(answered),
        messages=reading.strategy.messages(reading.reply, answered, prompts),
        tool_calls=tuple(answer.record for answer in answers),
    )
