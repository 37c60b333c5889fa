"""Signing in on another device: the device authorization grant (RFC 8628). Needs `interpose[auth]`.

Knows: codes, polling, and when a sign-in is over. Does not know: where tokens are kept, who asks for one.
"""

import threading
import time
from collections.abc import Callable
from typing import NoReturn

from interpose.concerns.auth.authority import UNREACHABLE, UNREADABLE, OAuthClient, SignInError, ask
from interpose.concerns.auth.tokens import Tokens, seconds
from interpose.contracts.auth import AuthChallenge, TokenStore
from interpose.contracts.json import JsonObject
from interpose.contracts.settings import of_kind

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_FIELDS = frozenset({"device_code", "user_code", "verification_uri", "complete", "interval", "next_poll", "expires_at"})
_INTERVAL_S = 5.0  # RFC 8628 section 3.2, where the server names none; and what slow_down adds, section 3.5


class DeviceCodeCredentials:
    """A `CredentialProvider` by device code. Nothing waits for the person.

    The first call raises AuthChallenge with an address and a code. Each later one asks the server once whether the
    person has been there, never more often than the server allows, and either returns the token or raises the same
    challenge. When the person refused it raises SignInError, and the call after that begins anew; a sign-in that ran
    out begins anew at once. Tokens, and a sign-in on its way, are in `store`: another process may carry on. Tokens are
    renewed while the server lets them.

    `now` gives seconds since the epoch. Any thread may ask; they take turns. Raises ConfigError when `client` has no
    device_authorization_endpoint.
    """

    def __init__(self, client: OAuthClient, *, store: TokenStore, now: Callable[[], float] = time.time) -> None:
        of_kind("DeviceCodeCredentials(client)", client, OAuthClient, "an OAuthClient")
        self._endpoint = client.required("device_authorization_endpoint")
        self._client = client
        self._store = store
        self._now = now
        self._tokens = Tokens(client, store, now)
        self._turn = threading.Lock()

    def get_token(self, scope: str) -> str:
        """The token; raises AuthChallenge, SignInError, StorageError. One request to the server at most, or two when a
        sign-in ran out.
        """
        with self._turn:
            token = self._tokens.current(scope)
            if token is not None:
                return token

            pending = self._store.read(self._tokens.key("device", scope))
            if pending is None or not pending.keys() >= _FIELDS or self._now() >= pending["expires_at"]:
                self._begin(scope)
            if self._now() < pending["next_poll"]:
                raise _challenge(pending, scope)
            return self._polled(scope, pending)

    def invalidate_token(self, scope: str) -> None:
        """The next `get_token` renews the token, or begins a sign-in."""
        with self._turn:
            self._tokens.invalidate(scope)

    def _begin(self, scope: str) -> NoReturn:
        parameters = {"scope": scope, **self._client.extra} if scope else {**self._client.extra}
        answer = ask(self._client, self._endpoint, parameters)
        fields = ("device_code", "user_code", "verification_uri")
        lifetime_s = seconds(answer.get("expires_in"))
        if lifetime_s is None or not all(isinstance(answer.get(name), str) and answer[name] for name in fields):
            raise SignInError(f"{self._endpoint} answered without a device code", error=UNREADABLE)

        interval_s = seconds(answer.get("interval"))
        interval_s = _INTERVAL_S if interval_s is None else interval_s
        pending = {name: answer[name] for name in fields} | {
            "complete": answer.get("verification_uri_complete"),
            "interval": interval_s,
            "next_poll": self._now() + interval_s,
            "expires_at": self._now() + lifetime_s,
        }
        self._store.write(self._tokens.key("device", scope), pending)
        raise _challenge(pending, scope)

    def _polled(self, scope: str, pending: JsonObject) -> str:
        parameters = {"grant_type": GRANT, "device_code": pending["device_code"]}
        key = self._tokens.key("device", scope)
        try:
            token = self._tokens.keep(scope, ask(self._client, self._client.token_endpoint, parameters))
        except SignInError as error:
            match error.error:
                case "authorization_pending":
                    self._wait(key, pending, pending["interval"])
                    raise _challenge(pending, scope) from None
                case "slow_down":
                    self._wait(key, pending, pending["interval"] + _INTERVAL_S)
                    raise _challenge(pending, scope) from None
                case "expired_token":
                    self._store.delete(key)
                    self._begin(scope)
                case code if code == UNREACHABLE:  # the person's yes is not lost: the next call asks again
                    raise
                case _:
                    self._store.delete(key)
                    raise

        self._store.delete(key)
        return token

    def _wait(self, key: str, pending: JsonObject, interval_s: float) -> None:
        self._store.write(key, {**pending, "interval": interval_s, "next_poll": self._now() + interval_s})


def _challenge(pending: JsonObject, scope: str) -> AuthChallenge:
    message = f"Sign in to go on: open {pending['verification_uri']} and enter the code {pending['user_code']}."
    return AuthChallenge(
        message, url=pending["complete"] or pending["verification_uri"], code=pending["user_code"], scope=scope
    )
