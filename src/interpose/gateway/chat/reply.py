"""A whole chat reply: its calls judged, refused ones told in the content.

Knows: choices, messages, finish reasons. Does not know: verdicts' reasons, sockets.
"""

from collections.abc import Generator
from typing import Any

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import Verdict
from interpose.gateway.api import Answer, Onward, ProposedCall, RefusedCall, RoundOver, Step, Steps, answered, hindrance
from interpose.gateway.bodies import RawObject, is_same, object_of, open_array, open_body, open_object, value_of
from interpose.gateway.chat.calls import (
    LEGACY,
    entries_of,
    history_entry,
    legacy_with_arguments,
    read_call,
    read_legacy_call,
    with_arguments,
)
from interpose.gateway.chat.chunks import CALL_REASONS, NATURAL, with_spent
from interpose.gateway.chat.history import joined
from interpose.gateway.marks import GAP
from interpose.gateway.proposed import CallIds
from interpose.gateway.shapes import refuse_foreign
from interpose.gateway.wholes import WholeReply
from interpose.gateway.wording import refused_line
from interpose.wire.jsonbytes import write_json


class ChatReply(WholeReply):
    """The port `ReplyStream` for replies that come whole; the client's body is its last step."""

    def __init__(self) -> None:
        super().__init__()
        self._head: RawObject = {}
        """What the first reply of the model is called, once another one follows."""
        self._earlier: Json = None
        """What the client is told of earlier replies of the model."""
        self._spent: JsonObject = {}
        self._refused: list[RefusedCall] = []
        self._released = 0

    def _judged_body(self, body: bytes) -> Steps:
        top = open_body(body)
        raw_choices = top.get("choices")
        if raw_choices is None or not bytes(raw_choices).startswith(b"["):
            refuse_foreign("chat", object_of(body))
            yield body
            return

        self._refused, self._released = [], 0
        choices = open_array(raw_choices)
        judged: list[msgspec.Raw] = []
        for raw in choices:
            choice = yield from self._judged(raw)
            judged.append(choice)

        answer = yield self._over(body, choices)
        if isinstance(answer, Onward):
            self._keep(top, judged, answer.note)
            return
        if is_same(judged, choices) and not self._head:
            yield body
            return
        yield write_json(self._told(top, judged))

    def _judged(self, raw: msgspec.Raw) -> Generator[Step, Answer, msgspec.Raw]:
        """The choice as it may leave."""
        value = value_of(raw)
        message = _message_of(value)
        if message is None:
            return raw

        lines: list[str] = []
        before = self._released
        calls = yield from self._tool_calls(message.get("tool_calls"), lines)
        legacy = yield from self._legacy(message.get(LEGACY), lines)
        if calls is message.get("tool_calls") and legacy is message.get(LEGACY):
            return raw

        choice = open_object(raw)
        fields: dict[str, Any] = dict(open_object(choice["message"]))
        _set_or_drop(fields, "tool_calls", calls)
        _set_or_drop(fields, LEGACY, legacy)
        if lines:
            fields["content"] = joined(message.get("content"), GAP.join(lines))
        changed: dict[str, Any] = {**choice, "message": fields}
        if self._released == before and value.get("finish_reason") in CALL_REASONS:
            changed["finish_reason"] = "stop"
        return msgspec.Raw(write_json(changed))

    def _tool_calls(self, calls: Json, lines: list[str]) -> Generator[Step, Answer, Json]:
        """The calls that may run; the same list when nothing was changed."""
        unchanged = True
        kept: list[Json] = []
        ids = CallIds()
        for place, entry in enumerate(entries_of(calls)):
            call = ids.own(read_call(entry))
            verdict = answered((yield call))
            unchanged = unchanged and verdict.allowed and verdict.arguments is None
            if not verdict.allowed:
                lines.append(self._refuse(call, verdict, history_entry(entry, call, place)))
                continue
            kept.append(entry if verdict.arguments is None else with_arguments(entry, verdict.arguments))
        self._released += len(kept)
        return calls if unchanged else kept

    def _legacy(self, function: Json, lines: list[str]) -> Generator[Step, Answer, Json]:
        if not isinstance(function, dict):
            return function

        call = read_legacy_call(function)
        verdict = answered((yield call))
        if not verdict.allowed:
            lines.append(self._refuse(call, verdict, None))
            return None
        self._released += 1
        return function if verdict.arguments is None else legacy_with_arguments(function, verdict.arguments)

    def _refuse(self, call: ProposedCall, verdict: Verdict, entry: Json) -> str:
        line = refused_line(call.name, verdict)
        self._refused.append(RefusedCall(call, line, entry))
        return line

    def _over(self, body: bytes, choices: list[msgspec.Raw]) -> RoundOver:
        first = value_of(choices[0]) if choices else None
        reason = first.get("finish_reason") if isinstance(first, dict) else None
        return RoundOver(
            raw=body,
            refused=tuple(self._refused),
            released=self._released,
            stop_reason=reason if isinstance(reason, str) else None,
            hindrance=hindrance(
                reason,
                is_natural=reason in NATURAL and _message_of(first) is not None,
                is_last=True,
                is_several=len(choices) > 1,
            ),
        )

    def _keep(self, top: RawObject, judged: list[msgspec.Raw], note: str) -> None:
        """Keeps what the client is told of a reply that is followed by another one."""
        self._head = self._head or {key: top[key] for key in ("id", "created", "model") if key in top}
        message = _message_of(value_of(judged[0])) if judged else None
        content = message.get("content") if message is not None else None
        self._earlier = joined(joined(self._earlier, content), note)
        usage = value_of(top.get("usage"))
        if isinstance(usage, dict):
            self._spent = with_spent(usage, self._spent)

    def _told(self, top: RawObject, judged: list[msgspec.Raw]) -> RawObject:
        told = {**top, **self._head, "choices": msgspec.Raw(write_json([self._whole(raw) for raw in judged]))}
        usage = value_of(top.get("usage"))
        if self._spent and isinstance(usage, dict):
            told["usage"] = msgspec.Raw(write_json(with_spent(usage, self._spent)))
        return told

    def _whole(self, raw: msgspec.Raw) -> msgspec.Raw:
        """The choice with what was said in earlier replies."""
        message = _message_of(value_of(raw))
        if not self._earlier or message is None:
            return raw
        choice = open_object(raw)
        fields = {**open_object(choice["message"]), "content": joined(self._earlier, message.get("content"))}
        return msgspec.Raw(write_json({**choice, "message": fields}))


def _message_of(choice: Json) -> JsonObject | None:
    message = choice.get("message") if isinstance(choice, dict) else None
    return message if isinstance(message, dict) else None


def _set_or_drop(fields: dict[str, Any], name: str, value: Json) -> None:
    if value:
        fields[name] = value
        return
    fields.pop(name, None)
