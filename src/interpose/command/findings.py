"""What one reading has found so far, and how much work it may still do.

Knows: commands, files, doubts, the budget. Does not know: how anything is found.
"""

import re

from interpose.command.globs import Names
from interpose.command.places import file_uses
from interpose.command.reading import Access, Depth, FileUse, Reading, SimpleCommand, Word
from interpose.command.state import State

MAX_STEPS = 5_000
"""A text that takes more steps than this (loops and functions opened) is not read to its end."""

_HARMLESS_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty"})

_DESCRIPTOR = re.compile(r"/dev/fd/\d+")


class Findings:
    """A reading in the making. Each thing is noted once, in the order in which it is found first."""

    def __init__(self) -> None:
        """Nothing found yet."""
        self._commands: dict[SimpleCommand, None] = {}
        self._files: dict[FileUse, None] = {}
        self._unknown: dict[str, None] = {}
        self._branching = False
        self._steps = 0

    def doubt(self, reason: str) -> None:
        """Notes why something cannot be read."""
        self._unknown[reason] = None

    def branch(self) -> None:
        """Notes that not everything read must run."""
        self._branching = True

    def command(self, command: SimpleCommand) -> None:
        """Notes a command."""
        self._commands[command] = None

    def file(self, use: FileUse) -> None:
        """Notes a file; devices that hold nothing are left out."""
        if use.path not in _HARMLESS_DEVICES and not _DESCRIPTOR.fullmatch(use.path):
            self._files[use] = None

    def use(
        self, word: Word, access: Access, by: str, state: State, depth: Depth = "file", names: Names | None = None
    ) -> None:
        """Notes the file that a word names, seen from every folder the shell may be in; none in a remote place."""
        if state.remote:
            return
        for use in file_uses(word, access, by, state, depth, names):
            self.file(use)

    def spent(self, steps: int) -> bool:
        """Takes steps from the budget; True, and a doubt, when there are none left."""
        self._steps += steps
        if self._steps <= MAX_STEPS:
            return False
        self.doubt(f"it takes more than {MAX_STEPS:,} steps")
        return True

    def reading(self) -> Reading:
        """Everything found."""
        return Reading(tuple(self._commands), tuple(self._files), tuple(self._unknown), self._branching)
