"""A streamed response: a call is held until its item is done, everything else leaves at once.

Knows: the events of the API, their numbers, the response object at the end. Does not know: sockets, why a call is
refused.
"""

import re
from collections.abc import Generator
from dataclasses import dataclass

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import (
    CUT_SHORT,
    CUT_SHORT_TOLD,
    HELD_BYTES_MAX,
    UNENDED_TOLD,
    Answer,
    Dropped,
    ProposedCall,
    Step,
    Steps,
    Unreadable,
)
from interpose.gateway.bodies import RawObject, open_body, open_object, read_event, value_of
from interpose.gateway.faults import error_event
from interpose.gateway.proposed import place_of
from interpose.gateway.responses.events import Event, item_events
from interpose.gateway.responses.held import Held, rewritten_events
from interpose.gateway.responses.items import is_call
from interpose.gateway.responses.numbering import Numbering
from interpose.gateway.responses.reply import (
    Earlier,
    Identity,
    Settled,
    Tally,
    asked,
    identity,
    items_of,
    judged_response,
)
from interpose.gateway.responses.response import ENDS
from interpose.gateway.streaming import EventStream, Out, left
from interpose.wire.jsonbytes import read_json, write_as_read, write_json
from interpose.wire.sse import SseEvent

_MARK = re.compile(
    rb'output_item|function_call|custom_tool|"output"\s*:\s*\[\s*[^\]\s]|"error"\s*:\s*[^n\s]|"error"\s*[,}]|\\u00'
    rb"|response\.(?:completed|incomplete|failed)|event: ?error"
)
"""Bytes without which an event cannot matter; an escape may hide any of them."""

_CALL = re.compile(rb'_call|output_item|"output"|\\u00[2-7]')
"""In an event that cannot be read: a call may stand in it; an escape may hide the other marks."""

_CALL_EVENTS = ("response.function_call_", "response.custom_tool_call_")


@dataclass(frozen=True, slots=True)
class _Shape:
    """How the events of this stream look: with or without names, and their line ends."""

    newline: bytes = b"\n"
    has_names: bool = True


class ResponsesStream(EventStream):
    """The port `ReplyStream`. A call is complete when its item is done.

    The items of a later reply of the model are counted on from the earlier one's, and so are the numbers of its events.
    """

    def __init__(self) -> None:
        super().__init__("responses")
        self._held: dict[str, Held] = {}
        self._closed: set[str] = set()
        self._settled: dict[Identity, Settled] = {}
        self._tally = Tally()
        self._seen: set[int] = set()
        """The places of items that events told of."""
        self._numbers = Numbering()
        self._earlier = Earlier()
        self._before = 0
        """How many items the client has of earlier replies of the model."""
        self._is_later = False
        """Whether there are any."""
        self._is_over = False
        self._shape = _Shape()

    @property
    def is_ended(self) -> bool:
        """As the port says: a response was completed, or failed."""
        return self._is_over

    def _ended(self, fault: str | None, out: Out) -> Steps:
        """The end of the stream. A call that is still held is dropped, and an error event says so."""
        is_cut = bool(self._held)
        yield from self._drop_held(fault or CUT_SHORT)
        is_missed = fault is not None or self._is_later
        if is_cut or (is_missed and not self._is_over):
            out.append(self._error(fault or (CUT_SHORT_TOLD if is_cut else UNENDED_TOLD)))
        if fault is None and not (is_cut or self._is_over or self._is_later):
            yield from self._unended(out)

    def _unended(self, out: Out) -> Steps:
        """A reply whose end was never told is over all the same, and nothing can follow on it."""
        yield from left(out)
        raw = self._transcript.taken()
        if raw:
            yield self._tally.over(raw, {})

    def _is_holding(self) -> bool:
        return bool(self._held)

    def _first_mark(self, raw: bytes) -> int:
        if self._held or self._closed or self._is_later:
            return 0
        found = _MARK.search(raw)
        return -1 if found is None else found.start()

    def _take(self, event: SseEvent, out: Out) -> Steps:
        data = yield from read_event(event.data, out, _CALL)
        if self._is_later:
            event, data = self._counted_on(event, data)
        kind = data.get("type") or event.name
        key = self._key(data)
        match kind:
            case "response.output_item.added":
                yield from self._added(key, event, data, out)
            case "response.output_item.done":
                yield from self._done(key, event, data, out)
            case "error":
                self._is_over = True
                yield from self._drop_held("the provider sent an error")
                self._pass(event.raw, out)
            case _ if kind in ENDS or isinstance(data.get("response"), dict):
                yield from self._whole(event, kind, data, out)
            case _ if key in self._held:
                yield from self._add(key, event, data)
            case _ if key in self._closed:
                pass  # it would change a call that has been judged
            case str() if kind.startswith(_CALL_EVENTS):
                self._held[key] = Held(data.get("output_index"))
                yield from self._add(key, event, data)
            case _:
                self._pass(event.raw, out)

    def _counted_on(self, event: SseEvent, data: JsonObject) -> tuple[SseEvent, JsonObject]:
        self._numbers.see(data.get("sequence_number"))
        index = data.get("output_index")
        if not isinstance(index, int):
            return event, data
        index += self._before
        return event.with_data(write_json({**_fields(event), "output_index": index})), {**data, "output_index": index}

    def _key(self, data: JsonObject) -> str:
        """Which output item an event is about; some servers leave the index out."""
        index = data.get("output_index")
        if index is not None:
            return str(place_of(index))
        item_id = data.get("item_id")
        named = (key for key, held in self._held.items() if item_id and _id_of(held.announced) == item_id)
        return next(named, "")

    def _added(self, key: str, event: SseEvent, data: JsonObject, out: Out) -> Steps:
        if key in self._held:
            yield self._dropped(key, "another item with its index began before it was complete")
        self._closed.discard(key)
        self._note(data.get("output_index"))
        item = data.get("item")
        if not is_call(item):
            self._pass(event.raw, out)
            return
        self._held[key] = Held(data.get("output_index"), item)
        self._shape = _shape_of(event)
        yield from self._add(key, event, data)

    def _note(self, place: Json) -> None:
        self._tally.note(place)
        if isinstance(place, int):
            self._seen.add(place)

    def _add(self, key: str, event: SseEvent, data: JsonObject) -> Steps:
        held = self._held[key]
        held.add(event.raw, data)
        if len(held.raw) > HELD_BYTES_MAX:
            self._closed.add(key)
            yield self._dropped(key, f"it is larger than {HELD_BYTES_MAX} bytes")

    def _done(self, key: str, event: SseEvent, data: JsonObject, out: Out) -> Steps:
        self._note(data.get("output_index"))
        held = self._held.get(key)
        if _is_harmless(held, data.get("item")):
            self._held.pop(key, None)
            self._pass(bytes(held.raw) if held else b"", out)
            self._pass(event.raw, out)
            return
        self._closed.add(key)
        if not isinstance(data.get("item"), dict):
            if held is not None:
                yield self._dropped(key, "its last event does not say what it is")
            return
        self._held.pop(key, None)
        yield from left(out)
        yield from self._judged(held or Held(data.get("output_index")), event, data, out)

    def _judged(self, held: Held, event: SseEvent, data: JsonObject, out: Out) -> Steps:
        raw = _fields(event)["item"]
        self._shape = _shape_of(event)
        held.add(event.raw, {name: value for name, value in data.items() if name == "sequence_number"})
        settled = yield from asked(raw, held.call(raw), self._tally.ids)
        self._settle(data["item"], settled)
        self._tally.add(held.index, settled)
        match settled.outcome:
            case "released":
                self._pass(bytes(held.raw), out)
            case "rewritten" if settled.item is not None:
                out += self._in_place(held, list(rewritten_events(settled.item, held.announced, held.index)))
            case _:
                out += self._in_place(held, list(item_events(value_of(settled.item), held.index)))

    def _whole(self, event: SseEvent, kind: Json, data: JsonObject, out: Out) -> Steps:
        """An event with the response in it, which clients may read instead of all others."""
        is_end, is_cut = kind in ENDS and not self._is_over, bool(self._held)
        self._is_over = self._is_over or is_end
        if kind in ENDS:
            yield from self._drop_held(CUT_SHORT)
        elif self._is_later:
            self._numbers.leave_out(data.get("sequence_number"))
            return
        if kind == "response.completed" and is_cut:
            out.append(self._error(CUT_SHORT_TOLD))
            return
        if not isinstance(data.get("response"), dict):
            self._pass(event.raw, out)
            return
        yield from left(out)
        top = _fields(event)
        response = open_object(top["response"])
        unseen = self._unseen(response) if is_end else []
        changed = yield from judged_response(response, self._settled, self._tally, self._before)
        response = response if changed is None else changed
        out += self._made_up(event, data.get("sequence_number"), response, unseen)
        if is_end and (yield from self._goes_on(event, data, response, out)):
            return
        if changed is not None or self._is_later:
            event = event.with_data(write_json({**top, "response": self._earlier.told(response)}))
        self._pass(event.raw, out)

    def _unseen(self, response: RawObject) -> list[int]:
        """The items of the whole response that no event told of, when there are calls among them; none otherwise."""
        values = [value_of(raw) for raw in items_of(response)]
        unseen = [at for at in range(len(values)) if at + self._before not in self._seen]
        has_call = any(is_call(values[at]) and identity(values[at]) not in self._settled for at in unseen)
        return unseen if has_call else []

    def _made_up(self, event: SseEvent, number: Json, response: RawObject, unseen: list[int]) -> Out:
        """The events of items that stand only in the response at the end, so that all that clients read is the same."""
        items = items_of(response)
        events = [
            one for at in unseen if at < len(items) for one in item_events(value_of(items[at]), at + self._before)
        ]
        self._shape = _shape_of(event)
        numbers = self._numbers.put_before(number, len(events)) if events else []
        return [self._built(kind, fields, at) for at, (kind, fields) in zip(numbers, events, strict=True)]

    def _goes_on(
        self, event: SseEvent, data: JsonObject, response: RawObject, out: Out
    ) -> Generator[Step, Answer, bool]:
        """Whether another reply of the model follows in this one; asked before the end leaves."""
        answer = yield from self._followed(self._tally.over(self._transcript.taken(), response))
        if answer is None:
            return False
        self._shape = _shape_of(event)
        self._numbers.begin_next(data.get("sequence_number"))
        self._before = self._tally.last + 1
        note = self._earlier.add(response, answer, self._before)
        if note is not None:
            events = list(item_events(note, self._before))
            numbers = self._numbers.drawn(len(events))
            out += [self._built(name, said, number) for number, (name, said) in zip(numbers, events, strict=True)]
            self._before += 1
        self._closed.clear()
        self._seen.clear()
        self._settled = {}
        self._tally = Tally(last=self._before - 1)
        self._last = b""
        self._is_over, self._is_later = False, True
        return True

    def _settle(self, item: Json, settled: Settled) -> None:
        known = identity(item)
        if any(known):
            self._settled[known] = settled

    def _pass(self, raw: bytes, out: Out) -> None:
        """The very bytes, or with numbers behind those of what was put in before them."""
        out.append(self._numbers.renumbered(raw))

    def _in_place(self, held: Held, events: list[Event]) -> Out:
        """Events that take the place of the held ones and their numbers; what follows makes room for more."""
        if not held.numbers:
            return [self._built(kind, fields, None) for kind, fields in events]
        numbers = self._numbers.put_in(held.numbers, len(events))
        return [self._built(kind, fields, number) for number, (kind, fields) in zip(numbers, events, strict=True)]

    def _built(self, kind: str, fields: JsonObject, number: int | None) -> bytes:
        said = {"type": kind, **({} if number is None else {"sequence_number": number}), **fields}
        name = kind if self._shape.has_names else None
        return SseEvent.build(name, write_json(said), self._shape.newline).raw

    def _error(self, message: str) -> bytes:
        return error_event("responses", message, self._shape.newline, self._numbers.behind(self._last))

    def _drop_held(self, reason: str) -> Generator[Dropped, Answer, None]:
        for key in list(self._held):
            yield self._dropped(key, reason)

    def _dropped(self, key: str, reason: str) -> Dropped:
        held = self._held.pop(key)
        self._tally.lost += 1
        self._settle(held.announced, Settled(ProposedCall(held.call_id, held.name, {}), None, "gone"))
        return Dropped(held.call_id, held.name, reason)


def _fields(event: SseEvent) -> RawObject:
    """The members of an event that `_parsed` could read."""
    data = event.data or b"{}"
    try:
        return open_body(data)
    except Unreadable:
        return open_body(write_as_read(read_json(data)))


def _is_harmless(held: Held | None, item: Json) -> bool:
    """Whether an item that is done runs nothing; one that was announced as something else does not."""
    if is_call(item):
        return False
    return held is None or (isinstance(held.announced, dict) and held.announced.get("type") == item.get("type"))


def _shape_of(event: SseEvent) -> _Shape:
    return _Shape(event.newline, event.name != "message")


def _id_of(item: Json) -> Json:
    return item.get("id") if isinstance(item, dict) else None
