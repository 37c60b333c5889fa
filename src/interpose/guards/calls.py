"""Which commands and files a tool call names, whatever the tool.

Knows: the fields of the hook form that hold commands, patches and paths. Does not know: any guard, or whether the
call is allowed.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from interpose.catalog.fields import FOREIGN_PATHS, PATHS
from interpose.command.globs import is_glob
from interpose.command.patches import read_patch
from interpose.command.paths import absolute_path
from interpose.command.reader import CommandReader, unread_shell
from interpose.command.reading import Access, FileUse, Reading
from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import HookInput
from interpose.contracts.json import Json, JsonObject

_WRITTEN_FIELDS: Final = (*PATHS, "source")
"""A file that was moved is gone from where it was."""


@dataclass(frozen=True, slots=True)
class CallReader:
    """Reads calls of one workspace: relative paths start at `root`, `~` means `home`. Any thread may use it."""

    commands: CommandReader
    root: str = ""
    home: str | None = None

    def read(self, given: HookInput) -> Reading | Unknown:
        """The commands and files that the call names; Unknown when its arguments cannot be read.

        A tool that nobody knows may do anything to the files it names, so they count as written.
        """
        if given.unreadable is not None:
            return Unknown(given.unreadable)
        arguments = given.tool_args or {}
        match given.tool_name:
            case "shell":
                return self._command(given, arguments)
            case "patch":
                return self._patch(given, arguments)
            case "read":
                return self._fields(given, arguments, PATHS, "read")
            case "search":
                return self._search(given, arguments)
            case "write" | "edit":
                return self._fields(given, arguments, _WRITTEN_FIELDS, "write")
            case _:
                return self._foreign(given, arguments)

    def _command(self, given: HookInput, arguments: JsonObject) -> Reading | Unknown:
        command = arguments.get("command")
        if not isinstance(command, str):
            return Unknown("the command is not text")
        unread = unread_shell(arguments.get("shell"))
        if unread is not None:
            return unread
        own = arguments.get("cwd")
        cwd = posixpath.join(self._cwd(given), own) if isinstance(own, str) else self._cwd(given)
        return self.commands.read(command, cwd=cwd, home=self.home)

    def _patch(self, given: HookInput, arguments: JsonObject) -> Reading | Unknown:
        patch = arguments.get("patch")
        if not isinstance(patch, str):
            return Unknown("the patch is not text")
        files = read_patch(patch, cwd=self._cwd(given))
        return files if isinstance(files, Unknown) else Reading(files=files)

    def _search(self, given: HookInput, arguments: JsonObject) -> Reading | Unknown:
        """A search names what it is pointed at; what lies below a folder it walks is not named."""
        path, glob = arguments.get("path"), arguments.get("glob")
        reading = self._fields(given, {"path": path}, ("path",), "read")
        if isinstance(reading, Unknown) or not isinstance(glob, str):
            return reading
        deep = glob if "/" in glob else f"**/{glob}"
        pattern = posixpath.join(path if isinstance(path, str) else "", deep)
        return Reading(files=(*reading.files, *self._uses(given, pattern, "read")))

    def _foreign(self, given: HookInput, arguments: JsonObject) -> Reading | Unknown:
        named = self._fields(given, arguments, FOREIGN_PATHS, "write")
        command = arguments.get("command")
        if isinstance(named, Unknown) or not isinstance(command, str):
            return named
        # The text may be no shell command at all, so what cannot be read in it says nothing.
        return Reading(files=named.files + self.commands.read(command, cwd=self._cwd(given), home=self.home).files)

    def _fields(
        self, given: HookInput, arguments: JsonObject, fields: tuple[str, ...], access: Access
    ) -> Reading | Unknown:
        paths = list(_named(arguments, fields))
        wrong = next((path for path in paths if not isinstance(path, str)), None)
        if wrong is not None:
            return Unknown(f"a path is {wrong!r:.60}, not text")
        return Reading(files=tuple(use for path in paths if path for use in self._uses(given, path, access)))

    def _uses(self, given: HookInput, path: str, access: Access) -> Iterator[FileUse]:
        """The file of just this name, and those it means as a glob: some tools expand it, some do not."""
        absolute = absolute_path(path, cwd=self._cwd(given), home=self.home)
        by = f"{given.tool_name} {path}"
        yield FileUse(absolute, access, by)
        if is_glob(path):
            yield FileUse(absolute, access, by, pattern=absolute)

    def _cwd(self, given: HookInput) -> str:
        folder = given.metadata.get("cwd")
        return folder if isinstance(folder, str) and folder else self.root or "/"


def _named(arguments: JsonObject, fields: tuple[str, ...]) -> Iterator[Json]:
    for field in fields:
        value = arguments.get(field)
        if isinstance(value, list):
            yield from value
        elif value is not None:
            yield value
