"""A streamed messages reply: a call is held until it is complete, everything else leaves at once.

Knows: the events of the API. Does not know: sockets, why a call is refused.
"""

import re
from collections.abc import Generator

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.anthropic.blocks import is_call, text_in
from interpose.gateway.anthropic.ends import NATURAL, reason_of, spending_told, spent_in, stop_told
from interpose.gateway.anthropic.held import (
    Held,
    at_index,
    changed_events,
    quick_piece,
    refused_events,
    released_events,
)
from interpose.gateway.anthropic.message import TEXT, block_end, collected, text_delta, text_start
from interpose.gateway.anthropic.places import Places
from interpose.gateway.api import (
    CUT_SHORT,
    CUT_SHORT_TOLD,
    HELD_BYTES_MAX,
    Answer,
    Dropped,
    RefusedCall,
    RoundOver,
    Step,
    Steps,
    answered,
    hindrance,
)
from interpose.gateway.bodies import object_of, read_event
from interpose.gateway.faults import error_event
from interpose.gateway.marks import GAP
from interpose.gateway.proposed import CallIds, place_of
from interpose.gateway.streaming import EventStream, Out, left
from interpose.gateway.wording import refused_line
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent, split

_MESSAGE = b"message_"
_ESCAPE = b"\\"
_START = b"block_start"
"""Bytes without which an event cannot matter while no call is held; an escape may hide any."""

_ENDINGS = (b"message_delta", b"message_stop")
_LETTER = b"\\u00"
"""How an escape begins that stands for a letter of a mark."""

_BLOCK = b'"content_block"'
_USE = b"tool_use"
_PLAIN_BLOCK = re.compile(
    rb'"content_block"\s*:\s*\{\s*"type"\s*:\s*"(?:text"\s*,\s*"text"|thinking"\s*,\s*"thinking")\s*:\s*""\s*'
    rb'(?:,\s*"signature"\s*:\s*""\s*)?\}'
)
"""How nearly all blocks begin; all others are read."""

_CALL = re.compile(rb"tool_use|block_start|partial_json|\\u00[2-7]")
"""In an event that cannot be read: a call may begin or go on in it; an escape may hide the other marks."""

_CONTENT = re.compile(rb'"content"\s*:\s*\[\s*[^\]\s]')
"""How a message begins that has blocks already."""


class AnthropicStream(EventStream):
    """The port `ReplyStream`. Its calls are judged one by one, as each is complete.

    The stop reason is held back until the stream says that it is over, so that a provider which tells it too early
    cannot make it contradict what follows. Blocks of a later reply of the model are counted on from the earlier one's.
    """

    def __init__(self) -> None:
        super().__init__("anthropic", TEXT)
        self._held: dict[str, Held] = {}
        self._closed: set[str] = set()
        self._tail: list[SseEvent] = []
        self._told: list[RefusedCall] = []
        self._told_at = -1
        self._last_index = -1
        self._places = Places()
        self._ids = CallIds()
        self._released = 0
        self._refused = 0
        self._before = 0
        """How many blocks the client has of earlier replies of the model."""
        self._spent = 0
        self._open: tuple[int, SseEvent] | None = None
        """A block of ours and its end, held while the model's next text may stand in it too: some clients show the
        last block alone."""
        self._is_over = False
        self._newline = b"\n"

    @property
    def is_ended(self) -> bool:
        """As the port says: there was a `message_stop`, or an error."""
        return self._is_over

    def _ended(self, fault: str | None, out: Out) -> Steps:
        """The end of the stream. A call that is still held is dropped, and an error event says so."""
        if self._held:
            self._close(out)
            yield from self._drop_held(fault or CUT_SHORT)
            out.append(error_event("anthropic", fault or CUT_SHORT_TOLD, self._newline))
        elif fault is not None or self._is_over or not (yield from self._goes_on(out)):
            self._close(out)
            out += self._final_tail()
            if fault is not None and not self._is_over and not _tells_error(self._unread):
                out.append(error_event("anthropic", fault, self._newline))

    def _is_holding(self) -> bool:
        return bool(self._held)

    def _pass_cut(self, event: SseEvent, out: Out) -> None:
        self._pass(event, out)

    def _first_mark(self, raw: bytes) -> int:
        if self._held or self._tail or self._closed or self._before or self._places.has_moved:
            return 0
        start, message, escape = raw.find(_START), raw.find(_MESSAGE), raw.find(_ESCAPE)  # quicker than `in`
        if start < 0 and message < 0 and escape < 0:
            return -1
        places: list[int] = []
        if escape >= 0:
            places.append(raw.find(_LETTER, escape))
        if start >= 0:
            places.append(raw.find(_USE, start))
        if start >= 0 and raw.count(_BLOCK) != len(_PLAIN_BLOCK.findall(raw)):
            places.append(start)
        if message >= 0:
            places += [raw.find(ending, message) for ending in _ENDINGS]
            full = _CONTENT.search(raw)
            places.append(full.start() if full is not None else -1)
        return min((at for at in places if at >= 0), default=-1)

    def _collects(self, event: SseEvent) -> bool:
        if not self._held or self._before or self._open is not None:
            return False
        found = quick_piece(event)
        held = self._held.get(found[0]) if found is not None else None
        if found is None or held is None or len(held.raw) + len(event.raw) > HELD_BYTES_MAX:
            return False
        held.add(found[1], event)
        return True

    def _take(self, event: SseEvent, out: Out) -> Steps:
        data = yield from read_event(event.data, out, _CALL)
        if self._before:
            event, data = self._counted_on(event, data)
        key = str(place_of(data.get("index")))
        if self._joins(event, data, out):
            return
        match _kind(event, data):
            case "content_block_start":
                yield from self._begin(key, event, data, out)
            case "content_block_delta" if key in self._held:
                yield from self._add(key, event, data)
            case "content_block_stop" if key in self._held:
                yield from self._complete(key, event, out)
            case "content_block_delta" | "content_block_stop" if key in self._closed:
                pass  # it would change a call that has been judged
            case "content_block_delta" | "content_block_stop" if self._places.has_moved:
                self._pass(at_index(event, self._places.of(data.get("index"))), out)
            case "message_start":
                yield from self._start(event, data, out)
            case "message_delta":
                self._tail.append(event)
            case "message_stop":
                yield from self._end(event, out)
            case "error":
                self._close(out)
                yield from self._drop_held("the provider sent an error")
                out += self._final_tail()
                out.append(event.raw)
                self._is_over = True
            case _:
                self._pass(event, out)

    def _start(self, event: SseEvent, data: JsonObject, out: Out) -> Steps:
        calls = _calls_at_start(data)
        self._refused += len(calls)
        for block in calls:
            name = text_in(block, "name") or text_in(block, "type")
            yield Dropped(text_in(block, "id"), name, "it came before the message began")
        if not self._before:
            self._pass(event.with_data(write_json(_emptied(data))) if calls else event, out)

    def _joins(self, event: SseEvent, data: JsonObject, out: Out) -> bool:
        """Whether the first text of a later reply begins in the block of ours that is open; others close it."""
        kind = str(_kind(event, data))
        if self._open is None or not kind.startswith("content_block_"):
            return False
        block = data.get("content_block")
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
        is_first = self._last_index < 0 and self._open[0] == self._before - 1 == data.get("index", -1) - 1
        if kind != "content_block_start" or not is_first or not isinstance(text, str):
            self._close(out)
            return False
        self._open = None
        self._before -= 1
        self._last_index = self._before
        out.append(text_delta(self._before, f"{GAP}{text}", self._newline))
        return True

    def _close(self, out: Out) -> None:
        if self._open is not None:
            out.append(self._open[1].raw)
            self._open = None

    def _counted_on(self, event: SseEvent, data: JsonObject) -> tuple[SseEvent, JsonObject]:
        index = data.get("index")
        if not isinstance(index, int):
            return event, data
        data = {**data, "index": index + self._before}
        return event.with_data(write_json(data)), data

    def _note_index(self, data: JsonObject) -> None:
        index = data.get("index")
        self._places.come(index)
        if isinstance(index, int):
            self._last_index = max(self._last_index, index)

    def _pass(self, event: SseEvent, out: Out) -> None:
        if self._tail:
            self._tail.append(event)
            return
        out.append(event.raw)

    def _begin(self, key: str, event: SseEvent, data: JsonObject, out: Out) -> Steps:
        if key in self._held:
            yield self._dropped(key, "another block with its index began before it was complete")
        self._newline = event.newline
        self._closed.discard(key)
        self._note_index(data)
        index, block = data.get("index"), data.get("content_block")
        if is_call(block):
            self._held[key] = Held(event, index, block, bytearray(event.raw))
            return
        self._pass(at_index(event, self._places.leave(index)), out)

    def _add(self, key: str, event: SseEvent, data: JsonObject) -> Steps:
        held = self._held[key]
        delta = data.get("delta")
        held.add(delta.get("partial_json") if isinstance(delta, dict) else None, event)
        if len(held.raw) > HELD_BYTES_MAX:
            self._closed.add(key)
            yield self._dropped(key, f"it is larger than {HELD_BYTES_MAX} bytes")

    def _complete(self, key: str, event: SseEvent, out: Out) -> Steps:
        held = self._held.pop(key)
        self._closed.add(key)
        call = self._ids.own(held.call())
        yield from left(out)
        verdict = answered((yield call))
        index = self._places.leave(held.index)
        if not verdict.allowed:
            self._refused += 1
            line = refused_line(call.name, verdict)
            self._told.append(RefusedCall(call, line, held.entry(call)))
            self._told_at = max(self._told_at, held.index if isinstance(held.index, int) else -1)
            out += refused_events(held, line, index)
            self._open = (index if isinstance(index, int) else -1, at_index(event, index))
            return

        self._released += 1
        out += (
            released_events(held, event, index)
            if verdict.arguments is None
            else changed_events(held, verdict.arguments, event, index)
        )

    def _end(self, event: SseEvent, out: Out) -> Steps:
        if not self._held:
            if (yield from self._goes_on(out)):
                return
            self._is_over = True
            self._close(out)
            out += self._final_tail()
            out.append(event.raw)
            return

        self._is_over = True
        yield from self._drop_held(CUT_SHORT)
        self._tail.clear()
        out.append(error_event("anthropic", CUT_SHORT_TOLD, self._newline))

    def _goes_on(self, out: Out) -> Generator[Step, Answer, bool]:
        """Whether another reply of the model follows in this one; asked before the end leaves."""
        yield from left(out)
        reason = next((said for event in reversed(self._tail) if (said := reason_of(event))), None)
        is_last = not self._told or self._told_at >= self._last_index
        is_lost = self._refused != len(self._told)
        why_not = hindrance(reason, is_natural=reason in NATURAL, is_last=is_last, is_lost=is_lost)
        raw, parts = self._taken()
        over = RoundOver(raw, tuple(self._told), self._released, reason, why_not, parts=parts)
        answer = yield from self._followed(over)
        if answer is not None:
            self._begin_next(raw, answer.note, out)
        return answer is not None

    def _begin_next(self, raw: bytes, note: str, out: Out) -> None:
        self._spent += sum(spent_in(event) for event in self._tail)
        self._before += _blocks_in(raw)
        if note:
            self._close(out)
            out.append(text_start(self._before, note, self._newline))
            self._open = (self._before, block_end(self._before, self._newline))
            self._before += 1
        self._closed.clear()
        self._tail = []
        self._told = []
        self._told_at = self._last_index = -1
        self._places, self._ids = Places(), CallIds()
        self._released = self._refused = 0

    def _drop_held(self, reason: str) -> Generator[Dropped, Answer, None]:
        for key in list(self._held):
            yield self._dropped(key, reason)

    def _dropped(self, key: str, reason: str) -> Dropped:
        held = self._held.pop(key)
        self._refused += 1
        return Dropped(held.call_id, held.name, reason)

    def _final_tail(self) -> Out:
        events = [stop_told(event) for event in self._tail] if self._refused and not self._released else self._tail
        self._tail = []
        if self._spent:
            events = [spending_told(event, self._spent) for event in events]
        return [event.raw for event in events]


def _tells_error(block: bytes) -> bool:
    return b"error" in block and any(_kind(event, object_of(event.data)) == "error" for event in split(block))


def _kind(event: SseEvent, data: JsonObject) -> Json:
    return data.get("type") or event.name


def _calls_at_start(data: JsonObject) -> list[Json]:
    """Calls where the API has none: a client may take them for the message's first blocks."""
    message = data.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if is_call(block)]


def _emptied(data: JsonObject) -> JsonObject:
    return {**data, "message": {**data["message"], "content": []}}


def _blocks_in(raw: bytes) -> int:
    message = collected(raw)
    return len(message["content"]) if message is not None else raw.count(b'"content_block_start"')
