"""One connection of a client, within limits: what is malformed, endless or slow ends it, and nothing else.

Knows: the HTTP server's protocol class, whose API a path is. Does not know: what is served.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from interpose.gateway.api import ApiName
from interpose.gateway.faults import error_body
from interpose.gateway.paths import decoded_path
from interpose.gateway.routes import Headers, route_of, split_launch

_PHRASES = {400: b"Bad Request", 408: b"Request Timeout", 431: b"Request Header Fields Too Large"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection may take.

    Attributes:
        idle_s: how long it may stay open without a request.
        header_s: how long a request's head may take, from its first byte on.
        header_bytes: the largest head, and `headers` the most fields in it.
        stall_s: how long a client may leave a reply unread.
        connections: how many there may be at once; further ones are closed unheard.
    """

    idle_s: float = 75.0
    header_s: float = 15.0
    header_bytes: int = 65_536
    headers: int = 256
    stall_s: float = 300.0
    connections: int = 8_192


class _Refused(Exception):  # noqa: N818 - an event, told to the parser
    """Ends the parsing of a head; the answer is in the protocol's `_refusal`."""


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits. What llhttp refuses stays refused: CL with TE, two CL, folded lines, bare LF.

    Fields behind a chunked body are dropped: they are no headers, and nobody has looked at them.

    `initial` are bytes that somebody else has read from the connection.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: Limits,
        initial: bytes = b"",
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._initial = initial
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._refusal: tuple[int, str] | None = None
        self._in_head = False
        self._head_bytes = 0
        self._is_fresh = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Starts the clock; a connection too many is closed."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            transport.abort()
            return
        self._timer = self.loop.call_later(self._limits.idle_s, transport.close)
        if self._initial:
            self.data_received(self._initial)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the clocks."""
        self._disarm()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feeds the parser, and watches over a head that does not end."""
        if self._is_fresh:
            self._is_fresh = False
            self._disarm()
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head and self._head_bytes > self._limits.header_bytes:
            self._refusal = (431, f"the head of this request is larger than {self._limits.header_bytes} bytes")
            self.send_400_response("")
            return
        if not self._is_serving and self._timer is None:
            self._timer = self.loop.call_later(self._limits.header_s, self._head_too_slow)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head; those of a trailer are dropped."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A request's head is whole: its clock stops, and what could be read in two ways is refused."""
        self._in_head = False
        self._disarm()
        self._refusal = self._refused()
        if self._refusal is not None:
            raise _Refused
        super().on_headers_complete()
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False  # what follows is not for this parser

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's
        """Answers what cannot be served and closes; a reply that is under way is cut off instead of written into."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()
            return
        status, reason = self._refusal or (400, "this is not a valid HTTP request")
        body = error_body(self._api, status, f"interpose: {reason}")
        head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self._disarm()
        self.transport.write(head % (status, _PHRASES[status], len(body)) + body)
        self.transport.close()

    def pause_writing(self) -> None:
        """The client reads slowly: the clock of what it leaves unread starts."""
        super().pause_writing()
        if self._stall is None:
            self._stall = self.loop.call_later(self._limits.stall_s, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        super().resume_writing()

    @property
    def _is_serving(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _api(self) -> ApiName:
        """Whose shape an error has: by as much of the path as has arrived."""
        url: bytes | None = getattr(self, "url", None)
        if not url:
            return "anthropic"
        _, raw_path = split_launch(url.partition(b"?")[0])
        return route_of("POST", decoded_path(raw_path), Headers.of(self.headers), None).api

    def _refused(self) -> tuple[int, str] | None:
        """What the parser lets pass and another one may read differently."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._limits.header_bytes:
            return 431, f"the head of this request is larger than {self._limits.header_bytes} bytes"
        if len(self.headers) > self._limits.headers:
            return 431, f"this request has more than {self._limits.headers} header fields"
        encodings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if encodings and (encodings != [b"chunked"] or self.parser.get_http_version() != "1.1"):
            return 400, "the transfer-encoding of this request is not plain chunked"
        upgrades = [value.strip().lower() for name, value in self.headers if name == b"upgrade"]
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            return 400, f"this request has {hosts} Host headers; one is needed"
        if not self.url.startswith((b"/", b"http://", b"https://")):
            return 400, "this request asks for no path"
        if self.parser.should_upgrade() and upgrades != [b"websocket"]:
            way_out = "send it as plain HTTP/1.1, without the Upgrade header"
            return 400, f"interpose does not change to another protocol in the middle of a connection; {way_out}"
        return None

    def _head_too_slow(self) -> None:
        self._timer = None
        if self._is_serving or self.transport.is_closing():
            return
        self._refusal = (408, f"the head of this request did not arrive within {self._limits.header_s:g} s")
        self.send_400_response("")

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
