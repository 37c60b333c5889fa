"""`interpose demo`: a refusal from beginning to end, in ten seconds."""

from textwrap import shorten

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from interpose.cli.feed import coloured, local_zone
from interpose.cli.output import console, print_json
from interpose.contracts.errors import ConfigError
from interpose.journal.codec import to_json
from interpose.journal.text import story_lines, subject

_MARKS = {
    "person": ("you  ", "bold"),
    "model": ("model", "cyan"),
    "tool": ("runs ", "green"),
    "done": ("done ", "bold"),
}


@click.command("demo")
@click.option("--json", "as_json", is_flag=True, help="The steps and the journal as JSON lines, for machines.")
def demo_command(*, as_json: bool) -> None:
    """See it work in ten seconds: a small agent wants to delete a folder and is refused. No key, no network."""
    try:
        from interpose.demo.performance import perform
    except ModuleNotFoundError as error:
        raise ConfigError(
            "interpose demo", f"the package {error.name} is missing", "pip install 'interpose[demo]'"
        ) from error
    from interpose.demo.agent import Step

    out = console()

    def show(step: Step) -> None:
        if as_json:
            print_json({"step": step.who, "text": step.text})
            return
        mark, style = _MARKS[step.who]
        out.print(Text.assemble((f"  {mark}  ", style), step.text))

    if not as_json:
        _introduce(out)
    performance = perform(report=show)
    if as_json:
        for stored in performance.journal:
            print_json(to_json(stored))
        return
    out.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("stage", "seen at", "what", "verdict", "by"):
        table.add_column(heading, header_style="dim")
    for stored in performance.journal:
        record = stored.record
        if record.step == "verdict":
            style = "refused" if record.outcome == "refused" else "allowed"
            words = Text(record.outcome, style=style)
            what = f"{record.tool} {subject(record)}".strip()
            table.add_row(record.stage, record.mount, shorten(what, 40, placeholder="…"), words, record.handler)
    out.print("What the journal says:", style="bold")
    out.print(table)
    out.print()
    for stored in performance.refused[:1]:
        lines = story_lines(performance.story_of(stored.record.action), tz=local_zone())
        out.print(f"Why it was refused (interpose explain {stored.record.action}):", style="bold")
        for line in lines:
            out.print(coloured(line))
        out.print()
    kept = "build/release.bin" in performance.files_left
    out.print(
        f"build/release.bin is {'still there' if kept else 'gone'}. Next: `interpose init` in a project of yours."
    )


def _introduce(out: Console) -> None:
    out.print(
        "[name]interpose[/name] stands between an agent and its model. This agent is small but real: it has a shell"
    )
    out.print("and works in a temporary folder; only its model is scripted. One rule says: no recursive deletes.")
    out.print()
