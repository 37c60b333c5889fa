"""A whole chat reply: its calls judged, refused ones told in the content.

Knows: choices, messages, finish reasons. Does not know: verdicts' reasons, sockets.
"""

from collections.abc import Generator
from typing import Any

import msgspec

from interpose.contracts.json import Json
from interpose.contracts.verdict import Verdict
from interpose.gateway.api import ProposedCall, Steps, answered
from interpose.gateway.bodies import open_array, open_body, open_object, value_of
from interpose.gateway.chat.calls import (
    LEGACY,
    entries_of,
    legacy_with_arguments,
    read_call,
    read_legacy_call,
    with_arguments,
)
from interpose.gateway.wording import refused_line
from interpose.wire.jsonbytes import write_json

CALL_REASONS = ("tool_calls", "function_call")
"""The finish reasons that tell the client to run calls."""


def judged_reply(body: bytes) -> Steps:
    """Asks for each call in order, then yields the body: the upstream's bytes when nothing was changed.

    Raises Unreadable when the body is not a JSON object.
    """
    top = open_body(body)
    raw_choices = top.get("choices")
    if raw_choices is None or not bytes(raw_choices).startswith(b"["):
        yield body
        return

    choices = open_array(raw_choices)
    judged: list[msgspec.Raw] = []
    for raw in choices:
        choice = yield from _choice(raw)
        judged.append(choice)
    if all(new is old for new, old in zip(judged, choices, strict=True)):
        yield body
        return
    yield write_json({**top, "choices": msgspec.Raw(write_json(judged))})


def _choice(raw: msgspec.Raw) -> Generator[ProposedCall, Verdict | None, msgspec.Raw]:
    value = value_of(raw)
    message = value.get("message") if isinstance(value, dict) else None
    if not isinstance(message, dict):
        return raw

    told: list[str] = []
    calls, called = yield from _tool_calls(message.get("tool_calls"), told)
    legacy, legacy_called = yield from _legacy(message.get(LEGACY), told)
    if calls is message.get("tool_calls") and legacy is message.get(LEGACY):
        return raw

    choice = open_object(raw)
    fields: dict[str, Any] = dict(open_object(choice["message"]))
    _set_or_drop(fields, "tool_calls", calls)
    _set_or_drop(fields, LEGACY, legacy)
    if told:
        fields["content"] = _with_text(message.get("content"), told)
    changed: dict[str, Any] = {**choice, "message": fields}
    if not called and not legacy_called and value.get("finish_reason") in CALL_REASONS:
        changed["finish_reason"] = "stop"
    return msgspec.Raw(write_json(changed))


def _tool_calls(calls: Json, told: list[str]) -> Generator[ProposedCall, Verdict | None, tuple[Json, bool]]:
    """The calls that may run, and whether there are any; the same list when nothing was changed."""
    is_same = True
    kept: list[Json] = []
    for entry in entries_of(calls):
        call = read_call(entry)
        verdict = answered((yield call))
        is_same = is_same and verdict.allowed and verdict.arguments is None
        if not verdict.allowed:
            told.append(refused_line(call.name, verdict))
            continue
        kept.append(entry if verdict.arguments is None else with_arguments(entry, verdict.arguments))
    return (calls if is_same else kept), bool(kept)


def _legacy(function: Json, told: list[str]) -> Generator[ProposedCall, Verdict | None, tuple[Json, bool]]:
    if not isinstance(function, dict):
        return function, False

    call = read_legacy_call(function)
    verdict = answered((yield call))
    if not verdict.allowed:
        told.append(refused_line(call.name, verdict))
        return None, False
    return (function if verdict.arguments is None else legacy_with_arguments(function, verdict.arguments)), True


def _set_or_drop(fields: dict[str, Any], name: str, value: Json) -> None:
    if value:
        fields[name] = value
        return
    fields.pop(name, None)


def _with_text(content: Json, told: list[str]) -> Json:
    text = "\n\n".join(told)
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    return f"{content}\n\n{text}" if content else text
