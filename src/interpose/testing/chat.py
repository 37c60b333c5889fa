"""The OpenAI chat completions API, as far as a scripted model speaks it: request checks and replies.

Knows: the shapes of requests, replies, chunks and errors. Does not know: sockets.
Source: https://platform.openai.com/docs/api-reference/chat-streaming.
"""

import json
from collections.abc import Iterator
from typing import Any

from interpose.contracts.json import Json
from interpose.testing.script import Reply, Text, ToolUse, pieces
from interpose.testing.strict import plain

_CREATED = 1_760_000_000
_SAYINGS = ("content", "tool_calls", "function_call", "refusal", "audio")


def error(status: int, message: str) -> Json:
    """The body of an error answer."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def fault(body: Json) -> str | None:
    """Why the API would refuse this request, or None.

    Refused: no messages, a proposed call that is not answered next, an empty list of calls, a reply of the model that
    says nothing, a forced tool that is not offered.
    """
    if not isinstance(body, dict):
        return "the body is not a JSON object"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"

    forced = _forced_tool(body)
    if forced is not None and forced not in _offered(body):
        return f"Invalid value: 'tool_choice' names {forced!r}, which is not among 'tools'."
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"messages[{index}] is not an object"
        calls, unlisted = _proposed(message)
        if unlisted is not None:
            return f"messages[{index}].tool_calls{unlisted}"
        if message.get("role") == "assistant" and not any(message.get(key) for key in _SAYINGS):
            return f"messages[{index}]: an assistant message needs content or tool_calls"
        if message.get("role") == "tool":
            call_id = str(message.get("tool_call_id"))
            if call_id not in waiting:
                return f"messages[{index}]: role 'tool' must answer a preceding tool_calls entry, not {call_id!r}"
            waiting.discard(call_id)
            continue
        if waiting:
            return f"messages[{index}]: tool_call_ids without response messages: {sorted(waiting)}"
        waiting = {str(call.get("id")) for call in calls}
    return f"messages: the last tool_calls have no responses: {sorted(waiting)}" if waiting else None


def prompt(body: Json) -> list[Json]:
    """What the model reads, from first to last, in one form however it was written."""
    return [plain({"tools": body.get("tools")}), *(_spread(message) for message in body["messages"])]


def whole(reply: Reply, number: int, request: Json, cached: int = 0) -> Json:
    """The reply in one body. `number` makes the completion's id; `cached` tokens of the request were known."""
    calls = [_call(part) for part in reply.parts if isinstance(part, ToolUse)]
    text = "".join(part.text for part in reply.parts if isinstance(part, Text))
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    return _head(number, request, "chat.completion") | {
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}],
        "usage": _usage(reply, request, cached),
    }


def stream(reply: Reply, number: int, request: Json, cached: int = 0) -> Iterator[bytes]:
    """The reply as server-sent events, one frame each, with the usage chunk where the request asks for it."""
    head = _head(number, request, "chat.completion.chunk")
    for delta in _deltas(reply):
        yield _frame(head, delta, None)
    yield _frame(head, {}, _finish_reason(reply))
    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        yield _data(head | {"choices": [], "usage": _usage(reply, request, cached)})
    yield b"data: [DONE]\n\n"


def _forced_tool(body: Json) -> str | None:
    choice = body.get("tool_choice")
    function = choice.get("function") if isinstance(choice, dict) else None
    return str(function.get("name")) if isinstance(function, dict) else None


def _offered(body: Json) -> list[str]:
    tools = body.get("tools")
    listed = tools if isinstance(tools, list) else []
    functions = [tool.get("function") for tool in listed if isinstance(tool, dict)]
    return [str(function.get("name")) for function in functions if isinstance(function, dict)]


def _proposed(message: Json) -> tuple[list[Json], str | None]:
    """The calls that a message proposes, or what is wrong with the list of them."""
    calls = message.get("tool_calls")
    if calls is None:
        return [], None
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        return [], " is not an array of objects"
    return calls, None if calls else ": empty array. Expected an array with minimum length 1"


def _spread(message: Json) -> Json:
    content = message.get("content")
    listed = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return plain({**message, "content": listed})


def _deltas(reply: Reply) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    index = 0
    for part in reply.parts:
        match part:
            case Text(text):
                yield from ({"content": piece} for piece in pieces(text))
            case ToolUse():
                function = {"name": part.name, "arguments": ""}
                yield {"tool_calls": [{"index": index, "id": part.id, "type": "function", "function": function}]}
                for piece in pieces(part.arguments):
                    yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                index += 1
            case _:
                continue


def _call(part: ToolUse) -> Json:
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}


def _finish_reason(reply: Reply) -> str:
    if reply.stop_reason is not None:
        return reply.stop_reason

    return "tool_calls" if any(isinstance(part, ToolUse) for part in reply.parts) else "stop"


def _head(number: int, request: Json, kind: str) -> dict[str, Any]:
    model = request.get("model", "scripted")
    return {"id": f"chatcmpl-{number:012d}", "created": _CREATED, "model": model, "object": kind}


def _usage(reply: Reply, request: Json, cached: int) -> Json:
    written = sum(len(part.arguments if isinstance(part, ToolUse) else part.text) for part in reply.parts)
    read, completion = len(json.dumps(request)) // 4, 1 + written // 4
    return {"prompt_tokens": read, "completion_tokens": completion, "total_tokens": read + completion} | {
        "prompt_tokens_details": {"cached_tokens": cached}
    }


def _frame(head: Json, delta: Json, finish_reason: str | None) -> bytes:
    return _data(head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]})


def _data(chunk: Json) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()
