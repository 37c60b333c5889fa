"""Tokens of one client, kept and renewed. Needs `interpose[auth]`.

Knows: when a token is good, and the refresh grant (RFC 6749 section 6). Does not know: how the first one is had.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from interpose.concerns.auth.authority import UNREADABLE, OAuthClient, SignInError, ask
from interpose.contracts.auth import TokenStore
from interpose.contracts.json import JsonObject

LEEWAY_S = 60.0
"""How long before its end a token counts as over, so that it is still good when it arrives."""

_log = logging.getLogger(__name__)


class Tokens:
    """The tokens of `client` in `store`, by scope. Its owner calls it under a lock.

    `now` gives seconds since the epoch.
    """

    def __init__(self, client: OAuthClient, store: TokenStore, now: Callable[[], float]) -> None:
        self._client = client
        self._store = store
        self._now = now

    def key(self, kind: str, scope: str) -> str:
        """Where the store has something of that kind; different clients and servers never share an entry."""
        return f"{kind} {self._client.token_endpoint} {self._client.client_id} {scope}"

    def current(self, scope: str) -> str | None:
        """A token that is good, renewed if need be; None when the person must sign in.

        Raises SignInError when the server could not be asked; nothing is lost then.
        """
        kept = self._store.read(self.key("tokens", scope))
        if kept is None:
            return None
        if self._is_good(kept):
            return str(kept["access_token"])
        if not kept.get("refresh_token"):
            self._store.delete(self.key("tokens", scope))
            return None
        return self._renewed(scope, kept)

    def keep(self, scope: str, answer: Mapping[str, Any], *, refresh_token: str | None = None) -> str:
        """Keeps the server's answer and returns its access token; raises SignInError for one that is no bearer token.

        `refresh_token` is kept where the answer brings none.
        """
        token, kind = answer.get("access_token"), answer.get("token_type", "bearer")
        if not isinstance(token, str) or not token:
            raise SignInError(f"{self._client.token_endpoint} answered without an access token", error=UNREADABLE)
        if not isinstance(kind, str) or kind.lower() != "bearer":
            raise SignInError(f"{self._client.token_endpoint} gave a token of type {kind!r}", error=UNREADABLE)

        lifetime_s = seconds(answer.get("expires_in"))
        expires_at = None if lifetime_s is None else self._now() + lifetime_s
        renewal = answer.get("refresh_token") or refresh_token
        kept = {"access_token": token, "refresh_token": renewal, "expires_at": expires_at}
        self._store.write(self.key("tokens", scope), kept)
        return token

    def invalidate(self, scope: str) -> None:
        """The access token is no longer good; what renews it stays."""
        kept = self._store.read(self.key("tokens", scope))
        if kept is None:
            return
        if not kept.get("refresh_token"):
            self._store.delete(self.key("tokens", scope))
            return
        self._store.write(self.key("tokens", scope), {**kept, "expires_at": 0.0})

    def _is_good(self, kept: JsonObject) -> bool:
        expires_at = kept.get("expires_at")
        if expires_at is None:  # the server did not say; `invalidate` ends it
            return bool(kept.get("access_token"))
        return bool(kept.get("access_token")) and self._now() < (seconds(expires_at) or 0.0) - LEEWAY_S

    def _renewed(self, scope: str, kept: JsonObject) -> str | None:
        refresh_token = str(kept["refresh_token"])
        parameters = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        if scope:
            parameters["scope"] = scope
        try:
            answer = ask(self._client, self._client.token_endpoint, parameters)
        except SignInError as error:
            if error.error not in ("invalid_grant", "invalid_token", "interaction_required", "login_required"):
                raise
            return self._after_refusal(scope, refresh_token)
        return self.keep(scope, answer, refresh_token=refresh_token)

    def _after_refusal(self, scope: str, refresh_token: str) -> str | None:
        """Another process may have used up the refresh token, and then its successor is in the store."""
        kept = self._store.read(self.key("tokens", scope))
        if kept is not None and kept.get("refresh_token") != refresh_token and self._is_good(kept):
            return str(kept["access_token"])

        _log.info("the sign-in for %r is over: the person is asked again", scope)
        self._store.delete(self.key("tokens", scope))
        return None


def seconds(value: object) -> float | None:
    """A span as servers write it, number or text; None for anything else or below zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None

    try:
        span = float(value)
    except (ValueError, OverflowError):
        return None
    return span if 0 <= span < float("inf") else None
