"""A web server on loopback that tells what it was asked, byte for byte, or answers from a script."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What to answer; `pieces` after the body, each sent on its own."""

    status: int = 200
    body: bytes = b'{"ok": true}'
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    pieces: Callable[[], Iterator[bytes]] | None = None


@dataclass
class Web:
    """The server's address and what it was asked so far; `answer` may be replaced."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    answer: Callable[[Asked], Answer] = lambda _: Answer()

    @property
    def last(self) -> Asked:
        """The last request."""
        return self.asked[-1]


@contextmanager
def web_server() -> Iterator[Web]:
    """Serves until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, self.rfile.read(length))
            web.asked.append(asked)
            answer = web.answer(asked)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.pieces is None:
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)
                return
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            try:
                for piece in answer.pieces():
                    self.wfile.write(piece)
            except OSError:
                pass  # the client has gone, as a test may want

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = handle_any  # noqa: N815 - the base class names them so

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    web = Web(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def fields_of(asked: Asked) -> list[tuple[dict[str, str], bytes]]:
    """The parts of a multipart form: headers in lower case, and content."""
    boundary = asked.headers["content-type"].partition("boundary=")[2].encode()
    parts = []
    for piece in asked.body.split(b"--" + boundary)[1:-1]:
        head, _, content = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        parts.append(({name.lower(): value for name, value in headers.items()}, content.removesuffix(b"\r\n")))
    return parts


def as_json(value: object) -> Answer:
    """A JSON answer."""
    return Answer(body=json.dumps(value).encode())
