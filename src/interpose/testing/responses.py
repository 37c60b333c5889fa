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
from interpose.testing.strict import is_own_token, plain, token

_CREATED = 1_760_000_000
_OUTPUTS = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
    "local_shell_call_output": "local_shell_call",
}

_ID_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc"}

_Event: TypeAlias = tuple[str, dict[str, Any]]
"""The type of a stream event, and what it says beside its type and number."""


def error(status: int, message: str) -> Json:
    """The body of an error answer."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def fault(body: Json) -> str | None:
    """Why the API would refuse this request, or None.

    Refused: no input, a call without its output, an output without a call, a thought that is not followed by what it
    led to or whose encrypted content was edited, an item with an id of another kind.
    """
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
        misplaced = _misplaced(items, index)
        if misplaced is not None:
            return f"input[{index}]: {misplaced}"
        kind, call_id = str(item.get("type")), str(item.get("call_id"))
        if kind in _OUTPUTS.values():
            waiting[call_id] = kind
        if kind in _OUTPUTS and waiting.pop(call_id, None) != _OUTPUTS[kind]:
            return f"input[{index}]: No tool call found for {kind} with call_id {call_id}."
    return f"No tool output found for the calls {sorted(waiting)}." if waiting else None


def prompt(body: Json) -> list[Json]:
    """What the model reads, from first to last, in one form however it was written."""
    items = body["input"]
    listed = [{"role": "user", "content": items}] if isinstance(items, str) else items
    return [plain({"tools": body.get("tools"), "instructions": body.get("instructions")}), *map(_spread, listed)]


def whole(reply: Reply, number: int, request: Json, cached: int = 0) -> Json:
    """The reply in one body. `number` makes the response's id; `cached` tokens of the request were known."""
    return _response(reply, number, request, "completed", cached)


def stream(reply: Reply, number: int, request: Json, cached: int = 0) -> Iterator[bytes]:
    """The reply as server-sent events, one frame each."""
    for sequence, (kind, fields) in enumerate(_events(reply, number, request, cached)):
        yield _frame({"type": kind, "sequence_number": sequence} | fields)


def _misplaced(items: list[Json], index: int) -> str | None:
    """What about one item is not where it belongs, or not as it was given."""
    item = items[index]
    kind, item_id = str(item.get("type", "message")), item.get("id")
    prefix = _ID_PREFIXES.get(kind if item.get("role") != "user" else "")
    if prefix is not None and item_id is not None and not str(item_id).startswith(prefix):
        return f"Invalid 'id': {item_id!r}. Expected an ID that begins with {prefix!r}."
    if kind != "reasoning":
        return None
    sealed = item.get("encrypted_content")
    if sealed is not None and not is_own_token(sealed):
        return "The encrypted content could not be verified."
    following = items[index + 1] if index + 1 < len(items) else {}
    is_led_to = isinstance(following, dict) and (
        following.get("role") == "assistant" or str(following.get("type")) in (*_OUTPUTS.values(), "reasoning")
    )
    return None if is_led_to else f"{item_id!r} of type 'reasoning' was provided without its required following item."


def _spread(item: Json) -> Json:
    """The item without what only the server knows it by."""
    seen: dict[str, Any] = plain(item, without=("id", "status"))
    if item.get("type", "message") != "message":
        return seen
    content = seen.get("content")
    kind = "output_text" if item.get("role") == "assistant" else "input_text"
    listed = [{"type": kind, "text": content}] if isinstance(content, str) else content
    return {**seen, "type": "message", "content": plain(listed, without=("annotations", "logprobs"))}


def _events(reply: Reply, number: int, request: Json, cached: int) -> Iterator[_Event]:
    begun = _response(reply, number, request, "in_progress", 0)
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, part in enumerate(reply.parts):
        item = _item(part, number, index, request)
        place = {"output_index": index, "item_id": item["id"]}
        yield "response.output_item.added", {"output_index": index, "item": _begun(item)}
        yield from _deltas(part, place)
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": whole(reply, number, request, cached)}


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


def _item(part: Part, number: int, index: int, request: Json) -> dict[str, Any]:
    counted = f"{number:06d}{index:06d}"
    match part:
        case Thinking(text):
            thought = {"type": "reasoning", "id": f"rs_{counted}", "summary": [{"type": "summary_text", "text": text}]}
            include = request.get("include")
            is_sealed = isinstance(include, list) and "reasoning.encrypted_content" in include
            return thought | ({"encrypted_content": token(number, index)} if is_sealed else {})
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


def _response(reply: Reply, number: int, request: Json, status: str, cached: int) -> dict[str, Any]:
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
        "output": [_item(part, number, index, request) for index, part in enumerate(reply.parts)] if is_done else [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "previous_response_id": None,
        "store": False,
        "usage": _usage(reply, request, cached) if is_done else None,
    }


def _output_text(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(reply: Reply, request: Json, cached: int) -> Json:
    written = sum(len(part.arguments if isinstance(part, ToolUse) else part.text) for part in reply.parts)
    read, output = len(json.dumps(request)) // 4, 1 + written // 4
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + output,
    }


def _frame(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
