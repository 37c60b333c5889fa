"""Several workers behind one address, as processes."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import create_connection, socket
from typing import Any
from urllib.parse import urlsplit

import pytest

from interpose.contracts.errors import ConfigError, MisuseError
from interpose.gateway.connection import Limits
from interpose.gateway.workers import WorkerPool
from interpose.testing.upstream import RawStream, Reply, ScriptedUpstream, Text
from tests.e2e.processes import interpose, up

pytestmark = pytest.mark.e2e

PROMISE_FACTOR = 3

ECHO = """
import asyncio, json, os, socket, sys
from interpose.gateway.server import HandedServer, loop_factory
from interpose.gateway.workers import READY

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    if scope["path"].endswith("/die"):
        os._exit(7)
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    answer = json.dumps({"pid": os.getpid(), "path": scope["path"], "bytes": len(body)}).encode()
    headers = [(b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})

channel, number = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
server = HandedServer(app, channel, worker=number, workers=3, drain_timeout_s=1)
with asyncio.Runner(loop_factory=loop_factory()) as runner:
    runner.run(server.serve(lambda: channel.sendall(READY)))
"""


def start_echo(number: int, channel: socket) -> "subprocess.Popen[bytes]":
    """A worker that tells which process it is."""
    return subprocess.Popen(
        [sys.executable, "-c", ECHO, str(channel.fileno()), str(number)], pass_fds=[channel.fileno()]
    )


def ask(url: str, path: str, body: bytes = b"", **headers: str) -> dict[str, Any]:
    """One request on a connection of its own."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
    try:
        connection.request("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        return dict(json.loads(connection.getresponse().read()))
    finally:
        connection.close()


@pytest.fixture
def deaths() -> list[tuple[int, int]]:
    """What the pool told of workers that died."""
    return []


@pytest.fixture
def pool(deaths: list[tuple[int, int]]) -> Iterator[WorkerPool]:
    """Three workers that tell who they are."""
    with WorkerPool(
        start_echo,
        workers=3,
        host="127.0.0.1",
        port=0,
        on_death=lambda number, code: deaths.append((number, code)),
        limits=Limits(header_s=0.5),
        drain_timeout_s=1,
    ) as made:
        yield made


def test_a_session_stays_on_one_worker_and_all_work(pool: WorkerPool) -> None:
    """Launches and sessions keep their worker over connections; what names neither is shared out evenly."""
    by_launch = [{ask(pool.url, f"/l/{name}/v1/messages")["pid"] for _ in range(3)} for name in "abcdefghijkl"]
    by_session = [{ask(pool.url, "/v1/messages", x_session_id=name)["pid"] for _ in range(3)} for name in "abcdef"]
    anywhere = [ask(pool.url, "/v1/models")["pid"] for _ in range(9)]

    assert all(len(pids) == 1 for pids in [*by_launch, *by_session])
    assert set.union(*by_launch) == set(pool.pids)
    assert {pid: anywhere.count(pid) for pid in pool.pids} == dict.fromkeys(pool.pids, 3)


def test_a_connection_stays_open_and_goes_to_whom_its_next_request_belongs(pool: WorkerPool) -> None:
    """Each request is served by the owner of its launch or session, all of them over one connection."""
    paths = [f"/l/{name}/v1/messages" for name in "abcdefgh"] * 2
    owners = {path: ask(pool.url, path)["pid"] for path in paths}
    address = urlsplit(pool.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
    try:
        ports = set()
        for number, path in enumerate(paths):
            body = b"x" * (number * 200_000)
            connection.request("POST", path, body)
            ports.add(connection.sock.getsockname()[1])
            answer = json.loads(connection.getresponse().read())
            assert answer == {"pid": owners[path], "path": path, "bytes": len(body)}
        for name in "abc":
            connection.request("POST", "/v1/messages", b"", {"x-session-id": name})
            answer = json.loads(connection.getresponse().read())
            assert answer["pid"] == ask(pool.url, "/v1/messages", x_session_id=name)["pid"]
    finally:
        connection.close()

    assert len(set(owners.values())) == 3
    assert len(ports) == 1


def test_a_head_in_pieces_goes_to_its_owner(pool: WorkerPool) -> None:
    """What was read of it before it was known whose it is goes along."""
    owners = {name: ask(pool.url, f"/l/{name}/x")["pid"] for name in "abcdefgh"}
    other = next(name for name, pid in owners.items() if pid != owners["a"])
    address = urlsplit(pool.url)
    with create_connection((str(address.hostname), address.port), timeout=10) as connection:
        connection.sendall(b"POST /l/a/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        assert b'"pid": %d,' % owners["a"] in connection.recv(65536)
        for byte in b"POST /l/%s/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" % other.encode():
            connection.sendall(bytes((byte,)))
        answer = connection.recv(65536)

    assert b'"pid": %d,' % owners[other] in answer
    assert b'"bytes": 3' in answer


def test_a_request_of_another_worker_right_behind_one_is_not_served(pool: WorkerPool) -> None:
    """Its connection ends behind the first reply, by which its client knows that it must ask again."""
    owners = {name: ask(pool.url, f"/l/{name}/x")["pid"] for name in "abcdefgh"}
    other = next(name for name, pid in owners.items() if pid != owners["a"])
    address = urlsplit(pool.url)
    head = b"POST /l/%s/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    with create_connection((str(address.hostname), address.port), timeout=10) as connection:
        connection.sendall(head % b"a" + head % other.encode())
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk

    assert answer.count(b"HTTP/1.1 200") == 1
    assert b'"pid": %d,' % owners["a"] in answer


def test_bodies_arrive_whole(pool: WorkerPool) -> None:
    """Whatever was read before the connection was handed over is not lost, and neither is the rest."""
    assert ask(pool.url, "/v1/messages", b"x" * 3_000_000)["bytes"] == 3_000_000


def test_heads_that_come_in_pieces_or_not_at_all(pool: WorkerPool) -> None:
    """A head may come byte by byte; one that never ends is answered by a worker, an empty connection by nobody."""
    address = urlsplit(pool.url)
    where = (str(address.hostname), address.port)
    with create_connection(where, timeout=10) as slow, create_connection(where, timeout=10) as never:
        never.sendall(b"GET / HTTP/1.1\r\n")
        for byte in b"GET /l/x HTTP/1.1\r\nHost: x\r\n\r\n":
            slow.sendall(bytes((byte,)))
        assert slow.recv(15) == b"HTTP/1.1 200 OK"
        with create_connection(where, timeout=10) as empty:
            empty.shutdown(1)
            assert empty.recv(1) == b""
        never.shutdown(1)
        never.recv(1)  # its worker lets it go; what matters is that the others are served meanwhile
    assert ask(pool.url, "/x")["path"] == "/x"


def test_a_worker_that_dies_is_started_again(pool: WorkerPool, deaths: list[tuple[int, int]]) -> None:
    """The others go on, its sessions find the new one, and somebody is told."""
    before = list(pool.pids)
    victim = ask(pool.url, "/l/a/v1/messages")["pid"]
    with pytest.raises((http.client.HTTPException, OSError)):
        ask(pool.url, "/l/a/die")

    after = ask(pool.url, "/l/a/v1/messages")["pid"]

    assert after not in before
    assert ask(pool.url, "/l/a/v1/messages")["pid"] == after
    assert deaths == [(before.index(victim), 7)]
    assert [pid for pid in pool.pids if pid in before] == [pid for pid in before if pid != victim]


def test_a_worker_that_cannot_start_is_told() -> None:
    """Starting fails instead of waiting for ever; a taken port is a setting to change."""

    def start(_number: int, channel: socket) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])

    def nobody(_number: int, _code: int) -> None:
        pass

    pool = WorkerPool(start, workers=2, host="127.0.0.1", port=0, on_death=nobody)
    with pytest.raises(MisuseError, match="did not start"):
        pool.start()
    with (
        WorkerPool(start_echo, workers=1, host="127.0.0.1", port=0, on_death=nobody) as running,
        pytest.raises(ConfigError, match="taken"),
    ):
        WorkerPool(start_echo, workers=1, host="127.0.0.1", port=urlsplit(running.url).port or 0, on_death=nobody)


@pytest.fixture
def judged(environ: dict[str, str]) -> Iterator[tuple[ScriptedUpstream, dict[str, str]]]:
    """A scripted upstream and an environment that leads there."""
    with ScriptedUpstream([Reply(Text("x"))] * 20) as upstream:
        yield upstream, {**environ, "INTERPOSE_UPSTREAM_ANTHROPIC": upstream.url}


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the workers through /proc")
def test_up_with_workers(tmp_path: Path, judged: tuple[ScriptedUpstream, dict[str, str]]) -> None:
    """`interpose up --workers 2` judges, counts over both, outlives a worker, and says all of it in its own lines."""
    _, environ = judged
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    with up(tmp_path, environ, "--workers", "2") as gateway:
        worker_processes = [pid for pid in every_child(gateway.process.pid) if is_worker(pid)]
        assert len(worker_processes) == 2
        for number in range(6):
            answer = ask(gateway.url, "/v1/messages", json.dumps(body).encode(), x_session_id=str(number))
            assert answer["type"] == "message"
        seen = {gateway.line_with(step="request")["session"] for _ in range(6)}
        health = ask(gateway.url, "/healthz")
        metrics = text(gateway.url, "/metrics")

        os.kill(worker_processes[0], signal.SIGKILL)
        told = gateway.line_with(step="problem")
        again = [ask(gateway.url, "/v1/messages", json.dumps(body).encode(), x_session_id=str(n)) for n in range(6)]
        restarted = text(gateway.url, "/metrics")

    assert seen == {str(number) for number in range(6)}
    assert health["pid"] == gateway.process.pid
    assert 'interpose_requests_total{api="anthropic",outcome="ok"} 6.0\n' in metrics
    assert "worker" in told["reason"]
    assert "exit code -9" in told["reason"]
    assert all(answer["type"] == "message" for answer in again)
    assert "interpose_worker_restarts_total 1.0\n" in restarted
    assert not any(Path(f"/proc/{pid}").is_dir() and is_worker(pid) for pid in worker_processes)
    journal = interpose("journal", "--json", "--step", "request", cwd=tmp_path, env=environ)
    assert len(journal.stdout.splitlines()) == 12


def test_stopping_lets_the_streams_of_all_workers_end(
    tmp_path: Path, judged: tuple[ScriptedUpstream, dict[str, str]]
) -> None:
    """Ctrl-C in the middle of a stream does not cut it off, in whichever process it runs."""
    _, environ = judged
    gate = threading.Event()
    with ScriptedUpstream([RawStream([b": first\n\n", gate, b": last\n\n"])]) as streaming:
        environ = {**environ, "INTERPOSE_UPSTREAM_ANTHROPIC": streaming.url}
        with up(tmp_path, environ, "--workers", "2") as gateway:
            address = urlsplit(gateway.url)
            body = b'{"model": "m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
            with create_connection((str(address.hostname), address.port), timeout=10) as connection:
                head = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)
                connection.sendall(head + body)
                answer = b""
                while b": first" not in answer:
                    answer += connection.recv(65536)
                gateway.process.send_signal(signal.SIGINT)
                gateway.line_with(step="said")
                gate.set()
                while chunk := connection.recv(65536):
                    answer += chunk
            assert gateway.process.wait(10) == 0

    assert b": last" in answer
    assert answer.endswith(b"0\r\n\r\n")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the workers through /proc")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent(tmp_path: Path, environ: dict[str, str], ending: signal.Signals) -> None:
    """A second Ctrl-C, or the parent's sudden end, leaves no worker that goes on with a reply."""
    gate = threading.Event()
    with ScriptedUpstream([RawStream([b": first\n\n", gate])]) as streaming:
        environ = {**environ, "INTERPOSE_UPSTREAM_ANTHROPIC": streaming.url}
        with up(tmp_path, environ, "--workers", "2") as gateway:
            workers = [pid for pid in every_child(gateway.process.pid) if is_worker(pid)]
            address = urlsplit(gateway.url)
            body = b'{"model": "m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
            with create_connection((str(address.hostname), address.port), timeout=10) as connection:
                head = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)
                connection.sendall(head + body)
                answer = b""
                while b": first" not in answer:
                    answer += connection.recv(65536)
                if ending is signal.SIGINT:
                    gateway.process.send_signal(signal.SIGINT)
                    gateway.line_with(step="said")
                began = time.monotonic()
                gateway.process.send_signal(ending)
                with suppress(ConnectionResetError):
                    while connection.recv(65536):
                        pass
            gateway.process.wait(10)
            while any(map(is_worker, workers)) and time.monotonic() < began + 10:
                time.sleep(0.01)
            took_s = time.monotonic() - began
        gate.set()

    assert len(workers) == 2
    assert not any(map(is_worker, workers))
    assert took_s < 1.0 * PROMISE_FACTOR


def text(url: str, path: str) -> str:
    """The text at a path."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def every_child(pid: int) -> list[int]:
    """The processes that any thread of `pid` started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(word) for task in tasks for word in (task / "children").read_text().split()]


def is_worker(pid: int) -> bool:
    """Whether it is one of ours."""
    try:
        return b"interpose.cli.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
