"""`interpose status`: what is running, which hooks judge here, what was refused lately."""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from interpose.assembly.folders import canonical_root
from interpose.assembly.presence import find_gateway
from interpose.assembly.runtime import Runtime
from interpose.cli.doctor import DOCTOR
from interpose.cli.feed import styled
from interpose.cli.output import console, counted, in_force, print_json
from interpose.contracts.journal import StoredRecord
from interpose.journal.codec import to_json
from interpose.journal.query import Filter, JournalReader

DAY_S = 24 * 3600
REFUSALS_SHOWN = 5


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for machines.")
def status_command(*, as_json: bool) -> None:
    """What is running, which hooks judge here, what was refused lately."""
    root = canonical_root(Path.cwd())
    with Runtime.open() as runtime:
        running = find_gateway(runtime.folders)
        policy = runtime.workspaces.policy(root)
        issues = [str(issue) for issue in policy.issues]
        waiting = len(runtime.approvals.waiting())
        off_until = max((one.until for one in runtime.pause.state() if one.workspace in (None, root)), default=None)
        with closing(JournalReader(runtime.folders.journal_db)) as reader:
            lately = Filter(workspace=root, step="verdict", since=runtime.clock.now() - DAY_S)
            found = reader.find(lately, limit=-1, order="oldest")
    verdicts = [stored for stored in found if stored.record.agent != DOCTOR]
    refused = [stored for stored in verdicts if stored.record.outcome == "refused"]
    if as_json:
        print_json(
            {
                "gateway": None if running is None else {"url": running.url, "pid": running.pid},
                "workspace": root,
                "judging": "on" if off_until is None else "off",
                "off_until": off_until,
                "hooks": [hook.id for hook in policy.loaded.hooks],
                "guards": policy.guards,
                "approval": "hooks run without approval",
                "problems": issues,
                "waiting": waiting,
                "last_day": {"judged": len(verdicts), "refused": len(refused)},
                "refused": [to_json(stored) for stored in refused[-REFUSALS_SHOWN:]],
            }
        )
        return
    _show(
        root,
        gateway=f"{running.url} (process {running.pid})" if running else "not running (`interpose up` starts it)",
        hooks=[in_force(policy), ", ".join(hook.id for hook in policy.loaded.hooks)],
        problems=issues,
        waiting=waiting,
        off_until=off_until,
        judged=len(verdicts),
        refused=refused,
    )


def _show(
    root: str,
    *,
    gateway: str,
    hooks: list[str],
    problems: list[str],
    waiting: int,
    off_until: float | None,
    judged: int,
    refused: list[StoredRecord],
) -> None:
    out = console()
    rows: list[tuple[str, Any]] = [
        ("gateway", gateway),
        ("workspace", root),
        (
            "judging",
            "on" if off_until is None else f"[note]off[/note] until {_clock(off_until)} (`interpose on` ends it)",
        ),
        ("hooks", f"{hooks[0]}, without approval" + (f": {hooks[1]}" if hooks[1] else "")),
        ("last day", f"{judged} judged, {len(refused)} refused"),
    ]
    for name, value in rows:
        out.print(f"[dim]{name:<10}[/dim] {value}")
    if waiting:
        out.print(
            f"waiting    {counted(waiting, 'call')} for your yes: `interpose approvals`", style="note", markup=False
        )
    for problem in problems:
        out.print(f"problem    {problem}", style="problem", markup=False)
    if refused:
        out.print()
        out.print(f"refused lately (it is {_clock(time.time())}):", style="dim")
        for stored in refused[-REFUSALS_SHOWN:]:
            out.print(styled(stored.record))


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
