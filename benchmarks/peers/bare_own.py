"""The bare peer on interpose's own transport: the same proxy as `bare.py`, on the gateway's server and client.

`python bare_own.py UPSTREAM` prints its port. What it costs less than interpose is what judging costs.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from interpose.gateway.asgi import Scope
from interpose.gateway.server import Server
from interpose.gateway.settings import Target
from interpose.gateway.upstream import Question, Upstream, UpstreamDown, joined_url, passed_on


class BareOwn:
    """An ASGI application in front of `upstream`."""

    def __init__(self, upstream: str) -> None:
        self._target = Target("bare", "openai", upstream)
        self._upstream = Upstream(trust_env=False)

    async def __call__(self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]) -> None:
        """ASGI's entry."""
        if scope["type"] == "http":
            await self._forward(scope, receive, send)
            return
        while (await receive())["type"] == "lifespan.startup":
            await self._upstream.open()
            await send({"type": "lifespan.startup.complete"})
        await self._upstream.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _forward(self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        url = joined_url(self._target.base_url, scope["raw_path"], b"")
        headers = passed_on(scope["headers"])
        question = Question(scope["method"], self._target, url, headers, body, is_judged=False)
        async with self._upstream.ask(question) as reply:
            if isinstance(reply, UpstreamDown):
                raise ConnectionError(reply.reason)
            await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
            async for chunk in reply.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def main(upstream: str) -> None:
    """Serves until it is killed."""
    server = Server(BareOwn(upstream))
    print(server.port, flush=True)
    uvloop.run(server.serve())


if __name__ == "__main__":
    main(sys.argv[1])
