"""A streamed messages reply: a call is held until it is complete, everything else leaves at once.

Knows: the events of the API. Does not know: sockets, why a call is refused.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeAlias

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import Verdict
from interpose.gateway.api import CUT_SHORT, HELD_BYTES_MAX, Dropped, ProposedCall, Steps, answered
from interpose.gateway.bodies import read_in_one_way
from interpose.gateway.faults import error_event
from interpose.gateway.wording import refused_line
from interpose.wire.jsonbytes import read_json, write_json
from interpose.wire.sse import SseEvent, SseReader, split
from interpose.wire.strictjson import join_pieces, read_arguments

_MARKS = (b"tool_use", b"message_delta", b"message_stop", b"\\u")
"""Bytes without which an event cannot matter while no call is held; an escape may hide any of them."""

_Out: TypeAlias = list[bytes]


@dataclass(slots=True)
class _Held:
    """A tool_use block on its way in. Bytes are kept as they came, pieces of the input as they were meant."""

    start: SseEvent
    block: JsonObject
    raw: bytearray
    pieces: list[str] = field(default_factory=list)
    first_delta: SseEvent | None = None
    is_odd: bool = False

    @property
    def call_id(self) -> str:
        return str(self.block.get("id") or "")

    @property
    def name(self) -> str:
        return str(self.block.get("name") or "")

    def call(self) -> ProposedCall:
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


class AnthropicStream:
    """The port `ReplyStream`.

    The stop reason is held back until the stream says that it is over, so that a provider which tells it too early
    cannot make it contradict what follows.
    """

    def __init__(self) -> None:
        self._reader = SseReader()
        self._held: dict[str, _Held] = {}
        self._closed: set[str] = set()
        self._tail: list[SseEvent] = []
        self._released = 0
        self._refused = 0
        self._is_over = False
        self._unread = b""
        """The last that left without being read."""
        self._newline = b"\n"

    def feed(self, data: bytes) -> Steps:
        """What `data` makes possible; texts leave within the same call."""
        block = self._reader.take(data)
        first = _first_mark(block) if self._is_idle else 0
        if first < 0:
            if block:
                self._unread = block
                yield block
            return

        plain, events = self._reader.split_from(block, first)
        out: _Out = [plain] if plain else []
        for event in events:
            if self._is_idle and _first_mark(event.raw) < 0:
                self._unread = event.raw
                out.append(event.raw)
                continue
            yield from self._take(event, out)
        if out:
            yield b"".join(out)

    def finish(self, fault: str | None = None) -> Steps:
        """The end of the stream. A call that is still held is dropped, and an error event says so."""
        out: _Out = []
        events, rest = self._reader.finish()
        for event in [*events, SseEvent(rest, self._reader.opens)] if rest and fault is None else events:
            yield from self._take(event, out)

        if self._held:
            yield from self._drop_held(fault or CUT_SHORT)
            out.append(error_event("anthropic", fault or CUT_SHORT, self._newline))
        else:
            out += self._final_tail()
            if fault is not None and not self._is_over and not _tells_error(self._unread):
                out.append(error_event("anthropic", fault, self._newline))
        if out:
            yield b"".join(out)

    @property
    def _is_idle(self) -> bool:
        return not (self._held or self._tail or self._closed)

    def _take(self, event: SseEvent, out: _Out) -> Steps:
        yield from read_in_one_way(event.data, out)
        data = _parsed(event)
        key = str(data.get("index"))
        match _kind(event, data):
            case "content_block_start" if _is_call(data):
                yield from self._hold(key, event, data)
            case "content_block_delta" if key in self._held:
                yield from self._add(key, event, data)
            case "content_block_stop" if key in self._held:
                yield from self._complete(key, event, out)
            case "content_block_delta" | "content_block_stop" if key in self._closed:
                pass  # it would change a call that has been judged
            case "content_block_start":
                self._closed.discard(key)
                self._pass(event, out)
            case "message_start" if calls := _calls_at_start(data):
                self._pass(event.with_data(write_json(_emptied(data))), out)
                self._refused += len(calls)
                for block in calls:
                    yield Dropped(str(block.get("id")), str(block.get("name")), "it came before the message began")
            case "message_delta":
                self._tail.append(event)
            case "message_stop":
                yield from self._end(event, out)
            case "error":
                yield from self._drop_held("the provider sent an error")
                out += self._final_tail()
                out.append(event.raw)
                self._is_over = True
            case _:
                self._pass(event, out)

    def _pass(self, event: SseEvent, out: _Out) -> None:
        if self._tail:
            self._tail.append(event)
            return
        out.append(event.raw)

    def _hold(self, key: str, event: SseEvent, data: JsonObject) -> Steps:
        if key in self._held:
            yield self._dropped(key, "another block with its index began before it was complete")
        self._newline = event.newline
        self._closed.discard(key)
        self._held[key] = _Held(event, data["content_block"], bytearray(event.raw))

    def _add(self, key: str, event: SseEvent, data: JsonObject) -> Steps:
        held = self._held[key]
        delta = data.get("delta")
        piece = delta.get("partial_json") if isinstance(delta, dict) else None
        if isinstance(piece, str):
            held.pieces.append(piece)
            held.first_delta = held.first_delta or event
        elif piece is not None:
            held.is_odd = True
        held.raw += event.raw
        if len(held.raw) > HELD_BYTES_MAX:
            self._closed.add(key)
            yield self._dropped(key, f"it is larger than {HELD_BYTES_MAX} bytes")

    def _complete(self, key: str, event: SseEvent, out: _Out) -> Steps:
        held = self._held.pop(key)
        self._closed.add(key)
        call = held.call()
        if out:
            yield b"".join(out)
            out.clear()
        verdict = answered((yield call))
        if not verdict.allowed:
            self._refused += 1
            out += _refused(held, refused_line(held.name, verdict), event)
            return

        self._released += 1
        out += [bytes(held.raw), event.raw] if verdict.arguments is None else _changed(held, verdict.arguments, event)

    def _end(self, event: SseEvent, out: _Out) -> Steps:
        self._is_over = True
        if not self._held:
            out += self._final_tail()
            out.append(event.raw)
            return

        yield from self._drop_held(CUT_SHORT)
        self._tail.clear()
        out.append(error_event("anthropic", CUT_SHORT, self._newline))

    def _drop_held(self, reason: str) -> Generator[Dropped, Verdict | None, None]:
        for key in list(self._held):
            yield self._dropped(key, reason)

    def _dropped(self, key: str, reason: str) -> Dropped:
        held = self._held.pop(key)
        self._refused += 1
        return Dropped(held.call_id, held.name, reason)

    def _final_tail(self) -> _Out:
        events = [_stop_told(event) for event in self._tail] if self._refused and not self._released else self._tail
        self._tail = []
        return [event.raw for event in events]


def _first_mark(raw: bytes) -> int:
    """Where the first byte stands that matters, or -1."""
    if raw.find(b"tool_use") < 0 and raw.find(b"message_") < 0 and raw.find(b"\\") < 0:  # quicker than `in`
        return -1
    return min((at for mark in _MARKS if (at := raw.find(mark)) >= 0), default=-1)


def _tells_error(block: bytes) -> bool:
    return b"error" in block and any(_kind(event, _parsed(event)) == "error" for event in split(block))


def _kind(event: SseEvent, data: JsonObject) -> Json:
    return data.get("type") or event.name


def _parsed(event: SseEvent) -> JsonObject:
    data = event.data
    if data is None:
        return {}
    try:
        value: Json = read_json(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _is_call(data: JsonObject) -> bool:
    block = data.get("content_block")
    return isinstance(block, dict) and block.get("type") == "tool_use"


def _calls_at_start(data: JsonObject) -> list[JsonObject]:
    """Calls where the API has none: a client may take them for the message's first blocks."""
    message = data.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]


def _emptied(data: JsonObject) -> JsonObject:
    return {**data, "message": {**data["message"], "content": []}}


def _refused(held: _Held, line: str, stop: SseEvent) -> _Out:
    index = _parsed(held.start).get("index")
    start = {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": line}}
    return [held.start.with_data(write_json(start)).raw, _delta_event(held, delta).raw, stop.raw]


def _changed(held: _Held, arguments: JsonObject, stop: SseEvent) -> _Out:
    data = _parsed(held.start)
    text = write_json(arguments).decode()
    delta = {
        "type": "content_block_delta",
        "index": data.get("index"),
        "delta": {"type": "input_json_delta", "partial_json": text},
    }
    start = {**data, "content_block": {**held.block, "input": {}}}
    return [held.start.with_data(write_json(start)).raw, _delta_event(held, delta).raw, stop.raw]


def _delta_event(held: _Held, delta: JsonObject) -> SseEvent:
    data = write_json(delta)
    if held.first_delta is not None:
        return held.first_delta.with_data(data)
    return SseEvent.build("content_block_delta", data, held.start.newline)


def _stop_told(event: SseEvent) -> SseEvent:
    """The event with `end_turn` where it says that a tool is to be used, since none is left."""
    data = _parsed(event)
    delta = data.get("delta")
    if not isinstance(delta, dict) or delta.get("stop_reason") != "tool_use":
        return event
    return event.with_data(write_json({**data, "delta": {**delta, "stop_reason": "end_turn"}}))
