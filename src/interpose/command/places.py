"""Where a word leads: the files it may name and the folders a shell may move to.

Knows: the folders a shell may be in. Does not know: the filesystem.
"""

import posixpath
from collections.abc import Iterator

from interpose.command.globs import Names, escape
from interpose.command.reading import Access, Depth, FileUse, Word
from interpose.command.state import State


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
    if known.startswith("/"):
        yield FileUse(word.text, access, by, depth, pattern=word.pattern, names=names)
        return
    for cwd in state.cwds or ():
        folder = cwd.rstrip("/")
        pattern = None if word.pattern is None else f"{escape(folder)}/{word.pattern}"
        yield FileUse(f"{folder}/{word.text}", access, by, depth, pattern=pattern, names=names)


def moved(cwds: tuple[str, ...] | None, folder: Word) -> tuple[str, ...] | None:
    """The folders after `cd folder`; None when they are not known."""
    if not folder.plain or folder.text in ("-", ""):
        return None
    if folder.text.startswith("/"):
        return (posixpath.normpath(folder.text),)
    if cwds is None:
        return None
    return tuple(dict.fromkeys(posixpath.normpath(posixpath.join(cwd, folder.text)) for cwd in cwds))
