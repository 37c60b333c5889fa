"""One HTTP request as ASGI gives it: the way in and the way out.

Knows: ASGI's messages. Does not know: APIs, policy.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Protocol, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

HeaderList: TypeAlias = list[tuple[bytes, bytes]]

NEARBY = "interpose.nearby"
"""The name of an extension that our own server offers: what it knows without anybody waiting for it."""

STEP_BYTES = 64 * 1024
"""So much of a body that streams through must come in the time that another one has for all of it."""

_NO_CONTENT = 204

PHRASE = "interpose.phrase"
"""What a reply's head may say beside its status; other servers overlook it."""


class Nearby(Protocol):
    """One request, as its server knows it."""

    announced: int
    """How long the chunks of its body are together that have begun, also before they have come."""

    def tell_gone(self, on_gone: Callable[[], None]) -> None:
        """Calls `on_gone` when the client hangs up before its reply is whole."""

    def whole_body(self) -> bytes | None:
        """The body, where all of it has come and nobody was given a part of it; None elsewhere. It is then taken."""

    def took(self, data: bytes) -> bool:
        """Sends a piece of the reply's body, where nobody has to wait for that; False elsewhere."""


class ClientGone(Exception):  # noqa: N818 - an event, told to whoever reads the body
    """The client hung up while its body was read."""


class BodyTooSlow(Exception):  # noqa: N818 - an event, told to whoever reads the body
    """The client did not send its body in time; the text is made for it."""


class Incoming:
    """A request's body, and the news that its client hung up. One task reads the body, one waits for the news.

    `timeout_s` is how long the client may take for a body that is read whole, and for each STEP_BYTES of one that
    streams through: those may be as large as they like. `nearby` is the server's extension, where it has that.
    """

    def __init__(self, receive: Receive, timeout_s: float, nearby: Nearby | None = None) -> None:
        self.nearby = nearby
        self._receive = receive
        self._timeout_s = timeout_s
        self._is_read = asyncio.Event()
        self.was_slow = False
        """Whether `chunks` raised BodyTooSlow; for a reader whose own library makes something else of it."""

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises ClientGone when the client hangs up before its end, and BodyTooSlow."""
        left_s = self._timeout_s  # the reader's own time does not count
        step_bytes = 0
        loop = asyncio.get_running_loop()
        while not self._is_read.is_set():
            began = loop.time()
            try:
                async with asyncio.timeout(left_s):
                    piece = await self._next()
            except TimeoutError:
                self.was_slow = True
                raise self.too_slow() from None
            left_s -= loop.time() - began
            step_bytes += len(piece)
            if step_bytes >= STEP_BYTES:
                left_s, step_bytes = self._timeout_s, 0
            if piece:
                yield piece

    async def whole(self, limit: int, take: Callable[[int], None] | None = None) -> bytes | None:
        """The body, or None as soon as it is, or says that it will be, longer than `limit` bytes.

        Raises ClientGone and BodyTooSlow.

        `take` is told of each piece's size before it is kept; what it raises is raised.
        """
        come = self.nearby.whole_body() if self.nearby is not None else None
        if come is not None:
            self._is_read.set()
            if take is not None:
                take(len(come))
            return come if len(come) <= limit else None
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._timeout_s):
                while not self._is_read.is_set():
                    piece = await self._next()
                    size += len(piece)
                    if size > limit or (self.nearby is not None and self.nearby.announced > limit):
                        return None
                    if take is not None:
                        take(len(piece))
                    pieces.append(piece)
        except TimeoutError:
            raise self.too_slow() from None
        return b"".join(pieces)

    async def gone(self) -> None:
        """Returns when the client hangs up after its body was read."""
        await self._is_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def too_slow(self) -> BodyTooSlow:
        """What is raised when the body does not come."""
        part = f", nor {STEP_BYTES // 1024} KB of it" if self.was_slow else ""
        return BodyTooSlow(f"the request's body did not arrive within {self._timeout_s:g} s{part} (body_timeout_s)")

    async def _next(self) -> bytes:
        """The next piece of the body, which may be empty."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        if not message.get("more_body", False):
            self._is_read.set()
        piece: bytes = message.get("body", b"")
        return piece


class Outgoing:
    """A reply. Waits where the client reads slowly, so that the upstream is read no faster."""

    def __init__(self, send: Send, nearby: Nearby | None = None) -> None:
        """`nearby` is the server's extension, where `send` is the server's own and leads through nobody else."""
        self._send = send
        self._nearby = nearby
        self.status: int | None = None

    async def start(self, status: int, headers: HeaderList, phrase: bytes = b"") -> None:
        """Sends the head. `phrase` is for a status that nobody knows, and a word that only our own server knows."""
        self.status = status
        message: Message = {"type": "http.response.start", "status": status, "headers": headers}
        if phrase:
            message[PHRASE] = phrase
        await self._send(message)

    async def write(self, data: bytes) -> None:
        """Sends a piece of the body."""
        if self._nearby is not None and self._nearby.took(data):
            return
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """Ends the body. A reply that never ends is cut off by the server, which is how a broken one is told."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(self, status: int, headers: HeaderList, body: bytes, phrase: bytes = b"") -> None:
        """A reply in one piece; its length is added to the headers, but for 204, which has none."""
        length = [] if status == _NO_CONTENT else [(b"content-length", str(len(body)).encode())]
        await self.start(status, [*headers, *length], phrase)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


async def unless_gone(incoming: Incoming, story: Coroutine[Any, Any, None]) -> bool:
    """Runs `story` to its end; cancels it when the client hangs up, and is False then. Raises what `story` raises."""
    work = asyncio.current_task()
    is_gone = is_over = False

    def on_gone(_news: object = None) -> None:
        nonlocal is_gone
        if work is not None and not is_over:
            is_gone = work.cancel()

    news: asyncio.Future[None] | None = None
    if incoming.nearby is not None:
        incoming.nearby.tell_gone(on_gone)
    else:
        news = asyncio.ensure_future(incoming.gone())
        news.add_done_callback(on_gone)
    try:
        await story
    except ClientGone:
        return False
    except asyncio.CancelledError:
        if work is not None and is_gone and work.uncancel() == 0:
            return False
        raise
    finally:
        is_over = True
        if news is not None:
            news.cancel()
            await asyncio.gather(news, return_exceptions=True)
    return True
