"""What lies below a folder: listings, names by pattern, lines by text.

Knows: how a tree is walked below an open folder, within bounds of number, depth and time. Does not know: tools.
Links are listed, never followed. Every function may be called from any thread, many at once.
"""

import fnmatch
import os
import re
import stat
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

from interpose.contracts.errors import ToolError
from interpose.drivers.filesystem.folder import FOLDER_FLAGS, Place, RootedFolder
from interpose.drivers.filesystem.limits import FilesystemLimits

_Fits: TypeAlias = Callable[["_Entry"], bool]


@dataclass(frozen=True, slots=True)
class _Entry:
    parent: int
    name: str
    path: str
    below: str
    mode: int
    size: int


class _Stopped(Exception):  # noqa: N818 - ends a walk early, no error
    """Says in words why the walk ended before the tree did."""


def list_folder(folder: RootedFolder, path: str, limits: FilesystemLimits, *, depth: int = 1) -> str:
    """One line for each entry down to `depth`, sorted: folders end with /, links with @, files have their size.

    Paths start at the root, so that they can be given to the other tools as they are.
    """
    return _told(folder, path, limits, depth=depth, lines=lambda entry: [_line(entry)])


def find_names(folder: RootedFolder, path: str, pattern: str, limits: FilesystemLimits) -> str:
    """The paths of files that fit a shell pattern: with a / the path below `path` is compared, else the name.

    `*` stands for anything, folders on the way too.
    """
    fits = _fits(pattern)

    def lines(entry: _Entry) -> list[str]:
        return [entry.path] if not stat.S_ISDIR(entry.mode) and fits(entry) else []

    return _told(folder, path, limits, depth=limits.depth, lines=lines)


def find_lines(
    folder: RootedFolder,
    path: str,
    text: str,
    limits: FilesystemLimits,
    *,
    glob: str | None = None,
    ignore_case: bool = False,
) -> str:
    """`path:number:line` for each line that holds `text` (text, no pattern) in a file or the text files of a folder."""
    if not text:
        raise ToolError("pattern is empty; give the text to look for")

    fits = _fits(glob) if glob else lambda _: True
    wanted = text.casefold() if ignore_case else text
    with folder.place(path) as place:
        found = os.stat(place.name, dir_fd=place.parent, follow_symlinks=False)
        if stat.S_ISREG(found.st_mode):
            entry = _Entry(place.parent, place.name, place.shown, place.name, found.st_mode, found.st_size)
            hits = list(_hits(folder, entry, wanted, limits, ignore_case=ignore_case))
            return _joined(hits[: limits.results], f"stopped at {limits.results}" if len(hits) > limits.results else "")

    def lines(entry: _Entry) -> Iterator[str]:
        if stat.S_ISREG(entry.mode) and fits(entry):
            yield from _hits(folder, entry, wanted, limits, ignore_case=ignore_case)

    return _told(folder, path, limits, depth=limits.depth, lines=lines)


def _told(
    folder: RootedFolder,
    path: str,
    limits: FilesystemLimits,
    *,
    depth: int,
    lines: Callable[[_Entry], Iterator[str] | list[str]],
) -> str:
    results = _Results(limits.results)
    with folder.place(path) as place, folder.open_folder(place) as descriptor:
        start = "" if place.is_root else f"{place.shown}/"
        walk = _Walk(limits, start, min(depth, limits.depth))
        try:
            with closing(walk.below(descriptor, "", 1)) as entries:
                for entry in entries:
                    for line in lines(entry):
                        results.add(line)
        except _Stopped as stopped:
            return _joined(results.lines, str(stopped))
    return _joined(results.lines, "")


class _Results:
    def __init__(self, most: int) -> None:
        self.lines: list[str] = []
        self._most = most

    def add(self, line: str) -> None:
        if len(self.lines) == self._most:
            raise _Stopped(f"more than {self._most} results; narrow the search")
        self.lines.append(line)


class _Walk:
    def __init__(self, limits: FilesystemLimits, start: str, depth: int) -> None:
        self._limits = limits
        self._start = start
        self._depth = depth
        self._seen = 0
        self._until = time.monotonic() + limits.search_s

    def below(self, descriptor: int, prefix: str, depth: int) -> Generator[_Entry, None, None]:
        with os.scandir(descriptor) as found:
            names = sorted(entry.name for entry in found)
        for name in names:
            self._count()
            try:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue  # gone since it was listed
            below = prefix + name
            yield _Entry(descriptor, name, self._start + below, below, status.st_mode, status.st_size)
            if stat.S_ISDIR(status.st_mode) and depth < self._depth:
                yield from self._inside(descriptor, name, prefix, depth)

    def _inside(self, descriptor: int, name: str, prefix: str, depth: int) -> Iterator[_Entry]:
        try:
            inner = os.open(name, FOLDER_FLAGS, dir_fd=descriptor)
        except OSError:
            return  # not ours to read, or no folder any more
        try:
            yield from self.below(inner, f"{prefix}{name}/", depth + 1)
        finally:
            os.close(inner)

    def _count(self) -> None:
        self._seen += 1
        if self._seen > self._limits.entries:
            raise _Stopped(f"stopped after {self._limits.entries:,} files and folders; start further down")
        if time.monotonic() > self._until:
            raise _Stopped(f"stopped after {self._limits.search_s:g} s; start further down")


def _fits(pattern: str) -> _Fits:
    if len(pattern) > 500:
        raise ToolError("the pattern has more than 500 characters")
    compiled = re.compile(fnmatch.translate(pattern.removeprefix("**/")))
    by_path = "/" in pattern.removeprefix("**/")
    return lambda entry: compiled.match(entry.below if by_path else entry.name) is not None


def _hits(
    folder: RootedFolder, entry: _Entry, wanted: str, limits: FilesystemLimits, *, ignore_case: bool
) -> Iterator[str]:
    if entry.size > limits.scan_bytes:
        return
    try:
        with folder.open_file(Place(entry.parent, entry.name, entry.path), os.O_RDONLY) as descriptor:
            data = _all_of(descriptor, limits.scan_bytes)
    except (OSError, ToolError):
        return  # not ours to read, or no file any more

    if b"\0" in data[:8192]:
        return
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if wanted in (line.casefold() if ignore_case else line):
            yield f"{entry.path}:{number}:{_cut(line, limits.line_chars)}"


def _all_of(descriptor: int, most: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(most)


def _cut(line: str, most: int) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= most else line[:most] + "…"


def _line(entry: _Entry) -> str:
    if stat.S_ISDIR(entry.mode):
        return f"{entry.path}/"
    if stat.S_ISLNK(entry.mode):
        return f"{entry.path}@"
    return f"{entry.path} ({entry.size:,} bytes)"


def _joined(lines: list[str], note: str) -> str:
    if not lines and not note:
        return "nothing found"
    return "\n".join([*lines, *([f"[{note}]"] if note else [])])
