"""`interpose config`: the settings in force."""

from pathlib import Path
from typing import Any

import click

from interpose.assembly.folders import PROJECT_FOLDER, canonical_root, user_folders
from interpose.assembly.project import ASK_KEY, PROJECT_FILE, ProjectSettings, project_settings
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
    settings = load_settings(folders)
    root = canonical_root(Path.cwd())
    project = project_settings(root, ask_timeout_s=settings.file.gateway.ask_timeout_s)
    rows = [_in_force(row, project, root) for row in settings.rows()]
    if as_json:
        print_json(
            {
                "config_file": str(folders.config_file),
                "state": str(folders.state),
                "settings": {key: {"value": value, "origin": origin} for key, value, origin in rows},
                "problems": project.problems,
            }
        )
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("setting", "value", "from"):
        table.add_column(heading, header_style="dim")
    for key, value, origin in rows:
        table.add_row(key, Text(_worded(value)), origin)
    out = console()
    out.print(table)
    for problem in project.problems:
        out.print(f"problem {problem}", style="problem", markup=False)
    out.print(f"[dim]settings file: {folders.config_file} · state: {folders.state}[/dim]")


def _worded(value: Any) -> str:
    """A value as the file would have it; nothing at all is `none`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _in_force(row: tuple[str, Any, str], project: ProjectSettings, root: str) -> tuple[str, Any, str]:
    """The row as it is in this project."""
    key, value, _ = row
    if key != ASK_KEY or value == project.ask_timeout_s:
        return row
    return key, project.ask_timeout_s, str(Path(root) / PROJECT_FOLDER / PROJECT_FILE)
