"""Errors of the gateway's own, in the shape of the API that the client speaks.

Knows: the error bodies of the APIs. Does not know: why something failed.
"""

from interpose.contracts.json import Json
from interpose.gateway.api import ApiName
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "request_too_large",
    415: "invalid_request_error",
    426: "invalid_request_error",
    429: "rate_limit_error",
    431: "invalid_request_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_GEMINI_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "INVALID_ARGUMENT",
    408: "DEADLINE_EXCEEDED",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    426: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    431: "INVALID_ARGUMENT",
    500: "INTERNAL",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}


def error_body(api: ApiName, status: int, message: str) -> bytes:
    """An error reply's JSON body."""
    return write_json(_error(api, status, message))


def error_event(api: ApiName, message: str, newline: bytes = b"\n", number: int = 0) -> bytes:
    """An error in the middle of a stream, as the API's clients expect it; `number` counts the events of responses."""
    if api == "responses":
        said = {"type": "error", "code": "api_error", "message": message, "param": None, "sequence_number": number}
        return SseEvent.build("error", write_json(said), newline).raw
    name = "error" if api == "anthropic" else None
    return SseEvent.build(name, write_json(_error(api, 502, message)), newline).raw


def keep_alive(api: ApiName) -> bytes | None:
    """A sign of life between two events of a stream, such as the API's clients bear; None where they bear none."""
    match api:
        case "anthropic":
            return b'event: ping\ndata: {"type": "ping"}\n\n'
        case "chat" | "responses":
            return b": interpose waits for a verdict\n\n"
        case "gemini":
            return None


def _error(api: ApiName, status: int, message: str) -> Json:
    kind = _TYPES.get(status, "api_error")
    match api:
        case "anthropic":
            return {"type": "error", "error": {"type": kind, "message": message}}
        case "gemini":
            return {"error": {"code": status, "message": message, "status": _GEMINI_STATUS.get(status, "UNKNOWN")}}
        case "chat" | "responses":
            kind = "invalid_request_error" if status == 413 else kind
            return {"error": {"message": message, "type": kind, "param": None, "code": None}}
