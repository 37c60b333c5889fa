"""Traces of requests in OpenTelemetry's words for generative AI.

Knows: spans, the names of their attributes (semantic conventions for GenAI). Does not know: where traces go; that is
told by the standard OTEL_… variables. The packages of the extra `otel` are loaded only when traces are switched on.
"""

import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit

from interpose import __version__
from interpose.contracts.errors import ConfigError
from interpose.gateway.routes import Headers, Route
from interpose.gateway.settings import PROVIDERS, Provider, Target

CLOSE_S = 2.0
"""How long the end of the gateway waits for spans to leave."""

_PROVIDER_NAMES: Mapping[Provider, str] = {"anthropic": "anthropic", "openai": "openai", "gemini": "gcp.gemini"}


class RequestSpan(Protocol):
    """One request's span. Used by that request's task only."""

    def asked(self, target: Target, model: str | None) -> None:
        """The request goes to `target`."""
        ...

    def judged(self, tool: str, call_id: str, outcome: str, handler: str) -> None:
        """A proposed call has its verdict."""
        ...

    def ended(self, status: int, outcome: str) -> None:
        """The request is over; call it once."""
        ...


class Tracing(Protocol):
    """Makes spans. Any thread may use it."""

    def started(self, route: Route, headers: Headers, session: str) -> RequestSpan:
        """The span of a request that begins now, within the trace that its headers name."""
        ...

    def close(self) -> None:
        """Sends what waits to be sent. Call it once."""
        ...


class NoSpan:
    """A span that nobody reads."""

    def asked(self, target: Target, model: str | None) -> None:
        """Nothing."""

    def judged(self, tool: str, call_id: str, outcome: str, handler: str) -> None:
        """Nothing."""

    def ended(self, status: int, outcome: str) -> None:
        """Nothing."""


class NoTracing:
    """Traces are switched off."""

    def started(self, route: Route, headers: Headers, session: str) -> RequestSpan:  # noqa: ARG002 - the port's
        """A span that nobody reads."""
        return NoSpan()

    def close(self) -> None:
        """Nothing."""


class OtelTracing:
    """The port `Tracing` on OpenTelemetry: `api` and `propagation` are its modules, `provider` makes the tracer."""

    def __init__(self, api: Any, propagation: Any, provider: Any) -> None:
        self._api = api
        self._propagation = propagation
        self._provider = provider
        self._tracer = provider.get_tracer("interpose", __version__)

    def started(self, route: Route, headers: Headers, session: str) -> RequestSpan:
        """As the port says."""
        names = ("traceparent", "tracestate")
        carrier = {name: value for name in names if (value := headers.get(name.encode()))}
        operation = "generate_content" if route.api == "gemini" else "chat"
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": _PROVIDER_NAMES[PROVIDERS[route.api]],
            "gen_ai.conversation.id": session,
            "interpose.api": route.api,
            "interpose.route": route.kind,
        }
        span = self._tracer.start_span(
            operation,
            context=self._propagation.extract(carrier),
            kind=self._api.SpanKind.CLIENT,
            attributes=attributes,
        )
        return _OtelSpan(self._api, span, operation)

    def close(self) -> None:
        """As the port says; what a collector that is not there does not take within 2 s is lost."""
        closing = threading.Thread(target=self._provider.shutdown, name="interpose-traces", daemon=True)
        closing.start()
        closing.join(CLOSE_S)


class _OtelSpan:
    def __init__(self, api: Any, span: Any, operation: str) -> None:
        self._api = api
        self._span = span
        self._operation = operation

    def asked(self, target: Target, model: str | None) -> None:
        address = urlsplit(target.base_url)
        self._span.set_attribute("server.address", address.hostname or "")
        self._span.set_attribute("server.port", address.port or (443 if address.scheme == "https" else 80))
        if model:
            self._span.update_name(f"{self._operation} {model}")
            self._span.set_attribute("gen_ai.request.model", model)

    def judged(self, tool: str, call_id: str, outcome: str, handler: str) -> None:
        attributes = {
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": call_id,
            "interpose.outcome": outcome,
            "interpose.handler": handler,
        }
        self._span.add_event("interpose.verdict", attributes)

    def ended(self, status: int, outcome: str) -> None:
        self._span.set_attribute("http.response.status_code", status)
        if outcome or status >= 400:
            self._span.set_attribute("error.type", outcome or str(status))
            self._span.set_status(self._api.Status(self._api.StatusCode.ERROR))
        self._span.end()


def open_tracing() -> Tracing:
    """Traces that go where the OTEL_… variables say, by OTLP over HTTP. Raises ConfigError without the extra."""
    try:
        api = import_module("opentelemetry.trace")
        propagation = import_module("opentelemetry.trace.propagation.tracecontext")
        sdk = import_module("opentelemetry.sdk.trace")
        export = import_module("opentelemetry.sdk.trace.export")
        resources = import_module("opentelemetry.sdk.resources")
        otlp = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as error:
        raise ConfigError(
            "gateway.traces", f"needs packages that are not installed ({error.name})", "pip install 'interpose[otel]'"
        ) from error
    resource = resources.Resource.create({"service.name": "interpose", "service.version": __version__})
    provider = sdk.TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    return OtelTracing(api, propagation.TraceContextTextMapPropagator(), provider)
