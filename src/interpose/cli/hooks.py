"""`interpose hooks`: which hooks judge here, and what is wrong with their files."""

from pathlib import Path

import click

from interpose.assembly.folders import canonical_root, user_folders
from interpose.assembly.runtime import Runtime
from interpose.assembly.workspaces import hook_files
from interpose.cli.output import console, counted, print_json
from interpose.contracts.json import Json
from interpose.effects.codec import effect_to_json
from interpose.userhooks.hooks import UserHook
from interpose.userhooks.loading import LoadedHooks, load_user_hooks
from interpose.userhooks.schema import hooks_schema_text


@click.group("hooks")
def hooks_command() -> None:
    """List and check the hooks that judge here."""


@hooks_command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per hook, for machines.")
def list_hooks(*, as_json: bool) -> None:
    """The hooks that judge in this folder, then the built-in guards."""
    loaded = _load()
    with Runtime.open() as runtime:
        guards = runtime.workspaces.policy(canonical_root(Path.cwd())).own
    if as_json:
        for hook in loaded.hooks:
            print_json(_described(hook))
        for guard in guards:
            print_json({"id": guard.id, "on": guard.hooks, "kind": guard.kind, "built_in": True})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("hook", "on", "what it does", "from"):
        table.add_column(heading, header_style="dim")
    for hook in loaded.hooks:
        table.add_row(hook.id, hook.on, _summary(hook), str(hook.source))
    for guard in guards:
        table.add_row(guard.id, ", ".join(guard.hooks), guard.description, "built in")
    out = console()
    if not loaded.hooks:
        out.print("no hooks of yours judge here; `interpose init` writes three useful ones")
    out.print(table)
    out.print('built-in ones are left out by `off = ["ID"]` under [guards] in config.toml', style="dim", markup=False)
    for issue in loaded.issues:
        out.print(f"problem {issue}", style="problem", markup=False)


@hooks_command.command("check")
def check() -> None:
    """Read the hook files for mistakes; exit code 1 when there is one."""
    loaded = _load()
    out = console()
    for issue in loaded.issues:
        out.print(str(issue), style="problem", markup=False)
    if any(issue.level == "error" for issue in loaded.issues):
        raise click.exceptions.Exit(1)
    active = sum(hook.enabled for hook in loaded.hooks)
    out.print(f"{counted(active, 'hook')} in force, no mistakes", style="allowed")


@hooks_command.command("schema")
def schema() -> None:
    """Print the JSON Schema of hooks.yaml, for editors."""
    click.echo(hooks_schema_text(), nl=False)


def _described(hook: UserHook) -> dict[str, Json]:
    return {
        "id": hook.id,
        "on": hook.on,
        "kind": hook.kind,
        "effect": effect_to_json(hook.effect),
        "tools": hook.tool_names,
        "command": hook.matchers.command,
        "path": hook.matchers.path,
        "mode": hook.mode,
        "enabled": hook.enabled,
        "origin": hook.source.origin,
        "source": str(hook.source),
        "hash": hook.hash,
    }


def _summary(hook: UserHook) -> str:
    """What it does, in a few words: its effect, what it looks for, and whether it only observes."""
    looks_for = [*hook.matchers.command, *hook.matchers.path] or list(hook.tool_names or ())
    words = hook.effect.kind + (f": {', '.join(looks_for)}" if looks_for else "")
    if not hook.enabled:
        return f"{words} (disabled)"
    return f"{words} (only observed)" if hook.mode == "observe" else words


def _load() -> LoadedHooks:
    folders = user_folders()
    root = canonical_root(Path.cwd())
    return load_user_hooks(hook_files(root, folders), root=root, home=str(folders.home))
