"""gateway.upstream on real sockets: what is kept, what is cut off, who waits for whom."""

import asyncio
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
import uvloop

from interpose.gateway.pool import Origin, Pool
from interpose.gateway.settings import Target
from interpose.gateway.upstream import Question, Upstream, UpstreamDown
from tests.e2e.peers import ANSWER, HEAD_END, Peer, read_request

pytestmark = pytest.mark.e2e

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def run(story: Callable[[Upstream], Awaitable[None]], loop_factory: Any = uvloop.new_event_loop) -> None:
    """Runs the story with open connections, and closes them."""

    async def told() -> None:
        async with asyncio.timeout(20):
            upstream = await Upstream(trust_env=False).open()
            try:
                await story(upstream)
            finally:
                await upstream.close()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(told())


def question(
    url: str,
    *,
    method: str = "POST",
    path: str = "/x",
    headers: tuple[tuple[bytes, bytes], ...] = (),
    body: bytes | AsyncIterator[bytes] | None = b"{}",
    **target: Any,
) -> Question:
    """A question to the peer at `url`."""
    return Question(method, Target("t", "openai", url, **target), url + path, list(headers), body, is_judged=False)


async def answer(upstream: Upstream, asked: Question) -> tuple[int, bytes]:
    """The status and body of a reply; status 0 and the reason where there is none."""
    async with upstream.ask(asked) as reply:
        if isinstance(reply, UpstreamDown):
            return 0, reply.reason.encode()
        body = b""
        async for chunk in reply.chunks():
            if isinstance(chunk, UpstreamDown):
                return reply.status, body + b" ... " + chunk.reason.encode()
            body += chunk
        return reply.status, body


def answering(*answers: bytes) -> Callable[[socket.socket, int], None]:
    """Serves the answers on each connection, one a request, the last one again and again."""

    def serve(connection: socket.socket, _number: int) -> None:
        left = list(answers)
        while read_request(connection):
            connection.sendall(left.pop(0) if len(left) > 1 else left[0])

    return serve


async def pieces(*items: bytes | Exception | threading.Event) -> AsyncIterator[bytes]:
    """A body that streams; an exception is raised, an event waited for."""
    for item in items:
        if isinstance(item, Exception):
            raise item
        if isinstance(item, threading.Event):
            await asyncio.to_thread(item.wait, 10)
            continue
        yield item


@pytest.mark.parametrize("loop_factory", LOOPS)
@pytest.mark.parametrize(
    ("answered", "method", "body"),
    [
        (ANSWER, "POST", b"{}"),
        (STREAM + b"2\r\n{}\r\n0\r\nX-Late: y\r\n\r\n", "POST", b"{}"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "POST", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", "GET", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER, "POST", b"{}"),
    ],
)
def test_a_connection_is_used_again(answered: bytes, method: str, body: bytes, loop_factory: Any) -> None:
    """One serves request after request."""
    with Peer(answering(answered)) as peer:

        async def story(upstream: Upstream) -> None:
            for _ in range(3):
                assert (await answer(upstream, question(peer.url, method=method)))[1] == body

        run(story, loop_factory)
        assert peer.connections == 1


@pytest.mark.parametrize(
    ("answered", "method"),
    [
        (ANSWER + ANSWER.replace(b"{}", b"[]"), "POST"),
        (ANSWER + b"\0", "POST"),
        (ANSWER.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), "POST"),
        (ANSWER.replace(b"1.1", b"1.0"), "POST"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "HEAD"),
    ],
)
def test_a_connection_is_not_used_again(answered: bytes, method: str) -> None:
    """What stands behind an answer is nobody's; each request gets its own."""
    with Peer(answering(answered)) as peer:

        async def story(upstream: Upstream) -> None:
            for _ in range(3):
                status, body = await answer(upstream, question(peer.url, method=method, body=None))
                assert (status, body) == (200, b"" if method == "HEAD" else b"{}")

        run(story)
        assert peer.connections == 3


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_bytes_that_come_unasked_close_the_connection(loop_factory: Any) -> None:
    """The next request does not take them for its answer."""
    closed = threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(ANSWER)
        if number == 1:
            connection.sendall(ANSWER.replace(b"{}", b"[]"))
            with suppress(ConnectionResetError):
                connection.recv(1)
            closed.set()

    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            assert await answer(upstream, question(peer.url)) == (200, b"{}")
            assert await asyncio.to_thread(closed.wait, 10)
            assert await answer(upstream, question(peer.url)) == (200, b"{}")

        run(story, loop_factory)
        assert peer.connections == 2


def test_connections_that_all_went_stale_cost_one_retry() -> None:
    """What is asked again goes over a new connection, not over the next stale one."""
    both = threading.Barrier(3)

    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        if number <= 3:
            both.wait(10)
        connection.sendall(ANSWER)
        if number > 3:
            read_request(connection)
            return
        read_request(connection)  # and closed without an answer

    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            asked = [answer(upstream, question(peer.url, method="GET", body=None)) for _ in range(3)]
            assert await asyncio.gather(*asked) == [(200, b"{}")] * 3
            assert await answer(upstream, question(peer.url, method="GET", body=None)) == (200, b"{}")

        run(story)
        assert peer.connections == 4


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_connection_that_was_closed_unheard_is_not_written_to(loop_factory: Any) -> None:
    """The upstream's end lies in the machine while the loop is busy: a POST goes over a new connection, and once."""
    asked: list[bytes] = []
    closed = threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        asked.append(read_request(connection))
        connection.sendall(ANSWER)
        if number > 1:
            asked.append(read_request(connection))
            return
        closed.wait(10)
        connection.close()
        closed.clear()
        told.set()

    told = threading.Event()
    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            assert await answer(upstream, question(peer.url)) == (200, b"{}")
            closed.set()
            assert told.wait(10)  # in the loop's own thread, which hears nothing meanwhile
            assert await answer(upstream, question(peer.url, retries=0)) == (200, b"{}")

        run(story, loop_factory)
        assert peer.connections == 2
    assert [request for request in asked if request] == asked[:2]


def test_a_body_that_streams_is_never_sent_twice() -> None:
    """Half of it is gone already."""

    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(ANSWER)
        connection.recv(1)

    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            assert await answer(upstream, question(peer.url)) == (200, b"{}")
            status, _ = await answer(upstream, question(peer.url, body=pieces(b"a", b"b")))
            assert status == 0

        run(story)
        assert peer.connections == 1


@pytest.mark.parametrize("loop_factory", LOOPS)
@pytest.mark.parametrize("length", [None, b"5"])
def test_a_body_streams_through(length: bytes | None, loop_factory: Any) -> None:
    """In chunks, or as long as its sender said; the answer may come before its end."""
    gate = threading.Event()
    seen: list[bytes] = []
    end = b"0\r\n\r\n" if length is None else b"cde"

    def serve(connection: socket.socket, _number: int) -> None:
        data = b""
        while not data.endswith(end):
            data += connection.recv(65536)
            if b"ab" in data:
                gate.set()
        seen.append(data)
        connection.sendall(ANSWER)

    headers = () if length is None else ((b"content-length", length),)
    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            body = pieces(b"ab", b"", gate, b"cde")
            assert await answer(upstream, question(peer.url, headers=headers, body=body)) == (200, b"{}")

        run(story, loop_factory)
    head, _, body = seen[0].partition(HEAD_END)
    assert body == (b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n" if length is None else b"abcde")
    assert (b"transfer-encoding: chunked" in head) == (length is None)
    assert head.count(b"content-length") == (length is not None)


@pytest.mark.parametrize("items", [(b"abc", b"def"), (b"abc",)])
def test_a_body_of_another_length_than_was_said_goes_nowhere(items: tuple[bytes, ...]) -> None:
    """Its rest could be read as another request."""
    seen: list[bytes] = []
    over = threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        data = b""
        with suppress(ConnectionResetError):
            while chunk := connection.recv(65536):
                data += chunk
        seen.append(data)
        over.set()

    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            headers = ((b"content-length", b"5"),)
            with pytest.raises(ValueError, match="5 bytes"):
                await answer(upstream, question(peer.url, headers=headers, body=pieces(*items)))
            assert await asyncio.to_thread(over.wait, 10)

        run(story)
    assert len(seen) == 1
    assert b"def" not in seen[0]


def test_what_the_body_raises_reaches_who_asks() -> None:
    """The request is cut off: its upstream never takes the half for the whole."""
    seen: list[bytes] = []
    over = threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        data = b""
        with suppress(ConnectionResetError):
            while chunk := connection.recv(65536):
                data += chunk
        seen.append(data)
        over.set()

    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            with pytest.raises(LookupError, match="gone"):
                await answer(upstream, question(peer.url, body=pieces(b"abc", LookupError("gone"))))
            assert await asyncio.to_thread(over.wait, 10)

        run(story)
    assert not seen[0].endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("is_streamed", [True, False])
def test_an_answer_that_comes_before_the_body_was_sent(is_streamed: bool) -> None:
    """It is passed on at once, and the rest of the body is not sent."""
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
    never = threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        connection.recv(100)
        connection.sendall(refusal)
        never.wait(10)

    body: bytes | AsyncIterator[bytes] = pieces(b"abc", never) if is_streamed else b"x" * 20_000_000
    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            assert await answer(upstream, question(peer.url, body=body)) == (413, b"no")
            never.set()

        run(story)
        assert peer.connections == 1


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_large_body_arrives_whole(loop_factory: Any) -> None:
    """As bytes in the order they were, also where the upstream reads slowly."""
    body = b"".join(b"%08d" % number for number in range(400_000))
    seen: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        seen.append(read_request(connection))
        connection.sendall(ANSWER)

    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            assert await answer(upstream, question(peer.url, body=body)) == (200, b"{}")

        run(story, loop_factory)
    assert seen[0].partition(HEAD_END)[2] == body


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_who_reads_slowly_slows_the_upstream_down(loop_factory: Any) -> None:
    """So much is read ahead and no more; when it is read after all, the connection is used again."""
    size, step = 20_000_000, 100_000
    sent = 0

    def serve(connection: socket.socket, _number: int) -> None:
        nonlocal sent
        while read_request(connection):
            sent = 0
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            while sent < size:
                connection.sendall(b"x" * step)
                sent += step

    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            async with upstream.ask(question(peer.url)) as reply:
                assert not isinstance(reply, UpstreamDown)
                seen = -1
                while seen != sent:  # until it stands still
                    seen = sent
                    await asyncio.sleep(0.2)
                assert seen < size
                body = [chunk async for chunk in reply.chunks()]
                assert sum(len(chunk) for chunk in body if isinstance(chunk, bytes)) == size
            _, again = await answer(upstream, question(peer.url))
            assert len(again) == size

        run(story, loop_factory)
        assert peer.connections == 1


def test_who_reads_slowly_is_no_silent_upstream() -> None:
    """The time that an upstream may be silent does not run while nobody waits for it."""
    with Peer(answering(STREAM + b"2\r\n{}\r\n0\r\n\r\n")) as peer:

        async def story(upstream: Upstream) -> None:
            async with upstream.ask(question(peer.url, read_timeout_s=0.1)) as reply:
                assert not isinstance(reply, UpstreamDown)
                await asyncio.sleep(0.4)
                assert [chunk async for chunk in reply.chunks()] == [b"{}"]

        run(story)


@pytest.mark.parametrize("answered", [b"", STREAM, STREAM + b"2\r\n{}\r\n"])
@pytest.mark.parametrize("ends", ["cancelled", "left"])
def test_a_request_that_is_not_wanted_any_more_is_cut_off(answered: bytes, ends: str) -> None:
    """The upstream sees its connection closed, wherever the answer was."""
    closed = threading.Event()
    arrived = threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(answered)
        arrived.set()
        with suppress(ConnectionResetError):
            connection.recv(1)
        closed.set()

    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            async def ask() -> None:
                async with upstream.ask(question(peer.url)):
                    if ends == "cancelled":
                        await asyncio.Event().wait()

            asking = asyncio.ensure_future(ask())
            await asyncio.to_thread(arrived.wait, 10)
            if ends == "cancelled" or not answered:
                asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
            assert await asyncio.to_thread(closed.wait, 10)

        run(story)


def test_a_connection_that_nobody_uses_is_closed() -> None:
    """After its time, so that the upstream need not."""
    closed = threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        connection.recv(1)
        closed.set()

    with Peer(serve) as peer:

        async def story(_upstream: Upstream) -> None:
            pool = Pool(idle_s=0.1)
            connection = await pool.dial(Origin("127.0.0.1", peer.port, None), 5)
            connection.rest()
            assert await asyncio.to_thread(closed.wait, 10)
            assert pool.free(Origin("127.0.0.1", peer.port, None)) is None

        run(story)


def test_hosts_by_number_of_the_sixth_version() -> None:
    """They are named in brackets, and reached."""
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    seen: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            seen.append(read_request(connection))
            connection.sendall(ANSWER)

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        url = f"http://[::1]:{listener.getsockname()[1]}"

        async def story(upstream: Upstream) -> None:
            assert await answer(upstream, question(url)) == (200, b"{}")

        run(story)
    assert f"host: {url.removeprefix('http://')}\r\n".encode() in seen[0]


def test_who_cannot_be_reached() -> None:
    """An unknown name, a closed port, a peer that never greets: each in plain words, and none was reached."""
    never = threading.Event()

    def serve(_connection: socket.socket, _number: int) -> None:
        never.wait(10)

    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with Peer(serve) as silent:

            async def story(upstream: Upstream) -> None:
                expected = {
                    "http://nobody.invalid": "the name of the host is not known",
                    closed: "the host does not take the connection",
                    silent.url.replace(
                        "http", "https"
                    ): "the host did not take the connection within 0.3 s (connect_timeout_s)",
                }
                for url, words in expected.items():
                    async with upstream.ask(question(url, connect_timeout_s=0.3, retries=0)) as reply:
                        assert isinstance(reply, UpstreamDown)
                        assert (reply.was_reached, words in reply.reason) == (False, True), reply

            run(story)
            never.set()


@pytest.mark.parametrize("value", [b"a\r\nx-evil: b", b"a\nb", b"a\rb", b"a\0b"])
def test_a_header_cannot_become_two(value: bytes) -> None:
    """Nothing is sent."""
    with Peer(answering(ANSWER)) as peer:

        async def story(upstream: Upstream) -> None:
            status, reason = await answer(upstream, question(peer.url, headers=((b"x-a", value),)))
            assert (status, b"line break" in reason) == (0, True)

        run(story)
        assert peer.connections == 0


@pytest.mark.parametrize(
    ("method", "body", "length"), [("GET", None, 0), ("POST", None, 1), ("POST", b"", 1), ("DELETE", b"{}", 1)]
)
def test_the_length_of_a_body_is_said_once(method: str, body: bytes | None, length: int) -> None:
    """What the client said does not count; where a method lets one expect a body, none is said, too."""
    seen: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        seen.append(read_request(connection))
        connection.sendall(ANSWER)

    headers = ((b"content-length", b"77"), (b"x-a", b"\xc3\xa9\xff"))
    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            asked = question(peer.url, method=method, body=body, headers=headers, path="?a=/b#c")
            assert (await answer(upstream, asked))[0] == 200

        run(story)
    assert seen[0].startswith(b"%s /?a=/b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n" % (method.encode(), peer.port))
    assert seen[0].lower().count(b"content-length: ") == length
    assert b"77" not in seen[0].partition(HEAD_END)[0].replace(b"%d" % peer.port, b"")
    assert b"x-a: \xc3\xa9\xff\r\n" in seen[0]


def test_addresses_that_are_odd_go_another_way() -> None:
    """A login in the address, or letters that must be encoded first: the library knows how, and is as good."""
    seen: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        while request := read_request(connection):
            seen.append(request)
            connection.sendall(ANSWER)

    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            url = f"http://me:pass@127.0.0.1:{peer.port}"
            for body in (b"{}", pieces(b"{}"), b"x" * 300_000):
                assert await answer(upstream, question(url, body=body)) == (200, b"{}")

        run(story)
    assert all(b"Authorization: Basic bWU6cGFzcw==" in request for request in seen)


@pytest.mark.parametrize("module", ["aiohttp", "uvicorn", "prometheus_client", "http.client", "opentelemetry"])
def test_what_few_gateways_need_is_not_loaded(module: str) -> None:
    """So that a gateway is ready soon: it takes longer to load these than to start."""
    script = f"import sys, interpose.cli.up; sys.exit({module!r} in sys.modules)"
    plain = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}

    assert subprocess.run([sys.executable, "-c", script], env=plain, timeout=30, check=False).returncode == 0


@pytest.mark.parametrize("login", ["", "me:pass@"], ids=["ours", "library's"])
@pytest.mark.parametrize("is_torn", [False, True], ids=["closed", "reset"])
def test_a_request_that_was_read_is_never_sent_twice(login: str, is_torn: bool) -> None:
    """A kept connection that ends without an answer a while after the request had been served it, for all we know."""
    seen: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(ANSWER)
        seen.append(read_request(connection))
        threading.Event().wait(0.2)  # the time between the two is what this is about
        if is_torn:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with Peer(serve) as peer:

        async def story(upstream: Upstream) -> None:
            url = f"http://{login}127.0.0.1:{peer.port}"
            assert await answer(upstream, question(url)) == (200, b"{}")
            assert (await answer(upstream, question(url)))[0] == 0

        run(story)
        assert (peer.connections, len(seen)) == (1, 1)
