"""A request through the gateway as one span, with a recorder in the place of OpenTelemetry's packages."""

import json
from typing import Any

import pytest

from interpose.gateway.routes import Headers, Route
from interpose.gateway.settings import Target
from interpose.gateway.tracing import RequestSpan
from interpose.testing.upstream import Reply, Text, ToolUse
from tests.e2e.house import House

pytestmark = pytest.mark.e2e


class Recorder:
    """The ports `Tracing` and `RequestSpan`: what was called, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def started(self, route: Route, headers: Headers, session: str) -> RequestSpan:
        """A request begins."""
        self.calls.append(("started", route.api, headers.get(b"traceparent"), session))
        return self

    def asked(self, target: Target, model: str | None) -> None:
        """It goes on."""
        self.calls.append(("asked", target.name, model))

    def judged(self, tool: str, call_id: str, outcome: str, handler: str) -> None:
        """A call has its verdict."""
        self.calls.append(("judged", tool, call_id, outcome, handler))

    def ended(self, status: int, outcome: str) -> None:
        """It is over."""
        self.calls.append(("ended", status, outcome))

    def close(self) -> None:
        """The gateway stops."""
        self.calls.append(("closed",))


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_one_span(stream: bool) -> None:
    """From its start to its end, with where it went and each verdict; the traces are sent when the gateway stops."""
    recorder = Recorder()
    house = House([Reply(ToolUse("Bash", {"command": "rm -rf x"}, id="c1")), Reply(Text("x"))])
    house.tracing = recorder
    body = {"model": "m", "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
    with house:
        headers = {"traceparent": "00-a-b-01", "x-session-id": "s"}
        house.raw("POST", "/v1/messages", json.dumps(body).encode(), headers)

    assert recorder.calls == [
        ("started", "anthropic", "00-a-b-01", "s"),
        ("asked", "anthropic", "m"),
        ("judged", "Bash", "c1", "refused", "no-rm"),
        ("ended", 200, ""),
        ("closed",),
    ]


def test_a_request_that_cannot_be_read_is_one_too() -> None:
    """It ends with the status that its client got."""
    recorder = Recorder()
    house = House([])
    house.tracing = recorder
    with house:
        house.raw("POST", "/v1/messages", b"{", {"x-session-id": "s"})

    assert recorder.calls == [("started", "anthropic", None, "s"), ("ended", 400, ""), ("closed",)]
