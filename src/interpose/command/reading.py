"""What was read from a command line: the words, commands and files, and what could not be read.

Knows: the values of a reading. Does not know: how they are found, nor what anybody thinks of them.
"""

import shlex
from dataclasses import dataclass
from typing import Literal, TypeAlias

from interpose.command.globs import Names
from interpose.command.paths import canonical_path
from interpose.contracts.decisions import Unknown

Access: TypeAlias = Literal["read", "write", "remove"]
"""What happens to a file; moving one away is `remove` at its old place and `write` at the new one."""

ACCESSES: frozenset[Access] = frozenset({"read", "write", "remove"})

Depth: TypeAlias = Literal["file", "visible", "tree", "existing", "tracked"]
"""How far a use reaches below its path: not at all, to files whose names start without a dot, everywhere (to files
that it makes there too), to the files that are there now, or to the files that git tracks."""


ANY = "…"
"""The text of a word about which nothing is known, not even where it is written."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word as a program receives it.

    Attributes:
        text: the word with quotes removed and constants put in; parts that are not known keep their source text.
        dynamic: whether a part is not known before the command runs.
        prefix: the known start of a dynamic word.
        suffix: the known end of a dynamic word.
        many: whether a dynamic word may become no word or several (an expansion without quotes).
        each: whether all the words it may become have that start and end.
        pattern: the word as a glob with its literal special characters in brackets, or None when it is no glob.
    """

    text: str
    dynamic: bool = False
    prefix: str = ""
    suffix: str = ""
    many: bool = False
    each: bool = False
    pattern: str | None = None

    @property
    def plain(self) -> bool:
        """Whether the program receives exactly `text`, wherever and whenever it runs."""
        return not self.dynamic and self.pattern is None


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program with its words, and the programs that start it, outermost first."""

    program: Word
    words: tuple[Word, ...] = ()
    wrappers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The program's name without folders; "" when it is not known."""
        return "" if self.program.dynamic else self.program.text.rsplit("/", 1)[-1]

    @property
    def text(self) -> str:
        """The command on one line, for people."""
        words = (self.program, *self.words)
        return " ".join(shlex.quote(word.text) if word.plain else word.text for word in words)


@dataclass(frozen=True, slots=True)
class FileUse:
    """One file that a command reads, writes or removes.

    Attributes:
        path: the absolute path as the command would see it, links not yet followed; source text when dynamic.
        access: what happens to it.
        by: the command, for people.
        depth: how far below `path` the use reaches.
        dynamic: whether the path is not known before the command runs.
        pattern: the absolute path as a glob, or None when it names one file.
        names: which names below `path` count, or None when all do.
    """

    path: str
    access: Access
    by: str
    depth: Depth = "file"
    dynamic: bool = False
    pattern: str | None = None
    names: Names | None = None

    @property
    def canonical(self) -> str:
        """The canonical path at this moment; the path itself when it is dynamic or a glob."""
        if self.dynamic or self.pattern is not None:
            return self.path
        return canonical_path(self.path, cwd="/")


@dataclass(frozen=True, slots=True)
class Reading:
    """A command line by its meaning.

    Attributes:
        commands: every simple command that may run, wrappers included, in the order of the text.
        files: every file that they are known to use.
        unknown: why parts could not be read; empty when the reading is complete. Any question that finds nothing
            in a reading with reasons here is answered with `Unknown`.
        branching: whether some of it may not run, or may run elsewhere (conditions, loops, functions, `cd`).
    """

    commands: tuple[SimpleCommand, ...] = ()
    files: tuple[FileUse, ...] = ()
    unknown: tuple[str, ...] = ()
    branching: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What was asked for is there. `command` is the command that does it, `file` the file it does it to, for people."""

    command: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class NotFound:
    """What was asked for is not there, and everything that matters could be read."""


Answer: TypeAlias = Found | NotFound | Unknown
"""The answer to one question about a reading."""
