"""`interpose up`: the gateway in the foreground, one line per thing that happens."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from interpose import __version__
from interpose.assembly.folders import canonical_root, user_folders
from interpose.assembly.presence import Presence, announce, find_gateway, withdraw
from interpose.assembly.runtime import Runtime, gateway_settings
from interpose.assembly.settings import LOOPBACK, load_settings
from interpose.assembly.workspaces import WorkspacePolicy
from interpose.cli.feed import Feed
from interpose.cli.health import JournalWatch
from interpose.cli.output import console, in_force
from interpose.cli.serving import followed, serving
from interpose.cli.terminal import Prompt, Typed, may_prompt, prompting
from interpose.contracts.errors import ConfigError
from interpose.gateway.upstream import proxy_faults
from interpose.gateway.workers import WorkerPool
from interpose.launch.pointing import hint_lines
from interpose.trust.approvals import Watch

JUDGED = "Anthropic messages, OpenAI chat completions and responses, and Gemini are judged"


@click.command("up")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port (default 4747; 0 takes a free one).")
@click.option("--workers", type=click.IntRange(1, 64), help="Serve with so many processes (default 1).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, for machines.")
def up_command(*, port: int | None, workers: int | None, as_json: bool) -> int:
    """Start the gateway for this folder and show what happens. Ctrl-C lets running replies end, then stops.

    On a terminal it also asks about calls that wait for your yes.
    """
    out = console()
    asks = may_prompt() and not as_json
    feed = Feed(out, as_json=as_json, asks=asks)
    root = canonical_root(Path.cwd())
    settings = load_settings(user_folders())
    number = workers or settings.file.gateway.workers
    watch = JournalWatch(feed.say_health)
    listener = feed.hear_all if number == 1 else None
    with Runtime.open(settings=settings, listener=listener, on_health=watch.hear) as runtime:
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
        tell_cut = partial(_tell_cut, runtime, feed)
        with (
            _stop_signals() as stopped,
            nullcontext() if number == 1 else followed(runtime, feed),
            serving(runtime, watch, host=gateway.host, port=wanted, workers=number, on_cut=tell_cut) as server,
            runtime.approvals.watching("terminal of up") if asks else nullcontext() as watching,
        ):
            if watching is not None:
                watching.beat()
            announce(runtime.folders, Presence(os.getpid(), server.url, __version__))
            feed.start(server.url, server.listens, root, f"{server.url}/l/{secret}")
            if not as_json:
                _greet(out, server.listens, root, policy, f"{server.url}/l/{secret}")
            for fault in proxy_faults(gateway_settings(runtime.settings, host=gateway.host).upstreams):
                feed.say(f"problem {fault}")
            if gateway.host not in LOOPBACK:
                feed.say(_beyond(server.listens, server.url))
            watch.start()
            try:
                with _questions(runtime, out, feed, watching) if watching else nullcontext():
                    stopped.wait()
            finally:
                withdraw(runtime.folders, os.getpid())
            runtime.approvals.stop(server.pids if isinstance(server, WorkerPool) else ())
            feed.say(f"stopping: running replies have {gateway.drain_s:g} s to end (Ctrl-C again stops at once)")
        watch.close()
    watch.hear(runtime.stored.health)
    loss = watch.loss()
    if loss is not None:
        feed.say_health(*loss)
    feed.say("stopped")
    return 3 if loss else 0


def _questions(runtime: Runtime, out: Console, feed: Feed, watching: Watch) -> AbstractContextManager[None]:
    """Asks at this terminal what this gateway, its workers, programs and other gateways want to know."""
    typed = Typed(sys.stdin.fileno())
    return prompting(Prompt(runtime.approvals, runtime.clock, out, typed, watching, feed=feed))


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


def _tell_cut(runtime: Runtime, feed: Feed, replies: int) -> None:
    """Tells how many replies did not end in time, behind what the journal tells of each."""
    runtime.journal.flush()
    told = "1 running reply was" if replies == 1 else f"{replies} running replies were"
    drain_s = runtime.settings.file.gateway.drain_s
    feed.say(f"{told} cut off after {drain_s:g} s (drain_s under [gateway] makes it longer)")


def _beyond(listens: str, url: str) -> str:
    """What is told of an address that others reach."""
    told = f"listens at {listens}, beyond this machine, for launches and clients with a token only"
    if listens == url:
        return told
    return f"{told}: others reach it as http://{socket.gethostname()}:{url.rpartition(':')[2]}, this machine as {url}"


def _greet(out: Console, listens: str, root: str, policy: WorkspacePolicy, base_url: str) -> None:
    out.print(f"[name]interpose[/name] {__version__} · {listens} · {root}")
    out.print(in_force(policy) + " (hooks run without approval)")
    for issue in policy.issues:
        out.print(f"problem {issue}", style="problem", markup=False)
    if not policy.loaded.hooks and not policy.issues:
        out.print("`interpose init` writes three useful hooks")
    out.print(JUDGED)
    out.print()
    out.print("Run an agent through it: [name]interpose run -- claude[/name] (codex, gemini, opencode, any program)")
    out.print("or point one yourself; these addresses belong to this folder:")
    for hint in hint_lines(base_url):
        out.print(f"  {hint.name:<14} {hint.line}", markup=False)
    out.print()
