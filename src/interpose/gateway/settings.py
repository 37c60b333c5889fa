"""What the gateway may be told. Knows no file and no environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from interpose.gateway.api import ApiName

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})

Provider: TypeAlias = Literal["anthropic", "openai", "gemini"]
"""Whose APIs an upstream speaks; chat completions and responses are both OpenAI's."""

UnjudgedPaths: TypeAlias = Literal["pass", "refuse"]

OnRefusal: TypeAlias = Literal["continue", "tell"]
"""Whether the model is told of a refused call at once and goes on, or the person alone, and the reply ends."""

PROVIDERS: Mapping[ApiName, Provider] = {
    "anthropic": "anthropic",
    "chat": "openai",
    "responses": "openai",
    "gemini": "gemini",
}


@dataclass(frozen=True, slots=True)
class Target:
    """One upstream and how it is reached.

    Attributes:
        name: what the settings call it.
        api: whose APIs it speaks.
        base_url: where requests go; it may have a path.
        models: patterns of model names (`*` stands for anything) whose requests go here; none for a provider's own.
        key: put in the place of the client's keys; None passes those on.
        ca_file: certificates that are trusted beside the system's.
        connect_timeout_s: how long it may take to accept a connection.
        read_timeout_s: how long it may be silent, before its answer and within.
        retries: how often a request that cannot have arrived is sent again.
    """

    name: str
    api: Provider
    base_url: str
    models: tuple[str, ...] = ()
    key: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 600.0
    retries: int = 1

    @property
    def address(self) -> str:
        """Where requests go, for people: without a login that the URL may hold, and without what may be a key."""
        parts = urlsplit(self.base_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()

    def takes(self, model: str) -> bool:
        """Whether requests for `model` are meant for this upstream."""
        return any(fnmatchcase(model, pattern) for pattern in self.models)


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Where requests go: each provider's own base URL, which may have a path, and the upstreams with a name.

    A target without `models` is its provider's own upstream and replaces the base URL.
    """

    anthropic: str = "https://api.anthropic.com"
    openai: str = "https://api.openai.com"
    gemini: str = "https://generativelanguage.googleapis.com"
    targets: tuple[Target, ...] = ()
    _own: Mapping[Provider, Target] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Finds each provider's own upstream."""
        urls: dict[Provider, str] = {"anthropic": self.anthropic, "openai": self.openai, "gemini": self.gemini}
        own = {provider: Target(provider, provider, url) for provider, url in urls.items()}
        own |= {target.api: target for target in reversed(self.targets) if not target.models}
        object.__setattr__(self, "_own", own)

    def chosen(self, api: ApiName, model: str | None) -> Target:
        """The upstream of a request: the one with the longest pattern that the model fits, else the provider's own."""
        provider = PROVIDERS[api]
        fitting = [
            (len(pattern), target)
            for target in self.targets
            if target.api == provider and model is not None
            for pattern in target.models
            if fnmatchcase(model, pattern)
        ]
        if fitting:
            return max(fitting, key=lambda pair: pair[0])[1]
        return self.own(provider)

    def own(self, provider: Provider) -> Target:
        """The upstream of the provider's models that no pattern takes."""
        return self._own[provider]

    def asks_model(self, api: ApiName) -> bool:
        """Whether the model's name decides where requests of this API go."""
        return any(target.models and target.api == PROVIDERS[api] for target in self.targets)


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """How the gateway behaves.

    Attributes:
        upstreams: where requests go.
        clients: tokens of clients, as name and SHA-256 digest in hex.
        demands_token: whether only launches and clients are served; a must for every address but loopback.
        allowed_hosts: names that a Host header may carry (the port does not count), so that no web page reaches the
            gateway through a name of its own; None allows every name.
        unjudged_paths: whether a path that nobody judges passes or is refused.
        on_refusal: what follows when all calls of a reply were refused.
        body_bytes: the largest request body that is judged, also after it was decompressed.
        reply_bytes: the largest reply that is judged whole.
        body_timeout_s: how long a request's body may take to arrive, and each 64 KB of one that streams through.
        streams_max: how many requests are served at once.
        keep_alive_s: after how long a silence a client that waits for a verdict is sent a sign of life.
        proxies_from_environment: reach upstreams through HTTPS_PROXY, HTTP_PROXY and ALL_PROXY but for NO_PROXY.
        process_id: what `/healthz` says; None for this process.
    """

    upstreams: Upstreams = field(default_factory=Upstreams)
    clients: Mapping[str, str] = field(default_factory=dict)
    demands_token: bool = False
    allowed_hosts: frozenset[str] | None = LOOPBACK_HOSTS
    unjudged_paths: UnjudgedPaths = "pass"
    on_refusal: OnRefusal = "continue"
    body_bytes: int = 32 * 1024 * 1024
    reply_bytes: int = 64 * 1024 * 1024
    body_timeout_s: float = 120.0
    streams_max: int = 1_000
    keep_alive_s: float = 10.0
    proxies_from_environment: bool = False
    process_id: int | None = None
