"""Questions about a reading: does it use these files, does it run this command (`CommandPattern`).

Knows: how deep each use reaches, and when the answer is `Unknown`. Does not know: what follows from an answer.
"""

from collections.abc import Iterable
from glob import iglob
from itertools import islice

from interpose.command.paths import PathPatterns
from interpose.command.pattern import CommandPattern
from interpose.command.reading import Access, Answer, FileUse, Found, NotFound, Reading
from interpose.contracts.decisions import Unknown

__all__ = ["GLOB_LIMIT", "CommandPattern", "match_paths"]

GLOB_LIMIT = 1_000
"""How many paths that a glob finds are looked into."""


def match_paths(reading: Reading, patterns: PathPatterns, access: Iterable[Access]) -> Answer:
    """Whether the reading uses one of the files meant by `patterns` in one of these ways.

    A folder that is removed, moved or read as a whole counts when such a file is below it. `Unknown` when a file
    that a command uses is not known; programs that nobody knows never lead to it. Asks the filesystem; thread-safe.
    """
    wanted = frozenset(access)
    doubt: Unknown | None = None
    for use in reading.files:
        if use.access not in wanted:
            continue
        found = _uses(use, patterns)
        if isinstance(found, str):
            return Found(use.by, patterns.short(found))
        doubt = doubt or found
    if doubt is not None:
        return doubt
    return Unknown(reading.unknown[0]) if reading.unknown else NotFound()


def _uses(use: FileUse, patterns: PathPatterns) -> str | Unknown | None:
    """A file meant that the use touches; Unknown when that cannot be told."""
    if use.dynamic:
        return Unknown(f"which files {use.by!r} uses cannot be told ({use.path})")
    if use.pattern is not None:
        if not _is_every_name(use.pattern) and patterns.meets(use.pattern):
            return use.path
        return _found_by_glob(use, use.pattern, patterns)
    return _find(use, use.path, patterns)


def _find(use: FileUse, path: str, patterns: PathPatterns) -> str | Unknown | None:
    match use.depth:
        case "file":
            return patterns.find(path, "/")
        case "visible":
            return patterns.find(path, "/", contains=True, existing=True, visible=True, names=use.names)
        case "tracked":
            return patterns.find_tracked(path, "/")
        case "existing":
            return patterns.find(path, "/", contains=True, existing=True, names=use.names)
        case "tree":
            return patterns.find(path, "/", contains=True, existing=use.access == "read", names=use.names)


def _is_every_name(pattern: str) -> bool:
    """Whether a glob says nothing about the names it means, as in `rm *`: only those that are there tell."""
    return set(pattern.rsplit("/", 1)[-1]) <= {"*", "?"}


def _found_by_glob(use: FileUse, pattern: str, patterns: PathPatterns) -> str | Unknown | None:
    """Whether the glob finds now a file meant, or a folder that holds one."""
    if use.depth == "file" and not _is_every_name(pattern):
        return None
    count = 0
    doubt: Unknown | None = None
    for path in islice(iglob(pattern, recursive=True), GLOB_LIMIT):  # noqa: PTH207 - a whole path, not a folder's glob
        count += 1
        found = _find(use, path, patterns)
        if isinstance(found, str):
            return found
        doubt = doubt or found
    if count == GLOB_LIMIT:
        return Unknown(f"{use.path} means too many files to look at")
    return doubt
