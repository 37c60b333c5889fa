"""gateway.faults: errors as each API tells them."""

import json

import pytest

from interpose.gateway.api import ApiName
from interpose.gateway.faults import error_body


@pytest.mark.parametrize(
    ("api", "status", "kind"),
    [
        ("anthropic", 413, "request_too_large"),
        ("chat", 413, "invalid_request_error"),
        ("responses", 413, "invalid_request_error"),
        ("gemini", 413, "INVALID_ARGUMENT"),
        ("anthropic", 415, "invalid_request_error"),
        ("chat", 415, "invalid_request_error"),
        ("gemini", 415, "INVALID_ARGUMENT"),
        ("responses", 426, "invalid_request_error"),
        ("gemini", 426, "INVALID_ARGUMENT"),
        ("gemini", 408, "DEADLINE_EXCEEDED"),
        ("chat", 502, "api_error"),
        ("chat", 405, "invalid_request_error"),
        ("anthropic", 431, "invalid_request_error"),
    ],
)
def test_whose_fault_it_is(api: ApiName, status: int, kind: str) -> None:
    """A client tells by the type whether to send the same again."""
    error = json.loads(error_body(api, status, "m"))["error"]

    assert kind in (error.get("type"), error.get("status"))
