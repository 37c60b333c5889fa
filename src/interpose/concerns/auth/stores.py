"""Where tokens are kept: in memory, or in files that are ours alone.

Knows: keys, JSON objects, file modes. Does not know: what a token is. `keyrings` has the store of the system.
"""

import hashlib
import json
import os
import secrets
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from interpose.contracts.errors import StorageError
from interpose.contracts.json import JsonObject
from interpose.contracts.settings import a_path


class MemoryTokenStore:
    """A `TokenStore` that ends with the process. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}

    def read(self, key: str) -> JsonObject | None:
        """A copy of what was written last, or None."""
        with self._lock:
            text = self._texts.get(key)
        return None if text is None else _parsed(text, f"the key {key!r}")

    def write(self, key: str, value: JsonObject) -> None:
        """Keeps a copy."""
        text = json.dumps(dict(value))
        with self._lock:
            self._texts[key] = text

    def delete(self, key: str) -> None:
        """Forgets the key."""
        with self._lock:
            self._texts.pop(key, None)


class FileTokenStore:
    """A `TokenStore` in `folder`: one file of mode 0600 for each key, replaced in one step.

    The folder is made with mode 0700 at the first write. A folder or file that is a link, belongs to somebody else or
    is open to others is refused, and a key that no file can be named after. Threads and processes may share a folder;
    the last write wins.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(a_path("FileTokenStore(folder)", folder, "the path of a folder"))

    def read(self, key: str) -> JsonObject | None:
        """What was written last, or None; raises StorageError naming a file that cannot be trusted or read."""
        file = self._file(key)
        self._refuse_folder_unless_ours()
        try:
            descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{file}: cannot be read: {error.strerror} (delete it and sign in again)") from error

        with os.fdopen(descriptor, encoding="utf-8") as opened:
            _refuse_unless_ours(file, os.fstat(descriptor))
            return _parsed(opened.read(), str(file))

    def write(self, key: str, value: JsonObject) -> None:
        """Replaces the file; raises StorageError naming it."""
        file = self._file(key)
        fresh = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._refuse_folder_unless_ours()
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
                json.dump(dict(value), opened)
            fresh.replace(file)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink()
            raise StorageError(f"{file}: cannot be written: {error.strerror}") from error

    def delete(self, key: str) -> None:
        """Removes the file; raises StorageError naming one that stays."""
        file = self._file(key)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{file}: cannot be removed: {error.strerror}") from error

    def _file(self, key: str) -> Path:
        try:
            name = hashlib.sha256(key.encode()).hexdigest()
        except UnicodeEncodeError as error:
            raise StorageError(
                f"the key {key!r}: has half a surrogate pair at {error.start}, which no store can hold (use plain text)"
            ) from error
        return self._folder / f"{name}.json"

    def _refuse_folder_unless_ours(self) -> None:
        """Others who may change the folder could put their own file in place of ours."""
        try:
            status = self._folder.lstat()
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"{self._folder}: cannot be looked at: {error.strerror}") from error
        if stat.S_ISLNK(status.st_mode):
            raise StorageError(f"{self._folder}: is a link (give the folder that it leads to)")
        if not hasattr(os, "getuid"):  # Windows: the user's folder keeps others out
            return
        if status.st_uid != os.getuid():
            raise StorageError(f"{self._folder}: belongs to another user (give a folder of your own)")
        if status.st_mode & 0o077:
            raise StorageError(f"{self._folder}: is open to others (chmod 700, or give another folder)")


def _refuse_unless_ours(file: Path, status: os.stat_result) -> None:
    if not hasattr(os, "getuid"):  # Windows: the user's folder keeps others out
        return
    if status.st_uid != os.getuid():
        raise StorageError(f"{file}: belongs to another user (delete it and sign in again)")
    if status.st_mode & 0o077:
        raise StorageError(f"{file}: others may read or change it (chmod 600, or delete it and sign in again)")


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise StorageError(f"{where}: is no JSON (delete it and sign in again)") from error
    if not isinstance(value, dict):
        raise StorageError(f"{where}: is no JSON object (delete it and sign in again)")
    return value
