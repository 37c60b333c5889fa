"""gateway.connection: requests of a client, cut anywhere, answered in order, within limits; without a socket."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.errors import MisuseError
from interpose.gateway.asgi import NEARBY, App, Receive, Scope, Send
from interpose.gateway.connection import UNREAD_BYTES_MAX, ClientConnection, Limits, Refusal
from interpose.gateway.service import Service

HOST = b"Host: 127.0.0.1\r\n"
GET = b"GET /a?b=c HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST /echo HTTP/1.1\r\n" + HOST


class Wire(asyncio.Transport):
    """The client's end: what it was sent, and whether it may send."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 4747), "peername": ("127.0.0.1", 5)})
        self.sent = b""
        self.writes: list[bytes] = []
        self.is_ended = False
        self.is_closed = False
        self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keeps it."""
        self.writes.append(bytes(data))
        self.sent += bytes(data)

    def write_eof(self) -> None:
        """Nothing more comes."""
        self.is_ended = True

    def close(self) -> None:
        """Ends it."""
        self.is_closed = True

    def abort(self) -> None:
        """Ends it."""
        self.is_closed = True

    def is_closing(self) -> bool:
        """Whether it was ended."""
        return self.is_closed

    def pause_reading(self) -> None:
        """The client waits."""
        self.is_paused = True

    def resume_reading(self) -> None:
        """It goes on."""
        self.is_paused = False


class Story:
    """A connection and its application, in a loop of their own."""

    def __init__(self, app: App, limits: Limits) -> None:
        self.refusals: list[Refusal] = []
        self.service = Service(app, limits, self.refusals.append)
        self.wire = Wire()
        self.connection = ClientConnection(self.service)
        self.connection.connection_made(self.wire)

    async def feed(self, *chunks: bytes) -> bytes:
        """Sends the chunks, each once the one before was seen to; all that was answered."""
        for chunk in chunks:
            self.connection.data_received(chunk)
            await settled()
        return self.wire.sent


async def settled() -> None:
    """Lets everything run that can."""
    for _ in range(12):
        await asyncio.sleep(0)


def told(story: Callable[[Story], Awaitable[None]], app: App | None = None, *, limits: Limits | None = None) -> None:
    """Runs a story with an application that echoes, or `app`."""

    async def run() -> None:
        made = Story(app or echo, limits or Limits())
        await story(made)
        made.connection.connection_lost(None)
        await made.service.stop(1)

    asyncio.run(run())


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with what was asked: method, path, query, body."""
    body = b""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        more = message["more_body"]
    words = [scope["method"].encode(), scope["raw_path"], scope["query_string"], body]
    await answer(send, b"|".join(words))


async def answer(send: Send, body: bytes, *headers: tuple[bytes, bytes], status: int = 200) -> None:
    """A whole reply."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


def replies(data: bytes) -> list[bytes]:
    """The bodies of replies that say their length."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        found.append(rest[:length])
        data = rest[length:]
    return found


CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Late: no\r\n\r\n"
SEVERAL = GET + POST + b"Content-Length: 5\r\n\r\nhello" + CHUNKED + GET
ANSWERS = [b"GET|/a|b=c|", b"POST|/echo||hello", b"POST|/echo||abcde", b"GET|/a|b=c|"]
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
OFFERING = b"".join(
    head + HOST + OFFER + rest.removeprefix(head + HOST)
    for head, rest in (
        (b"GET /a?b=c HTTP/1.1\r\n", GET),
        (b"POST /echo HTTP/1.1\r\n", POST + b"Content-Length: 5\r\n\r\nhello"),
        (b"POST /echo HTTP/1.1\r\n", CHUNKED),
        (b"GET /a?b=c HTTP/1.1\r\n", GET),
    )
)


@given(st.sampled_from([SEVERAL, OFFERING, OFFERING + SEVERAL]), st.lists(st.integers(0, 2_000), max_size=8))
def test_requests_are_answered_in_order_wherever_they_are_cut(data: bytes, places: list[int]) -> None:
    """Pipelined or not, and in any pieces; also where they offer another protocol, which is overlooked."""
    ends = sorted({0, len(data), *(place % len(data) for place in places)})
    chunks = [data[start:end] for start, end in pairwise(ends)]

    async def story(made: Story) -> None:
        await made.feed(*chunks)
        assert replies(made.wire.sent) == ANSWERS * (2 if data == OFFERING + SEVERAL else 1)
        assert (made.refusals, made.wire.is_paused, made.wire.is_closed) == ([], False, False)

    told(story)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (OFFER + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (OFFER + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", 400),
        (OFFER + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 400),
        (OFFER + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ],
)
def test_what_offers_another_protocol_is_looked_at_as_closely(head: bytes, status: int) -> None:
    """How its body is framed must be as plain as everybody's."""

    async def story(made: Story) -> None:
        sent = await made.feed(POST + head, GET)
        assert sent.startswith(b"HTTP/1.1 %d " % status)
        assert sent.count(b"HTTP/1.1 ") == 1

    told(story)


def test_the_last_request_of_a_connection_may_offer_another_protocol() -> None:
    """With HTTP/1.0, or a connection that closes, there is a body all the same."""

    async def story(made: Story) -> None:
        offer = OFFER.replace(b"Upgrade,", b"Upgrade, close,")
        sent = await made.feed(POST + offer + b"Content-Length: 5\r\n\r\nhello")
        assert replies(sent) == [b"POST|/echo||hello"]
        assert made.wire.is_ended or made.wire.is_closed

    told(story)


def test_behind_a_websockets_head_nothing_is_read() -> None:
    """Its client goes on as one, or not at all; the reply closes the connection."""

    async def story(made: Story) -> None:
        sent = await made.feed(POST + b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n" + GET, GET)
        assert replies(sent) == [b"POST|/echo||"]
        assert b"connection: close" in sent
        assert made.wire.is_closed

    told(story)


def test_requests_are_read_byte_by_byte() -> None:
    """And a head that comes so is one head."""

    async def story(made: Story) -> None:
        await made.feed(*[bytes((byte,)) for byte in SEVERAL])
        assert replies(made.wire.sent) == ANSWERS

    told(story)


def test_a_request_waits_for_the_one_before() -> None:
    """It is not served before; meanwhile the client is not read further."""
    gates = [asyncio.Event() for _ in range(2)]
    began: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        number = len(began)
        began.append(scope["path"])
        await gates[number].wait()
        await answer(send, scope["raw_path"])

    async def story(made: Story) -> None:
        await made.feed(GET + GET.replace(b"/a", b"/z"))
        assert (began, made.wire.is_paused) == (["/a"], True)
        gates[0].set()
        await settled()
        assert (began, made.wire.is_paused) == (["/a", "/z"], False)
        gates[1].set()
        await settled()
        assert replies(made.wire.sent) == [b"/a", b"/z"]

    told(story, app)


def test_what_the_application_is_told() -> None:
    """Paths decoded and as they came, names of headers in lower case, an absolute target as its path."""
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await answer(send, b"")

    async def story(made: Story) -> None:
        await made.feed(b"GET http://127.0.0.1/%61/%C3%A9?q=%20 HTTP/1.1\r\n" + HOST + b"X-A: 1\r\nx-a:  2 \r\n\r\n")

    told(story, app)
    (scope,) = seen
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == ("/a/é", b"/%61/%C3%A9", b"q=%20")
    assert [name for name, _ in scope["headers"]] == [b"host", b"x-a", b"x-a"]
    assert (scope["server"], scope["client"]) == (("127.0.0.1", 4747), ("127.0.0.1", 5))


@pytest.mark.parametrize(
    ("request_bytes", "status", "headers", "expected", "is_closed"),
    [
        (GET, 200, [], b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n", False),
        (GET, 200, [(b"content-length", b"3")], b"content-length: 3\r\n\r\nhi!", False),
        (GET, 200, [(b"transfer-encoding", b"chunked")], b"OK\r\ntransfer-encoding: chunked\r\n\r\n2", False),
        (GET, 299, [], b"HTTP/1.1 299 \r\ntransfer-encoding: chunked\r\n", False),
        (GET, 204, [], b"HTTP/1.1 204 No Content\r\n\r\n", False),
        (GET, 304, [(b"content-length", b"3")], b"content-length: 3\r\n\r\n", False),
        (GET.replace(b"GET", b"HEAD"), 200, [(b"content-length", b"3")], b"content-length: 3\r\n\r\n", False),
        (GET.replace(b"GET", b"HEAD"), 200, [], b"HTTP/1.1 200 OK\r\n\r\n", False),
        (GET, 200, [(b"connection", b"close")], b"\r\nconnection: close\r\ntransfer-encoding: chunked\r\n", True),
        (GET[:-2] + b"Connection: close\r\n\r\n", 200, [], b"chunked\r\nconnection: close\r\n\r\n2\r\nhi", True),
        (GET.replace(b"1.1", b"1.0"), 200, [], b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhi!", True),
    ],
)
def test_how_a_reply_is_framed(
    request_bytes: bytes, status: int, headers: list[tuple[bytes, bytes]], expected: bytes, is_closed: bool
) -> None:
    """By its length, in chunks, by the end of the connection, or not at all; it is said when the connection ends."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"hi", "more_body": True})
        await send({"type": "http.response.body", "body": b"!", "more_body": True})
        await send({"type": "http.response.body"})

    async def story(made: Story) -> None:
        sent = await made.feed(request_bytes)
        assert expected in sent
        assert sent.startswith(b"HTTP/1.1 %d " % status)
        assert made.wire.is_closed == is_closed
        if status in (204, 304) or b"HEAD" in request_bytes:
            assert sent.endswith(b"\r\n\r\n")
            assert b"hi" not in sent

    told(story, app)


def test_a_reply_in_one_piece_is_one_write() -> None:
    """Head and body leave together; a head whose body is late does not wait for it."""
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/late":
            await gate.wait()
        await send({"type": "http.response.body", "body": b"hi"})

    async def story(made: Story) -> None:
        await made.feed(GET)
        assert len(made.wire.writes) == 1
        await made.feed(GET.replace(b"/a", b"/late"))
        assert made.wire.writes[1].endswith(b"\r\n\r\n")
        gate.set()
        await settled()
        assert made.wire.writes[2:] == [b"2\r\nhi\r\n0\r\n\r\n"]

    told(story, app)


def test_who_asks_before_sending_is_told_to_go_on() -> None:
    """When the application wants the body, and not where it has come already."""

    async def story(made: Story) -> None:
        head = POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        assert await made.feed(head) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sent = await made.feed(b"hi")
        assert sent.count(b"HTTP/1.1") == 2
        assert sent.endswith(b"POST|/echo||hi")
        sent = await made.feed(head + b"hi")
        assert sent.count(b"100 Continue") == 1

    told(story)


def test_an_old_client_cannot_ask_before_sending() -> None:
    """HTTP/1.0 knows no 100, so what it says of expecting one means nothing."""

    async def story(made: Story) -> None:
        head = b"POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        assert await made.feed(head) == b""
        sent = await made.feed(b"hi")
        assert sent.count(b"HTTP/1.1") == 1
        assert sent.endswith(b"POST|/echo||hi")

    told(story)


def test_who_asks_before_sending_and_is_refused() -> None:
    """The connection ends, since the client may send the body or not."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(send, b"no", status=413)

    async def story(made: Story) -> None:
        sent = await made.feed(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert b"connection: close" in sent
        assert b"Continue" not in sent
        assert made.wire.is_ended

    told(story, app)


def test_a_body_nobody_takes_is_not_read_on() -> None:
    """Until the application takes it."""
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await gate.wait()
        await echo(scope, receive, send)

    async def story(made: Story) -> None:
        size = UNREAD_BYTES_MAX + 1
        await made.feed(POST + b"Content-Length: %d\r\n\r\n" % (size + 1), b"x" * size)
        was_paused = made.wire.is_paused
        gate.set()
        await settled()
        assert (was_paused, made.wire.is_paused) == (True, False)
        await made.feed(b"y")
        assert replies(made.wire.sent)[0].endswith(b"xy")

    told(story, app)


def test_a_body_that_nobody_wanted_is_no_request() -> None:
    """What is left of it is dropped, and the next request is served."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(send, scope["raw_path"])

    async def story(made: Story) -> None:
        await made.feed(POST + b"Content-Length: 60\r\n\r\n", b"x" * 29, GET[:31].ljust(31), GET)
        assert replies(made.wire.sent) == [b"/echo", b"/a"]

    told(story, app)


def test_a_slow_client_is_waited_for() -> None:
    """`send` returns when it reads again, and for ever when it is gone."""
    said: list[str] = []
    began = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for word in ("one", "two", "three"):
            await send({"type": "http.response.body", "body": word.encode(), "more_body": True})
            said.append(word)
            began.set()
            await asyncio.sleep(0)

    async def story(made: Story) -> None:
        made.connection.data_received(GET)
        await began.wait()
        made.connection.pause_writing()
        await settled()
        assert said == ["one"]
        made.connection.resume_writing()
        await asyncio.sleep(0)
        made.connection.pause_writing()
        await settled()
        assert said == ["one", "two"]
        made.connection.connection_lost(None)
        await settled()
        assert said == ["one", "two", "three"]
        assert b"three" not in made.wire.sent

    told(story, app)


def test_a_client_that_goes_is_told_of() -> None:
    """Who waits for the body is woken, who asked for it is called, and not after the reply."""
    gone: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["extensions"][NEARBY].tell_gone(lambda: gone.append(scope["path"]))
        if scope["path"] == "/done":
            await answer(send, b"")
            return
        assert (await receive())["type"] == "http.disconnect"
        gone.append("woken")

    async def story(made: Story) -> None:
        await made.feed(GET.replace(b"/a", b"/done"), POST + b"Content-Length: 2\r\n\r\n")
        made.connection.connection_lost(None)
        await settled()
        assert gone == ["/echo", "woken"]

    told(story, app)


def test_a_body_that_is_here_need_not_be_waited_for() -> None:
    """It is given once, whole or not at all."""
    given: list[bytes | None] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nearby = scope["extensions"][NEARBY]
        given.append(nearby.whole_body())
        if given[-1] is None:
            given.append((await receive())["body"])
            await settled()
        given.append(nearby.whole_body())
        await answer(send, b"")

    async def story(made: Story) -> None:
        await made.feed(POST + b"Content-Length: 2\r\n\r\nhi", GET)
        assert given == [b"hi", None, b"", None]
        given.clear()
        await made.feed(POST + b"Content-Length: 4\r\n\r\nhi", b"ho")
        assert given == [None, b"hi", None]

    told(story, app)


def test_a_piece_of_a_reply_is_taken_where_nobody_has_to_wait() -> None:
    """Not before the head or behind the end, and not while the client reads slowly."""
    took: list[bool] = []
    links: list[ClientConnection] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nearby = scope["extensions"][NEARBY]
        took.append(nearby.took(b"early"))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        took.extend(nearby.took(piece) for piece in (b"one", b"", b"two"))
        links[0].pause_writing()
        took.append(nearby.took(b"slow"))
        links[0].resume_writing()
        await send({"type": "http.response.body", "body": b""})
        took.append(nearby.took(b"late"))

    async def story(made: Story) -> None:
        links.append(made.connection)
        sent = await made.feed(GET)
        assert took == [False, True, True, True, False, False]
        assert sent.endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")

    told(story, app)


def test_what_is_written_in_one_turn_of_the_loop_leaves_together() -> None:
    """And nothing waits for what is written in a later one, or for more than there is room for."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"400006")]})
        for piece in (b"a", b"b"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await settled()
        for piece in (b"c", b"d" * 400_000, b"e"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"fg"})

    async def story(made: Story) -> None:
        await made.feed(GET)
        await settled()
        first, second, last = made.wire.writes
        assert first.endswith(b"\r\n\r\nab")
        assert (second, last) == (b"c" + b"d" * 400_000, b"efg")

    told(story, app)


def test_what_was_written_before_a_failure_leaves() -> None:
    """The reply is cut off behind it."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError

    async def story(made: Story) -> None:
        sent = await made.feed(GET)
        assert (sent.endswith(b"\r\n\r\nhalf"), made.wire.is_closed) == (True, True)

    told(story, app)


def test_who_asks_late_is_told_as_well() -> None:
    """Where the client has gone before the application began."""
    gone: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["extensions"][NEARBY].tell_gone(lambda: gone.append(scope["path"]))
        await asyncio.sleep(0)

    async def story(made: Story) -> None:
        made.connection.data_received(GET)
        made.connection.connection_lost(None)
        await settled()
        assert gone == ["/a"]

    told(story, app)


@pytest.mark.parametrize(("is_started", "raises"), [(False, True), (False, False), (True, True), (True, False)])
def test_an_application_that_fails(is_started: bool, raises: bool) -> None:
    """Its client gets an error where nothing has left, and else half a reply that nobody takes for a whole one."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if is_started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"hi", "more_body": True})
        if raises:
            raise LookupError("secret words")

    async def story(made: Story) -> None:
        sent = await made.feed(GET)
        assert sent.count(b"HTTP/1.1") == 1
        assert sent.startswith(b"HTTP/1.1 200" if is_started else b"HTTP/1.1 500")
        assert not sent.endswith(b"0\r\n\r\n")
        assert b"secret" not in sent
        assert made.wire.is_closed or made.wire.is_ended
        assert [refusal.kind for refusal in made.refusals] == (["broken"] if raises else [])

    told(story, app)


@pytest.mark.parametrize(
    "messages",
    [
        [{"type": "http.response.body", "body": b"x"}],
        [{"type": "http.response.start", "status": 200}, {"type": "http.response.start", "status": 200}],
        [{"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"b\r\nx-c: d")]}],
        [{"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]}, {"body": b"xy"}],
        [{"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]}, {"body": b"xy"}],
        [{"type": "websocket.accept"}],
    ],
)
def test_replies_that_are_none_are_misuse(messages: list[dict[str, Any]]) -> None:
    """They are refused where they are made."""
    raised: list[BaseException] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            for message in messages:
                await send({"type": "http.response.body", **message})
        except MisuseError as error:
            raised.append(error)
            raise

    async def story(made: Story) -> None:
        await made.feed(GET)
        assert len(raised) == 1
        assert b"x-c" not in made.wire.sent

    told(story, app)


@pytest.mark.parametrize(
    ("data", "kind", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "malformed", 400),
        (POST + b"Host: b\r\n\r\n", "ambiguous", 400),
        (b"GET / HTTP/1.1\r\n\r\n", "ambiguous", 400),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "ambiguous", 400),
        (b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", "ambiguous", 400),
        (POST + b"X: " + b"y" * 3_000 + b"\r\n\r\n", "too_large", 431),
        (POST + b"X: y\r\n" * 30 + b"\r\n", "too_large", 431),
    ],
)
def test_who_is_refused_is_counted(data: bytes, kind: str, status: int) -> None:
    """Once, with what was told; nothing behind it is read."""

    async def story(made: Story) -> None:
        sent = await made.feed(data + GET, GET)
        assert sent.startswith(b"HTTP/1.1 %d " % status)
        assert sent.count(b"\r\n\r\n") == 1
        assert [(refusal.kind, refusal.status) for refusal in made.refusals] == [(kind, status)]
        assert made.wire.is_ended

    told(story, limits=Limits(header_bytes=2_000, headers=20))


@pytest.mark.parametrize(
    "rest", [b"0\r\n" + b"x-late: y\r\n" * 1_000, b"0\r\nx: " + b"y" * 9_000, b"2;" + b"x" * 9_000]
)
def test_frames_without_a_body_do_not_go_on_for_ever(rest: bytes) -> None:
    """Neither trailers nor what is noted behind a chunk's size."""

    async def story(made: Story) -> None:
        chunks = [rest[at : at + 500] for at in range(0, len(rest), 500)]
        sent = await made.feed(POST + b"Transfer-Encoding: chunked\r\n\r\n", *chunks)
        assert sent.startswith(b"HTTP/1.1 431")
        assert [refusal.kind for refusal in made.refusals] == ["too_large"]

    told(story, limits=Limits(header_bytes=2_000))


def test_a_large_body_before_half_a_head_is_no_large_head() -> None:
    """What is counted is the head."""

    async def story(made: Story) -> None:
        body = b"x" * 5_000
        sent = await made.feed(POST + b"Content-Length: 5000\r\n\r\n" + body + GET[:9], GET[9:])
        assert len(replies(sent)) == 2
        assert made.refusals == []

    told(story, limits=Limits(header_bytes=2_000))


def test_clocks_run_only_while_somebody_waits_for_the_client() -> None:
    """A reply may take long; an idle connection is closed without a word, and a head that does not end with one."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.12)
        await answer(send, b"")

    async def idle(made: Story) -> None:
        await made.feed(GET)
        await asyncio.sleep(0.15)
        was_closed = made.wire.is_closed
        await asyncio.sleep(0.1)
        assert (was_closed, made.wire.is_closed) == (False, True)
        assert made.refusals == []

    async def halting(made: Story) -> None:
        await made.feed(GET + GET[:20])
        await asyncio.sleep(0.3)
        assert b"HTTP/1.1 200" in made.wire.sent
        assert b"HTTP/1.1 408" in made.wire.sent
        assert [refusal.kind for refusal in made.refusals] == ["slow"]

    limits = Limits(idle_s=0.08, header_s=0.05)
    told(idle, app, limits=limits)
    told(halting, app, limits=limits)


@given(st.binary(max_size=200))
def test_noise_raises_nothing(noise: bytes) -> None:
    """It is refused, or waited for."""

    async def story(made: Story) -> None:
        await made.feed(noise, GET)
        assert made.wire.sent.count(b"HTTP/1.1") <= 1 + noise.count(b"HTTP/1.1")

    told(story)


def test_stopping_lets_the_reply_end() -> None:
    """And closes behind it; what waits for its turn is not served any more, and idle connections end at once."""
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await gate.wait()
        await answer(send, b"last")

    async def story(made: Story) -> None:
        await made.feed(GET + GET)
        stopping = asyncio.ensure_future(made.service.stop(5))
        await settled()
        assert not stopping.done()
        gate.set()
        await settled()
        assert replies(made.wire.sent) == [b"last"]
        assert made.wire.is_closed
        made.connection.connection_lost(None)
        await asyncio.wait_for(stopping, 1)

    told(story, app)


def test_stopping_has_an_end() -> None:
    """A request that does not end is cancelled."""
    ended: list[bool] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def story(made: Story) -> None:
        await made.feed(GET)
        await made.service.stop(0.05)
        assert (ended, made.wire.is_closed) == ([True], True)

    told(story, app)


def test_what_came_whole_is_answered_before_what_follows_is_refused() -> None:
    """In order, though all of it came in one read."""

    async def story(made: Story) -> None:
        await made.feed(SEVERAL + POST + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n\r\n")
        *answered, refused = replies(made.wire.sent)
        assert answered == ANSWERS
        assert b"not a valid HTTP request" in refused
        assert (made.wire.is_ended, [refusal.kind for refusal in made.refusals]) == (True, ["malformed"])

    told(story)


def test_a_running_stream_is_not_cut_by_what_follows_its_request() -> None:
    """It comes to its end, and the refusal stands behind it."""
    goes_on = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await goes_on.wait()
        await send({"type": "http.response.body", "body": b"two"})

    async def story(made: Story) -> None:
        await made.feed(GET, b"nonsense\r\n\r\n")
        assert not made.wire.is_ended
        goes_on.set()
        await settled()
        stream, _, refused = made.wire.sent.partition(b"3\r\ntwo\r\n0\r\n\r\n")
        assert stream.endswith(b"3\r\none\r\n")
        assert refused.startswith(b"HTTP/1.1 400 ")
        assert made.wire.is_ended

    told(story, app)


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n", 405, b"interpose: TRACE is not served here"),
        (b"CONNECT a:443 HTTP/1.1\r\n" + HOST + b"\r\n", 405, b"interpose: CONNECT is not served here"),
        (b"GET http://evil/ HTTP/1.1\r\n" + HOST + b"\r\n", 400, b"names another host"),
        (b"GET http://me@127.0.0.1/ HTTP/1.1\r\n" + HOST + b"\r\n", 400, b"names another host"),
        (b"\x16\x03\x01\x02\x00\x01", 400, b"use http://"),
        (POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400, b"two lengths"),
        (POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, b"a length and chunks"),
        (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400, b"a length and chunks"),
        (POST + b"X: a\r\n b\r\n\r\n", 400, b"in a second line"),
        (POST + b"X: a\0\r\n\r\n", 400, b"zero byte"),
        (b"GET / HTTP/1.1\nHost: a\n\n", 400, b"without a carriage return"),
    ],
)
def test_why_a_request_is_not_taken(data: bytes, status: int, words: bytes) -> None:
    """In words for who has to mend it."""

    async def story(made: Story) -> None:
        told = await made.feed(data)
        assert told.startswith(b"HTTP/1.1 %d " % status)
        assert words in told
        assert made.wire.is_ended

    told(story)
