"""`interpose config`: the settings in force."""

import click

from interpose.assembly.folders import user_folders
from interpose.assembly.settings import load_settings
from interpose.cli.output import console, print_json


@click.group("config")
def config_command() -> None:
    """Show the settings in force and where each came from."""


@config_command.command("show")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for machines.")
def show(*, as_json: bool) -> None:
    """Print each setting, its value, and where it came from."""
    folders = user_folders()
    rows = load_settings(folders).rows()
    if as_json:
        print_json(
            {
                "config_file": str(folders.config_file),
                "state": str(folders.state),
                "settings": {key: {"value": value, "origin": origin} for key, value, origin in rows},
            }
        )
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("setting", "value", "from"):
        table.add_column(heading, header_style="dim")
    for key, value, origin in rows:
        table.add_row(key, str(value), origin)
    out = console()
    out.print(table)
    out.print(f"[dim]settings file: {folders.config_file} · state: {folders.state}[/dim]")
