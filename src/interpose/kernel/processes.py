"""Processes of this machine: whether one still runs, and which ones it descends from.

Knows: Linux's `/proc` (proc(5)), and signal 0 elsewhere. Does not know: why somebody asks.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_DEAD = frozenset("ZXx")
_STATE, _PARENT, _STARTED = 0, 1, 19
"""Places in /proc/PID/stat behind the program's name, which is the second field and may hold anything."""


def process_mark(pid: int) -> str:
    """What tells this process from a later one with the same number; "" where the system does not say.

    The namespace of the number, then when it started. Raises nothing; any thread may call it.
    """
    fields = _stat(pid)
    return f"{_namespace()} {fields[_STARTED]}" if fields else ""


def is_running(pid: int, mark: str = "") -> bool:
    """Whether the process is still there; with its `mark`, whether it is the same one.

    True when that cannot be known: on Windows, and for a number that another container gave.
    """
    if sys.platform == "win32":  # signal 0 is Ctrl-C there
        return True
    space, _, started = mark.rpartition(" ")
    if space and space != _namespace():
        return True
    fields = _stat(pid)
    if fields:
        return fields[_STATE] not in _DEAD and started in ("", fields[_STARTED])
    if (_PROC / "self" / "stat").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def ancestors(pid: int) -> Iterator[int]:
    """The parent, its parent and so on up to the first process; nothing where there is no `/proc`."""
    seen = {pid}
    while fields := _stat(pid):
        pid = int(fields[_PARENT])
        if pid <= 0 or pid in seen:
            return
        seen.add(pid)
        yield pid


def environment_of(pid: int) -> dict[str, str]:
    """The environment that the process was started with; empty where that cannot be read."""
    try:
        data = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (os.fsdecode(piece).partition("=") for piece in data.split(b"\0") if b"=" in piece)
    return {name: value for name, _, value in pairs}


def _stat(pid: int) -> list[str]:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > _STARTED else []


def _namespace() -> str:
    try:
        return str((_PROC / "self" / "ns" / "pid").readlink()).replace(" ", "")
    except OSError:
        return ""
