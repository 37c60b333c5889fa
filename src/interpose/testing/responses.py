"""The OpenAI Responses API, as far as a scripted model speaks it: request checks and replies.

Knows: the shapes of requests, replies, stream events and errors. Does not know: sockets, items that are kept on the
server.
Source: streams recorded from the public API's form, https://platform.openai.com/docs/api-reference/responses-streaming.
"""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from interpose.contracts.json import Json
from interpose.testing.script import Part, Reply, Text, Thinking, ToolUse, pieces

_CREATED = 1_760_000_000
_OUTPUTS = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
    "local_shell_call_output": "local_shell_call",
}

_Event: TypeAlias = tuple[str, dict[str, Any]]
"""The type of a stream event, and what it says beside its type and number."""


def error(status: int, message: str) -> Json:
    """The body of an error answer."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def fault(body: Json) -> str | None:
    """Why the API would refuse this request, or None: no input, a call without its output, an output without a call."""
    if not isinstance(body, dict):
        return "the body is not a JSON object"
    items = body.get("input")
    if not items or not isinstance(items, str | list):
        return "Missing required parameter: 'input'."
    if isinstance(items, str):
        return None

    waiting: dict[str, str] = {}
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            return f"input[{index}] is not an object"
        kind, call_id = str(item.get("type")), str(item.get("call_id"))
        if kind in _OUTPUTS.values():
            waiting[call_id] = kind
        if kind in _OUTPUTS and waiting.pop(call_id, None) != _OUTPUTS[kind]:
            return f"input[{index}]: No tool call found for {kind} with call_id {call_id}."
    return f"No tool output found for the calls {sorted(waiting)}." if waiting else None


def whole(reply: Reply, number: int, request: Json) -> Json:
    """The reply in one body. `number` makes the response's id."""
    return _response(reply, number, request, "completed")


def stream(reply: Reply, number: int, request: Json) -> Iterator[bytes]:
    """The reply as server-sent events, one frame each."""
    for sequence, (kind, fields) in enumerate(_events(reply, number, request)):
        yield _frame({"type": kind, "sequence_number": sequence} | fields)


def _events(reply: Reply, number: int, request: Json) -> Iterator[_Event]:
    begun = _response(reply, number, request, "in_progress")
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, part in enumerate(reply.parts):
        item = _item(part, number, index)
        place = {"output_index": index, "item_id": item["id"]}
        yield "response.output_item.added", {"output_index": index, "item": _begun(item)}
        yield from _deltas(part, place)
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": whole(reply, number, request)}


def _deltas(part: Part, place: dict[str, Any]) -> Iterator[_Event]:
    match part:
        case Thinking(text):
            kind, at = "response.reasoning_summary", {"summary_index": 0}
            yield f"{kind}_part.added", at | {"part": {"type": "summary_text", "text": ""}} | place
            for piece in pieces(text):
                yield f"{kind}_text.delta", at | {"delta": piece} | place
            yield f"{kind}_text.done", at | {"text": text} | place
            yield f"{kind}_part.done", at | {"part": {"type": "summary_text", "text": text}} | place
        case Text(text):
            at = {"content_index": 0}
            yield "response.content_part.added", at | {"part": _output_text("")} | place
            for piece in pieces(text):
                yield "response.output_text.delta", at | {"delta": piece, "logprobs": []} | place
            yield "response.output_text.done", at | {"text": text, "logprobs": []} | place
            yield "response.content_part.done", at | {"part": _output_text(text)} | place
        case ToolUse():
            kind = "response.function_call_arguments"
            for piece in pieces(part.arguments):
                yield f"{kind}.delta", {"delta": piece} | place
            yield f"{kind}.done", {"name": part.name, "arguments": part.arguments} | place


def _item(part: Part, number: int, index: int) -> dict[str, Any]:
    counted = f"{number:06d}{index:06d}"
    match part:
        case Thinking(text):
            return {"type": "reasoning", "id": f"rs_{counted}", "summary": [{"type": "summary_text", "text": text}]}
        case Text(text):
            said = {"role": "assistant", "content": [_output_text(text)]}
            return {"type": "message", "id": f"msg_{counted}", "status": "completed"} | said
        case ToolUse():
            call = {"call_id": part.id, "name": part.name, "arguments": part.arguments}
            return {"type": "function_call", "id": f"fc_{counted}", "status": "completed"} | call


def _begun(item: dict[str, Any]) -> Json:
    """The item as it is announced: nothing said yet."""
    match item["type"]:
        case "reasoning":
            return item | {"summary": []}
        case "message":
            return item | {"status": "in_progress", "content": []}
        case _:
            return item | {"status": "in_progress", "arguments": ""}


def _response(reply: Reply, number: int, request: Json, status: str) -> dict[str, Any]:
    is_done = status == "completed"
    return {
        "id": f"resp_{number:012d}",
        "object": "response",
        "created_at": _CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": request.get("model", "scripted"),
        "output": [_item(part, number, index) for index, part in enumerate(reply.parts)] if is_done else [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "previous_response_id": None,
        "store": False,
        "usage": _usage(reply, request) if is_done else None,
    }


def _output_text(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(reply: Reply, request: Json) -> Json:
    written = sum(len(part.arguments if isinstance(part, ToolUse) else part.text) for part in reply.parts)
    read, output = len(json.dumps(request)) // 4, 1 + written // 4
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + output,
    }


def _frame(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
