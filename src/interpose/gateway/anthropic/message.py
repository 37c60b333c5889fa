"""A whole message of the model: put together from its events, taken apart into them, or said by interpose itself.

Knows: content blocks and their deltas. Does not know: verdicts, requests, who sends it.
Source: https://docs.anthropic.com/en/api/messages-streaming.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from interpose.contracts.json import JsonObject
from interpose.gateway.bodies import object_of
from interpose.gateway.runs import STRING, Part, Text, told
from interpose.kernel.ids import random_id
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent, split
from interpose.wire.strictjson import join_pieces, read_arguments

TEXT = Text(re.compile(rb'_delta"\s*,\s*"(text|thinking)"\s*:\s*(' + STRING + rb")"), name=b"text")
"""How texts are written that follow each other."""

_TEXT_DELTA = re.compile(rb'"text_delta"(?:\s*,\s*"text"\s*:\s*(' + STRING + rb"))?")
"""Each delta of a text; nothing where its text does not follow."""

_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""Deltas that are appended to a member of their block."""


class _Incoherent(ValueError):  # noqa: N818 - says what the events are
    """Events that do not add up to a message."""


def collected(raw: bytes) -> JsonObject | None:
    """The message that the events add up to; None when one of them is not known, or a call's input is no object."""
    try:
        return _Collecting().of(split(raw))
    except (_Incoherent, KeyError, TypeError):
        return None


def spoken(raw: bytes, parts: Sequence[Part] = ()) -> str:
    """The texts of a streamed message, joined by blank lines as far as they stand in blocks of their own."""
    texts, rest = told(parts or (raw,), _TEXT_DELTA, TEXT)
    if texts is not None and rest.count(b'"content_block_start"') <= 1:
        return "".join(texts)
    return text_of(collected(raw) or {})


def text_of(message: JsonObject) -> str:
    """The texts of a whole message, with a blank line between blocks."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def said(text: str, model: str | None) -> JsonObject:
    """A message that says `text` and ends the turn."""
    return {
        "id": f"msg_{random_id('interpose', 16)}",
        "type": "message",
        "role": "assistant",
        "model": model or "interpose",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def as_stream(message: JsonObject) -> bytes:
    """The events of a whole message: each block in one delta, all unknown members kept where they were."""
    return b"".join(SseEvent.build(str(event["type"]), write_json(event)).raw for event in _events(message))


def text_start(index: int, text: str, newline: bytes) -> bytes:
    """A block that begins with this text, and goes on."""
    start = {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
    begun = SseEvent.build("content_block_start", write_json(start), newline).raw
    return begun + text_delta(index, text, newline)


def text_delta(index: int, text: str, newline: bytes) -> bytes:
    """More text of a block."""
    delta = {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}
    return SseEvent.build("content_block_delta", write_json(delta), newline).raw


def block_end(index: int, newline: bytes) -> SseEvent:
    """The end of a block."""
    return SseEvent.build("content_block_stop", write_json({"type": "content_block_stop", "index": index}), newline)


class _Collecting:
    """A message on its way in."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}

    def of(self, events: list[SseEvent]) -> JsonObject:
        for event in events:
            self._take(object_of(event.data))
        if not self._message:
            raise _Incoherent("no message was begun")
        for index, pieces in self._pieces.items():
            arguments, problem = read_arguments(join_pieces(pieces))
            if arguments is None or problem is not None:
                raise _Incoherent(problem or "the input is no object")
            self._blocks[index]["input"] = arguments
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)]}

    def _take(self, data: JsonObject) -> None:
        match data.get("type"):
            case "message_start":
                self._message = dict(data["message"])
            case "content_block_start":
                self._blocks[data["index"]] = dict(data["content_block"])
            case "content_block_delta":
                self._add(data["index"], data["delta"])
            case "message_delta":
                usage = {**self._message.get("usage", {}), **(data.get("usage") or {})}
                self._message.update(data["delta"], usage=usage)
            case "error":
                raise _Incoherent("the provider sent an error")
            case _:
                pass

    def _add(self, index: int, delta: JsonObject) -> None:
        block = self._blocks[index]
        match delta["type"]:
            case "input_json_delta":
                if delta["partial_json"]:
                    self._pieces.setdefault(index, []).append(delta["partial_json"])
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            case kind if kind in _GROWING:
                member = _GROWING[kind]
                block[member] = block.get(member, "") + delta[member]
            case kind:
                raise _Incoherent(f"a delta of the type {kind}")


def _events(message: JsonObject) -> Iterator[JsonObject]:
    content = message.get("content")
    usage = message.get("usage") or {}
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(content if isinstance(content, list) else []):
        yield from _block_events(index, block)
    ended = {"stop_reason": message.get("stop_reason"), "stop_sequence": message.get("stop_sequence")}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 0, **usage}}
    yield {"type": "message_stop"}


def _block_events(index: int, block: JsonObject) -> Iterator[JsonObject]:
    deltas: list[JsonObject] = []
    start = dict(block)
    match block.get("type"):
        case "text":
            deltas = [{"type": "text_delta", "text": block.get("text", "")}]
            deltas += [{"type": "citations_delta", "citation": one} for one in block.get("citations") or []]
            start = {key: value for key, value in block.items() if key != "citations"} | {"text": ""}
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": block.get("thinking", "")},
                {"type": "signature_delta", "signature": block.get("signature", "")},
            ]
            start |= {"thinking": "", "signature": ""}
        case "tool_use" | "server_tool_use":
            text = msgspec.json.encode(block.get("input", {})).decode()
            deltas = [{"type": "input_json_delta", "partial_json": text}]
            start |= {"input": {}}
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}
