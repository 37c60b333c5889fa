"""Whether a call is one a hook asks about: its command by meaning, its files by canonical path.

Knows: which fields of the hook form name commands and files. Does not know: effects, hook files.
"""

import posixpath
import re
from dataclasses import dataclass
from typing import Final, TypeGuard

from interpose.catalog.fields import FOREIGN_PATHS, PATHS
from interpose.command.braces import expand_text
from interpose.command.globs import Names, is_glob, split_glob
from interpose.command.matching import match_paths
from interpose.command.patches import read_patch
from interpose.command.paths import PathPatterns, absolute_path
from interpose.command.pattern import CommandPattern
from interpose.command.reader import CommandReader, unread_shell
from interpose.command.reading import ACCESSES, Access, Answer, Found, NotFound, Reading
from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import HookInput
from interpose.contracts.json import Json, JsonObject
from interpose.userhooks.hooks import Matchers

_ACCESS_OF: Final[dict[str, Access]] = {"read": "read", "write": "write", "edit": "write"}

_FILE_URL: Final = re.compile(r"file:/[^\s\"'<>)\]]+", re.IGNORECASE)

_EVERY_NAME: Final = frozenset("*?.")
"""A glob whose last part has only these characters says nothing about names."""


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
        """`Found` when every matcher holds, `Unknown` when one cannot tell and none says no, else `NotFound`.

        `Found.command` is the part of a line of several commands ("" where there is one), `Found.file` the file where
        the call does not name it itself.
        """
        if not self._commands and self._paths is None:
            return Found("")
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
        found = _any([pattern.match(reading) for pattern in self._commands])
        return Found("") if isinstance(found, Found) and len(reading.commands) == 1 else found

    def _ask_paths(self, patterns: PathPatterns, given: HookInput, arguments: JsonObject) -> Answer:
        match given.tool_name:
            case "shell":
                return self._ask_shell(patterns, given, arguments)
            case "patch":
                return self._ask_patch(patterns, arguments, self._cwd(given, arguments))
            case "search":
                return self._ask_search(patterns, arguments, self._cwd(given, arguments))
            case "fetch":
                return self._ask_fetch(patterns, arguments)
            case "read" | "write" | "edit" as name:
                if _ACCESS_OF[name] not in self._access:
                    return NotFound()
                return self._ask_fields(patterns, arguments, PATHS, self._cwd(given, arguments))
            case _:
                return self._ask_fields(patterns, arguments, FOREIGN_PATHS, self._cwd(given, arguments))

    def _ask_shell(self, patterns: PathPatterns, given: HookInput, arguments: JsonObject) -> Answer:
        reading = self._reading(given, arguments)
        if not isinstance(reading, Reading):
            return reading
        found = match_paths(reading, patterns, self._access)
        return Found("", found.file) if isinstance(found, Found) and len(reading.commands) == 1 else found

    def _reading(self, given: HookInput, arguments: JsonObject) -> Reading | NotFound | Unknown:
        command = arguments.get("command")
        if not isinstance(command, str):
            wrong = given.tool_name == "shell" or command is not None
            return Unknown(f"the command of {given.tool_name} is not text") if wrong else NotFound()
        if not _is_unicode(command):
            return Unknown("the command holds half a Unicode character")
        unread = unread_shell(arguments.get("shell"))
        if unread is not None:
            return unread
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
        if isinstance(files, Unknown):
            return files
        found = match_paths(Reading(files=files), patterns, self._access)
        return Found("", found.file) if isinstance(found, Found) else found

    def _ask_search(self, patterns: PathPatterns, arguments: JsonObject, cwd: str) -> Answer:
        """A search is asked for the path and for the names its glob means, not for all that lies below a folder."""
        if "read" not in self._access:
            return NotFound()
        path, glob = arguments.get("path"), arguments.get("glob")
        answers = [_ask_path(patterns, path, cwd)] if path is not None else []
        if isinstance(glob, str) and _is_unicode(glob):
            place = absolute_path(path, cwd=cwd, home=self._home) if isinstance(path, str) else cwd
            answers += [_ask_glob(patterns, one, place) for one in _searched(glob) if _says_names(one)]
        return _any(answers)

    def _ask_fetch(self, patterns: PathPatterns, arguments: JsonObject) -> Answer:
        """A file URL reads that file."""
        if "read" not in self._access:
            return NotFound()
        texts = [value for field in ("url", "prompt") if isinstance(value := arguments.get(field), str)]
        return _any([_ask_path(patterns, url, "/") for text in texts for url in _FILE_URL.findall(text)])

    def _ask_fields(self, patterns: PathPatterns, arguments: JsonObject, fields: tuple[str, ...], cwd: str) -> Answer:
        """Files that fields name; a list may hold globs, and then what they find is used."""
        answers: list[Answer] = []
        for value in (arguments[field] for field in fields if arguments.get(field) is not None):
            items = value if isinstance(value, list) else [value]
            globs = [item for item in items if isinstance(value, list) and _is_pattern(item)]
            answers += [_ask_path(patterns, item, cwd) for item in items if item not in globs]
            answers += [_ask_glob(patterns, one, cwd) for glob in globs for one in expand_text(glob)]
        return _any(answers)


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
    if is_glob(path) and patterns.meets(path, cwd, below=False):
        return Found("", path)
    found = patterns.find(path, cwd)
    if isinstance(found, Unknown):
        return found
    if found is None:
        return NotFound()
    named = posixpath.basename(path.rstrip("/")) == posixpath.basename(found)
    return Found("", None if named else patterns.short(found))


def _ask_glob(patterns: PathPatterns, glob: str, cwd: str) -> Answer:
    """Whether a tool's glob means a file meant: by its own text, or by a file that is there and has such a name."""
    if not is_glob(glob.removeprefix("**/")):
        return _ask_path(patterns, glob.removeprefix("**/"), cwd)
    if _says_names(glob) and patterns.meets(glob, cwd, below=False):
        return Found("", glob.removeprefix("**/"))
    place = "." if is_glob(glob.split("/", 1)[0]) else split_glob(glob)[0]
    names = Names(((True, posixpath.basename(glob)),)) if _says_names(glob) else None
    found = patterns.find(place, cwd, contains=True, existing=True, names=names)
    if isinstance(found, Unknown):
        return found
    return NotFound() if found is None else Found("", patterns.short(found))


def _searched(glob: str) -> list[str]:
    """The globs that a search takes names in by: one or several with spaces or commas between, at any depth."""
    globs = [one for text in glob.split() for expanded in expand_text(text) for one in expanded.split(",") if one]
    return [one if "/" in one else f"**/{one}" for one in globs if not one.startswith("!")]


def _says_names(glob: str) -> bool:
    """Whether the last part of a glob says something about names, as `*.py` does and `*` does not."""
    return not set(posixpath.basename(glob)) <= _EVERY_NAME


def _is_pattern(path: Json) -> TypeGuard[str]:
    return isinstance(path, str) and (is_glob(path) or "{" in path) and _is_unicode(path)


def _any(answers: list[Answer]) -> Answer:
    """`Found` if one found it, else `Unknown` if one cannot tell."""
    for kind in (Found, Unknown):
        for answer in answers:
            if isinstance(answer, kind):
                return answer
    return NotFound()


def _all(answers: list[Answer]) -> Answer:
    """`NotFound` if one says no, else `Unknown` if one cannot tell; else the parts that were found."""
    for kind in (NotFound, Unknown):
        for answer in answers:
            if isinstance(answer, kind):
                return answer
    found = [answer for answer in answers if isinstance(answer, Found)]
    return Found(found[-1].command, next((answer.file for answer in found if answer.file), None))
