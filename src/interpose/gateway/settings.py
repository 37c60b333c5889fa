"""What the gateway may be told. Knows no file and no environment."""

from dataclasses import dataclass, field

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Where each provider's requests go: base URLs, which may have a path."""

    anthropic: str = "https://api.anthropic.com"
    openai: str = "https://api.openai.com"
    gemini: str = "https://generativelanguage.googleapis.com"


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """How the gateway behaves.

    Attributes:
        upstreams: the providers' base URLs.
        allowed_hosts: names that a Host header may carry (the port does not count), so that no web page reaches the
            gateway through a name of its own; None allows every name.
        body_bytes: the largest request body that is judged.
        reply_bytes: the largest reply that is judged whole.
        connect_timeout_s: how long an upstream may take to accept a connection.
        proxies_from_environment: reach upstreams through HTTPS_PROXY and NO_PROXY.
    """

    upstreams: Upstreams = field(default_factory=Upstreams)
    allowed_hosts: frozenset[str] | None = LOOPBACK_HOSTS
    body_bytes: int = 32 * 1024 * 1024
    reply_bytes: int = 64 * 1024 * 1024
    connect_timeout_s: float = 10.0
    proxies_from_environment: bool = False
