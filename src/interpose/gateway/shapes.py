"""Whose reply it is: each API's replies have a shape that no other's has.

A codec reads its own API's calls alone, and so do most clients, but not all: a reply of another API is not let through
as text. Only a whole signature counts; what is merely odd is nobody's, since providers send events of their own.
Knows: how the replies of the four APIs look. Does not know: calls, verdicts, sockets.
"""

import re
from collections.abc import Iterable, Mapping

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import ApiName, Unreadable
from interpose.gateway.bodies import object_of
from interpose.wire.sse import SseEvent

_NAMES: Mapping[str, str] = {
    "anthropic": "Anthropic's messages",
    "chat": "OpenAI's chat completions",
    "responses": "OpenAI's responses",
    "gemini": "Gemini's generateContent",
    "code assist": "Google's Code Assist",
}
_MESSAGE_EVENTS: Mapping[str, str] = {
    "message_start": "message",
    "content_block_start": "content_block",
    "content_block_delta": "delta",
    "message_delta": "delta",
}
"""Events of Anthropic's, and the member that each has."""

_BEGINNINGS: Mapping[ApiName, re.Pattern[bytes]] = {
    "anthropic": re.compile(rb'event: message_start\ndata: \{"type": ?"message_start"'),
    "chat": re.compile(rb'data: \{"id": ?"[^"\\]*", ?"object": ?"chat\.completion\.chunk"'),
    "responses": re.compile(rb'event: response\.created\ndata: \{"type": ?"response\.created"'),
}
"""How streams begin that need not be looked at further."""

_RESPONSE_MEMBERS = ("response", "item", "part", "output_index", "item_id")
_RESPONSE_EVENT = "response."


def begins_own(api: ApiName, block: bytes) -> bool:
    """Whether the first bytes of a stream are those with which the API's provider begins it."""
    beginning = _BEGINNINGS.get(api)
    return beginning is not None and beginning.match(block) is not None


def are_own(api: ApiName, events: Iterable[SseEvent]) -> bool:
    """Whether one of the first events of a stream is of this API's shape; while none is, nobody knows.

    Raises Unreadable at an event of another API's before that.
    """
    for event in events:
        data = object_of(event.data)
        if _has_own_part(api, data, None if data.get("type") else event.name):
            return True
        refuse_foreign(api, data)
    return False


def refuse_foreign(api: ApiName, data: JsonObject) -> None:
    """Raises Unreadable for a reply, or a part of one, with the whole signature of another API's and none of this."""
    owner = None if _has_own_part(api, data, None) else _owner(data)
    if owner is not None and owner != api:
        problem = f"it has the shape of {_NAMES[owner]}, where the client speaks {_NAMES[api]}"
        raise Unreadable(f"{problem}; is the upstream's address right?")


def _has_own_part(api: ApiName, data: JsonObject, name: str | None) -> bool:
    """Whether something is of this API's shape at first sight: less than a signature, since servers leave much out."""
    match api:
        case "anthropic":
            kind = data.get("type") or name
            return (isinstance(kind, str) and kind in _MESSAGE_EVENTS) or isinstance(data.get("content"), list)
        case "chat":
            return isinstance(data.get("choices"), list)
        case "responses":
            kind = data.get("type") or name
            return (isinstance(kind, str) and kind.startswith(_RESPONSE_EVENT)) or isinstance(data.get("output"), list)
        case "gemini":
            return isinstance(data.get("candidates"), list)


def _owner(data: JsonObject) -> str | None:
    kind = data.get("type")
    if isinstance(kind, str) and isinstance(data.get(_MESSAGE_EVENTS.get(kind, "")), dict):
        return "anthropic"
    if kind == "message" and data.get("role") == "assistant" and isinstance(data.get("content"), list):
        return "anthropic"
    if isinstance(kind, str) and kind.startswith(_RESPONSE_EVENT) and any(name in data for name in _RESPONSE_MEMBERS):
        return "responses"
    if data.get("object") == "response" and isinstance(data.get("output"), list):
        return "responses"
    choice = _first(data.get("choices"))
    if isinstance(choice.get("delta"), dict) or isinstance(choice.get("message"), dict):
        return "chat"
    wrapped = data.get("response")
    if isinstance(wrapped, dict) and isinstance(wrapped.get("candidates"), list):
        return "code assist"
    content = _first(data.get("candidates")).get("content")
    return "gemini" if isinstance(content, dict) and isinstance(content.get("parts"), list) else None


def _first(listed: Json) -> JsonObject:
    first = listed[0] if isinstance(listed, list) and listed else None
    return first if isinstance(first, dict) else {}
