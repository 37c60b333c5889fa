"""A verdict as lines of the journal: one per handler that said something, then the verdict itself."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from interpose.catalog.reading import HookForm
from interpose.contracts.effects import Effect
from interpose.contracts.journal import Record
from interpose.contracts.stages import (
    Annotation,
    Compaction,
    LlmChunk,
    LlmRequest,
    LlmResponse,
    Point,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from interpose.contracts.verdict import Reaction, Reminder, Verdict

PAYLOAD_CHARS = 2_000
"""How much of a payload a line keeps; the rest is told by its length."""

PAYLOAD_DEPTH = 20
"""How deep a payload is kept."""


def records_of(
    point: Point, form: HookForm | None, verdict: Verdict, at: float, facts: Sequence[str] = ()
) -> Iterator[Record]:
    """The lines of one judgement, in the order in which things were said.

    `facts` are the metadata keys that handlers could read; the verdict's line keeps them.
    """
    line = _line_of(point, form, verdict, at)
    for reaction in verdict.reactions:
        if reaction.answer not in ("continue", "silent"):
            yield _answer_line(line, reaction)
    yield _verdict_line(line, point, form, verdict, facts)
    for notice in verdict.notices:
        yield line(step="notice", handler=notice.handler, reason=notice.message, data={"key": notice.key})


def effect_data(effect: Effect) -> dict[str, Any]:
    """An effect as the journal keeps it."""
    return {"kind": effect.kind, **_said(effect)}


def _line_of(point: Point, form: HookForm | None, verdict: Verdict, at: float) -> Callable[..., Record]:
    """Makes a line with what all lines of one judgement have in common."""
    context = point.context
    wire_name, call_id = (point.tool_name, point.call_id) if isinstance(point, ToolCall | ToolResult) else ("", "")
    return partial(
        Record,
        at=at,
        action=verdict.action,
        stage=point.stage,
        mount=context.mount,
        workspace=context.workspace,
        session=context.session,
        turn=context.turn or "",
        launch=context.launch or "",
        agent=context.agent or "",
        tool=form.name if form else "",
        wire_name=wire_name,
        call_id=call_id,
    )


def _answer_line(line: Callable[..., Record], reaction: Reaction) -> Record:
    return line(
        step="failed" if reaction.answer == "failed" else "answer",
        handler=reaction.handler,
        kind=reaction.kind,
        phase=reaction.phase,
        answer=reaction.answer,
        outcome="observed" if reaction.mode == "observe" else "",
        reason=reaction.reason or "",
        duration_ms=reaction.duration_ms,
        data={"effects": [effect_data(effect) for effect in reaction.effects]},
    )


def _verdict_line(
    line: Callable[..., Record], point: Point, form: HookForm | None, verdict: Verdict, facts: Sequence[str]
) -> Record:
    refusal = verdict.refusal
    known = {"facts": list(facts)} if facts else {}
    return line(
        step="verdict",
        handler=refusal.handler if refusal else "",
        outcome=verdict.outcome,
        reason=refusal.reason if refusal else "",
        duration_ms=verdict.duration_ms,
        data=_payload(point, form) | _added(verdict) | known,
    )


def _payload(point: Point, form: HookForm | None) -> dict[str, Any]:
    match point:
        case ToolCall():
            read = {"input": _shortened(form.input if form else {})}
            return read | ({"problem": point.problem} if point.problem else {})
        case ToolResult():
            return {"output": _cut(point.output), "chars": len(point.output), "is_error": point.is_error}
        case TurnStart():
            return {"prompt": _cut(point.prompt), "chars": len(point.prompt)}
        case TurnEnd():
            return {"text": _cut(point.text), "chars": len(point.text), "stop_reason": point.stop_reason}
        case Compaction():
            return dict(point.metadata)
        case LlmRequest() | LlmChunk() | LlmResponse():
            return {"protocol": point.protocol}


def _added(verdict: Verdict) -> dict[str, Any]:
    added: dict[str, Any] = {}
    if verdict.annotations:
        added["annotations"] = [_annotation_data(annotation) for annotation in verdict.annotations]
    if verdict.reminders:
        added["reminders"] = [_said(reminder) for reminder in verdict.reminders]
    if verdict.continuation is not None:
        added["continuation"] = verdict.continuation
    choice = verdict.tool_choice
    if choice is not None:
        added["tool_choice"] = {"mode": choice.mode, "tool_name": choice.tool_name}
    return added


def _annotation_data(annotation: Annotation) -> dict[str, Any]:
    return {name: value for name, value in _said(annotation).items() if value is not False}


def _said(value: Effect | Annotation | Reminder) -> dict[str, Any]:
    """The fields of one of these flat values that say something; `asdict` would look through their texts too."""
    return {name: said for name in type(value).__slots__ if (said := getattr(value, name)) is not None}


def _shortened(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, dict | list) and depth >= PAYLOAD_DEPTH:
        return "… (nested deeper)"
    if isinstance(value, dict):
        return {key: _shortened(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item, depth + 1) for item in value[:50]]
    return value


def _cut(text: str) -> str:
    if len(text) <= PAYLOAD_CHARS:
        return text
    head, tail = PAYLOAD_CHARS * 3 // 4, PAYLOAD_CHARS // 4
    return f"{text[:head]}… ({len(text) - head - tail} characters left out) …{text[-tail:]}"
