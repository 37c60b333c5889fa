"""Peers on raw sockets for end-to-end tests: servers that misbehave, and what they were sent."""

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
HEAD_END = b"\r\n\r\n"


class Peer:
    """A server in a thread; `serve` is given each connection in a thread of its own, and its number from 1 on."""

    def __init__(self, serve: Callable[[socket.socket, int], None], tls: ssl.SSLContext | None = None) -> None:
        self._serve = serve
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.connections = 0

    def __enter__(self) -> "Peer":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exit_info: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._run, args=(connection, self.connections), daemon=True).start()

    def _run(self, connection: socket.socket, number: int) -> None:
        with suppress(OSError), connection:
            connection.settimeout(10)
            if self._tls is None:
                self._serve(connection, number)
                return
            with self._tls.wrap_socket(connection, server_side=True) as wrapped:
                self._serve(wrapped, number)


def read_request(connection: socket.socket) -> bytes:
    """One request with its body; b"" when the client closed the connection instead."""
    data = b""
    while HEAD_END not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return b""
        data += chunk
    head, _, body = data.partition(HEAD_END)
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + HEAD_END + body
