"""Whether a call is one a hook asks about: its command by meaning, its files by canonical path.

Knows: which fields of the hook form name commands and files. Does not know: effects, hook files.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from interpose.command.globs import is_glob
from interpose.command.matching import CommandPattern, match_paths
from interpose.command.patches import read_patch
from interpose.command.paths import PathPatterns
from interpose.command.reader import CommandReader
from interpose.command.reading import ACCESSES, Access, Answer, Found, NotFound, Reading
from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import HookInput
from interpose.contracts.json import Json, JsonObject
from interpose.userhooks.hooks import Matchers

_READ_BY: Final = frozenset({"sh", "bash"})
"""The shells whose language is read."""

_PATH_FIELDS: Final = ("path", "paths", "include")
_FOREIGN_PATH_FIELDS: Final = (
    *_PATH_FIELDS,
    "file_path",
    "filePath",
    "filename",
    "file",
    "uri",
    "source",
    "destination",
)
"""Where tools that the catalog does not know (MCP tools among them) commonly name files."""

_ACCESS_OF: Final[dict[str, Access]] = {"read": "read", "search": "read", "write": "write", "edit": "write"}


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where relative patterns and paths start, and what `~` means."""

    root: str
    home: str


class Matcher:
    """The questions of one hook, compiled. Immutable; any thread may ask."""

    def __init__(self, matchers: Matchers, workspace: Workspace, reader: CommandReader) -> None:
        """Compiles the patterns; raises ValueError for one that is wrong (normalising has refused those)."""
        self._root = workspace.root or "/"
        self._home = workspace.home
        self._reader = reader
        self._commands = tuple(CommandPattern.parse(text) for text in matchers.command)
        self._paths = PathPatterns(matchers.path, root=self._root, home=self._home) if matchers.path else None
        self._access: frozenset[Access] = frozenset(access for access in ACCESSES if access in matchers.access)
        self._access = self._access or ACCESSES

    def ask(self, given: HookInput) -> Answer:
        """`Found` when every matcher holds, `Unknown` when one cannot tell and none says no, else `NotFound`."""
        if not self._commands and self._paths is None:
            return Found(given.tool_name or "")
        if given.unreadable is not None:
            return Unknown(given.unreadable)
        arguments = given.tool_args or {}
        answers: list[Answer] = []
        if self._commands:
            answers.append(self._ask_command(given, arguments))
        if self._paths is not None:
            answers.append(self._ask_paths(self._paths, given, arguments))
        return _all(answers)

    def _ask_command(self, given: HookInput, arguments: JsonObject) -> Answer:
        reading = self._reading(given, arguments)
        if not isinstance(reading, Reading):
            return reading
        return _any([pattern.match(reading) for pattern in self._commands])

    def _ask_paths(self, patterns: PathPatterns, given: HookInput, arguments: JsonObject) -> Answer:
        match given.tool_name:
            case "shell":
                reading = self._reading(given, arguments)
                return match_paths(reading, patterns, self._access) if isinstance(reading, Reading) else reading
            case "patch":
                return self._ask_patch(patterns, arguments, self._cwd(given, arguments))
            case "search":
                return self._ask_search(patterns, arguments, self._cwd(given, arguments))
            case "read" | "write" | "edit" as name:
                if _ACCESS_OF[name] not in self._access:
                    return NotFound()
                return self._ask_fields(patterns, arguments, _PATH_FIELDS, self._cwd(given, arguments))
            case _:
                return self._ask_fields(patterns, arguments, _FOREIGN_PATH_FIELDS, self._cwd(given, arguments))

    def _reading(self, given: HookInput, arguments: JsonObject) -> Reading | NotFound | Unknown:
        command = arguments.get("command")
        if not isinstance(command, str):
            wrong = given.tool_name == "shell" or command is not None
            return Unknown(f"the command of {given.tool_name} is not text") if wrong else NotFound()
        if not _is_unicode(command):
            return Unknown("the command holds half a Unicode character")
        shell = arguments.get("shell")
        if isinstance(shell, str) and posixpath.basename(shell) not in _READ_BY:
            return Unknown(f"the command is for {posixpath.basename(shell)}, and only sh and bash are read")
        return self._reader.read(command, cwd=self._cwd(given, arguments), home=self._home)

    def _cwd(self, given: HookInput, arguments: JsonObject) -> str:
        """Where relative paths of the call start: the agent's folder, and the call's own below it."""
        folder = given.metadata.get("cwd")
        start = folder if isinstance(folder, str) and folder else self._root
        own = arguments.get("cwd")
        return posixpath.join(start, own) if given.tool_name == "shell" and isinstance(own, str) else start

    def _ask_patch(self, patterns: PathPatterns, arguments: JsonObject, cwd: str) -> Answer:
        patch = arguments.get("patch")
        if not isinstance(patch, str) or not _is_unicode(patch):
            return Unknown("the patch is not text")
        files = read_patch(patch, cwd=cwd)
        return files if isinstance(files, Unknown) else match_paths(Reading(files=files), patterns, self._access)

    def _ask_search(self, patterns: PathPatterns, arguments: JsonObject, cwd: str) -> Answer:
        """A search names the files it is pointed at; what lies below a folder it walks is not named."""
        if "read" not in self._access:
            return NotFound()
        path, glob = arguments.get("path"), arguments.get("glob")
        answers = [_ask_path(patterns, path, cwd)] if path is not None else []
        if isinstance(glob, str):
            deep = glob if "/" in glob else f"**/{glob}"
            answers.append(_ask_path(patterns, posixpath.join(path if isinstance(path, str) else "", deep), cwd))
        return _any(answers)

    def _ask_fields(self, patterns: PathPatterns, arguments: JsonObject, fields: tuple[str, ...], cwd: str) -> Answer:
        return _any([_ask_path(patterns, path, cwd) for path in _named(arguments, fields)])


def _named(arguments: JsonObject, fields: tuple[str, ...]) -> Iterator[Json]:
    for field in fields:
        value = arguments.get(field)
        if isinstance(value, list):
            yield from value
        elif value is not None:
            yield value


def _is_unicode(text: str) -> bool:
    """JSON can say half a surrogate pair, which no file and no command is made of."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ask_path(patterns: PathPatterns, path: Json, cwd: str) -> Answer:
    if not isinstance(path, str) or not _is_unicode(path):
        return Unknown(f"a path is {path!r:.60}, which is not text")
    if is_glob(path) and patterns.meets(posixpath.join(cwd, path)):
        return Found(path)
    found = patterns.match(path, cwd)
    if found is None:
        return Unknown(f"there are too many files below {path} to look at")
    return Found(path) if found else NotFound()


def _any(answers: list[Answer]) -> Answer:
    """`Found` if one found it, else `Unknown` if one cannot tell."""
    for kind in (Found, Unknown):
        for answer in answers:
            if isinstance(answer, kind):
                return answer
    return NotFound()


def _all(answers: list[Answer]) -> Answer:
    """`NotFound` if one says no, else `Unknown` if one cannot tell."""
    for kind in (NotFound, Unknown):
        for answer in answers:
            if isinstance(answer, kind):
                return answer
    return answers[0]
