"""`interpose doctor`: a call that must be refused goes the whole way, and each part is looked at on the way."""

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import click

from interpose.assembly.folders import Folders, canonical_root, user_folders
from interpose.assembly.presence import find_gateway
from interpose.assembly.runtime import Runtime
from interpose.assembly.settings import load_settings
from interpose.cli.output import console, counted, in_force, print_json
from interpose.contracts.errors import InterposeError
from interpose.effects.budget import settings_from_environment
from interpose.gateway.server import ThreadedServer
from interpose.guards.canary import CANARY_REASON, CANARY_TOOL
from interpose.guards.settings import guard_settings
from interpose.journal.query import Filter, JournalReader
from interpose.testing.upstream import Reply, ScriptedUpstream, Text, ToolUse

DOCTOR = "doctor"
"""What the doctor's own launches are called; its canary is no refusal that people ask about."""

ASK_TIMEOUT_S = 10.0
JOURNAL_S = 2.0
"""How long another process may take to commit a line; it hands lines over every few milliseconds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: `way_out` says what to do when it is not well."""

    name: str
    well: bool
    text: str
    way_out: str = ""


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per finding, for machines.")
def doctor_command(*, as_json: bool) -> None:
    """Prove that judging works: send a call that must be refused. Exit code 1 when something is wrong."""
    findings = list(_examine(user_folders(), canonical_root(Path.cwd())))
    out = console()
    for finding in findings:
        if as_json:
            print_json({"name": finding.name, "well": finding.well, "text": finding.text, "way_out": finding.way_out})
            continue
        mark = "[allowed]✓[/allowed]" if finding.well else "[refused]✗[/refused]"
        out.print(f"{mark} {finding.name:<9} {finding.text}")
        if finding.way_out:
            out.print(f"  {finding.way_out}", style="note", markup=False)
    if not all(finding.well for finding in findings):
        raise click.exceptions.Exit(1)


def _examine(folders: Folders, root: str) -> Iterator[Finding]:
    settings = _guarded("settings", lambda: _settings(folders))
    yield settings
    if not settings.well:
        return
    storage = _guarded("storage", lambda: _storage(folders))
    yield storage
    if not storage.well:
        return
    with Runtime.open(folders) as runtime:
        yield _hooks(runtime, root)
        switch = _switch(runtime, root)
        yield switch
        if switch.well:  # while judging is off the canary would pass, as everything does
            yield _guarded("canary", lambda: _canary(runtime, root))


def _guarded(name: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except (InterposeError, OSError, HTTPException, ValueError) as error:
        return Finding(name, False, str(error))


def _settings(folders: Folders) -> Finding:
    settings = load_settings(folders)
    ignored = (*settings_from_environment(os.environ)[1], *guard_settings(os.environ)[1])
    if ignored:
        told = "; ".join(f"{one.variable}={one.value[:40]!r} is ignored" for one in ignored)
        return Finding("settings", False, told, f"expected {ignored[0].expected}")
    changed = sum(origin != "default" for _, _, origin in settings.rows())
    return Finding("settings", True, f"read; {changed} differ from the defaults")


def _storage(folders: Folders) -> Finding:
    Runtime.open(folders).close()
    if stat.S_IMODE(folders.state.stat().st_mode) & 0o077:
        return Finding("storage", False, f"{folders.state} is open to others", f"chmod 700 {folders.state}")
    for path in (folders.journal_db, folders.state_db):
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            return Finding("storage", False, f"{path} can be read by others", f"chmod 600 {path}")
    free = os.statvfs(folders.state)
    if free.f_bavail * free.f_frsize < 50 * 1024 * 1024:
        return Finding("storage", False, f"less than 50 MB are free at {folders.state}", "make room on that disk")
    return Finding("storage", True, f"{folders.state} is ours alone and can be written")


def _hooks(runtime: Runtime, root: str) -> Finding:
    policy = runtime.workspaces.policy(root)
    mistakes = sum(issue.level == "error" for issue in policy.issues)
    if mistakes:
        return Finding("hooks", False, f"{counted(mistakes, 'mistake')} in the hook files", "interpose hooks check")
    if not policy.loaded.hooks:
        return Finding("hooks", True, "none judge here", "interpose init writes three useful ones")
    return Finding("hooks", True, f"{in_force(policy)} in {root}, without approval")


def _switch(runtime: Runtime, root: str) -> Finding:
    if runtime.pause.is_off(root):
        return Finding("switch", False, "judging is switched off here", "interpose on")
    return Finding("switch", True, "judging is on")


def _canary(runtime: Runtime, root: str) -> Finding:
    """The call goes through the gateway that runs, or one of our own, and comes from a scripted model."""
    script = [Reply(Text("canary"), ToolUse(CANARY_TOOL, {})), Reply(Text("canary"))]  # it is told of the refusal
    with (
        ScriptedUpstream(script) as upstream,
        _gateway_url(runtime) as (url, whose),
    ):
        launch, secret = runtime.launches.register(workspace=root, agent=DOCTOR, upstream=upstream.url)
        reply = _ask(f"{url}/l/{secret}")
        runtime.journal.flush()
    with closing(JournalReader(runtime.folders.journal_db)) as reader:
        journalled = reader.follow(0, Filter(launch=launch.id, step="verdict", outcome="refused"), wait_s=JOURNAL_S)
    text = json.dumps(reply)
    if CANARY_TOOL in str([block for block in reply.get("content", []) if block.get("type") == "tool_use"]):
        return Finding("canary", False, f"the call was not refused by {whose}", "interpose journal --last 5")
    if CANARY_REASON not in text:
        return Finding("canary", False, f"the reply of {whose} does not say why the call was refused: {text[:200]}")
    if not journalled:
        return Finding("canary", False, f"refused by {whose}, but not journalled", "is its state folder another one?")
    return Finding("canary", True, f"a call that must be refused was refused by {whose} and journalled")


@contextmanager
def _gateway_url(runtime: Runtime) -> Iterator[tuple[str, str]]:
    running = find_gateway(runtime.folders)
    if running is not None:
        yield running.url, f"the gateway at {running.url}"
        return
    with ThreadedServer(runtime.gateway(), host="127.0.0.1", port=0) as server:
        yield server.url, "a gateway started for this"


def _ask(base_url: str) -> dict[str, Any]:
    body = {"model": "canary", "max_tokens": 16, "messages": [{"role": "user", "content": "canary"}]}
    request = Request(  # noqa: S310 - a loopback address of ours
        f"{base_url}/v1/messages",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "x-api-key": "canary", "anthropic-version": "2023-06-01"},
    )
    with build_opener(ProxyHandler({})).open(request, timeout=ASK_TIMEOUT_S) as answer:
        read = json.load(answer)
    return read if isinstance(read, dict) else {}
