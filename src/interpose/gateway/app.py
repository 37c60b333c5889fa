"""The gateway as a bare ASGI application.

Knows: who may speak to it, launch prefixes, sessions, which way a request goes.
Does not know: what is done with a request, which server runs it.
"""

import os

from interpose import __version__
from interpose.contracts.journal import Record
from interpose.contracts.ports import Clock, Journal, Launch, Launches, Workspaces
from interpose.gateway.anthropic import AnthropicCodec
from interpose.gateway.api import ApiName
from interpose.gateway.asgi import App, Incoming, Outgoing, Receive, Scope, Send
from interpose.gateway.chat import ChatCodec
from interpose.gateway.exchange import Exchange, Parts, Visit
from interpose.gateway.faults import error_body
from interpose.gateway.ledger import Ledger
from interpose.gateway.routes import Headers, agent_of, host_name, route_of, session_of, split_launch
from interpose.gateway.settings import GatewaySettings
from interpose.gateway.upstream import Upstream
from interpose.kernel.ids import random_id
from interpose.wire.jsonbytes import write_json

HEALTH_PATH = b"/healthz"
_JSON = (b"content-type", b"application/json")


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
    ) -> None:
        self._launches = launches
        self._parts = Parts(
            settings=settings,
            workspaces=workspaces,
            journal=journal,
            clock=clock,
            upstream=Upstream(
                connect_timeout_s=settings.connect_timeout_s, trust_env=settings.proxies_from_environment
            ),
            ledger=Ledger(),
            codecs={codec.api: codec for codec in (AnthropicCodec(), ChatCodec())},
        )

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
            await send({"type": "lifespan.shutdown.complete"})
            return

    async def _visited(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers.of(scope["headers"])
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        secret, raw_path = split_launch(raw_path)
        path = _decoded(scope["path"], has_prefix=secret is not None)
        outgoing = Outgoing(send)
        launch = self._launches.find(secret) if secret else None
        agent = (launch.agent if launch else None) or agent_of(headers)
        route = route_of(scope["method"], path, headers, agent)
        refusal = self._turned_away(headers, has_prefix=secret is not None, launch=launch)
        if refusal is not None:
            await self._refuse(outgoing, route.api, launch, *refusal)
            return
        if secret is None and raw_path == HEALTH_PATH:
            health = {"name": "interpose", "version": __version__, "pid": os.getpid()}
            await outgoing.whole(200, [_JSON], write_json(health))
            return

        visit = Visit(
            action=random_id("r", 10),
            route=route,
            method=scope["method"],
            raw_path=raw_path,
            query=scope.get("query_string", b""),
            headers=headers,
            session=session_of(headers) or (launch.session if launch else random_id("s", 12)),
            launch=launch,
            agent=agent,
        )
        await Exchange(self._parts, visit, Incoming(receive), outgoing).run()

    def _turned_away(self, headers: Headers, *, has_prefix: bool, launch: Launch | None) -> tuple[int, str] | None:
        """Status and reason when the request may not go on: a web page's, an unknown launch's, a WebSocket's."""
        allowed = self._parts.settings.allowed_hosts
        host = headers.get(b"host") or ""
        if allowed is not None and host_name(host) not in allowed:
            return 403, f"interpose does not answer to the name {host!r}; use 127.0.0.1 or localhost"
        if headers.get(b"origin") is not None:
            return 403, "interpose does not answer requests of web pages (this one carries an Origin header)"
        if has_prefix and launch is None:
            return 404, "interpose does not know this launch; start the agent again with: interpose run -- COMMAND"
        if (headers.get(b"upgrade") or "").lower() == "websocket":
            return 426, "interpose speaks HTTP here, not WebSocket; use plain requests"
        return None

    async def _refuse(self, outgoing: Outgoing, api: ApiName, launch: Launch | None, status: int, message: str) -> None:
        parts = self._parts
        parts.journal.write(
            Record(
                at=parts.clock.now(),
                action=random_id("r", 10),
                step="failed",
                mount="wire",
                launch=launch.id if launch else "",
                outcome="turned_away",
                reason=message,
                data={"api": api, "status": status},
            )
        )
        await outgoing.whole(status, [_JSON], error_body(api, status, message))


def bound_to(app: App, secret: str) -> App:
    """The gateway as one launch sees it, for a client that takes no path: every request belongs to that launch."""
    prefix = f"/l/{secret}"

    async def bound(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
            scope = {**scope, "path": prefix + scope["path"], "raw_path": prefix.encode() + raw_path}
        await app(scope, receive, send)

    return bound


def _decoded(path: str, *, has_prefix: bool) -> str:
    """The decoded path without the launch prefix."""
    if not has_prefix:
        return path
    _, _, rest = path.removeprefix("/l/").partition("/")
    return f"/{rest}"
