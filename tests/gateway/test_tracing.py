"""gateway.tracing: what a span says, with a recorder in the place of OpenTelemetry's packages."""

from dataclasses import dataclass, field
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

from interpose.contracts.errors import ConfigError
from interpose.gateway.routes import Headers, Route
from interpose.gateway.settings import Target
from interpose.gateway.tracing import NoTracing, OtelTracing, open_tracing

API = SimpleNamespace(
    SpanKind=SimpleNamespace(CLIENT="client"), StatusCode=SimpleNamespace(ERROR="error"), Status=lambda code: code
)
PROPAGATION = SimpleNamespace(extract=lambda carrier: {"extracted": dict(carrier)})


@dataclass
class Recorded:
    """A span as OpenTelemetry's looks to its user."""

    name: str
    context: Any
    kind: Any
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    status: Any = None
    ends: int = 0

    def set_attribute(self, key: str, value: Any) -> None:
        """Adds one."""
        self.attributes[key] = value

    def update_name(self, name: str) -> None:
        """Renames it."""
        self.name = name

    def add_event(self, name: str, attributes: dict[str, Any]) -> None:
        """Something happened."""
        self.events.append((name, attributes))

    def set_status(self, status: Any) -> None:
        """How it went."""
        self.status = status

    def end(self) -> None:
        """It is over."""
        self.ends += 1


class Recorder:
    """A provider and its tracer in one."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []
        self.is_shut_down = False

    def get_tracer(self, _name: str, _version: str) -> "Recorder":
        """Itself."""
        return self

    def start_span(self, name: str, *, context: Any, kind: Any, attributes: dict[str, Any]) -> Recorded:
        """A new span."""
        self.spans.append(Recorded(name, context, kind, attributes))
        return self.spans[-1]

    def shutdown(self) -> None:
        """Nothing comes any more."""
        self.is_shut_down = True


def test_a_span_in_the_words_of_the_conventions() -> None:
    """Operation, provider, model, conversation, server, each verdict, the status; within the client's own trace."""
    recorder = Recorder()
    tracing = OtelTracing(API, PROPAGATION, recorder)
    headers = Headers(((b"traceparent", b"00-1-2-01"), (b"authorization", b"Bearer sk-secret")))

    span = tracing.started(Route("anthropic", "judged"), headers, "s1")
    span.asked(Target("anthropic", "anthropic", "https://api.anthropic.com"), "claude-x")
    span.judged("Bash", "call-1", "refused", "no-rm")
    span.ended(200, "")
    tracing.close()

    (made,) = recorder.spans
    assert (made.name, made.kind, made.status, made.ends) == ("chat claude-x", "client", None, 1)
    assert made.context == {"extracted": {"traceparent": "00-1-2-01"}}
    assert made.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-x",
        "gen_ai.conversation.id": "s1",
        "interpose.api": "anthropic",
        "interpose.route": "judged",
        "server.address": "api.anthropic.com",
        "server.port": 443,
        "http.response.status_code": 200,
    }
    verdict = {"gen_ai.tool.name": "Bash", "gen_ai.tool.call.id": "call-1"}
    told = {"interpose.outcome": "refused", "interpose.handler": "no-rm"}
    assert made.events == [("interpose.verdict", verdict | told)]
    assert recorder.is_shut_down
    assert "sk-secret" not in repr(made)


@pytest.mark.parametrize(
    ("status", "outcome", "error"), [(502, "", "502"), (200, "client_gone", "client_gone"), (500, "failed", "failed")]
)
def test_what_went_wrong(status: int, outcome: str, error: str) -> None:
    """The span is one of an error, of a type with few values."""
    recorder = Recorder()
    span = OtelTracing(API, PROPAGATION, recorder).started(Route("gemini", "plain"), Headers(()), "s")
    span.asked(Target("g", "gemini", "http://127.0.0.1:81/x"), None)
    span.ended(status, outcome)

    (made,) = recorder.spans
    assert (made.name, made.status, made.attributes["error.type"]) == ("generate_content", "error", error)
    assert made.attributes["gen_ai.provider.name"] == "gcp.gemini"
    assert made.attributes["server.port"] == 81
    assert "gen_ai.request.model" not in made.attributes


def test_switched_off_costs_nothing() -> None:
    """Everything may be called, nothing happens."""
    tracing = NoTracing()
    span = tracing.started(Route("chat", "judged"), Headers(()), "s")
    span.asked(Target("o", "openai", "http://x"), "m")
    span.judged("t", "c", "allowed", "")
    span.ended(200, "")
    tracing.close()


def installed(name: str) -> bool:
    """Whether a module of the extra is there."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_without_its_packages_the_setting_says_what_to_install() -> None:
    """The extra is named; with it traces can be opened and closed."""
    if installed("opentelemetry.sdk.trace") and installed("opentelemetry.exporter.otlp.proto.http.trace_exporter"):
        open_tracing().close()
        return
    with pytest.raises(ConfigError, match=r"interpose\[otel\]"):
        open_tracing()
