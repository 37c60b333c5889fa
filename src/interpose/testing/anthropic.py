"""The Anthropic messages API, as far as a scripted model speaks it: request checks and replies.

Knows: the shapes of requests, replies, stream events and errors. Does not know: sockets.
Source: streams recorded from the public API's form, https://docs.anthropic.com/en/api/messages-streaming.
"""

import json
from collections.abc import Iterator
from typing import Any

from interpose.contracts.json import Json
from interpose.testing.script import Part, Reply, Text, Thinking, ToolUse, pieces

_SIGNATURE = "c2NyaXB0ZWQ="
_ERROR_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"} | {
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error(status: int, message: str) -> Json:
    """The body of an error answer."""
    return {
        "type": "error",
        "error": {"type": _ERROR_TYPES.get(status, "api_error"), "message": message},
        "request_id": "req_scripted",
    }


def fault(body: Json) -> str | None:
    """Why the API would refuse this request, or None: no messages, or a proposed call that is not answered next."""
    if not isinstance(body, dict):
        return "the body is not a JSON object"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"

    waiting: set[str] = set()
    for index, message in enumerate(messages):
        blocks = message.get("content") if isinstance(message, dict) else None
        blocks = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
        answered = {str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"}
        if waiting - answered:
            return (
                f"messages.{index}: tool_use ids without tool_result blocks right after: {sorted(waiting - answered)}"
            )
        if answered - waiting:
            return f"messages.{index}: unexpected tool_use_id in tool_result blocks: {sorted(answered - waiting)}"
        waiting = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
    return f"messages: the last tool_use blocks have no results: {sorted(waiting)}" if waiting else None


def whole(reply: Reply, number: int, request: Json) -> Json:
    """The reply in one body. `number` makes the message's id."""
    return _message(number, request) | {
        "content": [_block(part) for part in reply.parts],
        "stop_reason": _stop_reason(reply),
        "usage": _usage(request, _words(reply)),
    }


def stream(reply: Reply, number: int, request: Json) -> Iterator[bytes]:
    """The reply as server-sent events, one frame each."""
    yield _frame({"type": "message_start", "message": _message(number, request)})
    for index, part in enumerate(reply.parts):
        yield from _block_frames(part, index)
    delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    yield _frame({"type": "message_delta", "delta": delta, "usage": {"output_tokens": _words(reply)}})
    yield _frame({"type": "message_stop"})


def _message(number: int, request: Json) -> dict[str, Any]:
    return {
        "id": f"msg_{number:012d}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "scripted"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(request, 1),
    }


def _block(part: Part) -> Json:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text):
            return {"type": "thinking", "thinking": text, "signature": _SIGNATURE}
        case ToolUse():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.input}


def _block_frames(part: Part, index: int) -> Iterator[bytes]:
    start, deltas = _start_and_deltas(part)
    yield _frame({"type": "content_block_start", "index": index, "content_block": start})
    if index == 0:
        yield _frame({"type": "ping"})
    for delta in deltas:
        yield _frame({"type": "content_block_delta", "index": index, "delta": delta})
    yield _frame({"type": "content_block_stop", "index": index})


def _start_and_deltas(part: Part) -> tuple[Json, list[Json]]:
    match part:
        case Text(text):
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(text)]
        case Thinking(text):
            thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(text)]
            signature = {"type": "signature_delta", "signature": _SIGNATURE}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signature]
        case ToolUse():
            texts = ["", *pieces(part.arguments)]
            start: Json = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
            return start, [{"type": "input_json_delta", "partial_json": text} for text in texts]


def _stop_reason(reply: Reply) -> str:
    if reply.stop_reason is not None:
        return reply.stop_reason

    return "tool_use" if any(isinstance(part, ToolUse) for part in reply.parts) else "end_turn"


def _usage(request: Json, output_tokens: int) -> Json:
    return {
        "input_tokens": len(json.dumps(request)) // 4,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
    }


def _words(reply: Reply) -> int:
    return 1 + sum(len(part.arguments if isinstance(part, ToolUse) else part.text) for part in reply.parts) // 4


def _frame(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
