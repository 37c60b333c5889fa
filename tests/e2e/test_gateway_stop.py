"""Stopping while replies run: they have a time to end in, and what does not is told that it was cut off."""

import asyncio
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from interpose.assembly.folders import Folders
from interpose.contracts.stages import Point
from interpose.contracts.verdict import Verdict
from interpose.gateway.server import ThreadedServer
from interpose.gateway.service import STOP_S
from interpose.gateway.settings import Upstreams
from interpose.testing.fakes import FakePolicy
from interpose.testing.upstream import RawStream, Reply, ScriptedUpstream, Slow, Text
from tests.e2e.house import House
from tests.e2e.peers import HEAD_END, Peer, read_request
from tests.e2e.processes import TIMEOUT_S, up

pytestmark = pytest.mark.e2e

PROMISE_FACTOR = 3
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
MESSAGES = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
CONTENTS = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).encode()
ITEMS = json.dumps({"model": "m", "stream": True, "input": "hi"}).encode()
STREAMS = {
    "anthropic": (
        "/v1/messages",
        MESSAGES,
        b'event: ping\ndata: {"type": "ping"}\n\n',
        b'event: error\ndata: {"type":"error"',
    ),
    "chat": ("/v1/chat/completions", MESSAGES, b'data: {"choices": [], "id": "c"}\n\n', b'data: {"error":{"message":'),
    "responses": ("/v1/responses", ITEMS, b": hi\n\n", b'event: error\ndata: {"type":"error","code":"api_error"'),
    "gemini": (
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        CONTENTS,
        b'data: {"candidates": [{"index": 0}]}\n\n',
        b'data: {"error":{"code":',
    ),
    "gemini-array": (
        "/v1beta/models/m:streamGenerateContent",
        CONTENTS,
        b'[{"candidates": [{"index": 0}]}',
        b'{"error":{"code":',
    ),
}


def asking(path: str, body: bytes) -> bytes:
    """A whole request."""
    return b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%b" % (path.encode(), len(body), body)


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other end closes."""
    answer = b""
    while chunk := connection.recv(65536):
        answer += chunk
    return answer


class Stopped:
    """A gateway in front of `upstream` whose open replies have no time to end."""

    def __init__(self, upstream: str, policy: FakePolicy | None = None) -> None:
        self.house = House([])
        self.house.policy = policy or self.house.policy
        gateway = self.house.another(upstreams=Upstreams(upstream, upstream, upstream))
        self.server = ThreadedServer(gateway, drain_timeout_s=0, on_cut=gateway.cut)
        self.took_s = 0.0

    def stop(self) -> None:
        """Stops it, and notes how long that took."""
        began = time.monotonic()
        self.server.stop()
        self.took_s = time.monotonic() - began

    @property
    def reasons(self) -> list[str]:
        """Why replies failed, as the journal has it."""
        return [record.reason for record in self.house.journal.of_step("failed")]


@contextmanager
def connected(stopped: Stopped) -> Iterator[socket.socket]:
    """A client of it, which runs."""
    with stopped.server, socket.create_connection(("127.0.0.1", stopped.server.port), timeout=10) as connection:
        yield connection


@pytest.mark.parametrize(("api", "login"), [*((api, "") for api in STREAMS), ("anthropic", "me:secret@")])
def test_a_stream_is_told_that_it_is_cut_off(api: str, login: str) -> None:
    """By an error in its API's shape behind what came before, and so is the journal; whichever way out it takes."""
    path, body, event, error = STREAMS[api]
    ended = threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        kind = b"application/json" if api == "gemini-array" else b"text/event-stream"
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n\r\n%b" % (kind, event))
        ended.wait(30)

    with Peer(serve) as peer:
        stopped = Stopped(peer.url.replace("//", f"//{login}"))
        with connected(stopped) as client:
            client.sendall(asking(path, body))
            first = client.recv(65536)
            while event.strip() not in first:
                first += client.recv(65536)
            stopped.stop()
            answer = first + read_all(client)
        ended.set()

    assert error in answer.partition(event.strip())[2]
    assert b"cut off by the stop of interpose" in answer
    assert answer.endswith(b"0\r\n\r\n")
    assert ["cut off by the stop" in reason for reason in stopped.reasons] == [True]
    assert stopped.server.cut_off == 1
    assert stopped.took_s < STOP_S * PROMISE_FACTOR


@pytest.mark.parametrize("api", STREAMS)
def test_a_request_without_an_answer_is_told_so(api: str) -> None:
    """By a 503 in its API's shape, which its client may send again."""
    path, body, _, _ = STREAMS[api]
    asked, ended = threading.Event(), threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        asked.set()
        ended.wait(30)

    with Peer(serve) as peer:
        stopped = Stopped(peer.url)
        with connected(stopped) as client:
            client.sendall(asking(path, body))
            assert asked.wait(10)
            stopped.stop()
            head, _, said = read_all(client).partition(HEAD_END)
        ended.set()

    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in head
    assert "cut off by the stop of interpose" in json.loads(said)["error"]["message"]
    assert ["cut off by the stop" in reason for reason in stopped.reasons] == [True]
    assert stopped.took_s < STOP_S * PROMISE_FACTOR


class Pondering(FakePolicy):
    """Never comes to a verdict."""

    async def judge_async(self, point: Point) -> Verdict:
        """Waits for ever."""
        verdict = self.judge(point)
        await asyncio.Event().wait()
        return verdict


def test_what_waits_for_something_else_is_told_too() -> None:
    """A body that does not come, and a verdict that does not: both are cancelled, and answered."""
    policy = Pondering()
    stopped = Stopped("http://127.0.0.1:9", policy)
    where = ("127.0.0.1", stopped.server.port)
    with connected(stopped) as waiting, socket.create_connection(where, timeout=10) as sending:
        sending.sendall(asking("/v1/messages", MESSAGES)[:-1])
        waiting.sendall(asking("/v1/messages", MESSAGES))
        stopped.house.until(lambda: len(policy.points) == 1)
        stopped.stop()
        answers = [read_all(client) for client in (sending, waiting)]

    assert [answer[:13] for answer in answers] == [b"HTTP/1.1 503 "] * 2
    assert stopped.server.cut_off == 2
    assert stopped.took_s < STOP_S * PROMISE_FACTOR


def test_what_passes_unjudged_is_cut_off() -> None:
    """Nobody knows the shape of its answer, which has no end then."""
    ended = threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(SSE + b"data: 1\n\n")
        ended.wait(30)

    with Peer(serve) as peer:
        stopped = Stopped(peer.url)
        with connected(stopped) as client:
            client.sendall(asking("/v1/unknown", b"{}"))
            answer = client.recv(65536)
            stopped.stop()
            answer += read_all(client)
        ended.set()

    assert not answer.endswith(b"0\r\n\r\n")
    assert ["cut off by the stop" in reason for reason in stopped.reasons] == [True]


def test_a_reply_that_ends_in_time_is_not_cut_off() -> None:
    """What does end within the drain is whole, and nothing is counted."""
    gate = threading.Event()
    with House([Slow(Reply(Text("hello")), gate)]) as house:
        urls = Upstreams(house.upstream.url, house.upstream.url, house.upstream.url)
        gateway = house.another(upstreams=urls)
        server = ThreadedServer(gateway, drain_timeout_s=30, on_cut=gateway.cut)
        with server, socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
            client.sendall(asking("/v1/messages", body))
            house.until(lambda: len(house.upstream.requests) == 1)
            with ThreadPoolExecutor(1) as pool:
                done = pool.submit(server.stop)
                gate.set()
                answer = read_all(client)
                done.result(10)

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"hello" in answer
    assert server.cut_off == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_up_tells_how_many_replies_were_cut_off(
    tmp_path: Path, environ: dict[str, str], folders: Folders, workers: str
) -> None:
    """After `drain_s`, in the line before the last one, whichever process they ran in."""
    folders.config.mkdir()
    folders.config_file.write_text("[gateway]\ndrain_s = 0.1\n")
    gate = threading.Event()
    with ScriptedUpstream([RawStream([b": hi\n\n", gate])] * 2) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        with up(tmp_path, environ, "--workers", workers) as gateway:
            port = int(gateway.url.rpartition(":")[2])
            with (
                socket.create_connection(("127.0.0.1", port), timeout=10) as one,
                socket.create_connection(("127.0.0.1", port), timeout=10) as other,
            ):
                answers = []
                for client in (one, other):
                    client.sendall(asking("/v1/messages", MESSAGES))
                    answers.append(client.recv(65536))
                gateway.process.send_signal(signal.SIGTERM)
                answers = [first + read_all(client) for first, client in zip(answers, (one, other), strict=True)]
            assert gateway.process.stdout is not None
            told = [json.loads(line) for line in gateway.process.stdout.read().splitlines()]
            assert gateway.process.wait(TIMEOUT_S) == 0
        gate.set()

    assert all(b"cut off by the stop of interpose" in answer for answer in answers)
    assert [line["reason"] for line in told if line["step"] == "failed"] == [
        "this reply was cut off by the stop of interpose"
    ] * 2
    assert told[-2]["reason"].startswith("2 running replies were cut off after 0.1 s")
    assert told[-1]["reason"] == "stopped"
