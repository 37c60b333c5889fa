"""`interpose init`: the first hooks of a project."""

from pathlib import Path

import click

from interpose.assembly.folders import PROJECT_FOLDER, canonical_root
from interpose.cli.output import console
from interpose.contracts.errors import ConfigError
from interpose.userhooks.schema import hooks_schema_text
from interpose.userhooks.starter import STARTER


@click.command("init")
@click.option("--force", is_flag=True, help="Replace a hooks.yaml that is already there.")
def init_command(*, force: bool) -> None:
    """Write a commented .interpose/hooks.yaml with three useful rules into this folder."""
    folder = Path.cwd() / PROJECT_FOLDER
    hooks = folder / "hooks.yaml"
    out = console()
    if hooks.exists() and not force:
        raise click.UsageError(f"{hooks} is already there; edit it, or replace it with `interpose init --force`")
    outer = canonical_root(Path.cwd())
    try:
        folder.mkdir(exist_ok=True)
        hooks.write_text(STARTER, encoding="utf-8")
        (folder / "hooks.schema.json").write_text(hooks_schema_text(), encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            str(hooks), f"cannot be written: {error.strerror}", "look at the folder's owner and mode"
        ) from error
    out.print(f"[allowed]wrote[/allowed] {hooks.relative_to(Path.cwd())} (and its schema, for your editor)")
    out.print("  · no-recursive-delete   refuses rm -r and its like")
    out.print("  · protect-secrets       keeps .env files and keys out of reach")
    out.print("  · remind-tests          reminds the model to run the tests")
    if outer != str(Path.cwd().resolve()):
        out.print(f"[note]note[/note] this folder is now a workspace of its own inside {outer}")
    out.print()
    out.print("Next:")
    out.print("  [name]interpose run -- claude[/name]   run an agent through it (codex, gemini, opencode, any program)")
    out.print("  [name]interpose up[/name]              or start the gateway and point an agent yourself")
    out.print("  [name]interpose doctor[/name]          prove that judging works")
    out.print(
        "Edit the file whenever you like: a change counts at once. `interpose hooks check` reads it for mistakes."
    )
