"""Tokens in the system's keyring. Needs `interpose[auth]`.

Knows: the keyring package. Does not know: what a token is.
"""

import json

from interpose.contracts.errors import StorageError
from interpose.contracts.json import JsonObject
from interpose.contracts.settings import a_text

try:
    import keyring
    from keyring.backend import KeyringBackend
    from keyring.errors import KeyringError, PasswordDeleteError
except ImportError as missing:
    raise ImportError("tokens in the keyring need more packages: pip install 'interpose[auth]'") from missing


class KeyringTokenStore:
    """A `TokenStore` in the keyring of the system (Secret Service, macOS Keychain, Windows Credential Locker).

    `service` is the name under which a keyring's own tools list the entries; `backend` a keyring other than the
    configured one. Any thread may use it. Where there is no keyring everything raises StorageError; use FileTokenStore.
    """

    def __init__(self, *, service: str = "interpose", backend: KeyringBackend | None = None) -> None:
        self._service = a_text("KeyringTokenStore(service=…)", service)
        self._backend = backend

    def read(self, key: str) -> JsonObject | None:
        """What was written last, or None; raises StorageError."""
        try:
            text = self._keyring().get_password(self._service, key)
        except KeyringError as error:
            raise _unusable(error) from error
        if text is None:
            return None

        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise StorageError(f"the keyring's entry {key!r} of {self._service}: is no JSON object (delete it)")
        return value

    def write(self, key: str, value: JsonObject) -> None:
        """Replaces the entry; raises StorageError."""
        try:
            self._keyring().set_password(self._service, key, json.dumps(dict(value)))
        except KeyringError as error:
            raise _unusable(error) from error

    def delete(self, key: str) -> None:
        """Removes the entry; raises StorageError."""
        try:
            self._keyring().delete_password(self._service, key)
        except PasswordDeleteError:  # how backends say that there is none
            if self.read(key) is not None:
                raise StorageError(f"the keyring's entry {key!r} of {self._service}: cannot be removed") from None
        except KeyringError as error:
            raise _unusable(error) from error

    def _keyring(self) -> KeyringBackend:
        return self._backend or keyring.get_keyring()


def _unusable(error: KeyringError) -> StorageError:
    return StorageError(f"the keyring cannot be used: {error} (use FileTokenStore(folder) instead)")
