"""Handing a connection from one process to another: the file descriptor, and the bytes that were read from it.

Knows: the frames on the channel between the two, which requests belong together.
Does not know: processes, HTTP servers.
"""

import hashlib
import re
import socket
from dataclasses import dataclass

from interpose.gateway.routes import SESSION_HEADERS, split_launch

HEAD_END = b"\r\n\r\n"
_LENGTH_BYTES = 4
_ORIGIN = re.compile(rb"\Ahttps?://[^/?#]*", re.IGNORECASE)
"""What an absolute request target has before its path."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A connection, and what its client has sent so far."""

    connection: socket.socket
    data: bytes


def hand_over(channel: socket.socket, handed: Handed) -> None:
    """Gives `handed` to the process at the other end and lets go of it here. Waits while the other end is busy.

    Raises OSError when the other end is gone; the connection is then still here. One thread at a time.
    """
    frame = len(handed.data).to_bytes(_LENGTH_BYTES, "big") + handed.data
    sent = socket.send_fds(channel, [frame], [handed.connection.fileno()])
    if sent < len(frame):  # else it is there, and may have been served already
        channel.sendall(frame[sent:])
    handed.connection.close()


def take_over(channel: socket.socket) -> Handed | None:
    """The next connection; waits for one. None when the other end has closed the channel. One thread at a time.

    Raises OSError when the channel ends in the middle of a connection.
    """
    head, descriptors, _, _ = socket.recv_fds(channel, _LENGTH_BYTES, 1)
    if not head:
        return None
    connection = socket.socket(fileno=descriptors[0])
    try:
        head += _exactly(channel, _LENGTH_BYTES - len(head))
        return Handed(connection, _exactly(channel, int.from_bytes(head, "big")))
    except OSError:
        connection.close()
        raise


def owner_of(head: bytes, workers: int) -> int | None:
    """Which worker a request belongs to: by its launch, else by the session it names; None when any will do.

    `head` are the first bytes of a connection. Requests of one launch, or of one session, have one owner.
    """
    key = _key(head)
    if key is None:
        return None
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") % workers


def _key(head: bytes) -> bytes | None:
    first, _, rest = head.partition(HEAD_END)[0].partition(b"\r\n")
    words = first.split(b" ")
    secret, _ = split_launch(_ORIGIN.sub(b"", words[1]) if len(words) > 1 else b"")
    if secret is not None:
        return b"launch " + secret.encode("latin-1")
    named: dict[bytes, bytes] = {}
    for line in rest.split(b"\r\n"):
        name, _, value = line.partition(b":")
        named.setdefault(name.strip().lower(), value.strip())
    return next((b"session " + named[name] for name in SESSION_HEADERS if named.get(name)), None)


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = channel.recv(size - len(data))
        if not chunk:
            raise ConnectionError("the channel was closed in the middle of a connection")
        data += chunk
    return data
