"""Signing in with a browser on this machine: the authorization code grant with PKCE (RFC 6749, 7636, 8252).

Needs `interpose[auth]`.

Knows: the address a browser opens, and what its answer is exchanged for. Does not know: where tokens are kept.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from interpose.concerns.auth.authority import UNREACHABLE, OAuthClient, SignInError, ask
from interpose.concerns.auth.callback import Callback
from interpose.concerns.auth.tokens import Tokens
from interpose.contracts.auth import AuthChallenge, TokenStore
from interpose.contracts.settings import a_function, a_port, an_age, of_kind

try:
    from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # type: ignore[import-untyped]
    from authlib.oauth2.rfc7636 import create_s256_code_challenge  # type: ignore[import-untyped]
except ImportError as missing:
    raise ImportError("signing in needs more packages: pip install 'interpose[auth]'") from missing

_log = logging.getLogger(__name__)

_OPENS = "BrowserCredentials(open_browser=…)"


@dataclass(frozen=True, slots=True)
class _SignIn:
    """One on its way."""

    url: str
    verifier: str
    callback: Callback
    expires_at: float


class BrowserCredentials:
    """A `CredentialProvider` by a browser on this machine. Nothing waits for the person.

    The first call raises AuthChallenge with the address to open, and listens on 127.0.0.1 for the browser to come
    back. Each later one returns the token, or raises the same challenge while nobody came back. An answer with another
    state is turned away and the sign-in stays open. When the person refused it raises SignInError, and the call after
    that begins anew; a sign-in older than `lifetime_s` begins anew at once. Tokens are in `store` and renewed while
    the server lets them; a sign-in on its way ends with the process.

    `open_browser` is called with the address (`webbrowser.open`). `port` is the one registered at the server, 0 takes
    any. `now` gives seconds since the epoch. Any thread may ask; they take turns. Raises ConfigError when `client` has
    no authorization_endpoint, and naming the setting for what none can be.
    """

    def __init__(
        self,
        client: OAuthClient,
        *,
        store: TokenStore,
        open_browser: Callable[[str], object] | None = None,
        port: int = 0,
        lifetime_s: float = 600.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        of_kind("BrowserCredentials(client)", client, OAuthClient, "an OAuthClient")
        self._endpoint = client.required("authorization_endpoint")
        self._client = client
        self._open_browser = None if open_browser is None else a_function(_OPENS, open_browser)
        self._port = a_port("BrowserCredentials(port=…)", port)
        self._lifetime_s = an_age("BrowserCredentials(lifetime_s=…)", lifetime_s)
        self._now = now
        self._tokens = Tokens(client, store, now)
        self._turn = threading.Lock()
        self._under_way: dict[str, _SignIn] = {}

    def get_token(self, scope: str) -> str:
        """The token; raises AuthChallenge, SignInError, StorageError, and ConfigError when the port is taken."""
        with self._turn:
            token = self._tokens.current(scope)
            if token is not None:
                return token

            sign_in = self._under_way.get(scope)
            if sign_in is not None and self._now() >= sign_in.expires_at:
                self._drop(scope)
                sign_in = None
            if sign_in is None:
                sign_in = self._begin(scope)
            answer = sign_in.callback.answer
            if answer is None:
                raise AuthChallenge(f"Sign in to go on: open {sign_in.url}", url=sign_in.url, scope=scope)
            return self._exchanged(scope, sign_in, answer)

    def invalidate_token(self, scope: str) -> None:
        """The next `get_token` renews the token, or begins a sign-in."""
        with self._turn:
            self._tokens.invalidate(scope)

    def close(self) -> None:
        """Stops listening for browsers; sign-ins on their way are forgotten. Idempotent."""
        with self._turn:
            for scope in tuple(self._under_way):
                self._drop(scope)

    def _begin(self, scope: str) -> _SignIn:
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        callback = Callback(state, port=self._port, lifetime_s=self._lifetime_s)
        url = prepare_grant_uri(
            self._endpoint,
            self._client.client_id,
            "code",
            redirect_uri=callback.redirect_uri,
            scope=scope,
            state=state,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
            **self._client.extra,
        )
        sign_in = _SignIn(url, verifier, callback, self._now() + self._lifetime_s)
        self._under_way[scope] = sign_in
        if self._open_browser is not None:
            try:
                self._open_browser(url)
            except Exception:  # noqa: BLE001 - whoever opens browsers; passes, since the challenge has the address too
                _log.exception("no browser could be opened")
        return sign_in

    def _exchanged(self, scope: str, sign_in: _SignIn, answer: Mapping[str, str]) -> str:
        if "error" in answer:
            self._drop(scope)
            raise SignInError(f"the sign-in for {scope!r} ended with {answer['error'][:100]}", error=answer["error"])

        parameters = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "redirect_uri": sign_in.callback.redirect_uri,
            "code_verifier": sign_in.verifier,
        }
        try:
            token = self._tokens.keep(scope, ask(self._client, self._client.token_endpoint, parameters))
        except SignInError as error:
            if error.error != UNREACHABLE:  # else the next call tries the exchange again
                self._drop(scope)
            raise
        self._drop(scope)
        return token

    def _drop(self, scope: str) -> None:
        self._under_way.pop(scope).callback.close()
