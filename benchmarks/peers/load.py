"""The client of the benchmark: connections that stay open, each with one request after the other.

Times are told in nanoseconds of the monotonic clock, which all processes of a machine share.
"""

import asyncio
import re
import time
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import urlsplit

import httptools

_MADE_AT = re.compile(rb"@(\d{6,})@")


@dataclass(slots=True)
class Load:
    """What is asked: `path` behind the peer's URL, and `body`, in which %d becomes the request's number."""

    api: str
    kind: str
    path: str
    body: bytes
    end: bytes
    """What the last bytes of a whole reply contain."""
    exact: bytes | None = None
    """The reply to the byte, for peers that promise that."""

    @property
    def is_paced(self) -> bool:
        """Whether its events tell when they were made."""
        return self.kind == "paced"


@dataclass(slots=True)
class Seen:
    """What came back, over all connections."""

    replies: int = 0
    first_byte_ns: list[int] = field(default_factory=list)
    event_ns: list[int] = field(default_factory=list)


class Broken(RuntimeError):  # noqa: N818 - says what is wrong with the peer
    """A peer answered something else than it should."""


class _Connection(asyncio.Protocol):
    def __init__(self, load: Load, seen: Seen) -> None:
        self._load = load
        self._seen = seen
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._done: asyncio.Future[bytes] | None = None
        self._asked_ns = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(Broken(f"the connection was closed in the middle of a reply: {exc}"))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        now = time.monotonic_ns()
        if not self._pieces:
            self._seen.first_byte_ns.append(now - self._asked_ns)
        self._pieces.append(body)
        if self._load.is_paced:
            self._seen.event_ns += [now - int(made) for made in _MADE_AT.findall(body)]

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        body = b"".join(self._pieces)
        if self._done is None or self._done.done():
            return
        if status != 200 or self._load.end not in body[-400:]:
            self._done.set_exception(Broken(f"status {status}, body ends in {body[-200:]!r}"))
            return
        self._parser = httptools.HttpResponseParser(self)
        self._done.set_result(body)

    async def ask(self, request: bytes) -> bytes:
        self._pieces.clear()
        self._done = asyncio.get_running_loop().create_future()
        self._asked_ns = time.monotonic_ns()
        self._transport.write(request)
        async with asyncio.timeout(60):
            return await self._done

    def close(self) -> None:
        self._transport.close()


async def asked(url: str, load: Load, *, connections: int, for_s: float, spread_s: float = 0.0) -> Seen:
    """Asks on so many connections for so long, at least once on each; their starts are spread over `spread_s`.

    Raises Broken when a reply is not what it should be.
    """
    seen = Seen()
    ends_at = time.monotonic() + for_s
    numbers = count()

    async def one(position: int) -> None:
        await asyncio.sleep(spread_s * position / connections)
        address = urlsplit(url)
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(lambda: _Connection(load, seen), address.hostname, address.port)
        try:
            while True:
                body = await made.ask(_request(address.path, address.netloc, load, position, next(numbers)))
                if load.exact is not None and body != load.exact:
                    raise Broken(f"the reply differs from what the upstream sent: {body[:200]!r}…")
                seen.replies += 1
                if time.monotonic() >= ends_at:
                    return
        finally:
            made.close()

    async with asyncio.TaskGroup() as group:
        for position in range(connections):
            group.create_task(one(position))
    return seen


def _request(prefix: str, host: str, load: Load, connection: int, number: int) -> bytes:
    body = load.body.replace(b"%d", b"%d" % number)
    head = (
        f"POST {prefix}{load.path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
        f"x-api-key: sk-bench\r\nauthorization: Bearer sk-bench\r\nanthropic-version: 2023-06-01\r\n"
        f"x-session-id: bench-{connection}\r\naccept: */*\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
