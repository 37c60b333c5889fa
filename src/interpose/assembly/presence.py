"""How other processes find the gateway that `interpose up` runs."""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from interpose.assembly.folders import Folders

ASK_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Presence:
    """A running gateway: the process and its address."""

    pid: int
    url: str
    version: str


def announce(folders: Folders, presence: Presence) -> None:
    """Writes the note that other processes find; readable by the user alone."""
    note = _note(folders)
    draft = note.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(asdict(presence), file)
    draft.replace(note)


def withdraw(folders: Folders, pid: int) -> None:
    """Removes the note if it is still that of `pid`."""
    present = _read(folders)
    if present is not None and present.pid == pid:
        _note(folders).unlink(missing_ok=True)


def find_gateway(folders: Folders) -> Presence | None:
    """The running gateway, asked over its own address; None when none answers as the one that wrote the note."""
    noted = _read(folders)
    if noted is None:
        return None
    address = urlsplit(noted.url)
    connection = HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=ASK_TIMEOUT_S)
    try:
        connection.request("GET", "/healthz")
        answer = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    same = isinstance(answer, dict) and answer.get("name") == "interpose" and answer.get("pid") == noted.pid
    return noted if same else None


def _note(folders: Folders) -> Path:
    return folders.state / "gateway.json"


def _read(folders: Folders) -> Presence | None:
    with suppress(OSError, ValueError, TypeError):
        return Presence(**json.loads(_note(folders).read_text()))
    return None
