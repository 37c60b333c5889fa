"""One use of one file by a program, and how names are put together from a folder and a name.

Knows: words. Does not know: programs.
"""

from typing import NamedTuple

from interpose.command.globs import Names
from interpose.command.reading import Access, Depth, Word


class Use(NamedTuple):
    """One word that names a file, and what happens to it."""

    word: Word
    access: Access
    depth: Depth = "file"
    names: Names | None = None


def inside(folder: Word, source: Word) -> Word:
    """The place of `source` once it is copied into `folder`."""
    name = source.text.rstrip("/").rsplit("/", 1)[-1]
    name = name.rsplit(":", 1)[-1] if is_remote(source) else name
    text = f"{folder.text.rstrip('/')}/{name}"
    if folder.dynamic or source.dynamic:
        return Word(text, dynamic=True, prefix=folder.prefix, many=folder.many or source.many)
    if folder.pattern is None and source.pattern is None:
        return Word(text)
    inner = (source.pattern or name).rstrip("/").rsplit("/", 1)[-1]
    return Word(text, pattern=f"{(folder.pattern or folder.text).rstrip('/')}/{inner}")


def inside_path(folder: Word, word: Word) -> Word:
    """The path `word` seen from `folder`."""
    if folder.text == "." or word.text.startswith("/"):
        return word
    text = f"{folder.text.rstrip('/')}/{word.text}"
    if folder.dynamic or word.dynamic:
        return Word(text, dynamic=True, prefix=folder.prefix)
    return Word(text, pattern=f"{folder.pattern or folder.text}/{word.pattern or word.text}" if word.pattern else None)


def is_remote(word: Word) -> bool:
    """Whether a word of a copying program names a place on another machine."""
    head = word.text.split("/", 1)[0]
    return ":" in head or "@" in head
