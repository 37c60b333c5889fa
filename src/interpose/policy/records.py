"""A verdict as lines of the journal: one per handler that said something, then the verdict itself."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from interpose.catalog.reading import HookForm
from interpose.contracts.effects import Effect
from interpose.contracts.journal import Record, Step
from interpose.contracts.json import JsonObject
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
from interpose.contracts.verdict import Notice, Reaction, Reminder, Verdict
from interpose.policy.asking import Question

PAYLOAD_CHARS = 2_000
"""How much of a payload a line keeps; the rest is told by its length."""

CHANGES_KEPT = 20
"""How many changed fields of one patch are told."""

PAYLOAD_DEPTH = 20
"""How deep a payload is kept."""


def records_of(
    point: Point, form: HookForm | None, verdict: Verdict, at: float, facts: Sequence[str] = ()
) -> list[Record]:
    """The lines of one judgement, in the order in which things were said.

    `facts` are the metadata keys that handlers could read; the verdict's line keeps them.
    """
    line = _line_of(point, form, verdict.action, at)
    lines = [
        _answer_line(line, reaction)
        for reaction in verdict.reactions
        if reaction.answer not in ("continue", "silent") or reaction.phase == "ask"
    ]
    if not isinstance(point, LlmChunk):  # there are thousands in a reply, and the answers say it all
        lines.append(_verdict_line(line, point, form, verdict, facts))
    lines += [_notice_line(line, notice) for notice in verdict.notices]
    return lines


def question_record(point: Point, form: HookForm | None, action: str, at: float, question: Question) -> Record:
    """The line that says that a person is asked now."""
    first, request = question.doubts[0], question.request
    return _line_of(point, form, action, at)(
        step="enter",
        handler=first.handler,
        kind=first.kind,
        phase="ask",
        reason=request.reason,
        data={"tool_name": request.tool_name, "arguments": _shortened(request.arguments), "digest": request.digest},
    )


def effect_data(effect: Effect) -> dict[str, Any]:
    """An effect as the journal keeps it."""
    return {"kind": effect.kind, **_said(effect)}


def _line_of(point: Point, form: HookForm | None, action: str, at: float) -> Callable[..., Record]:
    """Makes a line with what all lines of one judgement have in common."""
    context = point.context
    wire_name, call_id = (point.tool_name, point.call_id) if isinstance(point, ToolCall | ToolResult) else ("", "")
    return partial(
        Record,
        at=at,
        action=action,
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
    data: dict[str, Any] = {}
    if reaction.phase == "check":
        data["effects"] = [effect_data(effect) for effect in reaction.effects]
    if reaction.failure is not None:
        data["failure"] = reaction.failure
    if reaction.changes is not None:
        data["changes"] = _bounded(reaction.changes)
    step: Step = reaction.answer if reaction.answer in ("failed", "not_reached") else "answer"
    return line(
        step=step,
        handler=reaction.handler,
        kind=reaction.kind,
        phase=reaction.phase,
        answer="" if step == "not_reached" else reaction.answer,
        outcome="observed" if reaction.mode == "observe" else "",
        reason=reaction.reason or "",
        duration_ms=reaction.duration_ms,
        data=data,
    )


def _notice_line(line: Callable[..., Record], notice: Notice) -> Record:
    return line(step="notice", handler=notice.handler, reason=notice.message, data={"key": notice.key})


def _verdict_line(
    line: Callable[..., Record], point: Point, form: HookForm | None, verdict: Verdict, facts: Sequence[str]
) -> Record:
    refusal = verdict.refusal
    data = _payload(point, form)
    _add(verdict, data)
    if facts:
        data["facts"] = facts
    return line(
        step="verdict",
        handler=refusal.handler if refusal else "",
        outcome=verdict.outcome,
        reason=refusal.reason if refusal else "",
        duration_ms=verdict.duration_ms,
        data=data,
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


def _add(verdict: Verdict, data: dict[str, Any]) -> None:
    if verdict.outcome == "patched" and verdict.body is None:
        data["patched"] = _shortened(verdict.arguments if verdict.text is None else verdict.text)
    if verdict.annotations:
        data["annotations"] = [_annotation_data(annotation) for annotation in verdict.annotations]
    if verdict.reminders:
        data["reminders"] = [_said(reminder) for reminder in verdict.reminders]
    if verdict.continuation is not None:
        data["continuation"] = verdict.continuation
    choice = verdict.tool_choice
    if choice is not None:
        data["tool_choice"] = {"mode": choice.mode, "tool_name": choice.tool_name}


def _annotation_data(annotation: Annotation) -> dict[str, Any]:
    return {name: value for name, value in _said(annotation).items() if value is not False}


def _said(value: Effect | Annotation | Reminder) -> dict[str, Any]:
    """The fields of one of these flat values that say something; `asdict` would look through their texts too."""
    return {name: said for name in type(value).__slots__ if (said := getattr(value, name)) is not None}


def _bounded(changes: JsonObject) -> dict[str, Any]:
    """What changed, each side as it is when it is small, else as the text of it with its middle left out."""
    told = list(changes.items())[:CHANGES_KEPT]
    return {name: {side: _readable(value) for side, value in sides.items()} for name, sides in told}


def _readable(value: Any) -> Any:
    if not isinstance(value, dict | list):
        return _shortened(value)
    short = _shortened(value)
    text = json.dumps(short, ensure_ascii=False, default=repr)
    return short if len(text) <= PAYLOAD_CHARS else _cut(text)


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
