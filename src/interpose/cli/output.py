"""How things look: one console, colour on a terminal only, JSON for machines."""

import json
import os
import sys
from typing import Any

import click
from rich.console import Console
from rich.theme import Theme

from interpose.assembly.workspaces import WorkspacePolicy
from interpose.launch.lineage import launch_above

WIDE = 200
"""Columns where nobody looks at a screen: tables then keep their words whole."""

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
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if terminal or os.environ.get("COLUMNS") else WIDE
    return Console(theme=THEME, highlight=False, soft_wrap=True, stderr=stderr, width=width)


def counted(count: int, noun: str) -> str:
    """The count with its noun, as in "1 hook" and "2 hooks"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def in_force(policy: WorkspacePolicy) -> str:
    """How many hooks, handlers of the user's files, and guards of ours judge here, in words."""
    active = sum(hook.enabled for hook in policy.loaded.hooks)
    handlers = len(policy.shapes.order.ids)
    own = counted(active, "hook") + (f", {counted(handlers, 'handler')}" if handlers else "")
    return f"{own} and {counted(len(policy.guards), 'built-in guard')} in force"


def print_json(value: Any) -> None:
    """One JSON value on one line, for machines."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def require_terminal(verb: str, *, why: str = "") -> None:
    """Raises a usage error unless a person is at a terminal, outside any launched agent; `why` ends its text.

    An agent may well make a terminal of its own, so what descends from a launch is refused at any.
    """
    reason = f" ({why})" if why else ""
    launch = launch_above()
    if launch is not None:
        raise click.UsageError(
            f"`interpose {verb}` is not for agents, and this process descends from launch {launch}: "
            f"run it in your own terminal{reason}"
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(f"`interpose {verb}` needs a terminal: run it in your own, without pipes{reason}")
