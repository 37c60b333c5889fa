"""Where a word leads: the files it may name and the folders a shell may move to.

Knows: the folders a shell may be in. Does not know: the filesystem.
"""

import posixpath
import re
from collections.abc import Iterator

from interpose.command.globs import Names, escape
from interpose.command.reading import Access, Depth, FileUse, Word
from interpose.command.state import State

_SLASHES = re.compile(r"/(?:\.?/)+")


def file_uses(
    word: Word, access: Access, by: str, state: State, depth: Depth, names: Names | None = None
) -> Iterator[FileUse]:
    """The use of the file that `word` names, once for every folder that the shell may be in."""
    if word.plain and (not word.text or (word.text == "-" and access == "read")):
        return
    known = word.prefix if word.dynamic else word.text
    if word.dynamic or (state.cwds is None and not known.startswith("/")):
        yield FileUse(word.text, access, by, depth, dynamic=True, names=names)
        return
    own = own_path(known)
    if own is None:
        yield FileUse(word.text, access, by, depth, dynamic=True, names=names)
        return
    if own != known:
        yield from file_uses(Word(own, pattern=word.pattern and escape(own)), access, by, state, depth, names)
        return
    if known.startswith("/"):
        yield FileUse(word.text, access, by, depth, pattern=word.pattern, names=names)
        return
    for cwd in state.cwds or ():
        folder = cwd.rstrip("/")
        pattern = None if word.pattern is None else f"{escape(folder)}/{word.pattern}"
        yield FileUse(f"{folder}/{word.text}", access, by, depth, pattern=pattern, names=names)


def own_path(path: str) -> str | None:
    """A path through the links that a process has of itself, without them: `/dev/fd/../cwd/x` is `./x`.

    None for a path through a descriptor or through another process; other paths stay as they are.
    """
    plain = _SLASHES.sub("/", path)
    if not plain.startswith(("/dev/fd/", "/proc/")):
        return path
    parts = plain.replace("/dev/fd/", "/proc/self/fd/", 1).split("/")
    place: list[str] = []
    for index, part in enumerate(parts):
        if part == "..":
            place = place[:-1]
        elif part not in ("", "."):
            place.append(part)
        if len(place) < 3 or place[0] != "proc" or place[-1] not in ("cwd", "root"):
            continue
        if place[1] not in ("self", "thread-self"):
            return None
        return "/".join(("." if part == "cwd" else "", *parts[index + 1 :])) or "/"
    through = place[:1] == ["proc"] and "fd" in place[2:] and place[-1] != "fd" and not place[-1].isdigit()
    return None if through else path


def moved(cwds: tuple[str, ...] | None, folder: Word) -> tuple[str, ...] | None:
    """The folders after `cd folder`; None when they are not known."""
    if not folder.plain or folder.text in ("-", ""):
        return None
    if folder.text.startswith("/"):
        return (posixpath.normpath(folder.text),)
    if cwds is None:
        return None
    return tuple(dict.fromkeys(posixpath.normpath(posixpath.join(cwd, folder.text)) for cwd in cwds))
