"""What is wrong with a hook file, for people.

Knows: places in files and words. Does not know: what is checked.
"""

from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from itertools import takewhile
from typing import Literal, TypeAlias

from interpose.contracts.json import Json

Step: TypeAlias = str | int
Place: TypeAlias = tuple[Step, ...]
"""Keys and list indexes from an entry down to a value; the empty tuple is the entry itself."""

Level: TypeAlias = Literal["error", "note"]
"""An `error` keeps an entry or a file from being used; a `note` does not."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text file, both numbers counted from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong at a place of an entry, before anybody knows the line it stands on.

    `on_key` points at the key itself rather than at its value; `level` is as in `Issue`.
    """

    place: Place
    text: str
    way_out: str = ""
    on_key: bool = False
    level: Level = "error"


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing wrong in one file: where, what was found, and what is possible."""

    path: str
    position: Position
    text: str
    way_out: str = ""
    level: Level = "error"

    def __str__(self) -> str:
        """`FILE:LINE:COLUMN: what was found (what is possible)`, on one line."""
        end = f" ({self.way_out})" if self.way_out else ""
        return f"{self.path}:{self.position.line}:{self.position.column}: {self.text}{end}"


def shown(value: Json) -> str:
    """`value` as an issue quotes it: short, on one line, with its type where that is the point."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str() if len(value) > 60:
            return repr(value[:57] + "...")
        case _:
            return repr(value)


def choices(found: Json, possible: tuple[str, ...]) -> str:
    """The way out of a wrong word: the nearest possible one, or all of them when none is near."""
    near = get_close_matches(found, possible, n=len(possible)) if isinstance(found, str) and possible else []
    if not near:
        return "possible: " + ", ".join(possible)
    best = max(near, key=lambda word: (SequenceMatcher(None, word, found).ratio(), _shared_start(word, found)))
    return f"did you mean {best!r}?"


def _shared_start(left: str, right: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
