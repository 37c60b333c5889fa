"""The authorization server: what a client must know of it, and one request to it. Needs `interpose[auth]`.

Knows: client authentication and the shape of answers and errors (RFC 6749 sections 2.3, 5.1 and 5.2). Does not know:
grants, where tokens are kept.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlencode, urlsplit

from interpose.contracts.errors import ConfigError, InterposeError
from interpose.contracts.settings import a_table, a_text, each_checked, one_of, seconds

try:
    import httpx
    from authlib.oauth2 import ClientAuth  # type: ignore[import-untyped]
except ImportError as missing:
    raise ImportError("signing in needs more packages: pip install 'interpose[auth]'") from missing

ClientAuthentication: TypeAlias = Literal["client_secret_basic", "client_secret_post", "none"]

UNREACHABLE = "unreachable"
UNREADABLE = "unreadable"


class SignInError(InterposeError):
    """A sign-in did not come about.

    `error` is the server's own code (`access_denied`, `invalid_client`, …), or "unreachable" or "unreadable".
    """

    def __init__(self, text: str, *, error: str) -> None:
        self.error = error
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """This program as one authorization server knows it.

    Raises ConfigError naming the field for an endpoint that is neither https nor on this machine, and for what none of
    the fields can be.

    Attributes:
        client_id: what the server calls this program.
        token_endpoint: where tokens are had.
        authorization_endpoint: where a browser goes; for `BrowserCredentials`.
        device_authorization_endpoint: where a device code is had; for `DeviceCodeCredentials`.
        client_secret: of a confidential client, else None.
        authentication: how the client says who it is; None means by HTTP Basic with a secret, by its id alone without.
        extra: more parameters of the first request, such as `audience` or `access_type`.
        timeout_s: of each request.
    """

    client_id: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    authentication: ClientAuthentication | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        each_checked(self, {"client_id": a_text, "extra": a_table, "timeout_s": seconds})
        if self.client_secret is not None and (not isinstance(self.client_secret, str) or not self.client_secret):
            kind = type(self.client_secret).__name__
            raise ConfigError("OAuthClient.client_secret", f"is given as {kind}", "expected a text, or None")
        one_of("OAuthClient.authentication", self.authentication, (None, *get_args(ClientAuthentication)))
        a_text("OAuthClient.token_endpoint", self.token_endpoint, "an https:// address")
        for name in ("token_endpoint", "authorization_endpoint", "device_authorization_endpoint"):
            _refuse_unless_safe(f"OAuthClient.{name}", getattr(self, name))

    def required(self, endpoint: str) -> str:
        """The endpoint of that name; raises ConfigError when it was not given."""
        url = getattr(self, endpoint)
        if not url:
            raise ConfigError(f"OAuthClient.{endpoint}", "is not set", "see the server's documentation or its metadata")
        return str(url)


def ask(client: OAuthClient, endpoint: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """The server's answer to one POST; raises SignInError. Waits up to the client's timeout; any thread may call it."""
    method = client.authentication or ("client_secret_basic" if client.client_secret else "none")
    authentication = ClientAuth(client.client_id, client.client_secret, method)
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    url, headers, body = authentication.prepare("POST", endpoint, headers, urlencode(parameters))
    try:
        response = httpx.post(url, content=body, headers=headers, timeout=client.timeout_s)
    except httpx.HTTPError as error:
        text = f"{endpoint} cannot be reached: {type(error).__name__}"
        raise SignInError(text, error=UNREACHABLE) from error

    answer = _object(response)
    if response.is_success and answer is not None and "error" not in answer:
        return answer
    if answer is not None and isinstance(answer.get("error"), str):
        raise SignInError(_told(endpoint, answer), error=answer["error"])
    if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise SignInError(f"{endpoint} answered with status {response.status_code}", error=UNREACHABLE)
    raise SignInError(f"{endpoint} answered with status {response.status_code} and no OAuth answer", error=UNREADABLE)


def _refuse_unless_safe(where: str, url: str | None) -> None:
    if url is None:
        return

    try:
        parts = urlsplit(a_text(where, url, "an https:// address"))
    except ValueError as error:
        raise ConfigError(where, f"{url!r:.80} is no address: {error}", "expected an https:// address") from error
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and _is_this_machine(parts.hostname or ""):
        return
    raise ConfigError(where, f"{url!r} would send secrets in the clear", "expected an https:// address")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _object(response: httpx.Response) -> dict[str, Any] | None:
    try:
        answer = response.json()
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _told(endpoint: str, answer: Mapping[str, Any]) -> str:
    description = answer.get("error_description")
    text = f"{endpoint} answered {answer['error'][:100]}"
    return f"{text}: {description[:200]!r}" if isinstance(description, str) and description else text
