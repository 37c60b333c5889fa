"""The model's history where the client's has lines of ours: calls and their errors, nudges, arguments as the model
gave them; and how a history goes on within one reply of the client's.

Knows: items, and who keeps them. Does not know: verdicts, what is new in a request.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import Edits, Mark, RefusedCall
from interpose.gateway.bodies import RawObject, open_array, open_body, open_object, value_of
from interpose.gateway.marks import ITEMS, OURS, TOLD_ITEMS, MarkReader
from interpose.gateway.reading import let_go
from interpose.gateway.responses.answers import answer_of, nudged
from interpose.gateway.responses.items import is_call, read_call, with_original
from interpose.wire.jsonbytes import write_json


class Restoring:
    """Puts the model's history back, item by item from the first to the last. One history, one of these."""

    def __init__(self, edits: Edits, root: str) -> None:
        self._edits = edits
        self._reader = MarkReader(edits, root)

    def item(self, item: bytes, *, is_message: bool) -> list[bytes]:
        """What the model's history has in the place of one item of the model; the same object where that is it."""
        if is_message:
            return self._message(item) if self._reader.has_lines and OURS in item else [item]
        return [self._call(item)] if self._edits.changed_calls else [item]

    def reference(self, item: bytes) -> list[bytes]:
        """As `item`, of one that the client only names by its id: the provider knows none of ours."""
        value = value_of(msgspec.Raw(item))
        item_id = value.get("id") if isinstance(value, dict) else None
        if not isinstance(item_id, str):
            return [item]
        mark = self._edits.mark(ITEMS, item_id, 0)
        if mark is not None:
            return [*map(write_json, self._stands_for(mark))]
        told = self._edits.mark(TOLD_ITEMS, item_id, 0)
        if told is None:
            return [item]
        return [write_json({"type": "message", "role": "assistant", "content": [_text(told.answer)]})]

    def _message(self, item: bytes) -> list[bytes]:
        fields = open_object(msgspec.Raw(item))
        restored: list[bytes] = []
        said: list[Any] = []
        is_same = True
        for raw in parts_of(fields.get("content")):
            for piece in self._pieces(raw):
                is_same = is_same and piece is raw
                if not isinstance(piece, Mark):
                    said.append(piece)
                    continue
                if said:
                    restored.append(_with_content(fields, said, is_first=not restored))
                    said = []
                restored += map(write_json, self._stands_for(piece))
        if is_same:
            return [item]
        return [*restored, *([_with_content(fields, said, is_first=not restored)] if said else [])]

    def _pieces(self, raw: msgspec.Raw) -> list[Any]:
        part = value_of(raw)
        text = part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str):
            return [raw]
        pieces = self._reader.pieces(text)
        if pieces == [text]:
            return [raw]
        return [piece if isinstance(piece, Mark) else _text(piece) for piece in pieces]

    def _stands_for(self, mark: Mark) -> list[Json]:
        if mark.entry is None:
            return [nudged(mark.answer)]
        return [mark.entry, answer_of(mark.entry, mark.answer)]

    def _call(self, item: bytes) -> bytes:
        call = read_call(msgspec.Raw(item))
        original = self._edits.original(call.call_id, call.arguments)
        if original is None:
            return item
        restored = with_original(msgspec.Raw(item), original)
        return item if restored is None else bytes(restored)


def gone_on(
    sent: bytes, reply: JsonObject, answers: Sequence[tuple[RefusedCall, str]], nudge: str | None
) -> bytes | None:
    """The body that was `sent`, the model's `reply`, and what answers it; None when the API would not take that."""
    output = reply.get("output")
    if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
        return None
    told = {refused.call.call_id: answer_of(refused.entry, text) for refused, text in answers}
    proposed = [item.get("call_id") for item in output if is_call(item)]
    if not output or None in told.values() or proposed != list(told) or len(told) != len(answers):
        return None
    if output[-1].get("type") == "reasoning" or any(item.get("type") == "mcp_approval_request" for item in output):
        return None

    top = open_body(sent)
    if answers and "tool_choice" in top:
        top["tool_choice"] = let_go(top["tool_choice"])
    said = [] if nudge is None else [nudged(nudge)]
    if keeps_history(top):
        return _of_kept(top, reply, [*told.values(), *said])
    follows: list[Json] = []
    for item in output:
        if is_stored(top) or _says_something(item):
            follows += [item, told[item["call_id"]]] if is_call(item) else [item]
    return write_json({**top, "input": [*items_of(top.get("input")), *follows, *said]})


def keeps_history(top: RawObject) -> bool:
    """Whether the provider has what was said before, and keeps what it says now."""
    before = (value_of(top.get(name)) for name in ("previous_response_id", "conversation"))
    return is_stored(top) and any(before)


def is_stored(top: RawObject) -> bool:
    """Whether the provider keeps the response; it does unless it is told not to."""
    return value_of(top.get("store")) is not False


def items_of(raw: msgspec.Raw | None) -> list[msgspec.Raw]:
    """The input as items; a text is one message of the person."""
    if raw is not None and bytes(raw).startswith(b'"'):
        return [msgspec.Raw(write_json({"role": "user", "content": raw}))]
    return open_array(raw, "input")


def parts_of(content: msgspec.Raw | None) -> list[msgspec.Raw]:
    """The parts of a message of the model; a text is one."""
    if content is None:
        return []
    if bytes(content).startswith(b'"'):
        return [msgspec.Raw(write_json(_text(value_of(content))))]
    return open_array(content) if bytes(content).startswith(b"[") else []


def _of_kept(top: RawObject, reply: JsonObject, follows: list[Json]) -> bytes | None:
    """The next request of a conversation that the provider keeps: it has all but what follows."""
    if value_of(top.get("conversation")):
        return write_json({**top, "input": follows})
    response_id = reply.get("id")
    if not isinstance(response_id, str) or not response_id:
        return None
    return write_json({**top, "input": follows, "previous_response_id": response_id})


def _says_something(item: JsonObject) -> bool:
    """Whether a provider can read it that did not keep it: a thought only where it is sealed or in the open."""
    return item.get("type") != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))


def _with_content(fields: RawObject, said: list[Any], *, is_first: bool) -> bytes:
    """A message with these parts; of several made from one only the first keeps its id."""
    kept_fields = fields if is_first else {name: value for name, value in fields.items() if name != "id"}
    return write_json({**kept_fields, "content": said})


def _text(text: Json) -> dict[str, Any]:
    return {"type": "output_text", "text": text}
