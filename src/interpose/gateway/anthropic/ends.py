"""Why a model stopped and what it spent, and how both are told of several replies in one.

Knows: stop reasons and usage, in whole messages and in events. Does not know: calls, verdicts.
"""

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.bodies import object_of
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent

CALLS = "tool_use"
NATURAL = (CALLS, "end_turn", "stop_sequence")
"""Why a model stops by itself."""

NO_CALLS = "end_turn"
"""What is told where the model says that a tool is to be used, and none is left."""


def closes(event: JsonObject) -> bool:
    """Whether a client needs this event to know that the reply is over."""
    return event.get("type") in ("message_delta", "message_stop", "error")


def output_tokens(usage: Json) -> int:
    """What a reply spent; 0 where that is not said."""
    tokens = usage.get("output_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) else 0


def with_spent(usage: JsonObject, spent: int) -> JsonObject:
    """The usage of a reply with what earlier ones of the model spent."""
    return {**usage, "output_tokens": output_tokens(usage) + spent}


def reason_of(event: SseEvent) -> str | None:
    """The stop reason that an event tells, or None."""
    delta = object_of(event.data).get("delta")
    reason = delta.get("stop_reason") if isinstance(delta, dict) else None
    return reason if isinstance(reason, str) else None


def spent_in(event: SseEvent) -> int:
    """What an event says that the reply spent."""
    return output_tokens(object_of(event.data).get("usage"))


def spending_told(event: SseEvent, spent: int) -> SseEvent:
    """The event with what earlier replies of the model spent in its count."""
    data = object_of(event.data)
    usage = data.get("usage")
    if not isinstance(usage, dict):
        return event
    return event.with_data(write_json({**data, "usage": with_spent(usage, spent)}))


def stop_told(event: SseEvent) -> SseEvent:
    """The event as it is true when none of the calls is left."""
    data = object_of(event.data)
    delta = data.get("delta")
    if not isinstance(delta, dict) or delta.get("stop_reason") != CALLS:
        return event
    return event.with_data(write_json({**data, "delta": {**delta, "stop_reason": NO_CALLS}}))
