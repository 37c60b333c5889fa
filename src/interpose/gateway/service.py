"""What all connections of one server share: what is served, who is told, when it ends.

Knows: draining. Does not know: HTTP, sockets.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from interpose.gateway.asgi import App, HeaderList
from interpose.gateway.heads import Limits, Refusal

TOLD_S = 1.0
"""How long each of three steps may take by which what is still open is cut off: asked to end, cancelled, closed."""

STOP_S = 3 * TOLD_S
"""How long they take together."""


class Open(Protocol):
    """An open connection, as far as its server goes."""

    def shut(self) -> None:
        """Ends it, behind the reply that is under way."""

    def abort(self) -> None:
        """Ends it at once."""


class Others(Protocol):
    """The other workers, where there are several."""

    def owner(self, target: bytes, headers: HeaderList) -> int | None:
        """The worker that a request belongs to; None where it may be served here."""

    def give(self, transport: asyncio.BaseTransport, data: bytes, owner: int) -> None:
        """Gives a connection, and what was read of its next request, to that worker. It is still open here, too."""


class Service:
    """One application while it is served. Belongs to the server's loop.

    Attributes:
        app: what is served, within `limits`.
        on_refused: told of each connection that is ended below the application.
        on_cut: called when the time is over that open replies had to end; within TOLD_S they should. None for nobody.
        cut_off: how many replies the end cut off.
        others: the workers beside this one, to whom a connection goes whose next request is theirs.
        connections: those that are open, and `tasks` the requests that are served on them.
        is_stopping: whether no request is served any more but those that are.
    """

    def __init__(
        self,
        app: App,
        limits: Limits,
        on_refused: Callable[[Refusal], None],
        on_cut: Callable[[], None] | None = None,
        others: Others | None = None,
    ) -> None:
        self.app = app
        self.limits = limits
        self.on_refused = on_refused
        self.on_cut = on_cut
        self.cut_off = 0
        self.others = others
        self.connections: set[Open] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.is_stopping = False
        self._empty: asyncio.Future[None] | None = None

    def discard(self, connection: Open) -> None:
        """A connection has ended."""
        self.connections.discard(connection)
        if self._empty is not None and not self.connections and not self._empty.done():
            self._empty.set_result(None)

    async def stop(self, timeout_s: float) -> None:
        """Lets the replies end that are under way, at most `timeout_s`; then cuts them off, which is told within 3 s.

        First the application is asked to end its replies, as it can say best what happened; a request that is not over
        then is cancelled, and may still be answered; at last all connections are closed.
        """
        self.is_stopping = True
        self._empty = asyncio.get_running_loop().create_future()
        for connection in tuple(self.connections):
            connection.shut()
        await self._ended(timeout_s)
        self.cut_off = len(self.connections)
        if self.tasks and self.on_cut is not None:
            self.on_cut()
            await self._ended(TOLD_S)
        for task in self.tasks:
            task.cancel()
        await self._ended(TOLD_S)
        for connection in tuple(self.connections):
            connection.abort()
        await self._ended(TOLD_S)

    async def _ended(self, timeout_s: float) -> None:
        """Returns when no connection and no request is left, or the time is over."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + timeout_s
        if self.connections and self._empty is not None:
            await asyncio.wait((self._empty,), timeout=timeout_s)
        if self.tasks:
            await asyncio.wait(tuple(self.tasks), timeout=max(0.0, ends_at - loop.time()))
