"""The Anthropic messages API, as far as a scripted model speaks it: request checks and replies.

Knows: the shapes of requests, replies, stream events and errors. Does not know: sockets.
Source: streams recorded from the public API's form, https://docs.anthropic.com/en/api/messages-streaming.
"""

import json
from collections.abc import Iterator
from typing import Any

from interpose.contracts.json import Json
from interpose.testing.script import Part, Reply, Text, Thinking, ToolUse, pieces
from interpose.testing.strict import plain, signature_of

_THOUGHTS = ("thinking", "redacted_thinking")
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
    """Why the API would refuse this request, or None.

    Refused: no messages, a proposed call that is not answered next, results that do not stand first, a thought whose
    signature is not its own or that ends a message, tools that are forced while the model thinks, a turn that goes on
    from results without a thought in it while thinking is enabled, two calls of a message with one id, two results
    of one call, and a forced tool that is not offered.
    """
    if not isinstance(body, dict):
        return "the body is not a JSON object"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"

    if _is_forced(body) and _thinks(body):
        return "Thinking may not be enabled when tool_choice forces tool use."
    missing = _missing_tool(body)
    if missing is not None:
        return f"Tool '{missing}' not found in provided tools"
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"messages.{index}: Input should be an object"
        blocks = _blocks(message)
        misplaced = _misplaced(message, blocks)
        if misplaced is not None:
            return f"messages.{index}: {misplaced}"
        answered = {str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"}
        if waiting - answered:
            return (
                f"messages.{index}: tool_use ids without tool_result blocks right after: {sorted(waiting - answered)}"
            )
        if answered - waiting:
            return f"messages.{index}: unexpected tool_use_id in tool_result blocks: {sorted(answered - waiting)}"
        waiting = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
    if waiting:
        return f"messages: the last tool_use blocks have no results: {sorted(waiting)}"
    return _thoughtless(messages) if _must_think(body) else None


def prompt(body: Json) -> list[Json]:
    """What the model reads, from first to last, in one form however it was written."""
    head = plain({"tools": body.get("tools"), "system": body.get("system")})
    return [head, *({**plain(message), "content": plain(_blocks(message))} for message in body["messages"])]


def whole(reply: Reply, number: int, request: Json, cached: int = 0) -> Json:
    """The reply in one body. `number` makes the message's id; `cached` tokens of the request were known."""
    return _message(number, request, cached) | {
        "content": [_block(part) for part in reply.parts],
        "stop_reason": _stop_reason(reply),
        "usage": _usage(request, _words(reply), cached),
    }


def stream(reply: Reply, number: int, request: Json, cached: int = 0) -> Iterator[bytes]:
    """The reply as server-sent events, one frame each."""
    yield _frame({"type": "message_start", "message": _message(number, request, cached)})
    for index, part in enumerate(reply.parts):
        yield from _block_frames(part, index)
    delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    yield _frame({"type": "message_delta", "delta": delta, "usage": {"output_tokens": _words(reply)}})
    yield _frame({"type": "message_stop"})


def _is_forced(body: Json) -> bool:
    choice = body.get("tool_choice")
    return isinstance(choice, dict) and choice.get("type") in ("any", "tool")


def _missing_tool(body: Json) -> str | None:
    """The tool that is forced and not offered."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") != "tool":
        return None
    tools = body.get("tools")
    offered = [tool.get("name") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return None if choice.get("name") in offered else str(choice.get("name"))


def _thinks(body: Json) -> bool:
    thinking = body.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") != "disabled"


def _must_think(body: Json) -> bool:
    """Whether each turn begins with a thought; a model that thinks as it likes (`adaptive`) may leave it out."""
    thinking = body.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") == "enabled"


def _thoughtless(messages: list[Json]) -> str | None:
    """What is wrong with a turn that goes on from results, and in which the model never thought."""
    said: list[tuple[int, list[Any]]] = []
    for index in range(len(messages) - 1, -1, -1):
        kinds = [block.get("type") for block in _blocks(messages[index])]
        if messages[index].get("role") == "assistant":
            said.append((index, kinds))
        elif messages[index].get("role") == "user" and "tool_result" not in kinds:
            break
    if not said or any(kind in _THOUGHTS for _, kinds in said for kind in kinds):
        return None
    index, kinds = said[-1]
    found = next(iter(kinds), None)
    return (
        f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`: with "
        "`thinking` enabled, the last turn of the model begins with a thought"
    )


def _blocks(message: Json) -> list[Json]:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _misplaced(message: Json, blocks: list[Json]) -> str | None:
    """What in one message is not where it belongs, or not as it was given."""
    kinds = [block.get("type") for block in blocks]
    results = kinds.count("tool_result")
    if kinds[:results].count("tool_result") != results:
        return "tool_result blocks must stand first in their message"
    ids = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
    if len(set(ids)) != len(ids):
        return "each tool_use must have a single result: found multiple `tool_result` blocks with one id"
    uses = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    if len(set(uses)) != len(uses):
        return "`tool_use` ids must be unique"
    is_model = message.get("role") == "assistant"
    strange = next(
        (kind for kind in kinds if kind in (("tool_result",) if is_model else ("tool_use", "thinking"))), None
    )
    if strange is not None:
        return f"a block of the type {strange} has no place in a message of the role {message.get('role')}"
    if is_model and kinds and kinds[-1] in _THOUGHTS:
        return "The final block in an assistant message cannot be `thinking`."
    for block in blocks:
        if block.get("type") == "text" and not block.get("text"):
            return "text content blocks must be non-empty"
        if block.get("type") == "thinking" and block.get("signature") != signature_of(str(block.get("thinking"))):
            return "Invalid `signature` in `thinking` block"
    return None


def _message(number: int, request: Json, cached: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number:012d}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "scripted"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(request, 1, cached),
    }


def _block(part: Part) -> Json:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text):
            return {"type": "thinking", "thinking": text, "signature": signature_of(text)}
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
            signature = {"type": "signature_delta", "signature": signature_of(text)}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signature]
        case ToolUse():
            texts = ["", *pieces(part.arguments)]
            start: Json = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
            return start, [{"type": "input_json_delta", "partial_json": text} for text in texts]


def _stop_reason(reply: Reply) -> str:
    if reply.stop_reason is not None:
        return reply.stop_reason

    return "tool_use" if any(isinstance(part, ToolUse) for part in reply.parts) else "end_turn"


def _usage(request: Json, output_tokens: int, cached: int) -> Json:
    return {
        "input_tokens": max(0, len(json.dumps(request)) // 4 - cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": output_tokens,
    }


def _words(reply: Reply) -> int:
    return 1 + sum(len(part.arguments if isinstance(part, ToolUse) else part.text) for part in reply.parts) // 4


def _frame(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
