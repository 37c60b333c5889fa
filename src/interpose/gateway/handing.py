"""Handing a connection from one process to another: the file descriptor, and the bytes that were read from it.

Knows: the frames on the channel between the two, which requests belong together.
Does not know: processes, HTTP servers.
"""

import hashlib
import os
import re
import socket
import struct
from asyncio import BaseTransport
from collections.abc import Iterable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread

from interpose.gateway.routes import SESSION_HEADERS, split_launch

HEAD_END = b"\r\n\r\n"
NOBODY = -1
_FRAME = struct.Struct("!Ih")
_ORIGIN = re.compile(rb"\Ahttps?://[^/?#]*", re.IGNORECASE)
"""What an absolute request target has before its path."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A connection, and what its client has sent so far; `owner` is the worker it is for, where its giver knows."""

    connection: socket.socket
    data: bytes
    owner: int = NOBODY


class OtherWorkers:
    """The workers beside this one, reached through whoever gave it its connections. Belongs to one loop."""

    def __init__(self, channel: socket.socket, *, worker: int, workers: int) -> None:
        self._channel = channel
        self._worker = worker
        self._workers = workers
        self._queue: SimpleQueue[Handed] = SimpleQueue()
        self._thread: Thread | None = None

    def owner(self, target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
        """The worker that a request belongs to; None where that is this one, or any."""
        owner = owner_of_request(target, headers, self._workers)
        return None if owner == self._worker else owner

    def give(self, transport: BaseTransport, data: bytes, owner: int) -> None:
        """Gives the connection behind `transport` to a worker; what is open here may be closed then."""
        descriptor = os.dup(transport.get_extra_info("socket").fileno())
        self._queue.put(Handed(socket.socket(fileno=descriptor), data, owner))
        if self._thread is None:
            self._thread = Thread(target=self._give_all, name="interpose-others", daemon=True)
            self._thread.start()

    def _give_all(self) -> None:
        """A thread of its own, since the other end may be busy."""
        while True:
            handed = self._queue.get()
            try:
                hand_over(self._channel, handed)
            except OSError:
                handed.connection.close()


def hand_over(channel: socket.socket, handed: Handed) -> None:
    """Gives `handed` to the process at the other end and lets go of it here. Waits while the other end is busy.

    Raises OSError when the other end is gone; the connection is then still here. One thread at a time.
    """
    frame = _FRAME.pack(len(handed.data), handed.owner) + handed.data
    sent = socket.send_fds(channel, [frame], [handed.connection.fileno()])
    if sent < len(frame):  # else it is there, and may have been served already
        channel.sendall(frame[sent:])
    handed.connection.close()


def take_over(channel: socket.socket) -> Handed | None:
    """The next connection; waits for one. None when the other end has closed the channel. One thread at a time.

    Raises OSError when the channel ends in the middle of a connection.
    """
    head, descriptors, _, _ = socket.recv_fds(channel, _FRAME.size, 1)
    if not head:
        return None
    connection = socket.socket(fileno=descriptors[0])
    try:
        size, owner = _FRAME.unpack(head + _exactly(channel, _FRAME.size - len(head)))
        return Handed(connection, _exactly(channel, size), owner)
    except OSError:
        connection.close()
        raise


def owner_of(head: bytes, workers: int) -> int | None:
    """Which worker a request belongs to: by its launch, else by the session it names; None when any will do.

    `head` are the first bytes of a connection. Requests of one launch, or of one session, have one owner.
    """
    first, *lines = head.partition(HEAD_END)[0].split(b"\r\n")
    words = first.split(b" ")
    headers = ((name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines))
    return owner_of_request(words[1] if len(words) > 1 else b"", headers, workers)


def owner_of_request(target: bytes, headers: Iterable[tuple[bytes, bytes]], workers: int) -> int | None:
    """The same of a head that was parsed; names in lower case."""
    key = _key(target, headers)
    if key is None:
        return None
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") % workers


def _key(target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    secret, _ = split_launch(_ORIGIN.sub(b"", target))
    if secret is not None:
        return b"launch " + secret.encode("latin-1")
    named: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in SESSION_HEADERS:
            named.setdefault(name, value.strip())
    return next((b"session " + named[name] for name in SESSION_HEADERS if named.get(name)), None)


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = channel.recv(size - len(data))
        if not chunk:
            raise ConnectionError("the channel was closed in the middle of a connection")
        data += chunk
    return data
