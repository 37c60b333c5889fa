"""The command `interpose`. Each verb is loaded when asked for, so that `--help` and the quick verbs stay quick."""

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from interpose import __version__
from interpose.contracts.errors import InterposeError

VERBS: dict[str, tuple[str, str]] = {
    "up": ("interpose.cli.up", "Start the gateway for this folder and show what happens."),
    "run": ("interpose.cli.run", "Run an agent through the gateway: interpose run -- claude"),
    "init": ("interpose.cli.init", "Write a commented .interpose/hooks.yaml with three useful rules."),
    "status": ("interpose.cli.status", "What is running, which hooks judge here, what was refused lately."),
    "doctor": ("interpose.cli.doctor", "Prove that judging works: send a call that must be refused."),
    "approvals": ("interpose.cli.approvals", "What waits for your yes: list, show, approve, deny, watch."),
    "off": ("interpose.cli.switch", "Switch judging off for a while (needs a terminal; journalled)."),
    "on": ("interpose.cli.switch", "Switch judging on again."),
    "tail": ("interpose.cli.journal", "Follow the journal."),
    "journal": ("interpose.cli.journal", "List what happened, with filters."),
    "explain": ("interpose.cli.journal", "The whole story of one action: who saw it, what each said, what came of it."),
    "coverage": ("interpose.cli.coverage", "What was seen here and what was not; which handlers wait for more."),
    "hooks": ("interpose.cli.hooks", "List and check the hooks that judge here."),
    "config": ("interpose.cli.config", "Show the settings in force and where each came from."),
    "demo": ("interpose.cli.demo", "See it work in ten seconds: no key, no network."),
}

EPILOG = """\b
Exit codes: 0 fine; 1 something was found wrong (doctor, hooks check), or a question no longer waits (approvals);
2 wrong usage, settings or files, or a person is needed and there is no terminal; 3 the journal or the state cannot be
used, or lines of the journal were lost (up); `run` ends with the agent's own code, 127 if it cannot be started.
"""


class Verbs(click.Group):
    """The group of all verbs, in the order people meet them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, loaded now; None when there is none of that name."""
        if cmd_name not in VERBS:
            return None
        command = getattr(import_module(VERBS[cmd_name][0]), f"{cmd_name}_command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name}_command is not a click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without loading one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


@click.group(cls=Verbs, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="interpose", message="%(prog)s %(version)s")
def interpose() -> None:
    """One policy between an AI agent and everything it touches.

    Start with `interpose demo`, then `interpose init` in your project and `interpose run -- claude` (or codex, gemini,
    opencode, any program).
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: runs the verb and exits with its code."""
    try:
        code = interpose.main(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except InterposeError as error:
        click.echo(f"interpose: {error}", err=True)
        code = exit_code(error)
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


def exit_code(error: InterposeError) -> int:
    """The documented code for what went wrong."""
    from interpose.contracts.errors import StorageError

    return 3 if isinstance(error, StorageError) else 2
