"""One connection of a client, within limits: what is malformed, endless or slow ends it, and nothing else.

Knows: HTTP/1.1 as a server reads it, clocks, who waits for whom. Does not know: what is served.
What httptools (llhttp) refuses stays refused: CL with TE, two CL, folded lines, bare LF, control characters.
"""

import asyncio
import math
from collections import deque
from typing import cast

import httptools

from interpose.gateway.asgi import HeaderList, Scope
from interpose.gateway.framing import Framing
from interpose.gateway.heads import (
    Head,
    Limits,
    Refusal,
    answer_to,
    api_of,
    malformed,
    of_tls,
    plain_head,
    refused,
    too_large,
    too_slow,
)
from interpose.gateway.probing import probe
from interpose.gateway.service import Others, Service
from interpose.gateway.serving import Serving, base_scope, scope_of
from interpose.gateway.watch import Watch
from interpose.kernel.boundary import fault_line

__all__ = ["ClientConnection", "Limits", "Refusal"]

UNREAD_BYTES_MAX = 256 * 1024
"""With so much of a body that the application has not taken, the client is read no further."""

LEFT_OVER_BYTES_MAX = 64 * 1024 * 1024
"""So much of a body that nobody wanted is read and dropped, so that its client can read why."""

TLS_HELLO = b"\x16\x03"
"""How TLS begins."""

LINGER_S = 1.0
"""How long what a client still sends is dropped behind a last answer, so that it can read that."""


class ClientConnection(asyncio.Protocol):
    """A connection from its accepting to its end; requests are answered one after the other, in their order.

    Fields behind a chunked body are dropped: they are no headers, and nobody has looked at them. `initial` are bytes
    that somebody else has read from the connection.
    """

    def __init__(self, service: Service, *, initial: bytes = b"") -> None:
        self._service = service
        self._limits = service.limits
        self._initial = initial
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._framing = Framing()
        self._transport: asyncio.Transport | None = None
        self._base: Scope = {}
        self._target = b""
        self._headers: HeaderList = []
        self._refusal: Refusal | None = None
        self._is_fresh = True
        self._in_head = False
        self._awaits_head = False
        self._expects = self._is_chunked = False
        self._fed_bytes = self._first_bytes = self._quiet_bytes = 0
        self._left_over_bytes = 0
        self._offering: Head | None = None
        self._overlooks_head = False
        """Whether the parser is fed with a head of ours, in the place of one that was read."""
        self._is_deaf = False
        self._has_ended = False
        self._last_words: Refusal | None = None
        self._is_paused = False
        self._raw: list[bytes] | None = None
        self._owner: int | None = None
        self._incoming: Serving | None = None
        self._current: Serving | None = None
        self._waiting: deque[Serving] = deque()
        self._room: list[asyncio.Future[None]] = []
        self._stall: asyncio.TimerHandle | None = None
        self._watch = Watch(self._look)
        self._due = math.inf
        self.is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: starts the clock; a connection too many is closed."""
        self._transport = cast("asyncio.Transport", transport)  # which uvloop's is but in name
        if len(self._service.connections) >= self._limits.connections:
            self._is_deaf = True
            reason = f"there are {self._limits.connections} connections already"
            self._service.on_refused(Refusal("crowded", 0, reason))
            self._transport.abort()
            return
        self._service.connections.add(self)
        self._base = base_scope(self._transport)
        self._wait_until(self._watch.now() + self._limits.idle_s)
        if self._initial:
            initial, self._initial = self._initial, b""
            self.data_received(initial)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Called by asyncio: tells everybody, and lets go of all that would keep it in memory."""
        if self._transport is None:
            return
        self._transport = None
        self._is_deaf = True
        self._service.discard(self)
        self._watch.stop()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        for serving in (self._current, self._incoming, *self._waiting):
            if serving is not None:
                serving.lose()
        self._current = self._incoming = None
        self._waiting.clear()
        self._make_room()
        del self._parser  # they hold each other

    def data_received(self, data: bytes) -> None:
        """Called by asyncio: feeds the parser, and watches over a head that does not end."""
        if self._is_deaf:
            return
        self._fed_bytes = len(data)
        self._quiet_bytes += self._fed_bytes
        if self._service.others is not None:
            self._keep(data)
        self._framing.read(data, is_inside=self._in_head or self._incoming is not None)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            if self._owner is not None:
                self._give(self._service.others, self._owner)
                return
            if self._is_fresh and data.startswith(TLS_HELLO):
                self._refuse(of_tls())
                return
            self._refuse(self._refusal or malformed(self._target, self._headers, str(error)))
            return
        self._framing.fed()
        is_inside = self._in_head or (self._incoming is not None and not self._incoming.has_come)
        if is_inside and self._quiet_bytes > self._limits.header_bytes:
            self._refuse(too_large(self._limits, self._target, self._headers))
        elif self._in_head or self._is_fresh:
            self._await_head()

    def eof_received(self) -> bool:
        """Called by asyncio: the client sends nothing more. What it asked for whole it is answered all the same.

        Who ends in the middle of an answer has left: a stream's upstream would else go on for nobody.
        """
        current = self._current
        if self._transport is None or current is None or not current.has_come or current.is_started:
            return False
        self._is_deaf = self._has_ended = True
        self._forget_incoming()
        if not current.is_old:
            probe(self._transport, lambda: self._current is current and not current.is_started, self.abort)
        return True

    def pause_writing(self) -> None:
        """Called by asyncio: the client reads slowly; the clock of what it leaves unread starts."""
        self.is_full = True
        if self._stall is None:
            self._stall = self._loop.call_later(self._limits.stall_s, self._stalled)

    def resume_writing(self) -> None:
        """Called by asyncio: the client reads again."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        self._make_room()

    def on_message_begin(self) -> None:
        """Called by the parser: a request begins."""
        if self._overlooks_head:
            return
        self._in_head = True
        self._expects = self._is_chunked = False
        self._framing.begin()
        self._first_bytes = self._fed_bytes
        self._quiet_bytes = 0
        self._target = b""
        self._headers = []
        self._incoming = None

    def on_url(self, url: bytes) -> None:
        """Called by the parser."""
        if not self._overlooks_head:
            self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser: a field of the head; those of a trailer are dropped."""
        if not self._in_head:
            return
        name, value = name.lower(), value.rstrip(b" \t")  # white space around a value is none of it
        self._headers.append((name, value))
        if name == b"expect":
            self._expects = value.lower() == b"100-continue"
        elif name == b"transfer-encoding":
            self._is_chunked = True

    def on_headers_complete(self) -> None:
        """Called by the parser: a request's head is whole, and what could be read in two ways is refused."""
        if self._overlooks_head:
            self._overlooks_head = False
            return
        self._in_head = self._is_fresh = self._awaits_head = False
        self._due = math.inf
        parser = self._parser
        line = parser.get_method(), self._target, parser.get_http_version()
        head = Head(
            *line,
            headers=self._headers,
            keeps_alive=parser.should_keep_alive(),
            upgrades=parser.should_upgrade(),
            expects=self._expects,
            most_bytes=self._first_bytes + self._quiet_bytes,
            has_plain_line=self._framing.has_plain_line(*line, is_chunked=self._is_chunked),
        )
        self._refusal = refused(head, self._limits)
        if self._refusal is not None:
            raise ValueError(self._refusal)
        if self._service.others is not None:
            self._owner = self._service.others.owner(head.target, head.headers)
            if self._owner is not None:
                raise ValueError(self._owner)
            self._raw = None
        self._offering = head if head.offers_protocol else None
        serving = Serving(self, head, scope_of(self._base, head))
        self._incoming = serving
        if self._current is None:
            self._begin(serving)
            return
        self._waiting.append(serving)
        self._pause()

    def on_chunk_header(self) -> None:
        """Called by the parser: a chunk of a body begins, and the application may know how long it will be."""
        size = self._framing.chunk()
        if self._incoming is not None and size:
            self._incoming.announce(size)

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        self._quiet_bytes = 0
        incoming = self._incoming
        if incoming is None:
            return
        if incoming.is_over:
            self._left_over_bytes += len(body)
            if self._left_over_bytes > LEFT_OVER_BYTES_MAX:
                self._close()
            return
        incoming.come(body)
        if incoming.unread > UNREAD_BYTES_MAX:
            self._pause()

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if self._offering is not None:
            return
        self._left_over_bytes = 0
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            incoming.end()

    def write(self, data: bytes) -> None:
        """Sends bytes to the client."""
        if self._transport is not None:
            self._transport.write(data)

    async def drained(self) -> None:
        """Returns when the client reads again, or is gone."""
        waiter = self._loop.create_future()
        self._room.append(waiter)
        await waiter

    def taken(self) -> None:
        """The application has taken what had come of a body."""
        self._resume()

    def over(self, serving: Serving) -> None:
        """A reply is whole: the next request is served, or the clock of an idle connection starts."""
        if serving is not self._current:
            return
        self._current = None
        if not serving.keeps_alive or self._service.is_stopping:
            self._hang_up(lingers=self._incoming is not None or self._in_head)
            return
        if self._waiting:
            self._begin(self._waiting.popleft())
        elif self._last_words is not None:
            self.write(answer_to(self._last_words))
            self._hang_up(lingers=True)
            return
        elif self._has_ended:
            self._hang_up(lingers=False)
            return
        elif self._in_head:
            self._await_head()
        else:
            self._wait_until(self._watch.now() + self._limits.idle_s)
        self._resume()

    def broken(self, serving: Serving, error: Exception | None) -> None:
        """The application ended without a whole reply: its client is told where nothing has left, and else cut off."""
        if serving.is_gone:
            return
        if error is not None:
            api = api_of(bytes(serving.scope["raw_path"]), serving.scope["headers"])
            refusal = Refusal("broken", 500, "this request could not be served", api)
            self._service.on_refused(Refusal("broken", 500, fault_line(error), api))
        else:
            refusal = Refusal("broken", 500, "this request was not answered")
        if serving is not self._current:
            return
        self._current = None
        if serving.is_started:
            self._close()
            return
        self.write(answer_to(refusal))
        self._hang_up(lingers=True)

    def shut(self) -> None:
        """The server stops: closes the connection, where a reply is under way behind that."""
        if self._current is None:
            self._close()

    def abort(self) -> None:
        """Closes the connection at once."""
        self._is_deaf = True
        if self._transport is not None:
            self._transport.abort()

    def _begin(self, serving: Serving) -> None:
        self._current = serving
        self._due = math.inf
        task = self._loop.create_task(serving.run(self._service.app))
        self._service.tasks.add(task)
        task.add_done_callback(self._service.tasks.discard)

    def _feed(self, data: bytes) -> None:
        """Feeds the parser, which leaves off behind a head that offers another protocol, and must go on there."""
        while True:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
            else:
                return

            offering, self._offering = self._offering, None
            if offering is None:
                self._is_deaf = True  # a WebSocket's client waits for its answer
                return
            self._overlooks_head = True
            self._parser = httptools.HttpRequestParser(self)
            self._parser.feed_data(plain_head(offering))

    def _keep(self, data: bytes) -> None:
        """Keeps the bytes of a head until it is known whose it is; of one behind another request they are not kept."""
        if self._current is not None or self._incoming is not None:
            self._raw = None
        elif not self._in_head:
            self._raw = [data]
        elif self._raw is not None:
            self._raw.append(data)

    def _give(self, others: Others | None, owner: int) -> None:
        """Gives the connection to the worker that its request belongs to.

        Behind a request that is still being served, or whose reply has not left yet, it ends instead: then its client
        knows that it was not served, and asks again.
        """
        self._is_deaf = True
        self._awaits_head = False
        transport = self._transport
        if self._current is not None:
            self._current.keeps_alive = False
            return
        if transport is None or others is None or self._raw is None or transport.get_write_buffer_size():
            self._close()
            return
        transport.pause_reading()
        others.give(transport, b"".join(self._raw), owner)
        transport.abort()

    def _refuse(self, refusal: Refusal) -> None:
        """Answers what cannot be served and closes, behind the requests before it that came whole.

        The reply to the very request that is refused is cut off instead of written into.
        """
        self._service.on_refused(refusal)
        incoming = self._forget_incoming()
        if self._current is not None and self._current is not incoming:
            self._is_deaf = True
            self._last_words = refusal
            return
        current, self._current = self._current, None
        if current is not None:
            current.lose()
            if current.is_started:
                self.abort()
                return
        self.write(answer_to(refusal))
        self._hang_up(lingers=True)

    def _forget_incoming(self) -> Serving | None:
        """What has not come whole, and will not; it is not served where it waits."""
        incoming, self._incoming = self._incoming, None
        if incoming is not None and incoming in self._waiting:
            self._waiting.remove(incoming)
            incoming.lose()
        return incoming

    def _hang_up(self, *, lingers: bool) -> None:
        """Ends the connection behind what was written.

        With `lingers`, what the client still sends is dropped for a moment: a connection that is closed with something
        unread takes back what was written to it.
        """
        self._is_deaf = True
        self._awaits_head = False
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not lingers or self._service.is_stopping:
            transport.close()
            return
        transport.write_eof()
        if self._is_paused:
            transport.resume_reading()
        self._wait_until(self._watch.now() + LINGER_S)

    def _close(self) -> None:
        self._is_deaf = True
        if self._transport is not None:
            self._transport.close()

    def _stalled(self) -> None:
        self._stall = None
        self._service.on_refused(Refusal("stalled", 0, f"its client read nothing for {self._limits.stall_s:g} s"))
        self.abort()

    def _make_room(self) -> None:
        self.is_full = False
        for waiter in self._room:
            if not waiter.done():
                waiter.set_result(None)
        self._room.clear()

    def _pause(self) -> None:
        if not self._is_paused and self._transport is not None and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        is_wanted = not self._waiting and (self._incoming is None or self._incoming.unread <= UNREAD_BYTES_MAX)
        if self._is_paused and is_wanted and self._transport is not None and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    def _await_head(self) -> None:
        """The clock of a head runs from its first byte on, but not while another request is served."""
        self._is_fresh = False
        if self._current is None and not self._awaits_head and not self._is_deaf:
            self._awaits_head = True
            self._wait_until(self._watch.now() + self._limits.header_s)

    def _wait_until(self, due: float) -> None:
        self._due = due
        self._watch.set(due)

    def _look(self) -> None:
        if self._watch.now() < self._due:
            if self._due < math.inf:
                self._watch.set(self._due)
            return
        if self._awaits_head:
            self._refuse(too_slow(self._limits, self._target, self._headers))
            return
        self._close()
