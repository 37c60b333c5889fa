"""What a tool needs to know of tokens: how to ask for one, and how to say that the person must act first.

Knows: the challenge and the doors behind which tokens are had and kept. Does not know: OAuth, files, keyrings.
"""

from typing import Protocol, runtime_checkable

from interpose.contracts.errors import InterposeError, MisuseError
from interpose.contracts.json import JsonObject


class AuthChallenge(InterposeError):  # noqa: N818 - an outcome that a caller may expect, not an error of ours
    """The person must act before the tool can run: open `url`, enter `code`. Then the same call works.

    A tool lets it through as it is; wrapped in another exception it is that exception. The texts reach the model and
    the person, so they hold no secrets. `scope` says what the token is for.
    Raises MisuseError for what is no text.
    """

    def __init__(
        self, message: str, *, url: str | None = None, code: str | None = None, scope: str | None = None
    ) -> None:
        given: dict[str, object] = {"message": message, "url": url, "code": code, "scope": scope}
        for name, value in given.items():
            if not isinstance(value, str) and (value is not None or name == "message"):
                raise MisuseError(f"AuthChallenge({name}) is of type {type(value).__name__}: expected a text")
        self.message = message
        self.url = url
        self.code = code
        self.scope = scope
        super().__init__(message)


@runtime_checkable
class CredentialProvider(Protocol):
    """Where a tool gets its tokens. Any thread may ask. It may wait on the network: an event loop asks in a thread."""

    def get_token(self, scope: str) -> str:
        """An access token for `scope` that is good now.

        Raises AuthChallenge when the person must act first, ConfigError when no token can ever be had as things are
        set, and another InterposeError when it went wrong this time.
        """
        ...

    def invalidate_token(self, scope: str) -> None:
        """Says that the server refused the last token: the next `get_token` tries for another one."""
        ...


@runtime_checkable
class TokenStore(Protocol):
    """Keeps small JSON objects by key, secretly. Any thread may use it, and several processes may share one."""

    def read(self, key: str) -> JsonObject | None:
        """What was written last, or None. Raises StorageError when it cannot be told."""
        ...

    def write(self, key: str, value: JsonObject) -> None:
        """Replaces the value whole. Raises StorageError when it cannot be kept."""
        ...

    def delete(self, key: str) -> None:
        """Forgets the key; one that is not there is fine. Raises StorageError when it may still be there."""
        ...
