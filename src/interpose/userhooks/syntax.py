"""Bytes to text, and what is wrong with the text as YAML, in plain words.

Knows: encodings, and where the YAML parser gives up. Does not know: values.
"""

import re
from typing import Final

import yaml

from interpose.userhooks.issues import Issue, Position

SIZE_LIMIT_BYTES: Final = 1_000_000
DEPTH_LIMIT: Final = 20
TOO_DEEP: Final = f"values are nested more than {DEPTH_LIMIT} deep"
TOO_DEEP_WAY_OUT: Final = "hooks are two or three deep"
_CONTROL = re.compile("[^\\t\\n\\r\\x20-\\x7e\\x85\\xa0-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]")


class BrokenFileError(Exception):
    """Nothing can be said of a file but `issue`; caught where parsing starts."""

    def __init__(self, issue: Issue) -> None:
        self.issue = issue
        super().__init__(str(issue))


def decode(data: bytes, path: str) -> tuple[str, tuple[Issue, ...]]:
    """The text of a file and notes about it; raises BrokenFileError for what is no text."""
    start = Position()
    if len(data) > SIZE_LIMIT_BYTES:
        raise BrokenFileError(
            Issue(
                path, start, f"the file is larger than {SIZE_LIMIT_BYTES:,} bytes", "hooks are short; make it smaller"
            )
        )
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BrokenFileError(Issue(path, start, "the file is UTF-16", "save it as UTF-8"))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise BrokenFileError(
            Issue(path, position, f"the byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8")
        ) from error
    body = text.removeprefix("\ufeff")
    control = _CONTROL.search(body)
    if control is not None:
        before = body[: control.start()]
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise BrokenFileError(
            Issue(path, position, f"the character U+{ord(control.group()):04X} cannot stand in YAML", "take it out")
        )
    if body == text:
        return text, ()
    note = Issue(path, start, "the file starts with a byte order mark, which is ignored", "save it without", "note")
    return body, (note,)


def syntax_issue(error: yaml.YAMLError, text: str, path: str) -> Issue:
    """What the YAML parser stumbled over, in words for people and where they should look."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return Issue(path, Position(), f"the file is not YAML: {error}")
    problem, context = error.problem or "", error.context or ""
    here = Position(mark.line + 1, mark.column + 1)
    if "nesting depth" in problem:
        return Issue(path, here, TOO_DEEP, TOO_DEEP_WAY_OUT)
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: mark.column + 1] and not line[: mark.column + 1].strip():
        return Issue(path, here, "a tab stands where YAML wants spaces", "indent with spaces")
    if "mapping values" in problem:
        way_out = "put the value in quotes, or line the key up with the one above"
        return Issue(path, here, "a ': ' stands inside a value", way_out)
    if "cannot start any token" in problem:
        found = line[mark.column : mark.column + 1]
        return Issue(path, here, f"a value cannot start with {found!r}", "put it in quotes")
    opened = error.context_mark or mark
    begin = Position(opened.line + 1, opened.column + 1)
    if "quoted scalar" in context:
        return Issue(path, begin, "the quote that opens here is not closed", "close it; double it inside single quotes")
    if "flow" in context:
        return Issue(path, begin, "the bracket that opens here is not closed, or lacks a comma", "close it")
    if "block" in context:
        return Issue(path, here, "this line does not fit what stands above it", "check its indentation")
    return Issue(path, here, f"the file is not YAML here: {problem}", "check quotes, brackets and indentation")
