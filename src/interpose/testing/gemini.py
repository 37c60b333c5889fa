"""The Gemini generateContent API, as far as a scripted model speaks it: request checks and replies.

Knows: the shapes of requests, replies, stream events and errors. Does not know: sockets, streams that are not
server-sent events (the clients all ask for `alt=sse`).
Source: streams recorded from the public API's form, https://ai.google.dev/api/generate-content.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from interpose.contracts.json import Json
from interpose.testing.script import Part, Reply, Text, Thinking, ToolUse, pieces

_SIGNATURE = "c2NyaXB0ZWQ="
_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"} | {
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def error(status: int, message: str) -> Json:
    """The body of an error answer."""
    return {"error": {"code": status, "message": message, "status": _STATUSES.get(status, "INTERNAL")}}


def fault(body: Json) -> str | None:
    """Why the API would refuse this request, or None: no contents, or calls that are not all answered next."""
    if not isinstance(body, dict):
        return "the body is not a JSON object"
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        return "GenerateContentRequest.contents: contents is not specified"

    waiting = 0
    for index, content in enumerate(contents):
        answered = _count(content, "functionResponse")
        if answered != waiting:
            return (
                f"contents[{index}]: the number of function response parts ({answered}) must equal the number of "
                f"function call parts of the function call turn ({waiting})"
            )
        waiting = _count(content, "functionCall")
    return f"contents: the last {waiting} function call parts have no function response parts" if waiting else None


def whole(reply: Reply, number: int, request: Json) -> Json:
    """The reply in one body. `number` makes the response's id."""
    return _body(_last_candidate([_part(part) for part in reply.parts], reply), reply, number, request)


def stream(reply: Reply, number: int, request: Json) -> Iterator[bytes]:
    """The reply as server-sent events, one frame each; lines end as the real server's do."""
    for part in reply.parts:
        for piece in _chunks(part):
            yield _frame(_body(_candidate([_part(piece)]), reply, number, request))
    yield _frame(_body(_last_candidate([{"text": ""}], reply), reply, number, request))


def _count(content: Json, kind: str) -> int:
    parts = content.get("parts") if isinstance(content, dict) else None
    return sum(isinstance(part, dict) and kind in part for part in parts) if isinstance(parts, list) else 0


def _body(candidate: Json, reply: Reply, number: int, request: Json) -> Json:
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(reply, request),
        "modelVersion": "gemini-scripted",
        "responseId": f"{number:012d}",
    }


def _candidate(parts: list[Json]) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": parts}, "index": 0}


def _last_candidate(parts: list[Json], reply: Reply) -> Json:
    return _candidate(parts) | {"finishReason": reply.stop_reason or "STOP"}


def _part(part: Part) -> Json:
    match part:
        case Text(text):
            return {"text": text}
        case Thinking(text):
            return {"text": text, "thought": True}
        case ToolUse():
            arguments = dict(part.input) if isinstance(part.input, Mapping) else part.input
            call = {"id": part.id, "name": part.name, "args": arguments}
            return {"functionCall": call, "thoughtSignature": _SIGNATURE}


def _chunks(part: Part) -> list[Part]:
    """The part in as many chunks as the API makes of it: a call always comes whole."""
    match part:
        case Text(text):
            return [Text(piece) for piece in pieces(text)]
        case Thinking(text):
            return [Thinking(piece) for piece in pieces(text)]
        case ToolUse():
            return [part]


def _usage(reply: Reply, request: Json) -> Json:
    written = sum(len(part.arguments if isinstance(part, ToolUse) else part.text) for part in reply.parts)
    prompt, candidates = len(json.dumps(request)) // 4, 1 + written // 4
    return {
        "promptTokenCount": prompt,
        "candidatesTokenCount": candidates,
        "totalTokenCount": prompt + candidates,
    }


def _frame(chunk: Json) -> bytes:
    return f"data: {json.dumps(chunk)}\r\n\r\n".encode()
