"""Our lines in the texts of a history: what the client keeps of a refused call, or of a nudge.

The client's history has a line where the model's has a call and its error. Wherever the model's part of a history has
such a line it is put back, the same in each request.
Knows: texts and lines. Does not know: any API's shape, why something was refused.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from interpose.gateway.api import Edits, Mark

GAP = "\n\n"
"""What stands between a line of ours and the text before and behind it, where both are one text."""

OURS = b"[interpose] "
"""How a line of ours begins: a message without these bytes has none."""

ITEMS = "items"
TOLD_ITEMS = "told items"
"""Conversations of which marks are kept by the id of our item in the place of its line: what the model's history has
there, and of any such item what it tells (`Mark.answer`)."""

Piece: TypeAlias = str | Mark


class MarkReader:
    """Splits the texts of one history at our lines, first to last. One history, one reader; not for several threads."""

    def __init__(self, edits: Edits, root: str) -> None:
        self._edits = edits
        self._root = root
        self._lines = edits.lines(root)
        self._seen: Counter[str] = Counter()

    @property
    def has_lines(self) -> bool:
        """Whether a history of this conversation may have any."""
        return bool(self._lines)

    def pieces(self, text: str) -> list[Piece]:
        """The text in its pieces, `[text]` when it has no line of ours; what parted a line from a text is left out."""
        pieces: list[Piece] = []
        start = position = 0
        while (found := self._next(text, position)) is not None:
            at, line = found
            position = at + len(line)
            mark = self._edits.mark(self._root, line, self._seen[line])
            self._seen[line] += 1
            if mark is None:
                continue
            pieces += [*_text(text[start:at], behind=bool(pieces), ahead=True), mark]
            start = position
        if not pieces:
            return [text]
        return [*pieces, *_text(text[start:], behind=True, ahead=False)]

    def _next(self, text: str, start: int) -> tuple[int, str] | None:
        """The first line from `start` on, and where it is; of two that begin there the longer one."""
        found = [(at, -len(line), line) for line in self._lines if (at := text.find(line, start)) >= 0]
        if not found:
            return None
        at, _, line = min(found)
        return at, line


def occurrences(texts: Iterable[str], line: str) -> int:
    """How often the line is in the texts."""
    return sum(text.count(line) for text in texts)


def told(line: str, *, has_text: bool) -> str:
    """The line as it follows on what the client has been told so far in the same text."""
    return f"{GAP}{line}" if has_text else line


def _text(text: str, *, behind: bool, ahead: bool) -> Iterator[str]:
    """The text between two lines of ours, without the gaps that part it from them; nothing when none is left."""
    if behind:
        text = text.removeprefix(GAP)
    if ahead:
        text = text.removesuffix(GAP)
    if text:
        yield text
