"""Connections to upstreams: dialled when none is free, kept for the next request to the same place.

Knows: addresses, certificates, how long dialling may take. Does not know: requests.
"""

import asyncio
import socket
import ssl
from functools import partial
from typing import NamedTuple

import aiohappyeyeballs

from interpose.gateway.client import IDLE_S, Connection, Fault, undialled

_NEXT_ADDRESS_S = 0.25
"""After how long the next address of a host is tried beside the one before (RFC 8305)."""


class Origin(NamedTuple):
    """Where connections go; those to one origin may be used for each other. `tls` is None for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None


class Pool:
    """The connections of one event loop. One that nobody uses is kept for `idle_s`."""

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._free: dict[Origin, dict[Connection, None]] = {}
        self._all: set[Connection] = set()

    def free(self, origin: Origin) -> Connection | None:
        """A connection that was used before, the last one first; None where none is free.

        One whose upstream has closed it by now is not among them, also where the loop has not heard of that yet.
        """
        kept = self._free.get(origin)
        while kept:
            connection, _ = kept.popitem()
            if not connection.is_open:
                continue
            if not connection.has_news:
                return connection
            connection.close()
        return None

    async def dial(self, origin: Origin, timeout_s: float) -> Connection:
        """A new connection. Raises Fault when the host does not take it, or not in time."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._dialled(origin)
        except TimeoutError:
            raise undialled(timeout_s) from None
        except OSError as error:
            raise Fault(_words(error), was_reached=False, may_repeat=True) from error

    def cut(self) -> None:
        """Closes all connections; who uses one is told that it was cut off."""
        for connection in tuple(self._all):
            connection.cut()

    def close(self) -> None:
        """Closes all connections, also those that are in use; idempotent."""
        for connection in tuple(self._all):
            connection.close()
        self._all.clear()
        self._free.clear()

    async def _dialled(self, origin: Origin) -> Connection:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        connected = await aiohappyeyeballs.start_connection(found, happy_eyeballs_delay=_NEXT_ADDRESS_S, interleave=1)
        try:
            _, connection = await loop.create_connection(
                partial(Connection, partial(self._keep, origin), partial(self._forget, origin), idle_s=self._idle_s),
                sock=connected,
                ssl=origin.tls,
                server_hostname=origin.host.rstrip(".") if origin.tls else None,
            )
        except BaseException:
            connected.close()
            raise
        self._all.add(connection)
        return connection

    def _keep(self, origin: Origin, connection: Connection) -> None:
        self._free.setdefault(origin, {})[connection] = None

    def _forget(self, origin: Origin, connection: Connection) -> None:
        self._all.discard(connection)
        kept = self._free.get(origin)
        if kept is None:
            return
        kept.pop(connection, None)
        if not kept:
            del self._free[origin]


def _words(error: OSError) -> str:
    match error:
        case socket.gaierror():
            return "the name of the host is not known"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error}"
        case _:
            return f"the host does not take the connection: {error.strerror or error}"
