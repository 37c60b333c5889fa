"""`interpose off` and `interpose on`: judging switched off for a while, by a person, on record."""

import re
import time

import click

from interpose.assembly.folders import canonical_root
from interpose.assembly.runtime import Runtime
from interpose.cli.output import console, require_terminal
from interpose.contracts.journal import Record

LONGEST_S = 24 * 3600
_UNITS = {"s": 1, "m": 60, "h": 3600}


class Duration(click.ParamType[float]):
    """A time such as 90s, 10m or 2h, up to 24h."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; fails with what is possible."""
        if isinstance(value, float):
            return value
        matched = re.fullmatch(r"(\d+)([smh])", str(value))
        seconds = int(matched[1]) * _UNITS[matched[2]] if matched else 0
        if not 0 < seconds <= LONGEST_S:
            self.fail(f"{value!r} is not a time such as 90s, 10m or 2h (24h at most)", param, ctx)
        return float(seconds)


@click.command("off")
@click.option("--for", "seconds", type=Duration(), required=True, help="How long: 90s, 10m, 2h (24h at most).")
@click.option("--everywhere", is_flag=True, help="In all workspaces, not only this one.")
def off_command(*, seconds: float, everywhere: bool) -> None:
    """Switch judging off for a while. Everything still goes to the journal, marked `off`."""
    require_terminal("off")
    root = _workspace()
    with Runtime.open() as runtime:
        until = runtime.clock.now() + seconds
        runtime.pause.switch_off(None if everywhere else root, until=until)
        _record(runtime, "" if everywhere else root, f"off for {seconds:.0f} s", "off")
    where = "everywhere" if everywhere else f"in {root}"
    clock = time.strftime("%H:%M:%S", time.localtime(until))
    console().print(f"[note]judging is off[/note] {where} until {clock}; `interpose on` ends it sooner")


@click.command("on")
@click.option("--everywhere", is_flag=True, help="End what `off --everywhere` began, too.")
def on_command(*, everywhere: bool) -> None:
    """Switch judging on again."""
    require_terminal("on")
    root = _workspace()
    with Runtime.open() as runtime:
        runtime.pause.switch_on(root)
        if everywhere:
            runtime.pause.switch_on(None)
        _record(runtime, "" if everywhere else root, "on again", "on")
        still_off = runtime.pause.is_off(root)
    if still_off:
        console().print("[note]still off:[/note] it was switched off everywhere; `interpose on --everywhere` ends that")
        return
    console().print(f"[allowed]judging is on[/allowed] in {root}")


def _workspace() -> str:
    from pathlib import Path

    return canonical_root(Path.cwd())


def _record(runtime: Runtime, workspace: str, reason: str, outcome: str) -> None:
    runtime.journal.write(
        Record(
            at=runtime.clock.now(),
            action="switch",
            step="switched",
            workspace=workspace,
            reason=reason,
            outcome=outcome,
            handler="the person",
        )
    )
