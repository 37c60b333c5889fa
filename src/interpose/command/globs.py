"""Whether two globs can mean the same name or path.

Knows: `*`, `?`, `[…]` inside a segment and `**` for any number of segments. Does not know: files that exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

SPECIAL = frozenset("*?[")
"""The characters that make a text a glob."""

_STAR, _ANY = "\0*", "\0?"


@dataclass(frozen=True, slots=True)
class Names:
    """Which names below a folder count, as grep's `--include`, `--exclude` and `--exclude-dir` say it.

    `rules` are (counts, glob) of file names, the last that matches decides; a name that none matches counts unless
    the first rule is one that takes in. Folders whose name is one of `folders` (globs) are not entered.
    """

    rules: tuple[tuple[bool, str], ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def takes_in(self) -> bool:
        """Whether some rule takes names in, so that they are looked for."""
        return any(counts for counts, _ in self.rules)

    def takes(self, name: str) -> bool:
        """Whether a file of that name counts."""
        for counts, glob in reversed(self.rules):
            if fnmatchcase(name, glob):
                return counts
        return not self.rules or not self.rules[0][0]

    def enters(self, name: str) -> bool:
        """Whether a folder of that name is entered."""
        return not any(fnmatchcase(name, glob) for glob in self.folders)


def is_glob(text: str) -> bool:
    """Whether `text` holds a character that is special in globs."""
    return any(character in SPECIAL for character in text)


def escape(text: str) -> str:
    """`text` as a glob that means only itself."""
    return "".join(f"[{character}]" if character in SPECIAL else character for character in text)


def split_glob(path: str) -> tuple[str, str]:
    """The folders before the first glob segment, and the rest ("" when there is none)."""
    segments = path.split("/")
    for index, segment in enumerate(segments):
        if is_glob(segment):
            return "/".join(segments[:index]) or "/", "/".join(segments[index:])
    return path, ""


def meet(left: str, right: str) -> bool:
    """Whether some path matches both globs; a character class counts as any character.

    A segment of `left` that starts with a wildcard matches no name that starts with a dot, as in a shell.
    """
    return _paths_meet(left.strip("/").split("/"), right.strip("/").split("/"))


def _paths_meet(left: Sequence[str], right: Sequence[str]) -> bool:
    """Dynamic programming over both lists of segments."""
    rows, columns = len(left), len(right)
    reach = [[False] * (columns + 1) for _ in range(rows + 1)]
    reach[rows][columns] = True
    for row in range(rows, -1, -1):
        for column in range(columns, -1, -1):
            if row == rows and column == columns:
                continue
            reach[row][column] = _step(left, right, row, column, reach) or (
                row < rows
                and column < columns
                and "**" not in (left[row], right[column])
                and reach[row + 1][column + 1]
                and _shell_names_meet(left[row], right[column])
            )
    return reach[0][0]


def _step(left: Sequence[str], right: Sequence[str], row: int, column: int, reach: list[list[bool]]) -> bool:
    left_deep = row < len(left) and left[row] == "**"
    right_deep = column < len(right) and right[column] == "**"
    if left_deep and reach[row + 1][column]:
        return True
    if right_deep and reach[row][column + 1]:
        return True
    if row == len(left) or column == len(right):
        return False
    if left_deep and right_deep:
        return reach[row + 1][column + 1]
    if left_deep:
        return reach[row][column + 1]
    if right_deep:
        return reach[row + 1][column]
    return False


def _shell_names_meet(left: str, right: str) -> bool:
    if left[:1] in ("*", "?") and right.startswith("."):
        return False
    return _names_meet(left, right)


@lru_cache(maxsize=4096)
def _names_meet(left: str, right: str) -> bool:
    if left == right:
        return True
    if not is_glob(left) and not is_glob(right):
        return False
    return _tokens_meet(_tokens(left), _tokens(right))


def _tokens(name: str) -> tuple[str, ...]:
    tokens: list[str] = []
    index = 0
    while index < len(name):
        character = name[index]
        close = name.find("]", index + 2) if character == "[" else -1
        if close > 0:
            inner = name[index + 1 : close]
            tokens.append(inner if len(inner) == 1 else _ANY)
            index = close + 1
            continue
        tokens.append(_STAR if character == "*" else _ANY if character == "?" else character)
        index += 1
    return tuple(tokens)


def _tokens_meet(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    seen: set[tuple[int, int]] = set()
    waiting = [(0, 0)]
    while waiting:
        row, column = waiting.pop()
        if (row, column) in seen:
            continue
        seen.add((row, column))
        if row == len(left) and column == len(right):
            return True
        if row < len(left) and left[row] == _STAR:
            waiting.append((row + 1, column))
            if column < len(right):
                waiting.append((row, column + 1))
        if column < len(right) and right[column] == _STAR:
            waiting.append((row, column + 1))
            if row < len(left):
                waiting.append((row + 1, column))
        if row < len(left) and column < len(right) and _same_token(left[row], right[column]):
            waiting.append((row + 1, column + 1))
    return False


def _same_token(left: str, right: str) -> bool:
    if _STAR in (left, right):
        return False
    return left == right or _ANY in (left, right)
