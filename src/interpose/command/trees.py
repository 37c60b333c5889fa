"""What lies below a folder now, looked at name by name and never without end.

Knows: the filesystem. Does not know: patterns, commands.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator

from interpose.command.globs import Names

TREE_LIMIT = 20_000
"""How many names below a folder are looked at before it counts as too many."""


def paths_below(
    folder: str, *, visible: bool, names: Names | None, skips: Callable[[str], bool]
) -> Iterator[str | None]:
    """The paths below `folder`, the near ones first; a last None says that there are more than are looked at.

    With `visible` names that start with a dot are passed by. With `names` only files are given, those that it takes in
    folders that it enters. Folders that `skips` names are not looked into, nor are folders behind links. A folder that
    cannot be read is empty.
    """
    seen = 0
    waiting = deque([folder])
    while waiting:
        for entry in _entries(waiting.popleft()):
            seen += 1
            if seen > TREE_LIMIT:
                yield None
                return
            if visible and entry.name.startswith("."):
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if names is None or (not is_folder and names.takes(entry.name)):
                yield entry.path
            if is_folder and (names is None or names.enters(entry.name)) and not skips(entry.path):
                waiting.append(entry.path)


def is_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it, by the texts alone."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
