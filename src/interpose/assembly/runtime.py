"""Everything that runs in one process, opened together and closed together."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Self

from interpose.assembly.folders import Folders, user_folders
from interpose.assembly.handlers import Shapes
from interpose.assembly.lineup import agents_lineup
from interpose.assembly.settings import LOOPBACK, Settings, load_settings
from interpose.assembly.upstreams import targets
from interpose.assembly.workspaces import Parts, Workspaces
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.journal import Record
from interpose.contracts.ports import Approvals, Journal
from interpose.gateway.app import Gateway
from interpose.gateway.metrics import MeteredJournal, Metrics
from interpose.gateway.sessions import SqliteLedgers
from interpose.gateway.settings import LOOPBACK_HOSTS, GatewaySettings, Upstreams
from interpose.gateway.tracing import open_tracing
from interpose.guards.loop import LOOP_ID
from interpose.guards.protection import SqliteProtectionStore
from interpose.journal.fanout import Relay
from interpose.journal.health import Health
from interpose.journal.sqlite import SqliteJournal
from interpose.kernel.clock import SystemClock
from interpose.kernel.ids import random_id
from interpose.launch.pause import SqlitePause
from interpose.launch.store import SqliteLaunches
from interpose.trust.approvals import SqliteApprovals


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of one process. Close it, or use it as a context manager: what was journalled is then on disk."""

    folders: Folders
    settings: Settings
    clock: SystemClock
    stored: SqliteJournal
    journal: Journal
    launches: SqliteLaunches
    pause: SqlitePause
    protection: SqliteProtectionStore
    approvals: SqliteApprovals
    ledgers: SqliteLedgers
    shapes: Shapes
    workspaces: Workspaces
    metrics: Metrics

    @classmethod
    def open(
        cls,
        folders: Folders | None = None,
        *,
        settings: Settings | None = None,
        listener: Callable[[Sequence[bytes]], None] | None = None,
        on_health: Callable[[Health], None] | None = None,
        watch_loops: bool = True,
        metrics: Metrics | None = None,
        asks: bool = True,
        asked: Approvals | None = None,
        handlers: Iterable[ShapeHandler] = (),
    ) -> Self:
        """Opens journal and state under `folders`.

        `listener` is told each record, packed and masked, on a thread of its own; what it raises changes nothing.
        `on_health` is told when the journal cannot be written: it must not wait. `watch_loops` off leaves the loop
        guard out, for programs that are no agents. `metrics` count what is journalled. What no handler can tell is put
        to a person at a terminal that shows questions, unless `asks` is off; `asked`, where it is given, is asked in
        any case. `handlers` shape in every workspace, with those of the user's own files, which are read when the first
        policy or a gateway is made.
        Raises StorageError when the state folder or a file in it cannot be used, ConfigError for a bad setting.
        """
        folders = folders or user_folders()
        settings = settings or load_settings(folders)
        clock, metrics = SystemClock(), metrics or Metrics()
        stored = _journal(folders, clock, listener, partial(_tell_health, metrics, on_health))
        journal = MeteredJournal(stored, metrics)
        launches = SqliteLaunches(folders.state_db, clock=clock)
        pause = SqlitePause(folders.state_db, clock=clock)
        protection = SqliteProtectionStore(folders.state_db)
        approvals = SqliteApprovals(folders.state_db, clock=clock, journal=journal)
        ledgers = SqliteLedgers(folders.state_db, clock=clock, lost=_Lost(journal, clock))
        off = frozenset(settings.file.guards.off) | (frozenset() if watch_loops else {LOOP_ID})
        lineup = agents_lineup(folders, protection, journal, clock, off=off)
        parts = Parts(
            folders=folders,
            journal=journal,
            clock=clock,
            pause=pause,
            lineup=lineup,
            approvals=asked or (approvals if asks else None),
            ask_timeout_s=settings.file.gateway.ask_timeout_s,
            shapes=Shapes(handlers, settings.file.handlers.files, folders, journal, clock),
        )
        return cls(
            folders,
            settings,
            clock,
            stored,
            journal,
            launches,
            pause,
            protection,
            approvals,
            ledgers,
            parts.shapes,
            Workspaces(parts),
            metrics,
        )

    def gateway(self, *, host: str = "127.0.0.1", parent_pid: int | None = None) -> Gateway:
        """A gateway over these parts, for a server at `host`; it opens its connections when the server starts it.

        `parent_pid` makes it one of several workers of that process. Raises ConfigError when a key or a file that the
        settings name is not there, or gives no handler.
        """
        self.shapes.table()
        told = gateway_settings(self.settings, host=host)
        return Gateway(
            replace(told, process_id=parent_pid),
            workspaces=self.workspaces,
            launches=self.launches,
            journal=self.journal,
            clock=self.clock,
            metrics=self.metrics,
            tracing=open_tracing() if self.settings.file.gateway.traces else None,
            ledgers=self.ledgers,
        )

    def close(self) -> None:
        """Withdraws what waits for a person, commits what was journalled, and closes the files. Idempotent."""
        self.approvals.close()
        self.ledgers.close()
        self.stored.close()
        self.launches.close()
        self.pause.close()
        self.protection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _Lost:
    """Journals that a part of a session's history is not kept for the next process."""

    journal: Journal
    clock: SystemClock

    def __call__(self, reason: str) -> None:
        self.journal.write(Record(self.clock.now(), random_id("a"), "problem", outcome="failed", reason=reason))


def _journal(
    folders: Folders,
    clock: SystemClock,
    listener: Callable[[Sequence[bytes]], None] | None,
    on_health: Callable[[Health], None],
) -> SqliteJournal:
    relay = Relay(listener) if listener else None
    return SqliteJournal(folders.journal_db, clock=clock, relay=relay, on_health=on_health)


def _tell_health(metrics: Metrics, on_health: Callable[[Health], None] | None, health: Health) -> None:
    metrics.journal_stands(is_written=health.fault is None, waiting=health.waiting, lost=health.lost)
    if on_health is not None:
        on_health(health)


def gateway_settings(settings: Settings, *, host: str, environ: Mapping[str, str] = os.environ) -> GatewaySettings:
    """What the file says, as the gateway is told it. Raises ConfigError when a key or a file is not there.

    At an address that others reach, everybody needs a token, and then the name that they call it by does not matter.
    """
    section = settings.file.gateway
    own = settings.file.upstreams
    upstreams = Upstreams(own.anthropic, own.openai, own.gemini)
    is_local = host in LOOPBACK
    return GatewaySettings(
        upstreams=replace(upstreams, targets=targets(settings.tables, upstreams, settings.source, environ)),
        clients={name: digest.removeprefix("sha256:") for name, digest in section.clients.items()},
        demands_token=not is_local,
        allowed_hosts=LOOPBACK_HOSTS if is_local else None,
        unjudged_paths="refuse" if section.unjudged_paths == "refuse" else "pass",
        on_refusal="tell" if section.on_refusal == "tell" else "continue",
        body_bytes=section.body_bytes,
        body_timeout_s=section.body_timeout_s,
        streams_max=section.streams_max,
        proxies_from_environment=True,
    )
