"""Tokens that somebody else has made: given as they are, or in the environment.

Knows: the name of a scope's variable. Does not know: how a token is renewed.
"""

import os
import re
from collections.abc import Mapping

from interpose.contracts.errors import ConfigError


class StaticCredentials:
    """A `CredentialProvider` over `tokens` by scope, then the environment: `INTERPOSE_TOKEN_<SCOPE>`.

    The scope is in capitals there, with `_` for whatever is neither a letter nor a digit: `repo:read` is
    `INTERPOSE_TOKEN_REPO_READ`. Any thread may ask. Raises ConfigError for a token that is no text, naming its scope.
    """

    def __init__(self, tokens: Mapping[str, str] | None = None, *, environ: Mapping[str, str] | None = None) -> None:
        self._tokens = dict(tokens or {})
        for scope, token in self._tokens.items():
            _check_token(scope, token)
        self._environ = os.environ if environ is None else environ

    def get_token(self, scope: str) -> str:
        """The token; raises ConfigError naming the variable when there is none."""
        token = self._tokens.get(scope) or self._environ.get(variable(scope))
        if not token:
            raise ConfigError(f"the token for {scope!r}", "there is none", f"set {variable(scope)}")
        return token

    def invalidate_token(self, scope: str) -> None:
        """Nothing: there is no other token to be had."""


def _check_token(scope: object, token: object) -> None:
    if not isinstance(scope, str) or not isinstance(token, str):
        kind = type(token if isinstance(scope, str) else scope).__name__
        raise ConfigError(
            f"the token for {scope!r}", f"is given as {kind}", "give a scope's name and its token as text"
        )


def variable(scope: str) -> str:
    """The environment variable of a scope."""
    return "INTERPOSE_TOKEN_" + re.sub(r"[^A-Za-z0-9]", "_", scope).upper()
