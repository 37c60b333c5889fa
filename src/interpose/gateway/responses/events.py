"""The events in which an output item is streamed, made from the whole item.

Knows: the kinds of items and parts whose texts are streamed in pieces. Does not know: responses, who said an item.
Source: https://platform.openai.com/docs/api-reference/responses-streaming.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.responses.items import output_text, text_of_call

DELTAS = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
}
"""The kinds of calls whose input is streamed: how their events are called, and the member that they add up to."""

_ENDS = ("response.completed", "response.failed", "response.incomplete", "error")

Event: TypeAlias = tuple[str, dict[str, Any]]
"""A type of event, and what it says beside its type and number."""


def closes(event: JsonObject) -> bool:
    """Whether a client needs this event to know that the reply is over."""
    return event.get("type") in _ENDS


def item_events(item: Json, index: Json) -> Iterator[Event]:
    """The events of one item, each text in one piece; a kind whose inside is not streamed has but two."""
    kind = item.get("type") if isinstance(item, dict) else None
    begun: Json = item
    inner: Iterator[Event] = iter(())
    if kind == "message":
        begun, inner = _begun(item, "content"), _each(item.get("content"), "content_index", _content_part)
    elif kind == "reasoning":
        begun, inner = _begun(item, "summary", "content"), _thoughts(item)
    elif kind in DELTAS and text_of_call(item) is not None:
        begun, inner = {**_begun(item), DELTAS[kind][1]: ""}, call_events(item)
    yield "response.output_item.added", {"output_index": index, "item": begun}
    for name, fields in inner:
        yield name, {"item_id": item.get("id"), "output_index": index, **fields}
    yield "response.output_item.done", {"output_index": index, "item": item}


def call_events(item: JsonObject) -> Iterator[Event]:
    """The input of a call whose input is streamed."""
    kind, member = DELTAS[item["type"]]
    yield f"{kind}.delta", {"delta": item[member]}
    yield f"{kind}.done", {"name": item.get("name"), member: item[member]}


def _begun(item: JsonObject, *lists: str) -> dict[str, Any]:
    """The item as it is announced: nothing said yet."""
    begun = {**item, **{name: [] for name in lists if isinstance(item.get(name), list)}}
    return begun | {"status": "in_progress"} if "status" in item else begun


def _each(parts: Json, index_name: str, events: Any) -> Iterator[Event]:
    for at, part in enumerate(parts if isinstance(parts, list) else ()):
        for name, fields in events(part):
            yield name, {index_name: at, **fields}


def _thoughts(item: JsonObject) -> Iterator[Event]:
    yield from _each(item.get("summary"), "summary_index", _summary_part)
    yield from _each(item.get("content"), "content_index", _thought)


def _content_part(part: Json) -> Iterator[Event]:
    match part:
        case {"type": "output_text", "text": str(text)}:
            logprobs = part.get("logprobs") or []
            yield "response.content_part.added", {"part": {**part, **output_text("")}}
            yield "response.output_text.delta", {"delta": text, "logprobs": logprobs}
            notes = part.get("annotations")
            for at, note in enumerate(notes if isinstance(notes, list) else ()):
                yield "response.output_text.annotation.added", {"annotation_index": at, "annotation": note}
            yield "response.output_text.done", {"text": text, "logprobs": logprobs}
        case {"type": "refusal", "refusal": str(text)}:
            yield "response.content_part.added", {"part": {**part, "refusal": ""}}
            yield "response.refusal.delta", {"delta": text}
            yield "response.refusal.done", {"refusal": text}
        case _:
            yield "response.content_part.added", {"part": part}
    yield "response.content_part.done", {"part": part}


def _summary_part(part: Json) -> Iterator[Event]:
    text = part.get("text") if isinstance(part, dict) else None
    kind = "response.reasoning_summary"
    yield f"{kind}_part.added", {"part": {**part, "text": ""} if isinstance(text, str) else part}
    if isinstance(text, str):
        yield f"{kind}_text.delta", {"delta": text}
        yield f"{kind}_text.done", {"text": text}
    yield f"{kind}_part.done", {"part": part}


def _thought(part: Json) -> Iterator[Event]:
    text = part.get("text") if isinstance(part, dict) else None
    if isinstance(text, str):
        yield "response.reasoning_text.delta", {"delta": text}
        yield "response.reasoning_text.done", {"text": text}
