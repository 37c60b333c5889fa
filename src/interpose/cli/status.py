"""`interpose status`: what is running, which hooks judge here, what was refused lately."""

import time
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from interpose.assembly.folders import canonical_root
from interpose.assembly.presence import find_gateways
from interpose.assembly.runtime import Runtime
from interpose.cli.doctor import DOCTOR
from interpose.cli.feed import styled
from interpose.cli.output import console, counted, in_force, print_json
from interpose.contracts.journal import StoredRecord
from interpose.journal.codec import to_json
from interpose.journal.query import Filter, JournalReader

DAY_S = 24 * 3600
REFUSALS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Count:
    """What was judged, and what of it was refused."""

    judged: int = 0
    refused: int = 0

    def __str__(self) -> str:
        return f"{self.judged} judged, {self.refused} refused"


@dataclass(frozen=True, slots=True)
class _Lately:
    """The last day here, in no project (no launch told of one), and in others; what was refused in the first two."""

    here: _Count
    nowhere: _Count
    elsewhere: _Count
    refused: list[StoredRecord]


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for machines.")
def status_command(*, as_json: bool) -> None:
    """What is running, which hooks judge here, what was refused lately."""
    root = canonical_root(Path.cwd())
    with Runtime.open() as runtime:
        running = find_gateways(runtime.folders)
        policy = runtime.workspaces.policy(root)
        issues = [str(issue) for issue in policy.issues]
        waiting = len(runtime.approvals.waiting())
        off_until = max((one.until for one in runtime.pause.state() if one.workspace in (None, root)), default=None)
        with closing(JournalReader(runtime.folders.journal_db)) as reader:
            lately = _lately(reader, root, since=runtime.clock.now() - DAY_S)
    if as_json:
        gateways = [{"url": gateway.url, "pid": gateway.pid} for gateway in running]
        print_json(
            {
                "gateway": gateways[0] if gateways else None,
                "gateways": gateways,
                "workspace": root,
                "judging": "on" if off_until is None else "off",
                "off_until": off_until,
                "hooks": [hook.id for hook in policy.loaded.hooks],
                "guards": policy.guards,
                "approval": "hooks run without approval",
                "problems": issues,
                "waiting": waiting,
                "last_day": asdict(lately.here),
                "last_day_in_no_project": asdict(lately.nowhere),
                "last_day_elsewhere": asdict(lately.elsewhere),
                "refused": [to_json(stored) for stored in lately.refused],
            }
        )
        return
    _show(
        root,
        gateways=[f"{gateway.url} (process {gateway.pid})" for gateway in running],
        hooks=[in_force(policy), ", ".join(hook.id for hook in policy.loaded.hooks)],
        problems=issues,
        waiting=waiting,
        off_until=off_until,
        lately=lately,
    )


def _lately(reader: JournalReader, root: str, *, since: float) -> _Lately:
    """What the journal has of the time since then, less what the doctor tried."""
    verdicts = Filter(step="verdict", since=since)
    places: dict[str, _Count] = {}
    for (workspace, agent, outcome), times in reader.tally(verdicts, "workspace", "agent", "outcome").items():
        if agent == DOCTOR:
            continue
        place = "here" if workspace == root else "elsewhere" if workspace else "nowhere"
        count = places.get(place, _Count())
        places[place] = _Count(count.judged + times, count.refused + (times if outcome == "refused" else 0))
    refused = [
        stored
        for workspace in (root, "")
        for stored in reader.find(replace(verdicts, workspace=workspace, outcome="refused"), limit=-1)
        if stored.record.agent != DOCTOR
    ]
    refused.sort(key=lambda stored: stored.seq)
    here, nowhere, elsewhere = (places.get(place, _Count()) for place in ("here", "nowhere", "elsewhere"))
    return _Lately(here, nowhere, elsewhere, refused[-REFUSALS_SHOWN:])


def _show(
    root: str,
    *,
    gateways: list[str],
    hooks: list[str],
    problems: list[str],
    waiting: int,
    off_until: float | None,
    lately: _Lately,
) -> None:
    out = console()
    first, *others = gateways or ["not running (`interpose up` starts it)"]
    rows: list[tuple[str, Any]] = [
        ("gateway", first),
        *(("", other) for other in others),
        ("workspace", root),
        (
            "judging",
            "on" if off_until is None else f"[note]off[/note] until {_clock(off_until)} (`interpose on` ends it)",
        ),
        ("hooks", f"{hooks[0]}, without approval" + (f": {hooks[1]}" if hooks[1] else "")),
        ("last day", f"{lately.here} here"),
    ]
    if lately.nowhere.judged:
        rows.append(("", f"{lately.nowhere} in no project (by addresses without a launch: the user's hooks only)"))
    if lately.elsewhere.judged:
        rows.append(("", f"{lately.elsewhere} in other projects"))
    for name, value in rows:
        out.print(f"[dim]{name:<10}[/dim] {value}")
    if waiting:
        out.print(
            f"waiting    {counted(waiting, 'call')} for your yes: `interpose approvals`", style="note", markup=False
        )
    for problem in problems:
        out.print(f"problem    {problem}", style="problem", markup=False)
    if lately.refused:
        out.print()
        out.print(f"refused lately (it is {_clock(time.time())}):", style="dim")
        for stored in lately.refused:
            out.print(styled(stored.record))


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
