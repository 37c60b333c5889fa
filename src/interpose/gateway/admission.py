"""Who may speak to the gateway.

Knows: launch prefixes, clients' tokens, Host and Origin. Does not know: what is asked, what is done with it.
"""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from interpose.contracts.ports import Launch, Launches
from interpose.gateway.credentials import TOKEN_HEADER, key_in, offered_keys, without_tokens
from interpose.gateway.routes import Headers, host_name
from interpose.gateway.settings import GatewaySettings
from interpose.kernel.ids import digest_of_secret

_OWN_SITES = frozenset({b"none", b"same-origin"})
"""What a browser says of a request that no other site's page has made."""


class Admitted(NamedTuple):
    """A request that may go on: its launch if it has one, its headers and query string without any token of ours."""

    launch: Launch | None
    headers: Headers
    query: bytes


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """A request that may not, with the answer it gets."""

    status: int
    reason: str
    launch: Launch | None = None


class Admission:
    """The door of one gateway. Keeps no state: any thread may ask."""

    def __init__(self, settings: GatewaySettings, launches: Launches) -> None:
        self._settings = settings
        self._launches = launches
        self._clients = {digest.lower(): name for name, digest in settings.clients.items()}

    def admit(self, headers: Headers, query: bytes, secret: str | None) -> Admitted | TurnedAway:
        """Whether a request with these headers, query string and launch prefix is served."""
        stranger = self.stranger(headers)
        if stranger is not None:
            return stranger
        launch = self._identified(headers, query, secret)
        if isinstance(launch, TurnedAway):
            return launch
        if (headers.get(b"upgrade") or "").lower() == "websocket":
            return TurnedAway(426, "interpose speaks HTTP here, not WebSocket; use plain requests", launch)
        if self._clients or (secret and _holds(headers, query, secret)):
            headers, query = without_tokens(headers, query, lambda word: word == secret or self._is_token(word))
        return Admitted(launch, headers, query)

    def stranger(self, headers: Headers) -> TurnedAway | None:
        """Why nothing at all is told to this sender, such as a web page; None where there is no reason."""
        host = headers.get(b"host") or ""
        allowed = self._settings.allowed_hosts
        if [name for name, _ in headers.raw].count(b"host") > 1:
            return TurnedAway(400, "this request has more than one Host header")
        if allowed is not None and host_name(host) not in allowed:
            return TurnedAway(403, f"interpose does not answer to the name {host!r}; use 127.0.0.1 or localhost")
        if headers.has(b"origin"):
            return TurnedAway(
                403, "interpose does not answer requests of web pages (this one carries an Origin header)"
            )
        if not headers.has(b"sec-fetch-site"):
            return None
        sites = {value.strip().lower() for name, value in headers.raw if name == b"sec-fetch-site"}
        if sites <= _OWN_SITES:
            return None
        return TurnedAway(403, "interpose does not answer requests of web pages (Sec-Fetch-Site names another site)")

    def _identified(self, headers: Headers, query: bytes, secret: str | None) -> Launch | TurnedAway | None:
        if secret is not None:
            launch = self._launches.find(secret) or self._client(secret)
            if launch is None:
                way_out = "start the agent again with: interpose run -- COMMAND"
                return TurnedAway(404, f"interpose does not know this launch; {way_out}")
            return launch

        token = headers.get(TOKEN_HEADER)
        if token is not None:
            return self._client(token) or TurnedAway(401, "interpose does not know this token")
        keys = [key for _, key in offered_keys(headers)] if self._clients else []
        for key in (*keys, key_in(query)):
            client = self._client(key) if key else None
            if client is not None:
                return client
        if self._settings.demands_token:
            return TurnedAway(
                401,
                "interpose serves only clients with a token here; send yours as the API key, in x-interpose-token, "
                "or before the path as in /l/TOKEN/v1/messages",
            )
        return None

    def _is_token(self, word: str) -> bool:
        return bool(self._clients) and digest_of_secret(word) in self._clients

    def _client(self, token: str) -> Launch | None:
        """A client of the settings as a launch without a folder of its own."""
        name = self._clients.get(digest_of_secret(token)) if self._clients else None
        if name is None:
            return None
        return Launch(f"client-{name}", workspace="", session="", agent=None, cwd="", upstream=None, created=0.0)


def _holds(headers: Headers, query: bytes, secret: str) -> bool:
    """Whether a launch's secret stands anywhere but in the path, which is seldom so."""
    sought = secret.encode("latin-1")
    return sought in b"\0".join([unquote_to_bytes(query), *[value for _, value in headers.raw]])
