"""A request through the gateway as one span, with a recorder in the place of OpenTelemetry, and with the real one."""

import http.client
import json
import signal
import socket
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from interpose.assembly.folders import Folders
from interpose.gateway.routes import Headers, Route
from interpose.gateway.settings import Target
from interpose.gateway.tracing import RequestSpan
from interpose.testing.upstream import Reply, ScriptedUpstream, Text, ToolUse
from tests.e2e.house import House
from tests.e2e.peers import ANSWER, Peer, read_request
from tests.e2e.processes import up

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


def installed() -> bool:
    """Whether the packages of the extra are there."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter") is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.skipif(not installed(), reason="the extra otel is not installed")
@pytest.mark.parametrize("is_there", [True, False])
def test_spans_go_where_the_variables_say(
    is_there: bool, tmp_path: Path, environ: dict[str, str], folders: Folders
) -> None:
    """With `traces = true` they arrive at the collector; one that is not there neither fails a request nor the end."""
    sent: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        while request := read_request(connection):
            sent.append(request)
            connection.sendall(ANSWER)

    folders.config.mkdir()
    folders.config_file.write_text("[gateway]\ntraces = true\n")
    with Peer(serve) as collector, ScriptedUpstream([Reply(Text("x"))]) as upstream:
        endpoint = collector.url if is_there else "http://127.0.0.1:9"
        names = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "INTERPOSE_UPSTREAM_ANTHROPIC": upstream.url}
        with up(tmp_path, {**environ, **names}) as gateway:
            address = urlsplit(gateway.url)
            connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
            body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "a secret text"}]}
            connection.request("POST", "/v1/messages", json.dumps(body))
            status = connection.getresponse().status
            connection.close()
            began = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            gateway.process.wait(20)
            took_s = time.monotonic() - began

    assert status == 200
    assert took_s < 7
    if not is_there:
        assert sent == []
        return
    spans = b"".join(sent)
    assert spans.startswith(b"POST /v1/traces ")
    assert b"chat claude-x" in spans
    assert b"gen_ai.provider.name" in spans
    assert b"a secret text" not in spans
