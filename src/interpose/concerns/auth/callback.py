"""The address on this machine to which a browser comes back after a sign-in.

Knows: one answer with the right state, and that browsers ask for more than that. Does not know: what the answer is for.
"""

import functools
import hmac
import logging
import os
import socketserver
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from interpose.contracts.errors import ConfigError

_log = logging.getLogger(__name__)

_PATH = "/callback"
_LOOK_S = 0.2  # how often the server looks whether it is over
_PAGE = "<!doctype html><meta charset=utf-8><title>interpose</title><p>{}"


class Callback:
    """Listens on 127.0.0.1 until one answer with `state` has come, `lifetime_s` is over, or `close`.

    Any other request (another path, another state, none) is turned away and changes nothing. Raises ConfigError when
    `port` is taken; 0 takes a free one. Any thread may look at `answer`.
    """

    def __init__(self, state: str, *, port: int, lifetime_s: float) -> None:
        self._state = state
        self._over = threading.Event()
        self._answering = threading.Lock()
        self._answer: dict[str, str] | None = None
        try:
            self._server = _Server(("127.0.0.1", port), functools.partial(_Handler, self))
        except OSError as error:
            raise ConfigError(f"port {port}", f"cannot be listened on: {error.strerror}", "port=0 takes any") from error
        self.redirect_uri = f"http://127.0.0.1:{self._server.server_address[1]}{_PATH}"
        self._thread = threading.Thread(
            target=self._serve, args=(time.monotonic() + lifetime_s,), name="interpose-sign-in", daemon=True
        )
        self._thread.start()

    @property
    def answer(self) -> Mapping[str, str] | None:
        """The parameters of the one answer, or None while it has not come."""
        return self._answer

    def close(self) -> None:
        """Stops listening. Idempotent."""
        self._over.set()
        self._thread.join(10 * _LOOK_S)

    def take(self, path: str) -> tuple[HTTPStatus, str]:
        """What one request to `path` gets: a status and a sentence."""
        parts = urlsplit(path)
        if parts.path != _PATH:
            return HTTPStatus.NOT_FOUND, "There is nothing here."

        parameters = parse_qs(parts.query)
        given = {name: values[0] for name, values in parameters.items() if len(values) == 1}
        if not hmac.compare_digest(given.get("state", "").encode(), self._state.encode()):
            _log.warning("an answer with another state came to %s; still waiting for the right one", self.redirect_uri)
            return HTTPStatus.BAD_REQUEST, "This answer belongs to another sign-in. Open the latest link again."
        if not (given.get("code") or given.get("error")):
            return HTTPStatus.BAD_REQUEST, "This answer has neither a code nor an error."

        with self._answering:
            self._answer = self._answer or given
        self._over.set()
        if "error" in given:
            return HTTPStatus.OK, "You have not signed in. You may close this page."
        return HTTPStatus.OK, "You have signed in. You may close this page."

    def _serve(self, end: float) -> None:
        with self._server as server:
            server.timeout = _LOOK_S
            while not self._over.is_set() and time.monotonic() < end:
                server.handle_request()


class _Server(socketserver.ThreadingTCPServer):
    """A thread for each request, since browsers open connections that they do not use."""

    allow_reuse_address = os.name == "posix"  # elsewhere it would let two listen on one port
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's
        _log.debug("a request to the sign-in address broke off", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    timeout = 5.0

    def __init__(self, callback: Callback, *args: Any) -> None:
        self._callback = callback
        super().__init__(*args)

    def do_GET(self) -> None:
        status, sentence = self._callback.take(self.path)
        page = _PAGE.format(sentence).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": str(len(page)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "Connection": "close",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's
        """Nothing: the path holds the code."""
