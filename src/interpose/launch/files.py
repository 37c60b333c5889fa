"""Settings files of ours that an agent is told to read.

Knows: writing them so that a reader never sees half of one, and in which folders agents will trust them.
Does not know: what stands in them.
"""

import os
import shlex
import tempfile
from collections.abc import Iterable, Mapping
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


def settings_dir(preferred: Path, environ: Mapping[str, str]) -> Path:
    """A folder for settings that no other user may write into, as Gemini CLI wants it.

    It is `preferred` where that is one. Where group or others may write above it, which the usual umask of many
    systems does, it is a folder in XDG_RUNTIME_DIR if there is one; else `preferred` all the same.
    """
    runtime = environ.get("XDG_RUNTIME_DIR")
    if not runtime or not folders_open_to_others(preferred / "x"):
        return preferred
    in_runtime = Path(runtime) / "interpose"
    usable = os.access(runtime, os.W_OK) and not folders_open_to_others(in_runtime / "x")
    return in_runtime if usable else preferred


def notes_on_files(files: Iterable[Path]) -> tuple[str, ...]:
    """A line for the person for each folder because of which an agent will not read its settings."""
    folders = dict.fromkeys(folder for path in files for folder in folders_open_to_others(path))
    return tuple(
        f"{folder} can be written by others, so the agent will not read the settings that lie below it: "
        f"chmod go-w {shlex.quote(str(folder))}"
        for folder in folders
    )


def folders_open_to_others(path: Path) -> tuple[Path, ...]:
    """The folders above `path` that group or others may write, outermost first; empty where it will be trusted."""
    folders = [folder for folder in path.absolute().parents if folder.exists()]
    return tuple(folder for folder in reversed(folders) if folder.stat().st_mode & _OTHERS_WRITE)
