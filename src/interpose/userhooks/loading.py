"""Hook files to the set of registrations that one owner publishes.

Knows: reading files, and the way from bytes to registrations. Does not know: when to reload, who publishes.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from interpose.command.reader import CommandReader
from interpose.contracts.effects import Registration
from interpose.userhooks.hooks import Origin, Source, UserHook
from interpose.userhooks.issues import Issue, Position
from interpose.userhooks.matching import Workspace
from interpose.userhooks.merge import Collision, Merged, Override, merge
from interpose.userhooks.normalise import normalise
from interpose.userhooks.parse import ParsedFile, parse_hooks
from interpose.userhooks.registration import registration_of
from interpose.userhooks.syntax import SIZE_LIMIT_BYTES

ISSUES_LIMIT: Final = 100
"""So many issues of one file are told one by one."""

_Checked: TypeAlias = tuple[UserHook | None, tuple[Issue, ...]]
"""An entry as a hook, or what is wrong with it."""


@dataclass(frozen=True, slots=True)
class HookFile:
    """A file that may hold hooks, and the origin they get."""

    origin: Origin
    path: Path


@dataclass(frozen=True, slots=True)
class LoadedHooks:
    """Everything that came of a set of hook files.

    Attributes:
        hooks: those in force, in the order they are asked; disabled ones too.
        issues: what is wrong or worth a note, file by file.
        overridden: hooks that do not run because another one has their id.
        registrations: one for each of `hooks`, in the same order.
        broken_files: files of which nothing could be read.
    """

    hooks: tuple[UserHook, ...]
    issues: tuple[Issue, ...]
    overridden: tuple[Override, ...]
    registrations: tuple[Registration, ...]
    broken_files: tuple[Path, ...] = ()


def load_user_hooks(
    sources: Sequence[HookFile], *, root: str, home: str, reader: CommandReader | None = None
) -> LoadedHooks:
    """Reads and checks the files; a missing one is absent, with a note where FILE.yml stands beside it.

    Never raises for what is on disk.

    `root` is where relative patterns start ("" for none), `home` what `~` means. `reader` reads the commands; one that
    others use too reads each command once for all. Any thread may call it.
    """
    hooks: list[UserHook] = []
    issues: list[Issue] = []
    broken: list[Path] = []
    for file in sources:
        parsed = _read(file)
        checked = _checked(file, parsed)
        hooks.extend(hook for hook, _ in checked if hook is not None)
        issues.extend(_issues(parsed, checked))
        if parsed.broken:
            broken.append(file.path)

    merged = merge(hooks)
    issues.extend(_merge_notes(merged))
    reader = reader or CommandReader()
    workspace = Workspace(root, home)
    return LoadedHooks(
        hooks=merged.hooks,
        issues=tuple(issues),
        overridden=merged.overridden,
        registrations=tuple(registration_of(hook, workspace, reader) for hook in merged.hooks),
        broken_files=tuple(broken),
    )


def check_hooks(data: bytes, file: HookFile) -> tuple[tuple[UserHook, ...], tuple[Issue, ...]]:
    """The hooks in the bytes of one file and what is wrong with them; a pure function."""
    parsed = parse_hooks(data, str(file.path))
    checked = _checked(file, parsed)
    return tuple(hook for hook, _ in checked if hook is not None), _issues(parsed, checked)


def signature(files: Sequence[HookFile]) -> tuple[tuple[int, ...] | None, ...]:
    """What a stat says of each file: differs when one was written, replaced, added or removed. Costs one stat each."""
    return tuple(_stat_signature(file.path) for file in files)


def _stat_signature(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev, status.st_mode)


def _read(file: HookFile) -> ParsedFile:
    name = str(file.path)
    try:
        data = _bytes(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return ParsedFile(issues=_misnamed(file.path))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        issue = Issue(name, Position(), f"the file cannot be read: {reason}", "its hooks are not in force")
        return ParsedFile(issues=(issue,), broken=True)
    return parse_hooks(data, name)


def _misnamed(path: Path) -> tuple[Issue, ...]:
    """A note where the file is missing and one of the other common ending stands beside it."""
    other = path.with_suffix(".yml")
    if not other.is_file():
        return ()
    text = f"{other.name} is not read: the name is {path.name}"
    return (Issue(str(other), Position(), text, f"rename it to {path.name}", "note"),)


def _bytes(path: Path) -> bytes:
    """The content, one byte more than the limit at most. Raises OSError; a pipe or device is never waited for."""
    with open(path, "rb", opener=_open_at_once) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(0, "it is not a regular file")
        return stream.read(SIZE_LIMIT_BYTES + 1)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _checked(file: HookFile, parsed: ParsedFile) -> list[_Checked]:
    name = str(file.path)
    checked: list[_Checked] = []
    for entry in parsed.entries:
        if entry.faults:
            checked.append((None, entry.faults))
            continue
        source = Source(file.origin, name, entry.index, entry.position(()))
        hook, problems = normalise(entry.value, source)
        found = [
            Issue(
                name, entry.position(problem.place, on_key=problem.on_key), problem.text, problem.way_out, problem.level
            )
            for problem in problems
        ]
        checked.append((hook, tuple(sorted(found, key=lambda issue: issue.position))))
    return checked


def _issues(parsed: ParsedFile, checked: list[_Checked]) -> tuple[Issue, ...]:
    """Everything wrong with one file, cut where nobody would read on."""
    issues = [*parsed.issues, *(issue for _, found in checked for issue in found)]
    if len(issues) <= ISSUES_LIMIT:
        return tuple(issues)
    last = issues[ISSUES_LIMIT]
    rest = Issue(last.path, last.position, f"{len(issues) - ISSUES_LIMIT} more problems follow from here")
    return (*issues[:ISSUES_LIMIT], rest)


def _merge_notes(merged: Merged) -> list[Issue]:
    return [_collision_note(collision) for collision in merged.collisions] + [
        _repeat_note(override)
        for override in merged.overridden
        if override.winner.source.path == override.loser.source.path
    ]


def _collision_note(collision: Collision) -> Issue:
    source, guard = collision.hook.source, collision.guard
    text = f"the id {guard.id!r} belongs to a guard of {guard.source}, which stays in force"
    way_out = f"both run, this one as {collision.hook.id}@{source.origin}; give it an id of its own"
    return Issue(source.path, source.position, text, way_out, "note")


def _repeat_note(override: Override) -> Issue:
    source, loser = override.winner.source, override.loser
    text = f"the id {override.winner.id!r} was given to the hook of line {loser.source.position.line} already"
    return Issue(source.path, source.position, text, "this one counts, the other does not run", "note")
