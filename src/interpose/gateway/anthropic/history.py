"""The model's history where the client's has lines of ours: calls and their errors, nudges, arguments as the model
gave them; and how a history goes on within one reply of the client's.

Knows: messages and their blocks. Does not know: verdicts, what is new in a request.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.anthropic.blocks import CALL
from interpose.gateway.api import Edits, Mark, RefusedCall
from interpose.gateway.bodies import open_array, open_body, open_object, value_of
from interpose.gateway.marks import OURS, MarkReader
from interpose.wire.jsonbytes import write_json

_CALL_MARK = b'"tool_use"'
_UNFINISHED = ("thinking", "redacted_thinking")
"""Blocks that may not be a message's last."""


class Restoring:
    """Puts the model's history back, message by message from the first to the last. One history, one of these."""

    def __init__(self, edits: Edits, root: str) -> None:
        self._edits = edits
        self._reader = MarkReader(edits, root)
        self._owed: list[Json] = []

    def spoken(self, message: bytes) -> list[bytes]:
        """What the model's history has in the place of one message of the model; the same object where that is it."""
        has_lines = self._reader.has_lines and OURS in message
        if not has_lines and not (self._edits.changed_calls and _CALL_MARK in message):
            return [*self.between(), message]
        fields = open_object(msgspec.Raw(message))
        blocks = blocks_of(fields.get("content"))
        return [*self.between(), *(self._restored(fields, blocks) or [message])]

    def heard(self, message: bytes) -> bytes:
        """One message of the person's, with the results that the model waits for in front."""
        if not self._owed:
            return message
        owed, self._owed = self._owed, []
        fields = open_object(msgspec.Raw(message))
        return write_json({**fields, "content": [*owed, *blocks_of(fields.get("content"))]})

    def between(self) -> list[bytes]:
        """The results that the model waits for, as a message of their own where none of the person's follows."""
        owed, self._owed = self._owed, []
        return [write_json({"role": "user", "content": owed})] if owed else []

    def _restored(self, fields: dict[str, msgspec.Raw], blocks: list[msgspec.Raw]) -> list[bytes]:
        """The messages that one message stands for; none when it is just that."""
        messages: list[bytes] = []
        said: list[Any] = []
        found = [self._parts(raw) for raw in blocks]
        if not _is_coherent(found):
            found = [
                [raw] if any(isinstance(part, Mark) for part in parts) else parts
                for raw, parts in zip(blocks, found, strict=True)
            ]
        is_same = all(parts == [raw] for raw, parts in zip(blocks, found, strict=True))
        for parts in found:
            for part in parts:
                if not isinstance(part, Mark):
                    said.append(part)
                    continue
                said += [part.entry] if part.entry is not None else []
                self._owed += [answer_of(part.entry, part.answer)] if part.entry is not None else [_text(part.answer)]
                if part.ends_round:
                    messages += [write_json({**fields, "content": said}), *self.between()]
                    said = []
        if is_same:
            return []
        return [*messages, write_json({**fields, "content": said})] if said else messages

    def _parts(self, raw: msgspec.Raw) -> list[Any]:
        value = value_of(raw)
        match value:
            case {"type": "text", "text": str(text)} if self._reader.has_lines:
                pieces = self._reader.pieces(text)
                if pieces == [text]:
                    return [raw]
                return [piece if isinstance(piece, Mark) else _text(piece) for piece in pieces]
            case {"type": "tool_use", "id": str(call_id), "input": dict(given)}:
                original = self._edits.original(call_id, given)
                return [raw if original is None else {**open_object(raw), "input": original}]
            case _:
                return [raw]


def gone_on(
    sent: bytes, reply: JsonObject, answers: Sequence[tuple[RefusedCall, str]], nudge: str | None
) -> bytes | None:
    """The body that was `sent`, the model's `reply`, and what answers it; None when the API would not take that."""
    content = reply.get("content")
    said = [block for block in content if block.get("text") != ""] if isinstance(content, list) else []
    if not said or said[-1].get("type") in _UNFINISHED:
        return None
    proposed = [block.get("id") for block in said if block.get("type") == "tool_use"]
    if proposed != [refused.call.call_id for refused, _ in answers]:
        return None

    results: list[Json] = [answer_of(refused.entry, text) for refused, text in answers]
    heard = results if nudge is None else [*results, _text(nudge)]
    top = open_body(sent, arguments="input")
    if answers and "tool_choice" in top:
        top["tool_choice"] = _let_go(top["tool_choice"])
    messages = [*open_array(top.get("messages")), {"role": "assistant", "content": said}]
    return write_json({**top, "messages": [*messages, {"role": "user", "content": heard}]})


def _let_go(choice: msgspec.Raw) -> msgspec.Raw:
    """The choice without its force: a call that was refused must not be asked for again."""
    value = value_of(choice)
    if not isinstance(value, dict) or value.get("type") not in ("any", "tool"):
        return choice
    return msgspec.Raw(write_json({**{key: kept for key, kept in value.items() if key != "name"}, "type": "auto"}))


def blocks_of(content: msgspec.Raw | None) -> list[msgspec.Raw]:
    """The blocks of a content; a text is one."""
    if content is None:
        return []
    if bytes(content).startswith(b'"'):
        return [msgspec.Raw(write_json(_text(value_of(content))))]
    return open_array(content)


def answer_of(entry: Json, text: str) -> Json:
    """The result of a refused call, as the model is told it."""
    return {"type": "tool_result", "tool_use_id": entry["id"], "content": text, "is_error": True}


def _is_coherent(found: Sequence[list[Any]]) -> bool:
    """Whether no reply of the model ends behind a call that the client ran: its result stands behind the whole message.

    Some clients put the calls of a message first.
    """
    has_call = False
    for part in (part for parts in found for part in parts):
        if not isinstance(part, Mark):
            has_call = has_call or _is_call(part)
        elif part.ends_round and has_call:
            return False
    return True


def _is_call(part: Any) -> bool:
    block = value_of(part) if isinstance(part, msgspec.Raw) else part
    return isinstance(block, dict) and _plain(block.get("type")) == CALL


def _plain(value: Any) -> Json:
    return value_of(value) if isinstance(value, msgspec.Raw) else value


def _text(text: Json) -> dict[str, Any]:
    return {"type": "text", "text": text}
