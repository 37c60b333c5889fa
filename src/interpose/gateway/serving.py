"""One request of a client as an ASGI application sees it: its body in, its reply out.

Knows: ASGI's messages, how a reply is framed. Does not know: parsing, the connection's clocks, what is served.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from interpose.contracts.errors import MisuseError
from interpose.gateway.asgi import NEARBY, PHRASE, App, Message, Scope
from interpose.gateway.heads import Head, path_and_query, status_line
from interpose.gateway.paths import decoded_path

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_GONE_MESSAGE = "http.disconnect"

TOGETHER_BYTES_MAX = 256 * 1024
"""What is written in one turn of the loop leaves together, up to so much: each sending is dear."""


class Link(Protocol):
    """What a request needs of its connection."""

    is_full: bool
    """Whether the client reads too slowly for more."""

    def write(self, data: bytes) -> None:
        """Sends bytes on."""

    async def drained(self) -> None:
        """Returns when the client reads again, or is gone."""

    def taken(self) -> None:
        """The application has taken what had come of the body."""

    def over(self, serving: "Serving") -> None:
        """The reply is whole."""

    def broken(self, serving: "Serving", error: Exception | None) -> None:
        """The application ended without a whole reply, by `error` or by itself."""


def base_scope(transport: asyncio.BaseTransport) -> Scope:
    """What the scopes of all requests of a connection have in common."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "scheme": "http",
        "root_path": "",
        "server": _address(transport.get_extra_info("sockname")),
        "client": _address(transport.get_extra_info("peername")),
    }


def scope_of(base: Scope, head: Head) -> Scope:
    """The scope of a request on a connection with this `base`."""
    path, query = path_and_query(head.target)
    return {
        **base,
        "http_version": head.version,
        "method": head.method.decode("ascii"),
        "path": decoded_path(path),
        "raw_path": path,
        "query_string": query,
        "headers": head.headers,
    }


class Serving:
    """One request and its reply. Belongs to the loop of its connection."""

    def __init__(self, link: Link, head: Head, scope: Scope) -> None:
        self._link = link
        self._method = head.method
        self.is_old = head.version != "1.1"
        """Whether its client knows HTTP/1.0 only."""
        self._expects = head.expects and not self.is_old
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []
        self._is_told = False
        self._was_read = False
        self._waiting: list[asyncio.Future[None]] = []
        self._on_gone: Callable[[], None] | None = None
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._left: int | None = None
        self._is_chunked = False
        self._has_body = True
        self.scope = scope
        self.keeps_alive = head.keeps_alive and not self.is_old and not head.asks_websocket
        self.unread = 0
        """How many bytes of the body wait for the application."""
        self.announced = 0
        """How long the chunks are together that have begun; 0 where the body does not come in chunks."""
        self._has_news = False
        self.has_come = False
        """Whether all of the body has come."""
        self.is_started = False
        self.is_over = False
        self.is_gone = False

    async def run(self, app: App) -> None:
        """Runs the application to its end; its connection is told how that was."""
        try:
            await app({**self.scope, "extensions": {NEARBY: self}}, self.receive, self.send)
        except Exception as error:  # noqa: BLE001 - the application's boundary: its request fails, the server stays up
            self._flush()
            self._link.broken(self, error)
            return
        finally:
            self._on_gone = None
            self._pieces.clear()
        if not self.is_over and not self.is_gone:
            self._flush()
            self._link.broken(self, None)

    def tell_gone(self, on_gone: Callable[[], None]) -> None:
        """Calls `on_gone`, and no function given before, when the client hangs up before the reply is whole."""
        self._on_gone = on_gone
        if self.is_gone:
            self._loop.call_soon(on_gone)

    def whole_body(self) -> bytes | None:
        """The body, where all of it has come and the application was given no part of it; None elsewhere."""
        if not self.has_come or self._was_read or self.is_gone:
            return None
        body: bytes = self._piece()["body"]
        return body

    def took(self, data: bytes) -> bool:
        """Sends a piece of the reply's body; False where `send` has to wait, or to say what is wrong."""
        if self._link.is_full or self.is_gone or self.is_over or not self.is_started:
            return False
        self._write(data, is_last=False)
        return True

    def come(self, data: bytes) -> None:
        """A piece of the body has come."""
        self._pieces.append(data)
        self.unread += len(data)
        self._wake()

    def announce(self, size: int) -> None:
        """A chunk of the body begins, and will be of this size."""
        self.announced += size
        self._has_news = True
        self._wake()

    def end(self) -> None:
        """The body is whole."""
        self.has_come = True
        self._wake()

    def lose(self) -> None:
        """The client is gone."""
        if self.is_over or self.is_gone:
            return
        self.is_gone = True
        self._wake()
        if self._on_gone is not None:
            self._on_gone()

    async def receive(self) -> Message:
        """As ASGI says; the whole body at once where it has come, and nothing of it where a chunk only begins."""
        if self._expects and not self._pieces and not self.has_come and not self.is_started and not self.is_gone:
            self._expects = False
            self._link.write(CONTINUE)
        while True:
            if self.is_gone or self.is_over:
                return {"type": _GONE_MESSAGE}
            if self._pieces or self._has_news or (self.has_come and not self._is_told):
                return self._piece()
            waiter = self._loop.create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            finally:
                self._waiting.remove(waiter)

    async def send(self, message: Message) -> None:
        """As ASGI says. Waits while the client reads slowly. Raises MisuseError for what is no HTTP reply."""
        if self._link.is_full and not self.is_gone:
            await self._link.drained()
        if self.is_gone:
            return
        match message["type"]:
            case "http.response.start" if not self.is_started:
                self._start(message["status"], message.get("headers", ()), message.get(PHRASE, b""))
            case "http.response.body" if self.is_started and not self.is_over:
                self._write(message.get("body", b""), is_last=not message.get("more_body", False))
            case _:
                raise MisuseError(f"the application sent {message['type']!r} where that cannot be")

    def _piece(self) -> Message:
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self.unread = 0
        self._expects = self._has_news = False
        self._was_read = True
        self._is_told = self.has_come
        self._link.taken()
        return {"type": "http.request", "body": data, "more_body": not self.has_come}

    def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]], phrase: bytes) -> None:
        """Makes the head."""
        self.is_started = True
        if self._expects and not self.has_come:
            self.keeps_alive = False  # who was not told to go on may or may not send the body
        lines = [status_line(status, phrase)]
        says_close = False
        for name, value in headers:
            if name == b"transfer-encoding":
                continue
            if name == b"content-length":
                self._left = int(value)
            elif name == b"connection" and value.strip().lower() == b"close":
                says_close = True
            lines.append(b"%b: %b\r\n" % (name, value))
        self.keeps_alive = self.keeps_alive and not says_close
        self._has_body = self._method != b"HEAD" and status not in (204, 304)
        if self._has_body and self._left is None:
            self._is_chunked = not self.is_old
            self.keeps_alive = self.keeps_alive and self._is_chunked
        if self._is_chunked:
            lines.append(b"transfer-encoding: chunked\r\n")
        if not self.keeps_alive and not says_close:
            lines.append(b"connection: close\r\n")
        head = b"".join([*lines, b"\r\n"])
        if head.count(b"\n") != len(lines) + 1 or head.count(b"\r") != len(lines) + 1:
            raise MisuseError("a header of the application has a line break in it")
        self._leave_soon(head)

    def _write(self, data: bytes, *, is_last: bool) -> None:
        pieces = self._framed(data, is_last=is_last) if self._has_body else ()
        self._leave_soon(*pieces, is_last=is_last)
        if is_last:
            self.is_over = True
            self._wake()
            self._link.over(self)

    def _leave_soon(self, *pieces: bytes, is_last: bool = False) -> None:
        """Bytes leave with all others of this turn of the loop; at once where they are the last ones, or many."""
        if pieces and not self._pending and not is_last:
            self._loop.call_soon(self._flush)
        self._pending += pieces
        self._pending_bytes += sum(map(len, pieces))
        if is_last or self._pending_bytes > TOGETHER_BYTES_MAX:
            self._flush()

    def _flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if pending and not self.is_gone:
            self._link.write(b"".join(pending))

    def _framed(self, data: bytes, *, is_last: bool) -> tuple[bytes, ...]:
        if self._is_chunked:
            chunk = (b"%x\r\n" % len(data), data, b"\r\n") if data else ()
            return (*chunk, b"0\r\n\r\n") if is_last else chunk
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0 or (is_last and self._left > 0):
                raise MisuseError("the application's reply is not as long as its head says")
        return (data,) if data else ()

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)


def _address(found: object) -> tuple[str, int] | None:
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) and len(found) >= 2 else None
