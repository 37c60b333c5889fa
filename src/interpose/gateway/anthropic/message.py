"""A whole message of the model: put together from its events, taken apart into them, or said by interpose itself.

Knows: content blocks and their deltas. Does not know: verdicts, requests, who sends it.
Source: https://docs.anthropic.com/en/api/messages-streaming.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.anthropic.blocks import is_call
from interpose.gateway.bodies import object_of
from interpose.gateway.runs import STRING, Part, Text, hides_letter, told
from interpose.kernel.ids import random_id
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent, split
from interpose.wire.strictjson import join_pieces, read_arguments

_BLOCK, _CONTENT = b'"content_block"', b'"content"'
_EMPTY_START = re.compile(rb'"content_block"\s*:\s*\{\s*"type"\s*:\s*"text"\s*,\s*"text"\s*:\s*""')
"""How a block begins whose text comes in deltas alone."""

_FILLED = re.compile(rb'"content"\s*:\s*\[\s*[^\]\s]')
"""How a message begins that has blocks already."""

_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""Deltas that are appended to a member of their block."""


_END = b"\n\n"
"""What the last event of a stream may lack."""


class _Incoherent(ValueError):  # noqa: N818 - says what the events are
    """Events that do not add up to a message."""


def _hides(raw: bytes) -> bool:
    """Whether there may be several blocks, text that is in no delta, or a key that is not found."""
    start, content = raw.find(_BLOCK), raw.find(_CONTENT)
    if start >= 0 and (_EMPTY_START.match(raw, start) is None or raw.find(_BLOCK, start + 1) >= 0):
        return True
    return hides_letter(raw) or (content >= 0 and _FILLED.search(raw, content) is not None)


TEXT = Text(
    pattern=re.compile(rb'_delta"\s*,\s*"(text|thinking)"\s*:\s*(' + STRING + rb")"),
    name=b"text",
    place=re.compile(
        rb'data:(?<=^data:) ?\{[^{}\[\]\r\n]*"delta"\s*:\s*\{\s*"type"\s*:\s*"text_delta"\s*,\s*"text"\s*:\s*'
        rb"(" + STRING + rb"|)",
        re.MULTILINE,
    ),
    key=b'"text_delta"',
    hides=_hides,
)
"""How texts are written."""


def collected(raw: bytes) -> JsonObject | None:
    """The message that the events add up to; None when one of them is not known, or a call's input is no object."""
    return _collected(raw, is_exact=True)


def shown(raw: bytes) -> JsonObject | None:
    """As `collected`, where it need not be exact: what unknown deltas say is there as it came last.

    The input of a tool that ran at the provider is left as it began where it is no object.
    """
    return _collected(raw, is_exact=False)


def spoken(raw: bytes, parts: Sequence[Part] = ()) -> str:
    """The texts of a streamed message, joined by blank lines as far as they stand in blocks of their own.

    Whatever else is in it: a text that is known is told.
    """
    texts = told(parts or (raw,), TEXT)
    return join_pieces(texts or []) or _text_in(split(raw + _END, opens=True))


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


def _text_in(events: Iterable[SseEvent]) -> str:
    """The texts of all blocks; unlike those of `collected` the events need not add up to a message."""
    blocks: list[list[str]] = []
    open_blocks: dict[str, list[str]] = {}

    def add(index: Json, text: Json, *, begins: bool) -> None:
        key = str(index)
        if begins or key not in open_blocks:
            open_blocks[key] = []
            blocks.append(open_blocks[key])
        open_blocks[key].append(text if isinstance(text, str) else "")

    for event in events:
        data = object_of(event.data)
        match data.get("type") or event.name:
            case "message_start":
                blocks += [[text_of(_member(data, "message"))]]
            case "content_block_start":
                block = _member(data, "content_block")
                add(data.get("index"), block.get("text") if block.get("type") == "text" else "", begins=True)
            case "content_block_delta" if (delta := _member(data, "delta")).get("type") == "text_delta":
                add(data.get("index"), delta.get("text"), begins=False)
    texts = map(join_pieces, blocks)
    return "\n\n".join(text for text in texts if text)


def _member(data: JsonObject, name: str) -> JsonObject:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def _collected(raw: bytes, *, is_exact: bool) -> JsonObject | None:
    try:
        return _Collecting(is_exact=is_exact).of(split(raw))
    except (_Incoherent, KeyError, TypeError):
        return None


class _Collecting:
    """A message on its way in."""

    def __init__(self, *, is_exact: bool) -> None:
        self._is_exact = is_exact
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
            if arguments is not None and problem is None:
                self._blocks[index]["input"] = arguments
            elif self._is_exact or is_call(self._blocks[index]):
                raise _Incoherent(problem or "the input is no object")
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
            case kind if self._is_exact:
                raise _Incoherent(f"a delta of the type {kind}")
            case _:
                block.update({name: value for name, value in delta.items() if name != "type"})


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
