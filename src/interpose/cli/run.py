"""`interpose run -- COMMAND…`: one agent through the gateway."""

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from interpose.assembly.folders import canonical_root
from interpose.assembly.handlers import project_fault
from interpose.assembly.presence import find_gateway
from interpose.assembly.runtime import Runtime
from interpose.cli.health import lost_lines
from interpose.cli.output import console, in_force
from interpose.contracts.errors import StorageError
from interpose.gateway.app import bound_to
from interpose.gateway.server import ThreadedServer
from interpose.journal.query import Filter, JournalReader
from interpose.launch.files import notes_on_files, settings_dir, write_files
from interpose.launch.pointing import point, recognise
from interpose.launch.runner import run_agent

JOURNAL_S = 0.05
"""A gateway in another process commits its last lines within this time."""


@dataclass(frozen=True, slots=True)
class _Reached:
    base_url: str
    launch_id: str


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--own-port", is_flag=True, help="For a client that takes no path: a port that belongs to this launch.")
@click.option("--quiet", is_flag=True, help="Say nothing of our own.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run_command(*, own_port: bool, quiet: bool, command: tuple[str, ...]) -> int:
    """Run an agent through the gateway, as in: interpose run -- claude -p "tidy up".

    Uses the gateway of `interpose up` if one runs, else starts its own for as long as the agent runs. Knows how to
    point Claude Code, Codex, Gemini CLI and opencode; any other program gets the SDK variables. Writes into none of
    the agent's own files, and ends with the agent's exit code.
    """
    words = list(command)
    fault = project_fault(canonical_root(Path.cwd()))
    if fault is not None:
        raise fault
    with Runtime.open() as runtime, _reached(runtime, words, own_port=own_port) as reached:
        settings = settings_dir(runtime.folders.agents, os.environ)
        pointing = point(words, reached.base_url, os.environ, settings)
        write_files(pointing.files)
        notes = console(stderr=True)
        if not quiet:
            policy = runtime.workspaces.policy(canonical_root(Path.cwd()))
            notes.print(f"interpose: {in_force(policy)}", style="dim")
            for issue in policy.issues:
                notes.print(f"interpose: problem {issue}", style="problem", markup=False)
            for note in (*pointing.notes, *notes_on_files(pointing.files), *_note_on_questions(runtime)):
                notes.print(f"interpose: {note}", style="dim", markup=False)
        ended = run_agent(pointing.argv, {**os.environ, **pointing.env, "INTERPOSE_LAUNCH": reached.launch_id})
        if ended.message is not None:
            notes.print(f"interpose: {ended.message}", markup=False)
        runtime.journal.flush()
        if not quiet:
            _summarise(runtime, reached.launch_id, notes)
    health = runtime.stored.health
    if health.missing:
        notes.print(f"interpose: {lost_lines(health.missing, health.fault)}", style="problem", markup=False)
    return ended.code


@contextmanager
def _reached(runtime: Runtime, words: list[str], *, own_port: bool) -> Iterator[_Reached]:
    """A base URL that belongs to this launch, on the gateway that runs or on one of our own."""
    cwd = Path.cwd()
    launch, secret = runtime.launches.register(
        workspace=canonical_root(cwd), agent=recognise(words), cwd=str(cwd.resolve())
    )
    running = None if own_port else find_gateway(runtime.folders)
    if running is not None:
        yield _Reached(f"{running.url}/l/{secret}", launch.id)
        return
    gateway = runtime.gateway()
    app = bound_to(gateway, secret) if own_port else gateway
    with ThreadedServer(app, host="127.0.0.1", port=0, on_refused=gateway.refused) as server:
        yield _Reached(server.url if own_port else f"{server.url}/l/{secret}", launch.id)


def _note_on_questions(runtime: Runtime) -> tuple[str, ...]:
    """The agent has this terminal, so questions are answered at another."""
    if runtime.approvals.can_ask():
        return ()
    return ("calls that need your yes are refused unless another terminal runs `interpose approvals watch`",)


def _summarise(runtime: Runtime, launch_id: str, notes: Console) -> None:
    time.sleep(JOURNAL_S)
    try:
        with closing(JournalReader(runtime.folders.journal_db)) as reader:
            verdicts = reader.find(Filter(launch=launch_id, step="verdict"), limit=-1)
            passed = reader.find(Filter(launch=launch_id, step="skipped", outcome="unjudged"), limit=-1)
    except (StorageError, ValueError) as error:  # a damaged row is no JSON
        notes.print(f"interpose: what was judged cannot be told: {error}", style="problem", markup=False)
        return
    if not verdicts and not passed:
        return
    refused = sum(stored.record.outcome == "refused" for stored in verdicts)
    said = f"{len(verdicts)} judged, {refused} refused" + (f", {len(passed)} passed unjudged" if passed else "")
    notes.print(f"interpose: {said} · interpose journal --launch {launch_id}", style="dim")
