"""`interpose coverage`: what was seen here, what passed unjudged, which handlers wait, what cannot be looked into.

Knows: the journal's evidence. Does not know: what a mount could see in theory; what nobody has seen is told as such.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from interpose.assembly.folders import canonical_root
from interpose.assembly.runtime import Runtime
from interpose.cli.feed import local_zone
from interpose.cli.output import console, print_json
from interpose.command.opaque import opaque_name
from interpose.command.reader import CommandReader
from interpose.contracts.effects import Hook, Registration
from interpose.contracts.journal import Record
from interpose.journal.query import Filter, JournalReader
from interpose.policy.facts import facts_at

HOOK_OF: Final[Mapping[str, Hook]] = {
    "tool.call": "before_tool",
    "tool.result": "after_tool",
    "turn.start": "turn_start",
    "turn.end": "turn_end",
    "compaction": "on_compaction",
}
OPAQUE_SHOWN: Final = 12
UPGRADE_REFUSED: Final = 426
"""The status of a request for a WebSocket."""
_CUT: Final = " characters left out) …"


@dataclass(slots=True)
class Seen:
    """What one agent let us judge at one mount; `stages` counts verdicts. Times are seconds since the epoch."""

    mount: str
    agent: str
    workspace: str
    since: float
    until: float = 0.0
    stages: dict[str, int] = field(default_factory=dict)
    switched_off: int = 0


@dataclass(slots=True)
class Unjudged:
    """Requests of one API that passed unread; `why` is told to people."""

    api: str
    agent: str
    why: str
    since: float
    until: float = 0.0
    requests: int = 0


@dataclass(slots=True)
class Blind:
    """Something that one agent used or was offered, and that nobody can look into; `what` is told to people."""

    agent: str
    what: str
    since: float
    until: float = 0.0
    times: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A handler and what no mount has told it at one of its hooks; no `keys`: the hook itself was never seen."""

    handler: str
    hook: Hook
    keys: tuple[str, ...]


@dataclass(slots=True)
class Coverage:
    """Everything that the journal tells of one workspace."""

    seen: dict[tuple[str, str, str], Seen] = field(default_factory=dict)
    unjudged: dict[tuple[str, str, str], Unjudged] = field(default_factory=dict)
    blind: dict[tuple[str, str], Blind] = field(default_factory=dict)
    facts: dict[Hook, set[str]] = field(default_factory=dict)
    commands: Counter[str] = field(default_factory=Counter)

    def take(self, record: Record) -> None:
        """Counts one line of the journal."""
        match record.step:
            case "verdict":
                self._take_verdict(record)
            case "not_judged_yet" | "skipped" if record.outcome in ("unjudged", "not judged yet"):
                api = str(record.data.get("api", ""))
                key = (api, record.agent, record.reason)
                row = self.unjudged.setdefault(key, Unjudged(*key, record.at))
                row.requests += 1
                row.until = record.at
            case "skipped" if record.outcome == "unseen":
                self._take_blind(record, record.reason)
            case "failed" if record.data.get("status") == UPGRADE_REFUSED:
                self._take_blind(record, "tried a WebSocket, was refused, and went on without")
            case _:
                pass

    def unseen(self) -> list[tuple[Seen, tuple[str, ...]]]:
        """The agents on the wire, with the stages that none of their traffic has shown so far."""
        return [
            (row, missing)
            for row in self.seen.values()
            if row.mount == "wire" and (missing := tuple(stage for stage in HOOK_OF if not row.stages.get(stage)))
        ]

    def waiting(self, registrations: Sequence[Registration]) -> list[Waiting]:
        """The handlers that cannot do all their work with what was told so far, hook by hook."""
        found: list[Waiting] = []
        for hook in HOOK_OF.values():
            told = self.facts.get(hook)
            known = {fact.key for fact in facts_at(hook)}
            for one in registrations:
                missing = tuple(key for key in one.reads if key in known and key not in (told or ()))
                if hook in one.hooks and (told is None or missing):
                    found.append(Waiting(one.id, hook, () if told is None else missing))
        return found

    def opaque(self) -> tuple[Counter[str], int]:
        """The programs that are known by name only, and how many commands could not be read whole."""
        reader = CommandReader(remember=0)
        names: Counter[str] = Counter()
        unread = 0
        for text, times in self.commands.items():
            reading = reader.read(text, cwd="/")
            dynamic = any(not command.name for command in reading.commands)
            unread += times if _CUT in text or reading.unknown or dynamic else 0
            for command in reading.commands:
                name = opaque_name(command)
                if name is not None:
                    names[name] += times
        return names, unread

    def _take_blind(self, record: Record, what: str) -> None:
        row = self.blind.setdefault((record.agent, what), Blind(record.agent, what, record.at))
        row.times += 1
        row.until = record.at

    def _take_verdict(self, record: Record) -> None:
        key = (record.mount, record.agent, record.workspace)
        row = self.seen.setdefault(key, Seen(*key, since=record.at))
        row.until = record.at
        if record.outcome == "off":
            row.switched_off += 1
            return
        row.stages[record.stage] = row.stages.get(record.stage, 0) + 1
        if record.stage in HOOK_OF:
            self.facts.setdefault(HOOK_OF[record.stage], set()).update(record.data.get("facts", ()))
        if record.stage == "tool.call" and record.data.get("problem"):
            self._take_blind(record, f"called {record.wire_name or record.tool}: {record.data['problem']}")
        if record.stage == "tool.call" and record.tool == "shell":
            command = _mapping(record.data.get("input")).get("command")
            if isinstance(command, str):
                self.commands[command] += 1


@click.command("coverage")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for machines.")
def coverage_command(*, as_json: bool) -> None:
    """What was seen here, what was not and cannot be, which handlers wait, which programs are known by name only."""
    root = canonical_root(Path.cwd())
    with Runtime.open() as runtime:
        registrations = runtime.workspaces.policy(root).engine.registrations()
        with closing(JournalReader(runtime.folders.journal_db)) as reader:
            coverage = survey(reader, root)
    if as_json:
        print_json(_as_json(root, coverage, registrations))
        return
    _show(root, coverage, registrations)


def survey(reader: JournalReader, root: str) -> Coverage:
    """What the journal tells of the workspace at `root`, and of traffic that belongs to none."""
    coverage = Coverage()
    for workspace in (root, ""):
        for step in ("verdict", "not_judged_yet", "skipped", "failed"):
            for record in _each(reader, Filter(workspace=workspace, step=step)):
                coverage.take(record)
    return coverage


def _each(reader: JournalReader, wanted: Filter) -> Iterator[Record]:
    seen = 0
    while page := reader.follow(seen, wanted, wait_s=0):
        seen = page[-1].seq
        for stored in page:
            yield stored.record


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _as_json(root: str, coverage: Coverage, registrations: Sequence[Registration]) -> dict[str, object]:
    names, unread = coverage.opaque()
    return {
        "workspace": root,
        "seen": [asdict(row) for row in coverage.seen.values()],
        "unjudged": [asdict(row) for row in coverage.unjudged.values()],
        "blind": [asdict(row) for row in coverage.blind.values()],
        "unseen": [{"agent": row.agent, "stages": missing} for row, missing in coverage.unseen()],
        "waiting": [asdict(row) for row in coverage.waiting(registrations)],
        "opaque": dict(names.most_common()),
        "unread_commands": unread,
    }


def _show(root: str, coverage: Coverage, registrations: Sequence[Registration]) -> None:
    out = console()
    out.print(f"[dim]workspace[/dim] {root}")
    _heading("seen")
    for seen in coverage.seen.values():
        stages = ", ".join(f"{stage} {times}" for stage, times in seen.stages.items())
        off = f"; {seen.switched_off} while switched off" if seen.switched_off else ""
        where = "" if seen.workspace else " (in no project: the user's hooks only)"
        _row(f"{seen.mount} {seen.agent or '(unnamed)'}", f"{stages or 'nothing judged'}{off}{where}")
        _row("", f"since {_day(seen.since)}, last {_day(seen.until)}", dim=True)
    if not coverage.seen:
        _row("", "nothing was judged here so far: `interpose run -- AGENT`, or load_policy() in Python")

    _heading("passed unjudged")
    for row in coverage.unjudged.values():
        _row(f"{row.api} {row.agent}".rstrip(), f"{row.requests} requests, last {_day(row.until)}: {row.why}")
    if not coverage.unjudged:
        _row("", "nothing")
    _show_blind(coverage)
    _show_waiting(coverage, registrations)
    _show_opaque(coverage)


def _show_blind(coverage: Coverage) -> None:
    _heading("could not be looked into")
    for row in coverage.blind.values():
        _row(row.agent or "(unnamed)", f"{row.what} ({row.times}, last {_day(row.until)})")
    for seen, missing in coverage.unseen():
        _row(seen.agent or "(unnamed)", f"never seen on the wire so far: {', '.join(missing)}")
    if not coverage.blind and not coverage.unseen():
        _row("", "nothing")


def _show_waiting(coverage: Coverage, registrations: Sequence[Registration]) -> None:
    if not coverage.seen:
        return
    waiting = coverage.waiting(registrations)
    _heading("handlers that wait for what no mount has told here")
    for hook in HOOK_OF.values():
        never = [row.handler for row in waiting if row.hook == hook and not row.keys]
        if never:
            _row(hook, f"never seen; waiting: {', '.join(never)}")
        for row in waiting:
            if row.hook == hook and row.keys:
                _row(hook, f"{row.handler} reads {', '.join(row.keys)}")
    if not waiting:
        _row("", "none")


def _show_opaque(coverage: Coverage) -> None:
    names, unread = coverage.opaque()
    _heading("commands known by name only: what they do inside is not read")
    shown = ", ".join(f"{name} {times}" for name, times in names.most_common(OPAQUE_SHOWN))
    more = len(names) - OPAQUE_SHOWN
    _row("", (shown or "none") + (f" and {more} more" if more > 0 else ""))
    if unread:
        _row("", f"{unread} commands could not be read to their end (too long for the journal, or unknown parts)")


def _heading(text: str) -> None:
    out = console()
    out.print()
    out.print(text, style="name", markup=False)


def _row(name: str, text: str, *, dim: bool = False) -> None:
    start = f"  {name:<24} " if name or dim else "  "
    console().print(f"{start}{text}", style="dim" if dim else "", markup=False)


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, local_zone()).strftime("%Y-%m-%d %H:%M")
