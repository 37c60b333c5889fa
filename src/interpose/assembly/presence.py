"""How other processes find the gateway that `interpose up` runs."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
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
    note = _note(folders, presence.pid)
    note.parent.mkdir(mode=0o700, exist_ok=True)
    draft = note.with_suffix(".draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(asdict(presence), file)
    draft.replace(note)


def withdraw(folders: Folders, pid: int) -> None:
    """Removes the note of `pid`."""
    _note(folders, pid).unlink(missing_ok=True)


def find_gateway(folders: Folders) -> Presence | None:
    """The running gateway that was started last; None when none answers as the one that wrote its note."""
    return next((noted for noted in _notes(folders) if _answers(noted)), None)


def find_gateways(folders: Folders) -> tuple[Presence, ...]:
    """Every running gateway that answers as the one that wrote its note, the one that was started last first."""
    return tuple(noted for noted in _notes(folders) if _answers(noted))


def _answers(noted: Presence) -> bool:
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415 - loads much, and few starts find a note

    address = urlsplit(noted.url)
    connection = HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=ASK_TIMEOUT_S)
    try:
        connection.request("GET", "/healthz")
        answer = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return isinstance(answer, dict) and answer.get("name") == "interpose" and answer.get("pid") == noted.pid


def _note(folders: Folders, pid: int) -> Path:
    return folders.state / "gateways" / f"{pid}.json"


def _notes(folders: Folders) -> Iterator[Presence]:
    """What was noted, the newest first; notes of processes that died lead nowhere and are passed over."""
    notes = sorted((folders.state / "gateways").glob("*.json"), key=_written, reverse=True)
    for note in notes:
        with suppress(OSError, ValueError, TypeError):
            yield Presence(**json.loads(note.read_text()))


def _written(note: Path) -> float:
    with suppress(OSError):
        return note.stat().st_mtime
    return 0.0
