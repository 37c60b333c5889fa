"""The shape handlers of one process: those a program gives, and those of the user's own files.

Knows: `[handlers]` in the user's settings, how a file becomes handlers. Does not know: what a handler does.

A project cannot name such files: code of a repository must not run unasked.
"""

import sys
import threading
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from interpose.assembly.folders import PROJECT_FOLDER, Folders
from interpose.contracts.errors import ConfigError, MisuseError
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.journal import Record
from interpose.contracts.ports import Clock, Journal
from interpose.kernel.boundary import fault_line
from interpose.kernel.ids import derived_id
from interpose.stages.table import StageTable

FILES_KEY = "handlers.files"
PROJECT_FILE = "config.toml"


class Shapes:
    """The shape handlers of every workspace, made when somebody first asks. Any thread may ask."""

    def __init__(
        self, given: Iterable[ShapeHandler], files: Sequence[str], folders: Folders, journal: Journal, clock: Clock
    ) -> None:
        self._given = tuple(given)
        self._files = tuple(files)
        self._folders = folders
        self._journal = journal
        self._clock = clock
        self._lock = threading.Lock()
        self._table: StageTable | None = None

    def table(self) -> StageTable:
        """The handlers in force; each file is imported once, and broken links are journalled.

        Raises ConfigError for a file that gives none, MisuseError for a handler of the program that is impossible.
        """
        with self._lock:
            if self._table is None:
                self._table = self._made()
            return self._table

    def _made(self) -> StageTable:
        if not self._files and not self._given:
            return StageTable.publish()
        table = StageTable.publish((*self._given, *load_handlers(self._files, self._folders, self._given)))
        for problem in table.problems:
            reason = f"shape handlers: {problem}; the link is left out of account"
            self._journal.write(Record(at=self._clock.now(), action="handlers", step="problem", reason=reason))
        return table


def load_handlers(
    files: Sequence[str], folders: Folders, given: Iterable[ShapeHandler] = ()
) -> tuple[ShapeHandler, ...]:
    """The handlers of the files that `handlers.files` names, in order; a relative path starts from the config folder.

    `given` are handlers that are there already, whose ids are taken. Raises ConfigError that names the file and line.
    """
    owners = {handler.id: "the program" for handler in given}
    found: list[ShapeHandler] = []
    for name in files:
        path = _located(name, folders)
        for handler in _handlers_of(path, folders):
            if handler.id in owners:
                problem = f"its handler {handler.id!r} has the id of one in {owners[handler.id]}"
                raise ConfigError(str(path), problem, 'give one another id: @on(…, id="…")')
            owners[handler.id] = str(path)
            found.append(handler)
    return tuple(found)


def project_fault(root: str) -> ConfigError | None:
    """What is wrong when the project at `root` tries to name handlers of its own, else None."""
    path = Path(root) / PROJECT_FOLDER / PROJECT_FILE
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there, or not for us to read: a project's file decides nothing here
        return None
    if "handlers" not in tree:
        return None
    problem = "a project cannot name handlers: code of a repository must not run unasked, and it does not"
    return ConfigError(f"{path}: handlers", problem, "name the file in the config.toml of your own config folder")


def _located(name: str, folders: Folders) -> Path:
    is_home = name == "~" or name.startswith("~/")
    path = folders.home / name[2:] if is_home else folders.config / name
    if not path.is_file():
        where = f"{folders.config_file}: {FILES_KEY}"
        raise ConfigError(where, f"there is no file {str(path)!r}", "mend the path, or take it out")
    return path


def _handlers_of(path: Path, folders: Folders) -> Iterator[ShapeHandler]:
    handlers = {
        id(value): value for value in vars(_imported(path, folders)).values() if isinstance(value, ShapeHandler)
    }
    if not handlers:
        raise ConfigError(str(path), "holds no handler", 'write @on("tool.call") above a function')
    yield from handlers.values()


def _imported(path: Path, folders: Folders) -> ModuleType:
    """The module of the file, run now. It is known to the interpreter as long as it is in force."""
    name = derived_id("interpose_handlers_", str(path))
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(str(path), "is not a Python file", "let its name end in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the user's own file; closed: nothing starts without it
        del sys.modules[name]
        text = str(error) if isinstance(error, MisuseError) else fault_line(error)
        way_out = f"mend it, or take it out of {FILES_KEY} in {folders.config_file}"
        raise ConfigError(f"{path}:{_line_of(error, path)}", text, way_out) from error
    return module


def _line_of(error: BaseException, path: Path) -> int:
    """The line of the file where it went wrong."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return (lines[-1] if lines else None) or 1
