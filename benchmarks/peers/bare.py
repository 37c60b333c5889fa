"""The bare peer: a streaming proxy on well-kept libraries (uvicorn, aiohttp), and nothing else.

`python bare.py UPSTREAM` prints its port. It reads the request whole, sends it on, and writes what comes as it comes:
no policy, no journal, no limits, no errors told.
"""

import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import uvicorn
import uvloop

_HOP_BY_HOP = frozenset({b"host", b"connection", b"transfer-encoding", b"content-length", b"keep-alive"})


class Bare:
    """An ASGI application in front of `upstream`."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]) -> None:
        """ASGI's entry."""
        if scope["type"] == "http":
            await self._forward(scope, receive, send)

    async def _forward(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]) -> None:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False, read_bufsize=2**18)
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"] if n not in _HOP_BY_HOP]
        url = self._upstream + scope["path"]
        async with self._session.request(scope["method"], url, headers=headers, data=body) as reply:
            kept = [(name.lower(), value) for name, value in reply.raw_headers if name.lower() not in _HOP_BY_HOP]
            await send({"type": "http.response.start", "status": reply.status, "headers": kept})
            async for chunk in reply.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def main(upstream: str) -> None:
    """Serves until it is killed."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(Bare(upstream), log_level="critical", access_log=False, lifespan="off", ws="none")
    uvloop.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    main(sys.argv[1])
