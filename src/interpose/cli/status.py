"""`interpose status`: what is running, which hooks judge here, what was refused lately."""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from interpose.assembly.folders import canonical_root
from interpose.assembly.presence import find_gateway
from interpose.assembly.runtime import Runtime
from interpose.cli.feed import styled
from interpose.cli.output import console, print_json
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
        loaded = runtime.workspaces.policy(root).loaded
        off = runtime.pause.is_off(root)
        with closing(JournalReader(runtime.folders.journal_db)) as reader:
            lately = Filter(workspace=root, step="verdict", since=runtime.clock.now() - DAY_S)
            verdicts = reader.find(lately, limit=-1, order="oldest")
    refused = [stored for stored in verdicts if stored.record.outcome == "refused"]
    if as_json:
        print_json(
            {
                "gateway": None if running is None else {"url": running.url, "pid": running.pid},
                "workspace": root,
                "judging": "off" if off else "on",
                "hooks": [hook.id for hook in loaded.hooks],
                "approval": "hooks run without approval",
                "problems": [str(issue) for issue in loaded.issues],
                "last_day": {"judged": len(verdicts), "refused": len(refused)},
                "refused": [to_json(stored) for stored in refused[-REFUSALS_SHOWN:]],
            }
        )
        return
    _show(
        root,
        gateway=f"{running.url} (process {running.pid})" if running else "not running (`interpose up` starts it)",
        hooks=[hook.id for hook in loaded.hooks],
        problems=[str(issue) for issue in loaded.issues],
        off=off,
        judged=len(verdicts),
        refused=refused,
    )


def _show(
    root: str,
    *,
    gateway: str,
    hooks: list[str],
    problems: list[str],
    off: bool,
    judged: int,
    refused: list[StoredRecord],
) -> None:
    out = console()
    rows: list[tuple[str, Any]] = [
        ("gateway", gateway),
        ("workspace", root),
        ("judging", "[note]switched off[/note] (`interpose on` ends that)" if off else "on"),
        ("hooks", f"{len(hooks)} in force, without approval" + (f": {', '.join(hooks)}" if hooks else "")),
        ("last day", f"{judged} judged, {len(refused)} refused"),
    ]
    for name, value in rows:
        out.print(f"[dim]{name:<10}[/dim] {value}")
    for problem in problems:
        out.print(f"problem    {problem}", style="problem", markup=False)
    if refused:
        out.print()
        out.print(f"refused lately (it is {time.strftime('%H:%M:%S')}):", style="dim")
        for stored in refused[-REFUSALS_SHOWN:]:
            out.print(styled(stored.record))
