"""The names that git tracks, read from a repository's index.

Knows: the index file format, versions 2 to 4 (git's gitformat-index(5)). Does not know: git's configuration; no git
is run, so that nothing a repository configures can run.
"""

import os
import struct
from pathlib import Path

_HEADER = struct.Struct(">4sLL")
_FIXED_BYTES = 62
"""Of each entry: stat data, object name (SHA-1) and flags, ahead of the name."""

_EXTENDED = 0x4000
INDEX_LIMIT_BYTES = 64 * 1024 * 1024


def tracked_below(folder: str) -> list[str] | None:
    """The absolute paths of tracked files below `folder`; None when that cannot be told.

    Outside any repository, and before anything was added, nothing is tracked. Asks the filesystem.
    """
    root = _repository(folder)
    if root is None:
        return []
    try:
        index = _git_folder(root) / "index"
        if not index.exists():
            return []
        if index.stat().st_size > INDEX_LIMIT_BYTES:
            return None
        names = _names(index.read_bytes())
    except (OSError, ValueError, struct.error, IndexError):
        return None
    paths = (f"{root}/{name}" for name in names)
    prefix = folder.rstrip("/") + "/"
    return [path for path in paths if path.startswith(prefix)]


def _repository(folder: str) -> str | None:
    start = Path(folder)
    return next((str(path) for path in (start, *start.parents) if os.path.lexists(path / ".git")), None)


def _git_folder(root: str) -> Path:
    """The folder with the index: `.git`, or where the file of that name points (gitrepository-layout(5))."""
    place = Path(root) / ".git"
    if place.is_dir():
        return place
    text = place.read_text(encoding="utf-8").strip()
    if not text.startswith("gitdir: "):
        raise ValueError("no gitdir")
    return Path(root) / text.removeprefix("gitdir: ")


def _names(data: bytes) -> list[str]:
    signature, version, count = _HEADER.unpack_from(data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index this can read")
    names: list[str] = []
    at, previous = _HEADER.size, b""
    for _ in range(count):
        flags = int.from_bytes(data[at + _FIXED_BYTES - 2 : at + _FIXED_BYTES], "big")
        start = at + _FIXED_BYTES + (2 if flags & _EXTENDED else 0)
        if version == 4:
            dropped, start = _varint(data, start)
            end = data.index(b"\0", start)
            previous = previous[: len(previous) - dropped] + data[start:end]
            at = end + 1
        else:
            end = data.index(b"\0", start)
            previous = data[start:end]
            at += (end - at) // 8 * 8 + 8  # padded with one to eight zero bytes
        names.append(os.fsdecode(previous))
    return names


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Git's offset encoding: seven bits a byte, one added at each continuation."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
