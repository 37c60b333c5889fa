"""The gateway as a bare ASGI application.

Knows: who may speak to it, launch prefixes, sessions, which way a request goes.
Does not know: what is done with a request, which server runs it.
"""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from interpose import __version__
from interpose.contracts.journal import Record
from interpose.contracts.ports import Clock, Journal, Launch, Launches, Workspaces
from interpose.gateway.admission import Admission, Admitted, TurnedAway
from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import ApiName
from interpose.gateway.asgi import NEARBY, App, Incoming, Outgoing, Receive, Scope, Send
from interpose.gateway.chat import CHAT
from interpose.gateway.exchange import Exchange
from interpose.gateway.faults import error_body
from interpose.gateway.gemini import GEMINI
from interpose.gateway.identity import identity_of
from interpose.gateway.kept import LedgerStore
from interpose.gateway.ledger import Ledger
from interpose.gateway.load import Load
from interpose.gateway.metrics import CONTENT_TYPE, Metrics
from interpose.gateway.paths import decoded_path, oddity_of, plain_front, raw_path_of
from interpose.gateway.policies import Policies
from interpose.gateway.recent import Recent
from interpose.gateway.refusals import Refusals
from interpose.gateway.responses import RESPONSES
from interpose.gateway.routes import Headers, Route, agent_of, route_of, session_of, split_launch
from interpose.gateway.settings import PROVIDERS, GatewaySettings
from interpose.gateway.tracing import NoTracing, Tracing
from interpose.gateway.upstream import Upstream, joined_url
from interpose.gateway.visit import Parts, Visit
from interpose.kernel.boundary import fault_line, guarded_async
from interpose.kernel.ids import random_id
from interpose.wire.jsonbytes import write_json

HEALTH_PATH = b"/healthz"
READY_PATH = b"/readyz"
METRICS_PATH = b"/metrics"
_OPEN_PATHS = (HEALTH_PATH, READY_PATH)
"""Paths for whoever watches the process; they tell nothing about what it does."""

ROUTES_MAX = 256
"""Of so many paths it is remembered what they are."""

_JSON = (b"content-type", b"application/json")
_NO_HEADERS = Headers(())


class Gateway:
    """One gateway; give it to a server that sends lifespan events. All its requests belong to that server's loop."""

    def __init__(
        self,
        settings: GatewaySettings,
        *,
        workspaces: Workspaces,
        launches: Launches,
        journal: Journal,
        clock: Clock,
        metrics: Metrics | None = None,
        tracing: Tracing | None = None,
        ledgers: LedgerStore | None = None,
        load: Load | None = None,
    ) -> None:
        """`ledgers` keep what edits histories for the next process; without them it ends with this one."""
        self._metrics = metrics or Metrics()
        self._admission = Admission(settings, launches)
        self._open = 0
        self._routes: Recent[tuple[str, bytes], Route] = Recent(ROUTES_MAX)
        self.refused = Refusals(journal, clock, self._metrics).hear
        """For the server's `on_refused`: connections that end before they ask anything are counted and journalled."""
        self._parts = Parts(
            settings=settings,
            policies=Policies(workspaces),
            journal=journal,
            clock=clock,
            upstream=Upstream(trust_env=settings.proxies_from_environment),
            ledger=Ledger(ledgers),
            codecs={codec.api: codec for codec in (ANTHROPIC, CHAT, RESPONSES, GEMINI)},
            tracing=tracing or NoTracing(),
            load=load or Load(),
        )

    def cut(self) -> None:
        """For the server's `on_cut`: open replies end, and their clients are told. Call it on the server's loop."""
        self._parts.upstream.cut()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's entry: lifespan and http. A WebSocket, should the server offer one, is closed at once."""
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                await self._visited(scope, receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1008})

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self._parts.upstream.open()
                await send({"type": "lifespan.startup.complete"})
                continue
            await self._parts.upstream.close()
            await asyncio.to_thread(self._parts.tracing.close)
            await send({"type": "lifespan.shutdown.complete"})
            return

    async def _visited(self, scope: Scope, receive: Receive, send: Send) -> None:
        settings = self._parts.settings
        headers = Headers.of(scope["headers"])
        secret, raw_path = split_launch(raw_path_of(scope.get("raw_path"), scope["path"]))
        raw_path = plain_front(raw_path)
        nearby = scope.get("extensions", {}).get(NEARBY)
        outgoing = Outgoing(send, nearby if getattr(send, "__self__", None) is nearby else None)
        if secret is None and raw_path in _OPEN_PATHS:
            await self._tell_health(outgoing, raw_path, headers)
            return

        method = scope["method"]
        route = self._known_route(method, raw_path)
        oddity = None if route is not None else oddity_of(raw_path)
        query = scope.get("query_string", b"")
        admitted = self._admitted(headers, query, secret, oddity)
        launch = admitted.launch
        agent = (launch.agent if launch else None) or agent_of(headers)
        if route is None:
            read = partial(route_of, method, headers=headers, agent=agent, query=query)
            route = self._route(raw_path, read, launch)
        if isinstance(admitted, TurnedAway):
            await self._refuse(outgoing, route.api, admitted)
            return
        if secret is None and raw_path == METRICS_PATH:
            await outgoing.whole(200, [(b"content-type", CONTENT_TYPE)], self._metrics.text())
            return
        if self._open >= settings.streams_max:
            busy = TurnedAway(503, f"interpose serves {settings.streams_max} requests at once; try again", launch)
            await self._refuse(outgoing, route.api, busy)
            return

        identity = identity_of(headers, launch)
        visit = Visit(
            action=random_id("r", 10),
            route=route,
            method=method,
            raw_path=raw_path,
            query=admitted.query,
            headers=admitted.headers,
            identity=identity,
            launch=launch,
            agent=agent,
            span=self._parts.tracing.started(route, headers, identity.session),
            names_session=session_of(headers) is not None,
        )
        incoming = Incoming(receive, settings.body_timeout_s, nearby)
        self._open += 1
        self._metrics.opened(1)
        try:
            await Exchange(self._parts, visit, incoming, outgoing).run()
        finally:
            self._open -= 1
            self._metrics.opened(-1)

    def _known_route(self, method: str, raw_path: bytes) -> Route | None:
        """What a plain path is that is judged whoever asks; None for every other. Each is looked at once."""
        key = (method, raw_path)
        known = self._routes.get(key)
        if known is None and method == "POST" and oddity_of(raw_path) is None:
            route = route_of(method, decoded_path(raw_path), _NO_HEADERS, None)
            if route.kind == "judged":
                self._routes.put(key, route)
                return route
        return known

    def _admitted(
        self, headers: Headers, query: bytes, secret: str | None, oddity: str | None
    ) -> Admitted | TurnedAway:
        if oddity is not None:
            return TurnedAway(400, f"interpose refuses paths that two servers may read differently: {oddity}")
        return self._admission.admit(headers, query, secret)

    def _route(self, raw_path: bytes, read: Callable[[str], Route], launch: Launch | None) -> Route:
        """What a request is, by its path here and by the one that it gets upstream, which a base URL may complete.

        `read` tells what it is at a path.
        """
        route = read(decoded_path(raw_path))
        if route.kind == "judged":
            return route
        for base in self._base_urls(route.api, launch):
            path = decoded_path(urlsplit(joined_url(base, raw_path, b"")).path.encode())
            joined = read(path)
            if joined.kind == "judged":
                return joined
        return route

    def _base_urls(self, api: ApiName, launch: Launch | None) -> set[str]:
        """Where a request may go: a launch's own upstream, else any of its provider's."""
        if launch is not None and launch.upstream:
            return {launch.upstream}
        upstreams = self._parts.settings.upstreams
        provider = PROVIDERS[api]
        return {upstreams.own(provider).base_url} | {
            target.base_url for target in upstreams.targets if target.api == provider
        }

    async def _tell_health(self, outgoing: Outgoing, path: bytes, headers: Headers) -> None:
        """`/healthz`: the process answers. `/readyz`: it can judge too; 503 and the reason where it cannot.

        A journal that cannot be written is told, and no reason to send agents away: they are judged all the same.
        """
        stranger = self._admission.stranger(headers)
        if stranger is not None:
            await self._refuse(outgoing, "chat", stranger)
            return
        parts = self._parts
        health = {"name": "interpose", "version": __version__, "pid": parts.settings.process_id or os.getpid()}
        fault: str | None = None
        if path == READY_PATH:
            fault = await guarded_async(self._ready, failure=fault_line)
            health["ready"] = fault is None
            health["journal"] = self._metrics.journal()._asdict()
        if fault is not None:
            health["reason"] = fault
        await outgoing.whole(200 if fault is None else 503, [_JSON], write_json(health))

    async def _ready(self) -> str | None:
        await self._parts.policies.of(None)
        return None

    async def _refuse(self, outgoing: Outgoing, api: ApiName, turned_away: TurnedAway) -> None:
        parts = self._parts
        launch = turned_away.launch
        parts.journal.write(
            Record(
                at=parts.clock.now(),
                action=random_id("r", 10),
                step="failed",
                mount="wire",
                launch=launch.id if launch else "",
                outcome="turned_away",
                reason=turned_away.reason,
                data={"api": api, "status": turned_away.status},
            )
        )
        body = error_body(api, turned_away.status, turned_away.reason)
        headers = [_JSON, (b"retry-after", b"1")] if turned_away.status == 503 else [_JSON]
        await outgoing.whole(turned_away.status, headers, body)


def bound_to(app: App, secret: str) -> App:
    """The gateway as one launch sees it, for a client that takes no path: every request belongs to that launch."""
    prefix = f"/l/{secret}"

    async def bound(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw_path = raw_path_of(scope.get("raw_path"), scope["path"])
            scope = {**scope, "path": prefix + scope["path"], "raw_path": prefix.encode() + raw_path}
        await app(scope, receive, send)

    return bound
