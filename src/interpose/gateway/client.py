"""One connection to an upstream: a request out, its answer in, and again.

Knows: sending, back-pressure, silence, when it may be kept. Does not know: who dials, which upstream, proxies.
"""

import asyncio
import select
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, TypeAlias, cast

from interpose.gateway.answers import NOT_WHOLE, HeaderList, Reading
from interpose.gateway.watch import Watch

Body: TypeAlias = bytes | AsyncIterator[bytes] | None

IDLE_S = 30.0
"""How long a connection that nobody uses is kept."""

UNREAD_BYTES_MAX = 256 * 1024
"""With so much of a body unread, the upstream is read no further."""

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
"""The methods of requests that may be sent again though they may have been served (RFC 9110, section 9.2.2)."""

NO_ANSWER = "it closed the connection without an answer"
CUT_OFF = "cut off by the stop of interpose"

_PIECE_BYTES = 256 * 1024


class Fault(Exception):  # noqa: N818 - what the other end did; told to whoever asks
    """Why there is no answer, or no more of it; `reason` is one line for people.

    `may_repeat` says that the request was not sent, or that its connection, which had served before, ended without an
    answer to one that may be served twice; `is_cut` that nobody but interpose ended it.
    """

    def __init__(
        self,
        reason: str,
        *,
        was_reached: bool = True,
        is_timeout: bool = False,
        may_repeat: bool = False,
        is_cut: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.was_reached = was_reached
        self.is_timeout = is_timeout
        self.may_repeat = may_repeat
        self.is_cut = is_cut


def undialled(connect_timeout_s: float, problem: str = "the host did not take the connection") -> Fault:
    """The upstream's host was waited for so long, and there is no connection."""
    words = f"{problem} within {connect_timeout_s:g} s (connect_timeout_s)"
    return Fault(words, was_reached=False, is_timeout=True)


def silent(read_timeout_s: float) -> Fault:
    """The upstream was waited for so long, and sent nothing."""
    return Fault(f"it sent nothing for {read_timeout_s:g} s (read_timeout_s)", is_timeout=True)


class Request(NamedTuple):
    """A request as a connection sends it.

    Attributes:
        method: in upper case.
        head: all bytes before the body.
        body: bytes; an iterator that is read while the answer may come already; None for no body.
        length: what `head` says of the length of an iterator's body; None where it says that chunks follow.
        read_timeout_s: how long the upstream may be silent while it is waited for.
    """

    method: str
    head: bytes
    body: Body
    length: int | None
    read_timeout_s: float


class Answer:
    """What a connection was answered, once its head is there. One task reads the body, once."""

    __slots__ = ("_connection", "headers", "phrase", "read", "status")

    def __init__(self, connection: "Connection", status: int, headers: HeaderList, phrase: bytes = b"") -> None:
        self._connection = connection
        self.status = status
        self.phrase = phrase
        self.headers = headers
        self.read = connection.read
        """What has come of the body, once there is something; b"" at its end. Raises Fault when it breaks off."""

    def leave(self) -> None:
        """Ends this use of the connection. It is kept where the answer came to its end, and else closed."""
        self._connection.leave()


class Connection(asyncio.Protocol):
    """A connection of one event loop, used by one task at a time.

    `on_free` is called when it can be asked again, `on_lost` when it is gone; both get the connection. Unused for
    `idle_s`, it is closed.
    """

    def __init__(
        self,
        on_free: Callable[["Connection"], None],
        on_lost: Callable[["Connection"], None],
        *,
        idle_s: float = IDLE_S,
    ) -> None:
        self._on_free = on_free
        self._on_lost = on_lost
        self._idle_s = idle_s
        self._loop = asyncio.get_running_loop()
        self._reading = Reading()
        self._transport: asyncio.Transport | None = None
        self._request: Request | None = None
        self._upload: asyncio.Task[None] | None = None
        self._fault: Exception | None = None
        self._served = 0
        self._waiter: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._is_readable: Callable[[], bool] | None = None
        self._watch = Watch(self._look)
        self._heard_at = 0.0
        self._is_paused = False
        self._is_full = False
        self._awaits_source = False

    @property
    def is_open(self) -> bool:
        """Whether it can be asked."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def has_news(self) -> bool:
        """Whether the upstream has sent something, its end above all, that the loop has not come to yet.

        On a connection that nobody uses that is never good: what is written behind it may not be read.
        """
        return self._is_readable is not None and self._is_readable()

    async def ask(self, request: Request) -> Answer:
        """Sends a request; gives its answer once the head is there. Cancelling closes the connection.

        Raises Fault when no answer comes, and what the iterator of the request's body raises before it does.
        """
        reading = self._reading
        reading.begin(request.method)
        self._request, self._fault = request, None
        try:
            self._send(request)
            while not reading.has_head:
                await self._news()
        except BaseException:
            self.close()
            raise
        return Answer(self, reading.status, reading.headers, reading.phrase)

    async def read(self) -> bytes:
        """As `Answer.read` says."""
        reading = self._reading
        while not reading.unread:
            if reading.is_whole:
                return b""
            await self._news()
        if self._is_paused:
            self._resume()
        return reading.take()

    def leave(self) -> None:
        """As `Answer.leave` says."""
        is_sent = self._upload is None or self._upload.done()
        if not (is_sent and self._reading.is_whole and self._reading.is_persistent and self.is_open):
            self.close()
            return
        self._served += 1
        self._resume()
        self.rest()

    def rest(self) -> None:
        """Nobody uses it for now."""
        self._request = self._upload = None
        self._heard_at = self._watch.now()
        self._watch.set(self._heard_at + self._idle_s)
        self._on_free(self)

    def cut(self) -> None:
        """Closes the connection at once; who waits for its answer, or for the rest, is told that it was cut off."""
        self._fail(Fault(CUT_OFF, is_cut=True))
        _set(self._waiter)
        _set(self._room)

    def close(self) -> None:
        """Closes the connection at once; idempotent."""
        self._request = self._fault = None
        if self._upload is not None:
            self._upload.cancel()
            self._upload = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast("asyncio.Transport", transport)  # which uvloop's is but in name
        found = transport.get_extra_info("socket")
        self._is_readable = _looking_at(found.fileno()) if found is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._watch.stop()
        if self._request is not None and self._fault is None:
            self._reading.end(is_clean=exc is None)
            if self._reading.broken is not None:
                self._fail(self._lost(exc))
        _set(self._waiter)
        _set(self._room)
        self._reading.close()
        self._on_lost(self)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio: reads all of it, then wakes whoever waits, once."""
        if self._request is None:
            self.close()  # nobody has asked for this
            return
        reading = self._reading
        reading.feed(data)
        if reading.broken is not None:
            self._fail(Fault(reading.broken))
        elif reading.unread > UNREAD_BYTES_MAX and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        _set(self._waiter)

    def pause_writing(self) -> None:
        """Called by asyncio: the upstream takes no more for now."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Called by asyncio: it does again."""
        self._is_full = False
        _set(self._room)

    def _send(self, request: Request) -> None:
        if self._transport is None or self._transport.is_closing():
            raise Fault(NO_ANSWER, may_repeat=not isinstance(request.body, AsyncIterator))
        self._heard_at = self._watch.now()
        self._watch.set(self._heard_at + request.read_timeout_s)
        body = request.body
        if body is None:
            self._transport.write(request.head)
            return
        if isinstance(body, bytes) and len(body) <= _PIECE_BYTES:
            self._transport.write(request.head + body)
            return
        self._transport.write(request.head)
        pieces = _sliced(body) if isinstance(body, bytes) else _framed(body, request.length)
        self._upload = self._loop.create_task(self._uploaded(self._transport, pieces))

    async def _uploaded(self, transport: asyncio.Transport, pieces: AsyncIterator[bytes]) -> None:
        """Sends a body while the answer may come already."""
        try:
            while True:
                self._awaits_source = True
                piece = await anext(pieces, b"")
                self._awaits_source = False
                if not piece or transport.is_closing():
                    return
                transport.write(piece)
                while self._is_full and not transport.is_closing():
                    self._room = self._loop.create_future()
                    await self._room
                self._heard_at = self._watch.now()
        except Exception as error:  # noqa: BLE001 - the body's own iterator; told to who asks, and the request is cut off
            self._fail(error)
            _set(self._waiter)
        finally:
            self._awaits_source = False

    def _fail(self, fault: Exception) -> None:
        if self._fault is None:
            self._fault = fault
        if self._transport is not None:
            self._transport.abort()

    def _lost(self, exc: Exception | None) -> Fault:
        if self._reading.has_begun:
            return Fault(NOT_WHOLE)
        words = f"the connection broke off: {exc.strerror or exc}" if isinstance(exc, OSError) else NO_ANSWER
        return Fault(words, may_repeat=self._served > 0 and _may_be_served_twice(self._request))

    def _news(self) -> "asyncio.Future[None]":
        """Done when something comes; the upstream's silence begins now. Raises what was found to be wrong."""
        if self._fault is not None:
            raise self._fault
        if not self.is_open:
            raise Fault(NOT_WHOLE)
        self._heard_at = self._loop.time()
        self._waiter = self._loop.create_future()
        return self._waiter

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def _look(self) -> None:
        now = self._watch.now()
        request = self._request
        if request is None:
            due = self._heard_at + self._idle_s
        elif self._waiter is None or self._waiter.done() or self._awaits_source:
            due = now + request.read_timeout_s  # it is not the upstream that is waited for
        else:
            due = self._heard_at + request.read_timeout_s
        if due > now:
            self._watch.set(due)
        elif request is None:
            self.close()
        else:
            self._fail(silent(request.read_timeout_s))
            _set(self._waiter)


async def _sliced(body: bytes) -> AsyncIterator[bytes]:
    """Piece by piece, so that the loop is not held up."""
    for at in range(0, len(body), _PIECE_BYTES):
        yield body[at : at + _PIECE_BYTES]


async def _framed(body: AsyncIterator[bytes], length: int | None) -> AsyncIterator[bytes]:
    """The body's pieces as they are sent. Raises ValueError when they are not as long as was said."""
    sent = 0
    async for piece in body:
        sent += len(piece)
        if length is not None and sent > length:
            raise ValueError(f"a body of {length} bytes has more than that")
        if piece:
            yield piece if length is not None else b"%x\r\n%b\r\n" % (len(piece), piece)
    if length is None:
        yield b"0\r\n\r\n"
    elif sent < length:
        raise ValueError(f"a body of {length} bytes has only {sent}")


def _may_be_served_twice(request: Request | None) -> bool:
    return request is not None and request.method in IDEMPOTENT and not isinstance(request.body, AsyncIterator)


def _looking_at(descriptor: int) -> Callable[[], bool]:
    """Tells whether there is something to be read, without waiting for it."""
    if not hasattr(select, "poll"):  # not on every platform
        return lambda: bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return lambda: bool(poll.poll(0))


def _set(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
