"""gateway.server on real sockets: starting, stopping, what a client can still read, other servers."""

import asyncio
import http.client
import json
import socket
import threading
from contextlib import nullcontext, suppress
from typing import Any

import httpx
import pytest
import uvicorn

from interpose.contracts.errors import MisuseError
from interpose.gateway.asgi import Receive, Scope, Send
from interpose.gateway.connection import Limits, Refusal
from interpose.gateway.server import ThreadedServer
from interpose.gateway.settings import Upstreams
from interpose.testing.upstream import RawBody, RawStream, Reply, Slow, Step, Text
from tests.e2e.house import House

pytestmark = pytest.mark.e2e

GOOD = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


class Application:
    """Answers each request, and tells what it was told; it may refuse to start."""

    def __init__(self, start: str = "lifespan.startup.complete") -> None:
        self.seen: list[str] = []
        self._start = start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's entry."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        self.seen.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def _live(self, receive: Receive, send: Send) -> None:
        self.seen.append((await receive())["type"])
        if self._start == "raise":
            raise LookupError("no luck")
        await send({"type": self._start, "message": "not today"})
        if self._start.endswith("complete"):
            self.seen.append((await receive())["type"])
            await send({"type": "lifespan.shutdown.complete"})


def status_of(url: str, path: str = "/x", body: bytes | None = None) -> int:
    """The status of one request's answer."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    try:
        connection.request("POST" if body else "GET", path, body)
        return connection.getresponse().status
    finally:
        connection.close()


def test_an_application_lives_as_long_as_its_server() -> None:
    """It is told of the start before its first request, and of the end behind the last."""
    application = Application()
    with ThreadedServer(application) as server:
        assert status_of(server.url) == 200

    assert application.seen == ["lifespan.startup", "/x", "lifespan.shutdown"]
    with pytest.raises(OSError, match="refused"):
        status_of(server.url)


@pytest.mark.parametrize(("start", "words"), [("raise", "no luck"), ("lifespan.startup.failed", "not today")])
def test_an_application_that_does_not_start(start: str, words: str) -> None:
    """Starting its server says why."""
    with pytest.raises(MisuseError, match=words):
        ThreadedServer(Application(start)).start()


def test_stopping_before_it_was_started() -> None:
    """Nothing is left behind."""
    server = ThreadedServer(Application())
    server.stop()
    with suppress(MisuseError):
        server.start()
    server.stop()


def test_a_refusal_can_be_read_behind_a_body_that_is_still_sent() -> None:
    """The connection is not torn down under the answer."""
    body = b"x" * 3_000_000
    with House([], body_bytes=1_000) as house:
        for _ in range(5):
            status, _, answer = house.raw("POST", "/v1/messages", body)
            assert status == 413
            assert b"at most 1000 bytes" in answer
        large = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 2_000_000
        assert house.wire(large).startswith(b"HTTP/1.1 431")


def test_refusals_are_told() -> None:
    """To whoever the server was given, also those without an answer."""
    heard: list[Refusal] = []
    limits = Limits(connections=1, header_s=0.2)
    with ThreadedServer(Application(), limits=limits, on_refused=heard.append) as server:
        where = ("127.0.0.1", server.port)
        with socket.create_connection(where, timeout=10) as first:
            first.sendall(b"GET /slow HTT")
            with socket.create_connection(where, timeout=10) as second, suppress(ConnectionResetError):
                assert second.recv(1) == b""
            assert first.recv(65536).startswith(b"HTTP/1.1 408")

    assert [(refusal.kind, refusal.status) for refusal in heard] == [("crowded", 0), ("slow", 408)]


def test_refusals_are_counted_and_journalled() -> None:
    """Where the gateway is what the server tells."""
    with House([]) as house:
        house.wire(b"GET / HTTP/1.1\r\n\r\n")
        _, _, metrics = house.raw("GET", "/metrics")
        (record,) = house.journal.of_step("failed")

    assert (record.outcome, record.data["connection"]) == ("not_heard", "ambiguous")
    assert b'interpose_connections_refused_total{reason="ambiguous"} 1.0\n' in metrics


def test_a_client_that_hangs_up_ends_its_request_upstream() -> None:
    """Also where it does so before the first byte of the answer."""
    gate = threading.Event()
    with House([RawStream([gate])] * 2) as house:
        for number in (1, 2):
            with socket.create_connection(("127.0.0.1", int(house.url.rpartition(":")[2])), timeout=10) as connection:
                head = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(GOOD)
                connection.sendall(head + GOOD)
                house.until(lambda number=number: len(house.upstream.requests) == number)  # type: ignore[misc]
            assert house.upstream.wait_for_hangup(number, 10)
        house.until(lambda: len(house.journal.of_step("request")) == 2)
        outcomes = [record.outcome for record in house.journal.of_step("request")]
        gate.set()

    assert outcomes == ["client_gone"] * 2


def test_connections_serve_many_requests_at_once_and_after_each_other() -> None:
    """A pool of a real client, with bodies of all sizes, gets each its own answer."""

    async def echo(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await Application()(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            await send({"type": "http.response.body", "body": message.get("body", b""), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def story(url: str) -> None:
        limits = httpx.Limits(max_connections=8)
        async with httpx.AsyncClient(limits=limits, timeout=20) as client:

            async def ask(number: int) -> None:
                body = b"%d;" % number * (number * number * 10)
                assert (await client.post(url, content=body)).content == body

            await asyncio.gather(*[ask(number) for number in range(60)])

    with ThreadedServer(echo) as server:
        asyncio.run(story(server.url))


class _QuietServer(uvicorn.Server):
    """In a thread, where signals cannot be had."""

    def capture_signals(self) -> Any:
        """Leaves them."""
        return nullcontext()


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/embeddings"])
def test_the_gateway_is_an_ordinary_application(path: str) -> None:
    """It may be mounted under another server, which knows none of our extensions."""
    script: list[Step] = [Reply(Text("x")) if path == "/v1/messages" else RawBody(b"{}", "application/json")]
    with House(script, strict=False) as house:
        urls = Upstreams(house.upstream.url, house.upstream.url, house.upstream.url)
        config = uvicorn.Config(house.another(upstreams=urls), lifespan="on", log_config=None, ws="none")
        server = _QuietServer(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
            thread.start()
            house.until(lambda: server.started)
            try:
                assert status_of(f"127.0.0.1:{listener.getsockname()[1]}", path, GOOD) == 200
            finally:
                server.should_exit = True
                thread.join(10)
        (request,) = house.upstream.requests

    assert request.body == GOOD


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_who_sends_nothing_more_is_answered(is_streamed: bool, version: bytes) -> None:
    """A client that closes its sending side behind its request still reads, and is not shown life again and again."""
    gate = threading.Event()
    body = json.dumps({"model": "m", "stream": is_streamed, "messages": [{"role": "user", "content": "a"}]}).encode()
    with (
        House([Slow(Reply(Text("hello")), gate)]) as house,
        socket.create_connection(("127.0.0.1", int(house.url.rpartition(":")[2])), timeout=10) as client,
    ):
        client.sendall(b"POST /v1/chat/completions HTTP/%b\r\nHost: 127.0.0.1\r\n" % version)
        client.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        client.shutdown(socket.SHUT_WR)
        threading.Timer(0.7, gate.set).start()
        answer = b""
        while chunk := client.recv(65536):
            answer += chunk

    assert b"HTTP/1.1 200 OK" in answer
    assert b"hello" in answer
    assert answer.count(b"100 Continue") == (1 if version == b"1.1" else 0)


def test_who_left_altogether_is_noticed() -> None:
    """Behind its request a client's end looks as if only its sending side were closed."""
    gate = threading.Event()
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "a"}]}).encode()
    with House([Slow(Reply(Text("hello")), gate)]) as house:
        with socket.create_connection(("127.0.0.1", int(house.url.rpartition(":")[2])), timeout=10) as client:
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            client.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            house.until(lambda: len(house.upstream.requests) == 1)
        house.until(lambda: [record.outcome for record in house.journal.of_step("request")] == ["client_gone"])
        gate.set()
