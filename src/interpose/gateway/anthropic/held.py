"""A call's block of a stream that is held until it is complete, and what leaves in its place.

Knows: the events of one block. Does not know: verdicts, other blocks, the end of a reply.
"""

import re
from dataclasses import dataclass, field, replace

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.anthropic.blocks import CALL, read_call, text_in
from interpose.gateway.api import ProposedCall
from interpose.gateway.bodies import object_of
from interpose.gateway.runs import STRING
from interpose.wire.jsonbytes import read_json, write_json
from interpose.wire.sse import SseEvent, split
from interpose.wire.strictjson import join_pieces

_PIECE = re.compile(
    rb"event: content_block_delta\ndata: "
    rb'\{"type": ?"content_block_delta", ?"index": ?(0|[1-9]\d{0,8}), ?'
    rb'"delta": ?\{"type": ?"input_json_delta", ?"partial_json": ?(' + STRING + rb") ?\} ?\}\n\n"
)
"""How the provider writes a piece of a call's input; all others are read as JSON."""


@dataclass(slots=True)
class Held:
    """Bytes are kept as they came, pieces of the input as they were meant."""

    start: SseEvent
    index: Json
    block: Json
    raw: bytearray
    pieces: list[str] = field(default_factory=list)
    first_delta: SseEvent | None = None
    is_odd: bool = False

    def add(self, piece: Json, event: SseEvent) -> None:
        """Keeps an event of the block, and the piece of the input in it; None where it has none."""
        if isinstance(piece, str):
            self.pieces.append(piece)
            self.first_delta = self.first_delta or event
        elif piece is not None:
            self.is_odd = True
        self.raw += event.raw

    @property
    def call_id(self) -> str:
        """Which call it is."""
        return text_in(self.block, "id")

    @property
    def name(self) -> str:
        """Which tool is to be used."""
        return text_in(self.block, "name") or text_in(self.block, "type")

    def entry(self, call: ProposedCall) -> Json:
        """The block as the history has it; None for one whose input cannot be told."""
        return None if call.problem is not None else {**self.block, "input": call.arguments}

    def call(self) -> ProposedCall:
        """What is to be judged."""
        text = join_pieces(self.pieces)
        at_start = self.block.get("input") if isinstance(self.block, dict) else None
        call = read_call(self.block, None if at_start else text)
        if text_in(self.block, "type") != CALL:
            return call
        if self.is_odd:
            return replace(call, arguments={}, problem="a piece of the input is not a text")
        if at_start and text:
            return replace(call, arguments={}, problem="the input came twice, in the start of the block and after")
        return call


def quick_piece(event: SseEvent) -> tuple[str, Json] | None:
    """The block that an event adds to, and its piece of the input; None for an event that looks otherwise."""
    found = _PIECE.fullmatch(event.raw)
    if found is None:
        return None
    try:
        return found[1].decode(), read_json(found[2])
    except ValueError:
        return None


def released_events(held: Held, stop: SseEvent, index: Json) -> list[bytes]:
    """The block as it came, at this index; `stop` is its last event."""
    if index == held.index:
        return [bytes(held.raw), stop.raw]
    return [at_index(event, index).raw for event in (*split(bytes(held.raw)), stop)]


def refused_events(held: Held, line: str, index: Json) -> list[bytes]:
    """A text with the line of ours in the block's place, without its end."""
    place = {} if index is None else {"index": index}
    start = {"type": "content_block_start", **place, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", **place, "delta": {"type": "text_delta", "text": line}}
    return [held.start.with_data(write_json(start)).raw, _delta_event(held, delta).raw]


def changed_events(held: Held, arguments: JsonObject, stop: SseEvent, index: Json) -> list[bytes]:
    """The block with other arguments; `stop` is its last event."""
    data = object_of(held.start.data)
    text = write_json(arguments).decode()
    place = {} if index is None else {"index": index}
    delta = {
        "type": "content_block_delta",
        **place,
        "delta": {"type": "input_json_delta", "partial_json": text},
    }
    block = held.block if isinstance(held.block, dict) else {}
    start = {**data, **place, "content_block": {**block, "input": {}}}
    return [
        held.start.with_data(write_json(start)).raw,
        _delta_event(held, delta).raw,
        at_index(stop, index).raw,
    ]


def at_index(event: SseEvent, index: Json) -> SseEvent:
    """The event of a block at this index; the same where that is its own."""
    data = object_of(event.data)
    return event if data.get("index") == index else event.with_data(write_json({**data, "index": index}))


def _delta_event(held: Held, delta: JsonObject) -> SseEvent:
    data = write_json(delta)
    if held.first_delta is not None:
        return held.first_delta.with_data(data)
    return SseEvent.build("content_block_delta", data, held.start.newline)
