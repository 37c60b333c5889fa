"""A tool_use block of a stream that is held until it is complete, and what leaves in its place.

Knows: the events of one block. Does not know: verdicts, other blocks, the end of a reply.
"""

from dataclasses import dataclass, field

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import ProposedCall
from interpose.gateway.bodies import object_of
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent
from interpose.wire.strictjson import join_pieces, read_arguments


@dataclass(slots=True)
class Held:
    """Bytes are kept as they came, pieces of the input as they were meant."""

    start: SseEvent
    block: JsonObject
    raw: bytearray
    pieces: list[str] = field(default_factory=list)
    first_delta: SseEvent | None = None
    is_odd: bool = False

    @property
    def call_id(self) -> str:
        """Which call it is."""
        return str(self.block.get("id") or "")

    @property
    def name(self) -> str:
        """Which tool is to be used."""
        return str(self.block.get("name") or "")

    def entry(self, call: ProposedCall) -> Json:
        """The block as the history has it; None for one whose input cannot be told."""
        return None if call.problem is not None else {**self.block, "input": call.arguments}

    def call(self) -> ProposedCall:
        """What is to be judged."""
        if self.is_odd:
            return ProposedCall(self.call_id, self.name, {}, "a piece of the input is not a text")
        text = join_pieces(self.pieces)
        at_start = self.block.get("input")
        if at_start and text:
            return ProposedCall(
                self.call_id, self.name, {}, "the input came twice, in the start of the block and after"
            )
        arguments, problem = read_arguments(write_json(at_start) if at_start else text)
        return ProposedCall(self.call_id, self.name, arguments or {}, problem)


def refused_events(held: Held, line: str) -> list[bytes]:
    """A text with the line of ours in the block's place, without its end."""
    index = object_of(held.start.data).get("index")
    start = {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": line}}
    return [held.start.with_data(write_json(start)).raw, _delta_event(held, delta).raw]


def changed_events(held: Held, arguments: JsonObject, stop: SseEvent) -> list[bytes]:
    """The block with other arguments; `stop` is its last event."""
    data = object_of(held.start.data)
    text = write_json(arguments).decode()
    delta = {
        "type": "content_block_delta",
        "index": data.get("index"),
        "delta": {"type": "input_json_delta", "partial_json": text},
    }
    start = {**data, "content_block": {**held.block, "input": {}}}
    return [held.start.with_data(write_json(start)).raw, _delta_event(held, delta).raw, stop.raw]


def _delta_event(held: Held, delta: JsonObject) -> SseEvent:
    data = write_json(delta)
    if held.first_delta is not None:
        return held.first_delta.with_data(data)
    return SseEvent.build("content_block_delta", data, held.start.newline)
