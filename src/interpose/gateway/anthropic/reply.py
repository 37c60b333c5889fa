"""A whole messages reply: its calls judged, refused ones told as text.

Knows: content blocks and stop reasons. Does not know: verdicts' reasons, sockets.
"""

from collections.abc import Generator

import msgspec

from interpose.gateway.anthropic.blocks import is_call, read_call
from interpose.gateway.anthropic.ends import CALLS, NATURAL, NO_CALLS, output_tokens, with_spent
from interpose.gateway.api import Answer, Onward, RefusedCall, RoundOver, Step, Steps, answered, hindrance
from interpose.gateway.bodies import (
    RawObject,
    is_same,
    object_of,
    open_array,
    open_body,
    open_object,
    raw_text,
    value_of,
)
from interpose.gateway.marks import GAP
from interpose.gateway.proposed import CallIds
from interpose.gateway.shapes import refuse_foreign
from interpose.gateway.wholes import WholeReply
from interpose.gateway.wording import refused_line
from interpose.wire.jsonbytes import write_json


class AnthropicReply(WholeReply):
    """The port `ReplyStream` for replies that come whole; the client's body is its last step."""

    def __init__(self) -> None:
        super().__init__()
        self._earlier: list[msgspec.Raw] = []
        """The blocks that the client is told of earlier replies of the model."""
        self._spent = 0
        self._refused: list[RefusedCall] = []
        self._released = 0
        self._ids = CallIds()

    def _judged_body(self, body: bytes) -> Steps:
        top = open_body(body, arguments="input")
        content = top.get("content")
        if content is None or not bytes(content).startswith(b"["):
            refuse_foreign("anthropic", object_of(body))
            yield body
            return

        self._refused, self._released, self._ids = [], 0, CallIds()
        blocks = open_array(content)
        judged: list[msgspec.Raw] = []
        for raw in blocks:
            block = yield from self._judged(raw)
            judged.append(block)

        answer = yield self._over(body, top, blocks)
        if isinstance(answer, Onward):
            self._earlier = _joined(self._earlier, [*judged, *([_text(answer.note)] if answer.note else [])])
            self._spent += output_tokens(value_of(top.get("usage")))
            return
        if is_same(judged, blocks) and not self._earlier:
            yield body
            return
        yield write_json(self._told(top, judged))

    def _judged(self, raw: msgspec.Raw) -> Generator[Step, Answer, msgspec.Raw]:
        """The block as it may leave."""
        block = value_of(raw)
        if not is_call(block):
            return raw
        fields = open_object(raw) if isinstance(block, dict) else {}
        call = self._ids.own(read_call(block, bytes(fields.get("input") or b"")))
        verdict = answered((yield call))
        if not verdict.allowed:
            line = refused_line(call.name, verdict)
            self._refused.append(RefusedCall(call, line, None if call.problem else block))
            return _text(line)
        self._released += 1
        return raw if verdict.arguments is None else _with_input(fields, verdict.arguments)

    def _over(self, body: bytes, top: RawObject, blocks: list[msgspec.Raw]) -> RoundOver:
        reason = value_of(top.get("stop_reason"))
        is_last = not self._refused or (bool(blocks) and is_call(value_of(blocks[-1])))
        return RoundOver(
            raw=body,
            refused=tuple(self._refused),
            released=self._released,
            stop_reason=reason if isinstance(reason, str) else None,
            hindrance=hindrance(reason, is_natural=reason in NATURAL, is_last=is_last),
        )

    def _told(self, top: RawObject, judged: list[msgspec.Raw]) -> RawObject:
        told = {**top, "content": msgspec.Raw(write_json(_joined(self._earlier, judged)))}
        if self._refused and not self._released and value_of(top.get("stop_reason")) == CALLS:
            told["stop_reason"] = raw_text(NO_CALLS)
        usage = value_of(top.get("usage"))
        if self._spent and isinstance(usage, dict):
            told["usage"] = msgspec.Raw(write_json(with_spent(usage, self._spent)))
        return told


def _joined(earlier: list[msgspec.Raw], later: list[msgspec.Raw]) -> list[msgspec.Raw]:
    """Both, with a text that begins the later in one block with the text of ours that ends the earlier."""
    if not earlier or not later:
        return [*earlier, *later]
    ours, text = value_of(earlier[-1]), value_of(later[0])
    if not isinstance(text, dict) or text.get("type") != "text" or ours.get("type") != "text":
        return [*earlier, *later]
    joined = {**open_object(later[0]), "text": f"{ours['text']}{GAP}{text['text']}"}
    return [*earlier[:-1], msgspec.Raw(write_json(joined)), *later[1:]]


def _with_input(fields: RawObject, arguments: object) -> msgspec.Raw:
    return msgspec.Raw(write_json({**fields, "input": arguments}))


def _text(text: str) -> msgspec.Raw:
    return msgspec.Raw(write_json({"type": "text", "text": text}))
