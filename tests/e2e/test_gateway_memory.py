"""What is over is out of memory at once, without Python's search for circles: bodies are large, and the search rare."""

import gc
import gzip
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from interpose.contracts.stages import Point
from interpose.contracts.verdict import Verdict
from interpose.gateway.client import Answer
from interpose.gateway.connection import ClientConnection
from interpose.gateway.exchange import Exchange
from interpose.gateway.load import Load
from interpose.gateway.serving import Serving
from interpose.gateway.settings import Upstreams
from interpose.gateway.upstream import Question
from interpose.testing.fakes import FakePolicy
from interpose.testing.upstream import Reply, Text
from tests.e2e.house import House, no_rm
from tests.e2e.peers import Peer, read_request

pytestmark = pytest.mark.e2e

MANY = 3_000_000
KINDS = (Answer, ClientConnection, Exchange, Question, Serving)
CHAT = b"/v1/chat/completions"


@contextmanager
def no_search() -> Iterator[None]:
    """Python does not look for circles meanwhile."""
    gc.collect()
    gc.freeze()  # what was there before is not looked at either
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def alive() -> list[str]:
    """What is left of requests: our objects, and large texts that any object holds."""
    objects = gc.get_objects()
    kinds = Counter(type(found).__name__ for found in objects if isinstance(found, KINDS))
    large = {
        f"{len(held)} bytes held by {type(found).__name__}"
        for found in objects
        for held in gc.get_referents(found)
        if isinstance(held, bytes | bytearray | str) and len(held) >= MANY
    }
    return sorted([*kinds.elements(), *large])


class Forgetful(FakePolicy):
    """Refuses calls that destroy, and keeps nothing of what it was asked."""

    def judge(self, point: Point) -> Verdict:
        """As the port says."""
        return no_rm(point)

    async def judge_async(self, point: Point) -> Verdict:
        """As the port says."""
        return no_rm(point)


@contextmanager
def forgetful(upstream: Peer) -> Iterator[House]:
    """A gateway before `upstream` that nothing but itself could make remember."""
    house = House([], upstreams=Upstreams(openai=upstream.url))
    house.policy = Forgetful()
    with house, no_search():
        yield house


def large(**more: Any) -> bytes:
    """A chat request with much in it."""
    messages = [{"role": "user", "content": "z" * MANY}]
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


def http(body: bytes, kind: bytes = b"application/json", status: bytes = b"200 OK") -> bytes:
    """An answer."""
    return b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (status, kind, len(body), body)


def calling(name: str) -> bytes:
    """An answer that proposes a call."""
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": '{"command": "rm -rf /"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return http(json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode())


CHUNK = json.dumps({"choices": [{"index": 0, "delta": {"content": "hi"}}]}).encode()
SAID = http(json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}]}).encode())
STREAMED = http(b"data: %b\n\ndata: [DONE]\n\n" % CHUNK, b"text/event-stream")

ENDS: dict[str, tuple[bytes, Callable[[], bytes]]] = {
    "whole": (SAID, large),
    "streamed": (STREAMED, lambda: large(stream=True)),
    "refused call": (calling("Bash"), large),
    "upstream's error": (http(b"{}", status=b"400 Bad Request"), large),
    "upstream's page": (http(b"<html>", b"text/html"), large),
    "not JSON": (http(b"{"), large),
    "unreadable events": (http(b'data: {"choices": 1}\n\n', b"text/event-stream"), lambda: large(stream=True)),
    "broken off": (SAID[:-3], large),
    "stream broken off": (STREAMED[:-20], lambda: large(stream=True)),
    "no answer": (b"", large),
    "no HTTP": (b"nonsense\r\n\r\n", large),
    "no JSON of the client": (SAID, lambda: b"{" + b"z" * MANY),
    "two readings": (SAID, lambda: b'{"model":"m","model":"n","x":"' + b"z" * MANY + b'"}'),
}


@pytest.mark.parametrize("is_kept", [False, True], ids=["closed", "kept"])
@pytest.mark.parametrize("end", ENDS)
def test_nothing_of_a_request_stays_however_it_ends(end: str, is_kept: bool) -> None:
    """Only the connection does, where it is kept, until its client closes it."""
    answered, make = ENDS[end]

    def serve(connection: socket.socket, _number: int) -> None:
        while read_request(connection):
            connection.sendall(answered)
            if answered not in (SAID, STREAMED):
                return

    with Peer(serve) as peer, forgetful(peer) as house:
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", int(house.url.rpartition(":")[2])), timeout=10) as connection:
                body = make()
                way = b"" if is_kept else b"Connection: close\r\n"
                head = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%bContent-Length: %d\r\n\r\n"
                connection.sendall(head % (CHAT, way, len(body)))
                connection.sendall(body)
                del body
                assert connection.recv(65536).startswith(b"HTTP/1.1 ")
                house.until(lambda: alive() in ([], ["ClientConnection"]))
        house.until(lambda: not alive())


def test_nothing_stays_of_a_request_whose_client_left() -> None:
    """In the middle of its body, and while the upstream is waited for."""
    left = threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        left.wait(10)

    with Peer(serve) as peer, forgetful(peer) as house:
        for missing in (10, 0):
            with socket.create_connection(("127.0.0.1", int(house.url.rpartition(":")[2])), timeout=10) as connection:
                body = large()
                connection.sendall(
                    b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % (CHAT, len(body))
                )
                connection.sendall(body[: len(body) - missing])
                del body
                house.until(lambda: bool(alive()))
            house.until(lambda: not alive())
        left.set()


def test_all_bodies_at_once_have_a_bound() -> None:
    """Above it a request is told to come again, in its API's shape, and has its room once the others are over."""
    entered, left = threading.Event(), threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        if number == 1:
            entered.set()
            left.wait(10)
        connection.sendall(SAID)

    with Peer(serve) as peer:
        house = House([], upstreams=Upstreams(openai=peer.url))
        house.load = Load(2 * MANY)
        with house:
            first = threading.Thread(target=house.raw, args=("POST", CHAT.decode(), large()))
            first.start()
            entered.wait(10)
            plain = house.raw("POST", CHAT.decode(), large())
            packed = house.raw("POST", CHAT.decode(), gzip.compress(large()), {"content-encoding": "gzip"})
            left.set()
            first.join(10)
            house.until(lambda: house.load.held == 0)
            again = house.raw("POST", CHAT.decode(), large())

    for status, headers, body in (plain, packed):
        assert (status, headers["retry-after"]) == (503, "1")
        assert "as it has room for" in json.loads(body)["error"]["message"]
    assert again[0] == 200


def test_a_body_of_many_values_is_refused_before_it_is_read() -> None:
    """Reading it would hold up everybody else; signs within texts are no values."""
    with House([Reply(Text("hi"))]) as house:
        many = b'{"model": "m", "messages": [' + b"[]," * 600_000 + b"[]]}"
        status, _, body = house.raw("POST", CHAT.decode(), many)
        text = {"model": "m", "messages": [{"role": "user", "content": ',"[{\\' * 300_000}]}
        allowed, _, _ = house.raw("POST", CHAT.decode(), json.dumps(text).encode())

    assert (status, allowed) == (400, 200)
    assert "more than 1000000 JSON values" in json.loads(body)["error"]["message"]
