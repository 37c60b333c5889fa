"""Settings files of ours that an agent is told to read.

Knows: writing them so that a reader never sees half of one, and whether agents will trust their folder.
Does not know: what stands in them.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from interpose.contracts.errors import StorageError

_OTHERS_WRITE = 0o022


def write_files(files: Mapping[Path, str]) -> None:
    """Writes each file whole (0600), its folder made 0700 where it is missing; one that is there is replaced at once.

    Raises StorageError naming the file when it cannot be written. Many processes may write the same file.
    """
    for path, text in files.items():
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
            with os.fdopen(handle, "w", encoding="utf-8") as opened:
                opened.write(text)
            Path(name).replace(path)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise StorageError(f"{path}: cannot be written ({reason}): look at the folder's owner and mode") from error


def folders_open_to_others(path: Path) -> tuple[Path, ...]:
    """The folders above `path` that group or others may write, outermost first.

    Gemini CLI skips a settings file below such a folder; empty means that it will be read.
    """
    folders = [folder for folder in path.absolute().parents if folder.exists()]
    return tuple(folder for folder in reversed(folders) if folder.stat().st_mode & _OTHERS_WRITE)
