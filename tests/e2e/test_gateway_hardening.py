"""Bad input of every kind: a clear error or a closed connection, no corrupted stream, and the gateway stays up."""

import gzip
import json
import socket
import threading
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from interpose.contracts.ports import Policy
from interpose.contracts.stages import ToolCall
from interpose.gateway.app import Gateway
from interpose.gateway.asgi import STEP_BYTES
from interpose.gateway.connection import Limits
from interpose.gateway.server import ThreadedServer
from interpose.gateway.settings import GatewaySettings, Target, Upstreams
from interpose.kernel.clock import SystemClock
from interpose.kernel.ids import digest_of_secret
from interpose.testing.fakes import FakeLaunches, FakeWorkspaces
from interpose.testing.journal import MemoryJournal
from interpose.testing.upstream import RawBody, RawStream, Reply, Slow, Text
from tests.e2e.house import House
from tests.e2e.peers import ANSWER, Peer, read_request

pytestmark = pytest.mark.e2e

PROMISE_FACTOR = 3

APIS = ["/v1/messages", "/v1/chat/completions"]
SSE = b"text/event-stream"
GOOD = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
POST = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def still_serves(house: House) -> bool:
    """Whether an ordinary request is answered after all that."""
    return house.raw("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        POST + b"Content-Length: 2, 2\r\n\r\n{}",
        POST + b"Content-Length: +2\r\n\r\n{}",
        POST + b"Content-Length : 2\r\n\r\n{}",
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"POST /v1/messages HTTP/1.0\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"X-Folded: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
        POST + b"X: y\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/messages HTTP/1.1\nHost: 127.0.0.1\n\n",
        POST + b"X: y\rZ: 0\r\n\r\n",
        POST + b"X: a\0b\r\n\r\n",
        POST + b"Host: evil.example\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/messages HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        POST + b"Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST  /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/messages  HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST\t/v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/messages\tHTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/messages\x0bHTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/messages HTTP/1.1 \r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b" POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b"ANNOUNCE /v1/messages RTSP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1 evil\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1/x\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/messages#x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
        POST + b"Content-Length: " + b"0" * 5_000 + b"2\r\n\r\n{}",
        b"CONNECT api.anthropic.com:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
)
def test_what_two_readers_may_read_differently_is_refused(request_bytes: bytes) -> None:
    """A request that could hide another one never reaches the upstream; its connection is closed behind a 400."""
    with House([Reply(Text("x"))] * 3) as house:
        answer = house.wire(request_bytes + GET + b"\r\n")
        asked = list(house.upstream.requests)
        assert still_serves(house)

    assert answer.startswith(b"HTTP/1.1 4")
    assert answer.count(b"HTTP/1.1") == 1
    assert b'"message"' in answer
    assert asked == []


@pytest.mark.parametrize("spaced", [b"GET  /healthz HTTP/1.1", b"GET /healthz  HTTP/1.1"])
def test_a_first_line_with_more_spaces_is_told_so(spaced: bytes) -> None:
    """Also where it comes in one read with the request before it."""
    with House([]) as house:
        answer = house.wire(spaced + b"\r\nHost: 127.0.0.1\r\n\r\n")
        behind = house.wire(GET + b"\r\n" + spaced + b"\r\nHost: 127.0.0.1\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"with one space between them" in answer
    assert [line[9:12] for line in behind.split(b"\n") if line.startswith(b"HTTP/1.1")] == [b"200"]
    assert b"with one space between them" in behind


@pytest.mark.parametrize(
    "head",
    [
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    ],
)
@pytest.mark.parametrize("path", [b"/v1/messages", b"/v1/chat/completions"])
def test_a_chunk_that_will_be_too_large_is_refused_at_once(path: bytes, head: bytes) -> None:
    """Nobody waits for what it says that it will send, and what it said before is forgotten."""
    start = b"POST " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with House([], body_bytes=1_000) as house:
        address = urlsplit(house.url)
        with socket.create_connection((str(address.hostname), address.port), timeout=10) as connection:
            connection.sendall(start + head + b"3e7\r\n")
            connection.sendall(b"x" * 10 if b"{}" in head else b"x" * 999 + b"\r\n40000000\r\n")
            came = b""
            while b"\r\n\r\n" not in (answer := came.removeprefix(CONTINUE)):
                came += connection.recv(65536)
        assert still_serves(house)

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_white_space_behind_a_length_is_none_of_it() -> None:
    """What is declared too large is refused before it comes."""
    with House([], body_bytes=1_000) as house:
        answer = house.wire(POST + b"Content-Length: 1001 \t\r\nConnection: close\r\n\r\n", timeout_s=5)

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_garbage_behind_a_request_does_not_corrupt_its_reply() -> None:
    """A reply under way comes to its end, and the error stands behind it."""
    gate = threading.Event()
    stream = RawStream([b": first\n\n", gate, b": last\n\n"])
    with House([stream]) as house:
        address = urlsplit(house.url)
        with socket.create_connection((str(address.hostname), address.port), timeout=10) as connection:
            connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD)
            answer = b""
            while b": first" not in answer:
                answer += connection.recv(65536)
            connection.sendall(b"\x00\x00garbage\r\n\r\n")
            gate.set()
            with suppress(ConnectionResetError):
                while chunk := connection.recv(65536):
                    answer += chunk
        assert still_serves(house)

    reply, _, refused = answer.partition(b"\r\n0\r\n\r\n")
    assert b": last" in reply
    assert refused.startswith(b"HTTP/1.1 400 ")


LIMITS = Limits(header_s=0.3, idle_s=0.3, header_bytes=2_000, headers=20)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /healthz HT", b"408"),
        (POST + b"X: slow", b"408"),
        (b"\r\n", b"408"),
        (b"", b""),
        (GET + b"X: " + b"x" * 3_000 + b"\r\n\r\n", b"431"),
        (GET + b"X: " + b"x" * 300_000, b"431"),
        (GET + b"X: y\r\n" * 30 + b"\r\n", b"431"),
        (b"GET /" + b"x" * 3_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"431"),
    ],
)
def test_heads_that_are_slow_or_large_end_the_connection(sent: bytes, status: bytes) -> None:
    """A head that does not come, does not end or is too large is told so where there is something to answer."""
    with House([], limits=LIMITS) as house:
        answer = house.wire(sent)
        assert still_serves(house)

    assert answer.partition(b"\r\n")[0].split(b" ")[1:2] == ([status] if status else [])


def test_a_client_that_drips_is_no_reason_to_wait() -> None:
    """One byte now and then does not keep a head open: its time is counted from its first byte."""
    with House([], limits=Limits(header_s=0.4)) as house:
        address = urlsplit(house.url)
        with socket.create_connection((str(address.hostname), address.port), timeout=0.05) as connection:
            answer = b""
            for byte in GET * 100:
                with suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
                    connection.sendall(bytes((byte,)))
                    answer = connection.recv(65536)
                if answer:
                    break

    assert answer.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("path", [*APIS, "/v1/embeddings"])
def test_a_body_that_does_not_come(path: str) -> None:
    """A judged body has one time for all of it, others may not fall silent: 408 in the API's shape."""
    request = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n{" % path.encode()
    with House([], body_timeout_s=0.3) as house:
        answer = house.wire(request)
        assert still_serves(house)

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in head
    assert "body did not arrive" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize("path", [APIS[0], "/v1/embeddings"])
def test_a_body_that_drips(path: str) -> None:
    """A byte now and then does not make its time longer, whether it is judged or not."""
    with (
        House([], body_timeout_s=0.5) as house,
        socket.create_connection(("127.0.0.1", int(house.url.rpartition(":")[2])), timeout=10) as client,
    ):
        began = time.monotonic()
        client.sendall(b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n" % path.encode())
        client.settimeout(0.1)
        answer = b""
        while not answer and time.monotonic() < began + 20:
            with suppress(TimeoutError):
                client.sendall(b"x")
                answer = client.recv(65536)
        took_s = time.monotonic() - began

    assert answer.startswith(b"HTTP/1.1 408")
    assert took_s < 0.5 * PROMISE_FACTOR


def test_a_large_body_that_streams_through_may_take_its_time() -> None:
    """As long as enough of it comes within each limit."""
    piece = b"x" * STEP_BYTES
    with (
        House([RawBody(b"{}", "application/json")], strict=False, body_timeout_s=1.2) as house,
        socket.create_connection(("127.0.0.1", int(house.url.rpartition(":")[2])), timeout=10) as client,
    ):
        head = b"POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % (4 * len(piece))
        client.sendall(head)
        for _ in range(4):
            threading.Event().wait(0.35)
            client.sendall(piece)
        answer = client.recv(65536)

    assert answer.startswith(b"HTTP/1.1 200")


def test_no_more_than_so_many_at_once() -> None:
    """Beyond the limit a request is a 503 in the API's shape; when one ends the next is served."""
    gate = threading.Event()
    with House([Slow(Reply(Text("x")), gate), Reply(Text("y"))], streams_max=1) as house:
        first: list[Any] = []
        waiting = threading.Thread(target=lambda: first.append(house.raw("POST", APIS[0], GOOD)[0]))
        waiting.start()
        house.until(lambda: bool(house.upstream.requests))
        refused, _, answer = house.raw("POST", APIS[0], GOOD)
        gate.set()
        waiting.join(10)
        house.until(lambda: house.raw("POST", APIS[0], GOOD)[0] == 200)

    assert (first, refused) == ([200], 503)
    assert "at once" in json.loads(answer)["error"]["message"]


def test_connections_too_many_are_closed_unheard() -> None:
    """The others go on."""
    with House([], limits=Limits(connections=2)) as house:
        address = urlsplit(house.url)
        where = (str(address.hostname), address.port)
        with socket.create_connection(where, timeout=10) as one, socket.create_connection(where, timeout=10) as two:
            for connection in (one, two):
                connection.sendall(GET + b"\r\n")
                assert connection.recv(9) == b"HTTP/1.1 "
            assert house.wire(GET + b"\r\n") == b""
            one.sendall(GET + b"\r\n")
            assert b"200" in one.recv(65536)


def test_a_client_that_reads_nothing_is_let_go() -> None:
    """What it leaves unread for too long ends its connection, and with it the request upstream."""
    gate = threading.Event()
    stream = RawStream([b": " + b"x" * 65_000 + b"\n\n"] * 300 + [gate])
    with House([stream], limits=Limits(stall_s=0.3)) as house:
        address = urlsplit(house.url)
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((str(address.hostname), address.port))
            connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD)
            assert house.upstream.wait_for_hangup(1, 10)
        gate.set()


NESTED = b'{"model": "m", "messages": [{"role": "user", "content": %s}]}'
SURROGATE = b'{"model": "m", "messages": [{"role": "user", "content": "half a pair: \\ud83d"}]}'


@pytest.mark.parametrize("path", APIS)
@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        (GOOD[:-9], {400}),
        (b"", {400}),
        (b"<!doctype html><html></html>", {400}),
        (b"[]", {400}),
        (b"\xff\xfe{\x00}\x00", {400}),
        (b'{"model": "m", "model": "n", "messages": []}', {200, 400}),
        (b'{"model": "m", "messages": [], "messages": [{"role": "user", "content": "hi"}]}', {200, 400}),
        (SURROGATE, {200}),
        (b'{"model": "m", "temperature": NaN, "messages": []}', {200, 400}),
        (b'{"model": "m", "temperature": 1e400, "messages": []}', {200, 400}),
        (b'{"model": "m", "temperature": -Infinity, "messages": []}', {200, 400}),
        (NESTED % (b"[" * 200 + b"]" * 200), {200, 400}),
        (NESTED % (b"[" * 100_000 + b"]" * 100_000), {400}),
        (b'{"model": 1, "messages": {"role": 7}}', {200, 400}),
        (b'{"model": "m", "messages": [null, 3, "x", {"content": [null, 5]}]}', {200, 400}),
        (b'{"contents": [{"parts": [{"text": "hi"}]}]}', {200, 400}),
        (b'{"model": "m", "input": "hi"}', {200, 400}),
    ],
)
def test_bodies_that_are_odd_or_broken(path: str, body: bytes, statuses: set[int]) -> None:
    """One error in the API's shape, or the upstream's own word on it; what reaches the upstream is JSON."""
    with House([RawBody(b'{"id": "x"}', "application/json")] * 2, strict=False) as house:
        status, headers, answer = house.raw("POST", path, body)
        again, _, _ = house.raw("POST", path, GOOD)
        sent = house.upstream.requests[0].body

    assert (status in statuses, again) == (True, 200)
    assert headers["content-type"].startswith("application/json")
    if status == 400:
        assert "interpose" in json.loads(answer)["error"]["message"]
        assert sent == GOOD
        return
    assert json.loads(sent) is not None


def test_a_large_body_is_read_beside_the_others() -> None:
    """Above 1 MB it is read in a worker thread, to the same end, and arrives as it was sent."""
    large = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 3_000_000}]}).encode()
    with House([Reply(Text("x"))]) as house:
        status, _, _ = house.raw("POST", APIS[0], large)
        (request,) = house.upstream.requests

    assert status == 200
    assert request.body == large


@pytest.mark.parametrize("path", APIS)
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: zz\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"",
    ],
)
def test_upstreams_that_do_not_speak_http_well(path: str, answer: bytes) -> None:
    """Half an answer, an encoding nobody knows, or no HTTP at all: a 502 in the API's shape."""

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(answer)

    with Peer(serve) as peer, House([], upstreams=Upstreams(peer.url, peer.url)) as house:
        status, _, body = house.raw("POST", path, GOOD)
        assert still_serves(house)

    assert status == 502
    assert "interpose" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize("path", [*APIS, "/v1beta/models/m:generateContent"])
@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"<html></html>", "text/html", "text/html where the API answers JSON"),
        (b"<html></html>", "application/json", "JSON"),
        (b"", "application/json", "JSON"),
        (b"\r\n", "application/json", "JSON"),
    ],
)
def test_upstreams_whose_answer_is_no_reply(path: str, body: bytes, kind: str, words: str) -> None:
    """A page or nothing at all is a 502 that says what came, and does not contradict itself."""
    good = b'{"contents": [{"parts": [{"text": "hi"}]}]}' if "generate" in path else GOOD
    with House([RawBody(body, kind)], strict=False) as house:
        status, _, answer = house.raw("POST", path, good)

    message = json.loads(answer)["error"]["message"]
    assert (status, words in message) == (502, True)
    assert f"{kind} where the API answers JSON" not in message or kind == "text/html"
    assert "Expecting value" not in message or body


def test_an_upstream_that_answers_a_page_is_named_without_its_login() -> None:
    """The person finds out which setting is wrong, and no key is in the answer and the journal."""

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>")

    with Peer(serve) as peer:
        target = Target("mine", "anthropic", peer.url.replace("//", "//me:secret@") + "/a")
        with House([], upstreams=Upstreams(targets=(target,))) as house:
            _, _, body = house.raw("POST", APIS[0], GOOD)
            told = [record.reason for record in house.journal.of_step("failed")]

    words = (
        f"the upstream mine at {peer.url}/a answered text/html where the API answers JSON or events; is its URL right?"
    )
    assert json.loads(body)["error"]["message"] == words
    assert told == [words]


def test_a_compressed_reply_is_judged_plain() -> None:
    """An upstream that compresses unasked is understood where that can be undone."""
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "rm -rf /"}}
    packed = gzip.compress(json.dumps({"content": [call], "stop_reason": "tool_use"}).encode())
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(head % len(packed) + packed)

    with Peer(serve) as peer, House([], upstreams=Upstreams(peer.url)) as house:
        status, headers, body = house.raw("POST", APIS[0], GOOD, {"accept-encoding": "br, zstd"})
        points = [point for point in house.policy.points if isinstance(point, ToolCall)]

    assert status == 200
    assert "content-encoding" not in headers
    assert len(points) == 1
    assert b"refused by no-rm" in body


CLIENT = "a-token-of-32-characters-or-more"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/messages", {}, 401),
        ("/v1/messages", {"x-api-key": "sk-ant"}, 401),
        ("/v1/messages", {"x-interpose-token": "wrong"}, 401),
        ("/l/wrong/v1/messages", {"x-api-key": CLIENT}, 404),
        ("/v1/messages", {"x-api-key": CLIENT}, 200),
        ("/v1/messages", {"Authorization": f"Bearer {CLIENT}"}, 200),
        ("/v1/messages", {"x-api-key": "sk-ant", "x-interpose-token": CLIENT}, 200),
        (f"/l/{CLIENT}/v1/messages", {"x-api-key": "sk-ant"}, 200),
        ("/v1/messages", {"x-interpose-token": CLIENT, "Origin": "https://evil.example"}, 403),
        ("/healthz", {}, 200),
    ],
)
def test_where_tokens_are_demanded(path: str, headers: dict[str, str], status: int) -> None:
    """Nobody is served without one, whatever the name the gateway is called by; a token never goes upstream."""
    settings: Any = {"clients": {"ci": digest_of_secret(CLIENT)}, "demands_token": True, "allowed_hosts": None}
    with House([Reply(Text("x"))], **settings) as house:
        method = "GET" if path == "/healthz" else "POST"
        answered, _, answer = house.raw(method, path, GOOD, {"Host": "gateway.example", **headers})
        sent = [repr(sorted(request.headers.items())) for request in house.upstream.requests]

    assert answered == status
    assert len(sent) == (status == 200 and method == "POST")
    assert CLIENT not in "".join(sent)
    assert "sk-ant" not in headers.values() or status != 200 or "sk-ant" in sent[0]
    assert status < 400 or json.loads(answer)["error"]["message"]
    assert CLIENT not in repr(house.journal.records)


def test_a_launch_counts_as_a_token() -> None:
    """Agents of this machine need nothing beside their launch."""
    with House([Reply(Text("x"))], demands_token=True) as house:
        prefix = house.prefixed().removeprefix(house.url)

        assert house.raw("POST", f"{prefix}/v1/messages", GOOD)[0] == 200
        assert house.raw("POST", "/v1/messages", GOOD)[0] == 401


def test_slow_upstreams_do_not_hold_up_the_others() -> None:
    """An upstream that never accepts costs its own requests their time, and nobody else's."""
    gate = threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        gate.wait(10)

    with Peer(serve) as peer:
        targets = (Target("dead", "openai", peer.url, models=("dead*",), read_timeout_s=5),)
        with House([Reply(Text("x"))] * 5) as inner:
            own = Upstreams(openai=inner.upstream.url, targets=targets)
            with House([], upstreams=own) as house:
                dead = GOOD.replace(b'"m"', b'"dead"')
                waiting = [threading.Thread(target=house.raw, args=("POST", APIS[1], dead)) for _ in range(20)]
                for thread in waiting:
                    thread.start()
                house.until(lambda: peer.connections == 20)
                status, _, _ = house.raw("POST", APIS[1], GOOD)
                gate.set()
                for thread in waiting:
                    thread.join(10)

    assert status == 200


def test_health_readiness_and_metrics() -> None:
    """Anybody may ask how the process is; numbers are only for who may use the gateway."""
    with House([Reply(Text("x"))]) as house:
        house.raw("POST", APIS[0], GOOD)
        ready, _, answer = house.raw("GET", "/readyz")
        status, headers, text = house.raw("GET", "/metrics")
    with House([], demands_token=True, clients={"prometheus": digest_of_secret(CLIENT)}) as guarded:
        stranger, _, _ = guarded.raw("GET", "/metrics")
        known, _, _ = guarded.raw("GET", "/metrics", None, {"Authorization": f"Bearer {CLIENT}"})
        open_to_all = [guarded.raw("GET", path)[0] for path in ("/healthz", "/readyz")]

    assert (ready, json.loads(answer)["ready"]) == (200, True)
    assert json.loads(answer)["journal"] == {"written": True, "waiting": 0, "lost": 0}
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b"\ninterpose_streams_open 0.0\n" in text
    assert (stranger, known, open_to_all) == (401, 200, [200, 200])


class BrokenWorkspaces(FakeWorkspaces):
    """No policy can be built."""

    def policy(self, root: str | None) -> Policy:
        """Raises."""
        raise OSError("the hooks cannot be read")


def test_what_cannot_judge_is_not_ready() -> None:
    """The reason is told to who asks."""
    gateway = Gateway(
        GatewaySettings(),
        workspaces=BrokenWorkspaces(),
        launches=FakeLaunches(),
        journal=MemoryJournal(),
        clock=SystemClock(),
    )
    with House([]) as house, ThreadedServer(gateway) as server:
        house.url = server.url
        status, _, answer = house.raw("GET", "/readyz")
        alive, _, _ = house.raw("GET", "/healthz")

    assert (status, alive) == (503, 200)
    assert json.loads(answer)["reason"] == "OSError: the hooks cannot be read"


def _packed(body: bytes, encoding: bytes, kind: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n"
    return head % (kind, encoding, len(body)) + body


@pytest.mark.parametrize("path", APIS)
@pytest.mark.parametrize("kind", [b"application/json", SSE])
@pytest.mark.parametrize("body", [gzip.compress(b'{"candidates": []}' * 99, mtime=0)[:-12], b"x"])
def test_a_compressed_reply_that_breaks_off_is_told(path: str, kind: bytes, body: bytes) -> None:
    """Half of it is no reply: a 502 or an error in the stream, which names the encoding."""

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(_packed(body, b"gzip", kind))

    with Peer(serve) as peer, House([], upstreams=Upstreams(peer.url, peer.url, peer.url)) as house:
        status, _, answer = house.raw("POST", path, GOOD)

    assert status == (502 if kind.endswith(b"json") else 200)
    assert b'"error"' in answer
    assert b"'gzip'" in answer


def test_an_event_that_can_be_read_in_two_ways_ends_the_stream() -> None:
    """What came before it is kept; the client is told, and so is the journal."""
    call = b'{"type":"content_block_start","type":"ping","index":0,"content_block":{"type":"tool_use","name":"Bash"}}'
    stream = b"event: ping\ndata: {}\n\ndata: " + call + b"\n\ndata: {}\n\n"

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(_packed(gzip.compress(stream[:60]) + gzip.compress(stream[60:]), b"gzip", SSE))

    with Peer(serve) as peer, House([], upstreams=Upstreams(peer.url)) as house:
        status, _, answer = house.raw("POST", APIS[0], GOOD)
        house.until(lambda: any("two ways" in record.reason for record in house.journal.records))

    assert status == 200
    assert answer.startswith(b"event: ping\ndata: {}\n\nevent: error\n")
    assert b"Bash" not in answer


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "it closed the connection without an answer"),
        (b"SSH-2.0-OpenSSH_9\r\n", "its answer is not HTTP: it does not begin with HTTP/"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            "its answer is not HTTP: it has two lengths",
        ),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "the head of its answer is larger than 65536 bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "the connection broke off before the answer was whole"),
    ],
)
def test_faults_of_the_upstream_are_told_in_plain_words(answer: bytes, words: str) -> None:
    """No name of a library's class is in them."""

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(answer)

    with Peer(serve) as peer, House([], upstreams=Upstreams(peer.url)) as house:
        _, _, body = house.raw("POST", APIS[0], GOOD)

    assert json.loads(body)["error"]["message"] == f"interpose got no usable answer from {peer.url}: {words}"


def test_header_values_go_on_as_the_bytes_that_came() -> None:
    """UTF-8 in them stays what it is, and several lines of Content-Encoding are one list."""
    seen: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        seen.append(read_request(connection))
        connection.sendall(ANSWER)

    twice = gzip.compress(gzip.compress(GOOD))
    lines = b"X-Odd: \xc3\xa9\xe2\x82\xac\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\nConnection: close\r\n"
    with Peer(serve) as peer, House([], upstreams=Upstreams(peer.url)) as house:
        house.wire(POST + lines + b"Content-Length: %d\r\n\r\n" % len(twice) + twice)

    (request,) = seen
    assert b": \xc3\xa9\xe2\x82\xac\r\n" in request
    assert request.endswith(GOOD)


def test_an_answer_without_content_says_no_length() -> None:
    """Its status has no body, and so no length of one (RFC 9110, section 8.6)."""

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with Peer(serve) as peer, House([], upstreams=Upstreams(peer.url)) as house:
        status, headers, _ = house.raw("POST", APIS[0], GOOD)

    assert (status, headers.get("content-length")) == (204, None)


def test_the_words_of_a_status_that_nobody_knows_go_on() -> None:
    """As they came."""

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 599 Odd Thing\r\nContent-Length: 2\r\n\r\n{}")

    with Peer(serve) as peer, House([], upstreams=Upstreams(peer.url)) as house:
        answer = house.wire(POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(GOOD) + GOOD)

    assert answer.startswith(b"HTTP/1.1 599 Odd Thing\r\n")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"content":[],"stop_reason":"end_turn"}'),
        ("text/event-stream", b'data: {"type":"message_stop"}\n\n'),
        ("text/plain", b""),
        ("text/plain", b'{"content":[]}'),
    ],
)
def test_the_words_of_a_judged_reply_go_on(kind: str, body: bytes) -> None:
    """Also where the reply is whole, streamed, without a type or without content."""

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        head = f"HTTP/1.1 299 Odd Success\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)

    with Peer(serve) as peer, House([], upstreams=Upstreams(peer.url)) as house:
        answer = house.wire(POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(GOOD) + GOOD)

    assert answer.startswith(b"HTTP/1.1 299 Odd Success\r\n")


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
def test_a_reply_of_another_api_is_an_error(kind: str) -> None:
    """An address that leads to another API is told to the client in its own API's shape, and to the journal."""
    call = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    body = json.dumps({"object": "chat.completion", "choices": [{"index": 0, "message": {"tool_calls": [call]}}]})
    sent = f"data: {body}\n\ndata: [DONE]\n\n" if kind == "text/event-stream" else body
    with House([RawBody(sent.encode(), kind)], strict=False) as house:
        status, _, answer = house.raw("POST", "/v1/messages", GOOD)
        reasons = [record.reason for record in house.journal.of_step("failed")]

    assert status == (200 if kind == "text/event-stream" else 502)
    assert b"Bash" not in answer
    assert b'"type":"error"' in answer
    assert any("OpenAI's chat completions, where the client speaks Anthropic's messages" in one for one in reasons)
