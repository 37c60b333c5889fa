"""A TOML file as its reader wrote it: where in it a key stands, and what is wrong with a key, in words for people.

Knows: tables, keys, lines, kinds of values. Does not know: which settings there are.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from interpose.contracts.errors import ConfigError

T = TypeVar("T", bound=msgspec.Struct)

SHOW: Final = "see `interpose config show`"

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*?)`)?")
_MISFIT: Final = re.compile(r"Expected `(.*?)`, got `(.*?)`(?: - at `\$\.?(.*?)`)?")
_TABLE: Final = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?")
_KEY: Final = re.compile(r"""\s*((?:[\w\-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w\-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART: Final = re.compile(r"""[\w\-]+|"[^"]*"|'[^']*'""")
_WORDS: Final[Mapping[str, str]] = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "text",
}


@dataclass(frozen=True, slots=True)
class Source:
    """One file; `path` is how people know it, `text` what is in it."""

    path: str
    text: str = ""

    def place(self, key: str) -> str:
        """The file, the line where it is known, and the dotted `key`."""
        line = self._line(tuple(key.split(".")))
        return f"{self.path}: {key}" if line is None else f"{self.path}:{line}: {key}"

    def read(self, tree: Mapping[str, Any], kind: type[T], table: str = "", also: str = "") -> T:
        """What `tree`, which stands in the file as `table`, says; `also` names what else may stand at its top.

        Raises ConfigError that names the file, the line where it is known, the key, and what was expected.
        """
        try:
            return msgspec.convert(tree, kind)
        except msgspec.ValidationError as error:
            raise self._mistake(str(error), tree, kind, table, also) from error

    def _mistake(self, said: str, tree: Mapping[str, Any], kind: type[T], table: str, also: str) -> ConfigError:
        if found := _UNKNOWN.fullmatch(said):
            name, inner = found[1], found[2] or ""
            possible = [f"{inner}.{key}" if inner else key for key in _keys(kind, inner)]
            told = ", ".join([*possible, also] if also and not inner else possible)
            return ConfigError(self.place(_dotted(table, inner, name)), f"is not known; possible: {told}", SHOW)
        if found := _MISFIT.fullmatch(said):
            expected = found[1].removesuffix(" | null")
            inner = _told_whole(found[3] or "", tree, expected)
            problem = f"expected {_WORDS.get(expected, expected)}, found {_WORDS.get(found[2], found[2])}"
            return ConfigError(self.place(_dotted(table, inner)), problem, SHOW)
        return ConfigError(self.place(table) if table else self.path, said, SHOW)

    def _line(self, key: tuple[str, ...]) -> int | None:
        """Where the key, or the table that it is, stands; None where that is nowhere, or in several places."""
        key = tuple(re.sub(r"\[\d+\]$", "", part) for part in key)
        lines = list(_entries(self.text))
        for shown in (key[:length] for length in range(len(key), 0, -1)):
            found = [number for number, entry in lines if entry == shown]
            if found:
                return found[0] if len(found) == 1 else None
        return None


def _entries(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Each line that begins a table or gives a key, with the whole name of it."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if begun := _TABLE.fullmatch(line):
            table = _parts(begun[1])
            yield number, table
        elif given := _KEY.match(line):
            yield number, (*table, *_parts(given[1]))


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(name))


def _dotted(*names: str) -> str:
    return ".".join(name for name in names if name)


def _keys(kind: type[msgspec.Struct], inner: str) -> tuple[str, ...]:
    """The keys of a table, which may stand in another one."""
    for name in filter(None, inner.split(".")):
        types = {field.name: field.type for field in msgspec.structs.fields(kind)}
        kind = types.get(name, kind)
    return kind.__struct_fields__


def _told_whole(inner: str, tree: Mapping[str, Any], expected: str) -> str:
    """The key with the name of the entry that is meant, which the library leaves out."""
    name, found, rest = inner.partition("[...]")
    if not found:
        return inner
    value: Any = tree
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if not isinstance(value, dict) or expected != "str" or rest:
        return inner
    entry = next((key for key, one in value.items() if not isinstance(one, str)), "")
    return _dotted(name, entry)
