"""What a walk offers to those who read its commands, and texts that are run as commands.

Knows: the protocol. Does not know: syntax, programs.
"""

from collections.abc import Sequence
from typing import Protocol

from interpose.command.globs import Names
from interpose.command.reading import Access, Depth, FileUse, SimpleCommand, Word
from interpose.command.state import After, State, Value, same


class Host(Protocol):
    """What the walk offers to the runner."""

    def doubt(self, reason: str) -> None:
        """Notes why something cannot be read."""
        ...

    def branch(self) -> None:
        """Notes that not everything read must run."""
        ...

    def command(self, command: SimpleCommand) -> None:
        """Notes a command."""
        ...

    def file(self, use: FileUse) -> None:
        """Notes a file."""
        ...

    def use(
        self, word: Word, access: Access, by: str, state: State, depth: Depth = "file", names: Names | None = None
    ) -> None:
        """Notes the file that a word names."""
        ...

    def text(self, text: str, state: State, wrappers: tuple[str, ...] | None = None) -> After:
        """Reads a text as a program of its own."""
        ...

    def store(self, name: str, value: Value | None, state: State) -> None:
        """Stores a variable."""
        ...

    def call_function(self, name: str, arguments: Sequence[Value] | None, state: State) -> After:
        """Reads a function's body."""
        ...


def run_text(host: Host, word: Word, state: State, label: str, wrappers: tuple[str, ...]) -> None:
    """Reads the text that `word` is as commands run by `wrappers`; a doubt when it is not known."""
    if word.dynamic:
        host.doubt(f"{label} runs a text that is not known: {word.text[:60]!r}")
        return
    host.text(word.text, state, wrappers)


def run_joined(host: Host, words: Sequence[Word], state: State, wrappers: tuple[str, ...]) -> After:
    """Reads words that are put together with spaces and run as a text."""
    if any(word.dynamic for word in words):
        host.doubt(f"{wrappers[-1]} runs a text that is not known")
        return same(state)
    return host.text(" ".join(word.text for word in words), state, wrappers)
