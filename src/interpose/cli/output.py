"""How things look: one console, colour on a terminal only, JSON for machines."""

import json
import sys
from typing import Any

import click
from rich.console import Console
from rich.theme import Theme

THEME = Theme(
    {
        "refused": "bold red",
        "allowed": "green",
        "note": "yellow",
        "dim": "dim",
        "name": "bold cyan",
        "problem": "bold yellow",
    }
)


def console(*, stderr: bool = False) -> Console:
    """A console for this process; it honours NO_COLOR and FORCE_COLOR, and is plain when not on a terminal."""
    return Console(theme=THEME, highlight=False, soft_wrap=True, stderr=stderr)


def print_json(value: Any) -> None:
    """One JSON value on one line, for machines."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def require_terminal(verb: str) -> None:
    """Raises a usage error unless a person is at a terminal, outside any launched agent."""
    import os

    if os.environ.get("INTERPOSE_LAUNCH"):
        raise click.UsageError(f"`interpose {verb}` is not for agents: run it in your own terminal")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(f"`interpose {verb}` needs a terminal: run it in your own, without pipes")
