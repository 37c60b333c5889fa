"""The model's history where the client's has lines of ours: calls and their errors, nudges, arguments as the model
gave them; and how a history goes on within one reply of the client's.

The API has one text for all that was said in a message, and no place for what the model thought.
Knows: messages, their contents and calls. Does not know: verdicts, what is new in a request.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import Edits, Mark, RefusedCall
from interpose.gateway.bodies import RawObject, open_array, open_body, open_object, value_of
from interpose.gateway.chat.calls import LEGACY, THOUGHTS, entries_of, read_call, with_arguments
from interpose.gateway.marks import GAP, OURS, MarkReader
from interpose.gateway.reading import let_go
from interpose.wire.jsonbytes import write_json

_CALL_MARK = b'"tool_calls"'
_LEFT_OUT = (*THOUGHTS, "annotations")
"""What the texts of several replies have in one message of the client's, so that nobody can tell whose it is."""

_GOES_BACK = ("role", "content", "tool_calls", *_LEFT_OUT)
"""Members of a reply's message that a history has, or can be without."""

_SAYINGS = (LEGACY, "refusal", "audio")
"""Members that make a message without a text or a call."""


class Restoring:
    """Puts the model's history back, message by message from the first to the last. One history, one of these."""

    def __init__(self, edits: Edits, root: str) -> None:
        self._edits = edits
        self._reader = MarkReader(edits, root)

    def spoken(self, message: bytes) -> list[bytes]:
        """What the model's history has in the place of one message of the model; the same object where that is it."""
        has_lines = self._reader.has_lines and OURS in message
        if not has_lines and not (self._edits.changed_calls and _CALL_MARK in message):
            return [message]
        fields = open_object(msgspec.Raw(message))
        calls = self._as_proposed(fields)
        if calls is not None:
            fields["tool_calls"] = msgspec.Raw(write_json(calls))
        parts = list(self._parts(value_of(fields.get("content")))) if has_lines else []
        if any(isinstance(part, Mark) for part in parts):
            return [write_json(one) for one in _taken_apart(fields, parts)]
        return [message] if calls is None else [write_json(fields)]

    def _as_proposed(self, fields: RawObject) -> list[Any] | None:
        """The calls with the arguments that the model gave them; None when the client has no others."""
        raw = fields.get("tool_calls")
        if raw is None or not self._edits.changed_calls or not bytes(raw).startswith(b"["):
            return None
        calls: list[Any] = list(open_array(raw))
        is_changed = False
        for place, entry in enumerate(value_of(raw)):
            call = read_call(entry) if isinstance(entry, dict) else None
            original = self._edits.original(call.call_id, call.arguments) if call is not None else None
            if original is not None:
                calls[place] = with_arguments(entry, original)
                is_changed = True
        return calls if is_changed else None

    def _parts(self, content: Json) -> Iterator[Any]:
        """A content in pieces: texts, or parts of other kinds, and marks."""
        if isinstance(content, str):
            yield from self._reader.pieces(content)
            return
        for part in content if isinstance(content, list) else ():
            text = part.get("text") if isinstance(part, dict) else None
            if not isinstance(text, str):
                yield part
                continue
            for piece in self._reader.pieces(text):
                yield piece if isinstance(piece, Mark) else {**part, "text": piece}


def gone_on(
    sent: bytes, reply: JsonObject, answers: Sequence[tuple[RefusedCall, str]], nudge: str | None
) -> bytes | None:
    """The body that was `sent`, the model's `reply`, and what answers it; None when the API would not take that."""
    choices = reply.get("choices")
    message = choices[0].get("message") if isinstance(choices, list) and len(choices) == 1 else None
    if not isinstance(message, dict) or any(value for key, value in message.items() if key not in _GOES_BACK):
        return None
    proposed = [entry.get("id") for entry in entries_of(message.get("tool_calls"))]
    if proposed != [refused.call.call_id for refused, _ in answers] or len(set(proposed)) < len(proposed):
        return None
    content = message.get("content")
    if not content and not proposed:
        return None

    marks = [Mark(refused.entry, text, ends_round=True) for refused, text in answers]
    if nudge is not None:
        marks.append(Mark(None, nudge, ends_round=True))
    parts = content if isinstance(content, list) else [content] if content else []
    top = open_body(sent)
    if answers:
        top |= {name: let_go(top[name]) for name in ("tool_choice", "function_call") if name in top}
    return write_json({**top, "messages": [*open_array(top.get("messages")), *_round(parts, marks)]})


def joined(earlier: Json, later: Json) -> Json:
    """Two contents as one: texts with a gap between them, as parts where one of them has parts."""
    if not earlier or not later:
        return later or earlier
    if isinstance(earlier, str) and isinstance(later, str):
        return f"{earlier}{GAP}{later}"
    return [*_as_parts(earlier), *_as_parts(later)]


def _taken_apart(fields: RawObject, parts: list[Any]) -> Iterator[JsonObject]:
    """The messages that one message of the client's stands for."""
    said: list[Any] = []
    marks: list[Mark] = []
    is_first = True
    for part in parts:
        if not isinstance(part, Mark):
            said.append(part)
            continue
        marks.append(part)
        if part.ends_round:
            yield from _round(said, marks)
            said, marks, is_first = [], [], False
    kept = fields if is_first else {key: value for key, value in fields.items() if key not in _LEFT_OUT}
    calls: list[Any] = _in_place(_calls_of(kept), marks)
    last: dict[str, Any] = {**kept, "content": _content(said)}
    if calls:
        last["tool_calls"] = calls
    if said or calls or any(value_of(kept.get(key)) for key in _SAYINGS):
        yield last
    yield from _answers(marks)


def _round(said: list[Any], marks: Sequence[Mark]) -> Iterator[JsonObject]:
    """One reply of the model all of whose calls were refused, or that was over, and what answers it."""
    calls = _in_place([], marks)
    if said or calls:
        yield {"role": "assistant", "content": _content(said), **({"tool_calls": calls} if calls else {})}
    yield from _answers(marks)


def _answers(marks: Sequence[Mark]) -> Iterator[JsonObject]:
    for mark in marks:
        if mark.entry is None:
            yield {"role": "user", "content": mark.answer}
            continue
        yield {"role": "tool", "tool_call_id": mark.entry["id"], "content": mark.answer}


def _in_place(calls: Sequence[Any], marks: Sequence[Mark]) -> list[Any]:
    """The calls and those that were refused, each where the model had it as far as that can be told."""
    placed = list(calls)
    for mark in marks:
        if mark.entry is not None:
            entry = {key: value for key, value in mark.entry.items() if key != "index"}
            placed.insert(mark.entry.get("index", 0), entry)
    return placed


def _calls_of(fields: RawObject) -> list[msgspec.Raw]:
    raw = fields.get("tool_calls")
    return open_array(raw) if raw is not None and bytes(raw).startswith(b"[") else []


def _content(said: list[Any]) -> Json:
    """The pieces as one content: a text, as parts where one of them is a part, None when there is none."""
    if not said:
        return None
    if all(isinstance(piece, str) for piece in said):
        return GAP.join(said)
    return said


def _as_parts(content: Json) -> list[Json]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else []
