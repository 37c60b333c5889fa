"""The files that a patch touches: apply_patch bodies and unified diffs.

Knows: both formats' headers. Does not know: whether the patch applies.
"""

import re
from dataclasses import dataclass

from interpose.command.paths import absolute_path
from interpose.command.reading import Access, FileUse
from interpose.contracts.decisions import Unknown

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_HEADER = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to):[ \t]*(.*?)[ \t]*$")
_STARS = re.compile(r"^\s*\*\*\* ?(.*)$")
_LOOKS_LIKE_HEADER = re.compile(r"(?i)^[ \t]*\*{2,4}[ \t]*(add|update|delete|move|rename|copy)\b")
_ACCESS: dict[str, tuple[Access, ...]] = {
    "Add File": ("write",),
    "Update File": ("read", "write"),
    "Delete File": ("remove",),
    "Move to": ("write",),
}
_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_QUOTED = re.compile(r'\\(?:([abfnrtv"\\])|([0-7]{1,3}))')
_NAMES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", '"': '"', "\\": "\\"}


@dataclass(frozen=True, slots=True)
class _Change:
    path: str
    access: Access


def read_patch(text: str, *, cwd: str) -> tuple[FileUse, ...] | Unknown:
    """Every file of a patch in the apply_patch form or as a unified diff, relative to `cwd`, in order.

    A moved file is removed at its old place and written at the new one. Unknown when the text is neither form, or
    has a header that nobody knows. Pure and thread-safe.
    """
    lines = text.splitlines()
    changes = _apply_patch(lines) if any(line.strip() == _BEGIN for line in lines) else _unified(lines)
    if isinstance(changes, Unknown):
        return changes
    unique = dict.fromkeys(changes)
    return tuple(FileUse(absolute_path(change.path, cwd=cwd), change.access, "patch") for change in unique)


def _apply_patch(lines: list[str]) -> list[_Change] | Unknown:
    changes: list[_Change] = []
    updated: str | None = None
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if stripped in (_BEGIN, _END, "*** End of File"):
            continue
        match = _HEADER.match(line.lstrip())
        if match is None:
            if _LOOKS_LIKE_HEADER.match(line) or line.startswith("*** "):
                return Unknown(f"line {number} of the patch is a header nobody knows: {stripped[:80]!r}")
            continue
        kind, path = match[1], match[2]
        if not path:
            return Unknown(f"line {number} of the patch names no file")
        if kind == "Move to":
            if updated is None:
                return Unknown(f"line {number} of the patch moves no file")
            changes.append(_Change(updated, "remove"))
        updated = path if kind == "Update File" else None
        changes.extend(_Change(path, access) for access in _ACCESS[kind])
    return changes or Unknown("the patch names no file")


def _unified(lines: list[str]) -> list[_Change] | Unknown:
    changes: list[_Change] = []
    old: str | None = None
    index = 0
    while index < len(lines):
        line = lines[index]
        hunk = _HUNK.match(line)
        if hunk:
            index = _skip_hunk(lines, index + 1, int(hunk[1] or 1), int(hunk[2] or 1))
            continue
        index += 1
        if line.startswith("--- "):
            old = _name(line[4:])
        elif line.startswith("+++ "):
            changes.extend(_both(old, _name(line[4:])))
        else:
            changes.extend(_extended(line))
    return changes or Unknown("the text is no patch: it has neither '*** Begin Patch' nor '---' and '+++' lines")


def _extended(line: str) -> list[_Change]:
    """Lines of git's own header lines."""
    for start, access in (("rename from ", "remove"), ("rename to ", "write"), ("copy to ", "write")):
        if line.startswith(start):
            return [_Change(_plain(line[len(start) :]), access)]  # type: ignore[arg-type]
    if line.startswith("copy from "):
        return [_Change(_plain(line[10:]), "read")]
    if line.startswith("diff --git "):
        match = re.match(r'^diff --git (?:"?a/(.*?)"?) (?:"?b/(.*?)"?)$', line)
        return [_Change(match[2], "write")] if match else []
    return []


def _both(old: str | None, new: str | None) -> list[_Change]:
    if new is None:
        return [_Change(old, "remove")] if old else []
    if old is None:
        return [_Change(new, "write")]
    changes = [_Change(new, "read"), _Change(new, "write")]
    return changes if old == new else [_Change(old, "read"), _Change(old, "write"), *changes]


def _skip_hunk(lines: list[str], index: int, removed: int, added: int) -> int:
    while index < len(lines) and (removed > 0 or added > 0):
        mark = lines[index][:1]
        if mark in (" ", ""):
            removed, added = removed - 1, added - 1
        elif mark == "-":
            removed -= 1
        elif mark == "+":
            added -= 1
        elif mark != "\\":
            break
        index += 1
    return index


def _name(text: str) -> str | None:
    """The path of a `---` or `+++` line without its time and its a/ or b/; None for /dev/null."""
    path = _plain(text.split("\t", 1)[0].rstrip())
    if path == "/dev/null":
        return None
    return path[2:] if path[:2] in ("a/", "b/") else path


def _plain(text: str) -> str:
    text = text.strip()
    if not text.startswith('"'):
        return text
    inner = text[1:-1]
    raw = _QUOTED.sub(lambda match: _NAMES[match[1]] if match[1] else chr(int(match[2], 8) & 255), inner)
    return raw.encode("latin-1", "ignore").decode("utf-8", "replace") if not raw.isascii() else raw
