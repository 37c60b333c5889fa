"""A whole response: put together from its events, taken apart into them, or said by interpose itself.

Knows: the response object and its output items. Does not know: verdicts, requests, who sends it.
Source: https://platform.openai.com/docs/api-reference/responses/object.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.bodies import object_of
from interpose.gateway.responses.events import Event, item_events
from interpose.gateway.responses.items import output_text
from interpose.kernel.ids import random_id
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import EventTooLong, SseEvent, SseReader, split_from
from interpose.wire.strictjson import join_pieces

ENDS = ("response.completed", "response.incomplete", "response.failed")
"""The events that end a response, and carry the whole of it."""

_DONE = b"response.completed"


def collected(raw: bytes) -> JsonObject | None:
    """The response that the events add up to: what its end says, with the items as they were when each was done.

    None when there is no end, or one that has other items.
    """
    done: dict[int, Json] = {}
    response: Json = None
    for event in _events_of(raw):
        data = object_of(event.data)
        match data.get("type") or event.name:
            case "error":
                return None
            case "response.output_item.done":
                index = data.get("output_index")
                if not isinstance(index, int):
                    return None
                done[index] = data.get("item")
            case kind if kind in ENDS:
                response = data.get("response")
    if not isinstance(response, dict):
        return None
    items = [done[index] for index in sorted(done)]
    output = response.get("output") or []
    if not items:
        return response
    if output and (not isinstance(output, list) or [*map(_named, output)] != [*map(_named, items)]):
        return None
    return {**response, "output": items}


def spoken(raw: bytes, parts: Sequence[bytes | str] = ()) -> str:  # noqa: ARG001 - all of it is looked at
    """The texts of a streamed response; its end has them all, where the provider repeats them there.

    Else they are those of its items, done or not, whatever else is in it.
    """
    at = raw.rfind(_DONE)
    if at >= 0:
        _, events = split_from(raw, at)
        for event in events:
            data = object_of(event.data)
            response = data.get("response")
            if data.get("type") == _DONE.decode() and isinstance(response, dict) and (text := text_of(response)):
                return text
    return _text_in(_events_of(raw))


def text_of(response: JsonObject) -> str:
    """The texts of a whole response, with a blank line between them."""
    output = response.get("output")
    messages = [item for item in (output if isinstance(output, list) else ()) if _is_message(item)]
    parts = [part for item in messages for part in item["content"] if isinstance(part, dict)]
    texts = [part.get("refusal" if part.get("type") == "refusal" else "text") for part in parts]
    return _blank_line(text for text in texts if isinstance(text, str))


def said(text: str, model: str | None) -> JsonObject:
    """A response that says `text` and is complete."""
    name = random_id("interpose", 16)
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model or "interpose",
        "output": [message(f"msg_{name}", text)],
        "parallel_tool_calls": True,
        "temperature": None,
        "top_p": None,
        "tool_choice": "auto",
        "tools": [],
        "previous_response_id": None,
        "usage": {
            "input_tokens": 0,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 0,
        },
    }


def message(item_id: str, text: str) -> dict[str, Any]:
    """An item in which the model says `text`."""
    return {
        "type": "message",
        "id": item_id,
        "status": "completed",
        "role": "assistant",
        "content": [output_text(text)],
    }


def as_stream(response: JsonObject) -> bytes:
    """The events of a whole response: each text in one delta, all unknown members kept where they were."""
    events = enumerate(_events(response))
    said = ({"type": kind, "sequence_number": number, **fields} for number, (kind, fields) in events)
    return b"".join(SseEvent.build(str(event["type"]), write_json(event)).raw for event in said)


def _text_in(events: Iterable[SseEvent]) -> str:
    """The texts of all items, or else of the response's end; unlike those of `collected` they need not agree."""
    items: dict[Json, Json] = {}
    pieces: dict[Json, dict[Json, list[str]]] = {}
    end = ""
    for event in events:
        data = object_of(event.data)
        index = str(data.get("output_index"))
        match data.get("type") or event.name:
            case "response.output_item.done":
                items[index] = data.get("item")
                pieces.setdefault(index, {})
            case "response.output_text.delta" | "response.refusal.delta":
                delta = data.get("delta")
                texts = pieces.setdefault(index, {}).setdefault(str(data.get("content_index")), [])
                texts.append(delta if isinstance(delta, str) else "")
            case kind if kind in ENDS:
                response = data.get("response")
                end = text_of(response) if isinstance(response, dict) else ""
    told = [
        text_of({"output": [items.get(index)]}) or _blank_line(map(join_pieces, parts.values()))
        for index, parts in pieces.items()
    ]
    return _blank_line(told) or end


def _events(response: JsonObject) -> Iterator[Event]:
    nothing = {name: None for name in ("usage", "error", "incomplete_details", "completed_at") if name in response}
    begun = {**response, **nothing, "status": "in_progress", "output": []}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    output = response.get("output")
    for index, item in enumerate(output if isinstance(output, list) else ()):
        yield from item_events(item, index)
    end = f"response.{response.get('status')}"
    yield end if end in ENDS else ENDS[0], {"response": response}


def _events_of(raw: bytes) -> list[SseEvent]:
    reader = SseReader()
    try:
        events = reader.feed(raw)
    except EventTooLong:
        return []
    more, rest = reader.finish()
    return [*events, *more, *([SseEvent(rest)] if rest else [])]


def _blank_line(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)


def _named(item: Json) -> tuple[Json, ...]:
    """Which item it is, however much of it is told."""
    return tuple(item.get(name) for name in ("type", "id", "call_id")) if isinstance(item, dict) else (item,)


def _is_message(item: Json) -> bool:
    return isinstance(item, dict) and item.get("type") == "message" and isinstance(item.get("content"), list)
