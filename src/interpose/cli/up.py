"""`interpose up`: the gateway in the foreground, one line per thing that happens."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from interpose import __version__
from interpose.assembly.folders import canonical_root
from interpose.assembly.presence import Presence, announce, find_gateway, withdraw
from interpose.assembly.runtime import Runtime
from interpose.cli.feed import Feed
from interpose.cli.output import console
from interpose.contracts.errors import ConfigError
from interpose.gateway.server import ThreadedServer
from interpose.launch.pointing import hint_lines
from interpose.userhooks.loading import LoadedHooks

NOT_JUDGED_YET = "OpenAI responses and Gemini pass through, not judged yet"


@click.command("up")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port (default 4747; 0 takes a free one).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, for machines.")
def up_command(*, port: int | None, as_json: bool) -> None:
    """Start the gateway for this folder and show what happens. Ctrl-C lets running replies end, then stops."""
    out = console()
    feed = Feed(out, as_json=as_json)
    root = canonical_root(Path.cwd())
    with Runtime.open(listener=feed.hear) as runtime:
        policy = runtime.workspaces.policy(root)
        gateway = runtime.settings.file.gateway
        running = find_gateway(runtime.folders)
        wanted = gateway.port if port is None else port
        if running is not None and running.url.endswith(f":{wanted}"):
            raise ConfigError(
                f"port {wanted}",
                f"an interpose gateway already listens there (process {running.pid})",
                "use it, end it, or take another port with --port 0",
            )
        _, secret = runtime.launches.register(workspace=root, cwd=str(Path.cwd()))
        with (
            _stop_signals() as stopped,
            ThreadedServer(runtime.gateway(host=gateway.host), host=gateway.host, port=wanted) as server,
        ):
            announce(runtime.folders, Presence(os.getpid(), server.url, __version__))
            feed.start(server.url, root, f"{server.url}/l/{secret}")
            if not as_json:
                _greet(out, server.url, root, policy.loaded, f"{server.url}/l/{secret}")
            try:
                stopped.wait()
            finally:
                withdraw(runtime.folders, os.getpid())
            feed.say("stopping: running replies may end (Ctrl-C again stops at once)")
        feed.say("stopped")


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that the first SIGINT or SIGTERM sets; the second one ends the process at once."""
    stopped = threading.Event()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if stopped.is_set():
            os._exit(128 + number)
        stopped.set()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _greet(out: Console, url: str, root: str, loaded: LoadedHooks, base_url: str) -> None:
    out.print(f"[name]interpose[/name] {__version__} · {url} · {root}")
    count = len(loaded.hooks)
    where = "" if count else "; `interpose init` writes three useful ones"
    out.print(f"{count} {'hook' if count == 1 else 'hooks'} in force (hooks run without approval){where}")
    for issue in loaded.issues:
        out.print(f"[problem]problem[/problem] {issue}", markup=True)
    out.print(f"Anthropic messages and OpenAI chat completions are judged; {NOT_JUDGED_YET}")
    out.print()
    out.print("Run an agent through it: [name]interpose run -- claude[/name] (codex, gemini, opencode, any program)")
    out.print("or point one yourself; these addresses belong to this folder:")
    for hint in hint_lines(base_url):
        out.print(f"  {hint.name:<14} {hint.line}", markup=False)
    out.print()
