"""The Gemini generateContent API, as far as a scripted model speaks it: request checks and replies.

Knows: the shapes of requests, replies, stream events and errors. Does not know: sockets.
Source: streams recorded from the public API's form, https://ai.google.dev/api/generate-content.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from interpose.contracts.json import Json
from interpose.testing.script import Part, Reply, Text, Thinking, ToolUse, pieces
from interpose.testing.strict import is_own_token, plain, token

_OWN_CALL = re.compile(r"call_\d{12}")
"""The ids that a scripted model counts up: such a call was signed when it was the first of its reply."""

_UNSIGNED = "skip_thought_signature_validator"
"""What the provider takes in the place of a signature, for calls that another model made."""

_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"} | {
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def error(status: int, message: str) -> Json:
    """The body of an error answer."""
    return {"error": {"code": status, "message": message, "status": _STATUSES.get(status, "INTERNAL")}}


def fault(body: Json) -> str | None:
    """Why the API would refuse this request, or None.

    Refused: no contents, calls that are not all answered next, a thought signature that it did not give, a first call
    without the signature that it gave.
    """
    if not isinstance(body, dict):
        return "the body is not a JSON object"
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        return "GenerateContentRequest.contents: contents is not specified"

    waiting = 0
    for index, content in enumerate(contents):
        if not isinstance(content, dict):
            return f"contents[{index}] is not an object"
        misplaced = _misplaced(content)
        if misplaced is not None:
            return f"contents[{index}]: {misplaced}"
        answered = _count(content, "functionResponse")
        if answered != waiting:
            return (
                f"contents[{index}]: the number of function response parts ({answered}) must equal the number of "
                f"function call parts of the function call turn ({waiting})"
            )
        waiting = _count(content, "functionCall")
    return f"contents: the last {waiting} function call parts have no function response parts" if waiting else None


def prompt(body: Json) -> list[Json]:
    """What the model reads, from first to last."""
    return [plain({"tools": body.get("tools"), "system": body.get("systemInstruction")}), *plain(body["contents"])]


def whole(reply: Reply, number: int, request: Json, cached: int = 0) -> Json:
    """The reply in one body. `number` makes the response's id; `cached` tokens of the request were known."""
    parts = [_part(part, signed) for part, signed in _signed(reply, number)]
    return _head(reply, number, request, cached) | {"candidates": [_last_candidate(parts, reply)]}


def stream(reply: Reply, number: int, request: Json, cached: int = 0) -> Iterator[bytes]:
    """The reply as server-sent events, one frame each; lines end as the real server's do."""
    head = _head(reply, number, request, cached)
    for part, signed in _signed(reply, number):
        for piece in _chunks(part):
            yield _frame({"candidates": [_candidate([_part(piece, signed)])]} | head)
    yield _frame({"candidates": [_last_candidate([{"text": ""}], reply)]} | head)


def array(frames: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks of `stream` as one array, as the API writes them unless `alt=sse` is asked for."""
    before = b"["
    for frame in frames:
        yield before + frame.removeprefix(b"data: ").strip()
        before = b"\n,\r\n"
    yield b"\n]"


def _signed(reply: Reply, number: int) -> Iterator[tuple[Part, str | None]]:
    """The parts, the first call with the signature of the thoughts that led to the calls."""
    calls = [index for index, part in enumerate(reply.parts) if isinstance(part, ToolUse)]
    for index, part in enumerate(reply.parts):
        yield part, token(number, index) if index in calls[:1] else None


def _misplaced(content: Json) -> str | None:
    """What about the signatures of one content is not as it was given."""
    parts = content.get("parts") if isinstance(content, dict) else None
    parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    signatures = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
    if not all(signature == _UNSIGNED or is_own_token(signature) for signature in signatures):
        return "Thought signature is not valid."
    first = next((part for part in parts if isinstance(part.get("functionCall"), dict)), None)
    if first is None or not _OWN_CALL.fullmatch(str(first["functionCall"].get("id"))):
        return None
    if "thoughtSignature" not in first:
        return "Function call is missing a thought_signature in functionCall parts."
    return None


def _count(content: Json, kind: str) -> int:
    parts = content.get("parts") if isinstance(content, dict) else None
    return sum(isinstance(part, dict) and kind in part for part in parts) if isinstance(parts, list) else 0


def _head(reply: Reply, number: int, request: Json, cached: int) -> dict[str, Any]:
    return {
        "usageMetadata": _usage(reply, request, cached),
        "modelVersion": "gemini-scripted",
        "responseId": f"{number:012d}",
    }


def _candidate(parts: list[Json]) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": parts}, "index": 0}


def _last_candidate(parts: list[Json], reply: Reply) -> Json:
    return _candidate(parts) | {"finishReason": reply.stop_reason or "STOP"}


def _part(part: Part, signed: str | None) -> Json:
    match part:
        case Text(text):
            return {"text": text}
        case Thinking(text):
            return {"text": text, "thought": True}
        case ToolUse():
            arguments = dict(part.input) if isinstance(part.input, Mapping) else part.input
            call = {"id": part.id, "name": part.name, "args": arguments}
            return {"functionCall": call} | ({"thoughtSignature": signed} if signed else {})


def _chunks(part: Part) -> list[Part]:
    """The part in as many chunks as the API makes of it: a call always comes whole."""
    match part:
        case Text(text):
            return [Text(piece) for piece in pieces(text)]
        case Thinking(text):
            return [Thinking(piece) for piece in pieces(text)]
        case ToolUse():
            return [part]


def _usage(reply: Reply, request: Json, cached: int) -> Json:
    written = sum(len(part.arguments if isinstance(part, ToolUse) else part.text) for part in reply.parts)
    read, candidates = len(json.dumps(request)) // 4, 1 + written // 4
    return {
        "promptTokenCount": read,
        "candidatesTokenCount": candidates,
        "totalTokenCount": read + candidates,
        "cachedContentTokenCount": cached,
    }


def _frame(chunk: Json) -> bytes:
    return f"data: {json.dumps(chunk)}\r\n\r\n".encode()
