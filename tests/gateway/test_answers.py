"""gateway.answers: an upstream's answers, cut anywhere, broken in every way."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.gateway.answers import BODY_NOT_HTTP, HEAD_BYTES_MAX, HEAD_TOO_LARGE, NOT_HTTP, NOT_WHOLE, Reading

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

GOOD: dict[str, tuple[str, bytes, int, bytes, bool]] = {
    "length": ("POST", OK + b"Content-Length: 5\r\nX-A: b\r\n\r\nhello", 200, b"hello", True),
    "empty": ("POST", OK + b"content-length: 0\r\n\r\n", 200, b"", True),
    "chunks": ("POST", CHUNKED + b"5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n", 200, b"hello!", True),
    "trailers": ("POST", CHUNKED + b"5\r\nhello\r\n0\r\nX-Late: dropped\r\n\r\n", 200, b"hello", True),
    "closing": ("POST", OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi", False),
    "old": ("POST", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi", False),
    "old, kept": ("GET", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi", True),
    "no reason": ("POST", b"HTTP/1.1 404 \r\nContent-Length: 2\r\n\r\nno", 404, b"no", True),
    "no content": ("POST", b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    "not modified": ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, b"", True),
    "head": ("HEAD", OK + b"Content-Length: 9\r\n\r\n", 200, b"", False),
    "head, chunked": ("HEAD", CHUNKED, 200, b"", False),
    "notes before": (
        "POST",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        + OK
        + b"Content-Length: 1\r\n\r\nx",
        200,
        b"x",
        True,
    ),
}


def read(method: str, chunks: list[bytes]) -> tuple[Reading, bytes]:
    """What was read of the chunks, and the body as it was taken between them."""
    reading = Reading()
    reading.begin(method)
    body = b""
    for chunk in chunks:
        reading.feed(chunk)
        body += reading.take()
    return reading, body


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The data in pieces."""
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(ends)]


@pytest.mark.parametrize("name", GOOD)
def test_an_answer_is_the_same_wherever_it_is_cut(name: str) -> None:
    """At every byte, and byte by byte: status, body, its end, and whether the connection may be used again."""
    method, data, status, body, is_persistent = GOOD[name]
    cuts = [cut(data, [place]) for place in range(len(data))] + [[bytes((byte,)) for byte in data]]
    for chunks in cuts:
        reading, seen = read(method, chunks)

        assert (reading.status, seen, reading.is_whole) == (status, body, True), chunks
        assert (reading.is_persistent, reading.broken) == (is_persistent, None), chunks
        assert not any(name in (b"x-late", b"link") for name, _ in reading.headers)


@given(st.sampled_from(sorted(GOOD)), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_cuts(name: str, places: list[int]) -> None:
    """Several cuts change nothing either."""
    method, data, status, body, is_persistent = GOOD[name]
    reading, seen = read(method, cut(data, places))

    assert (reading.status, seen, reading.is_persistent) == (status, body, is_persistent)


@pytest.mark.parametrize("name", [name for name, (*_, is_persistent) in GOOD.items() if is_persistent])
def test_one_answer_after_the_other(name: str) -> None:
    """The connection's next answer begins with nothing of the one before."""
    method, data, status, body, _ = GOOD[name]
    reading, _ = read(method, [data])
    for _ in range(3):
        reading.begin("POST")
        assert (reading.has_head, reading.has_begun, reading.is_whole, reading.headers) == (False, False, False, [])
        reading.begin(method)
        reading.feed(data)
        assert (reading.status, reading.take(), reading.is_persistent) == (status, body, True)


def test_headers_are_as_they_came() -> None:
    """Names in lower case; order, repetition and odd bytes stay."""
    head = OK + b"Set-Cookie: a\r\nX-Odd:  \xc3\xa9\xff \r\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n"
    reading, _ = read("GET", [head])

    assert [name for name, _ in reading.headers] == [b"set-cookie", b"x-odd", b"set-cookie", b"content-length"]
    assert reading.headers[1][1].strip() == b"\xc3\xa9\xff"


@pytest.mark.parametrize("head", [OK + b"Content-Type: text/plain\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"])
def test_a_body_without_a_length_ends_with_its_connection(head: bytes) -> None:
    """Where that was closed, and not torn down; nothing else follows."""
    closed, body = read("POST", [head, b"a", b"b"])
    closed.end(is_clean=True)
    torn, _ = read("POST", [head, b"a"])
    torn.end(is_clean=False)

    assert (body, closed.is_whole, closed.is_persistent, closed.broken) == (b"ab", True, False, None)
    assert (torn.is_whole, torn.broken) == (False, NOT_WHOLE)


@pytest.mark.parametrize(
    "data",
    [
        OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        OK + b"Content-Length: 2, 2\r\n\r\n{}",
        OK + b"Content-Length: -2\r\n\r\n{}",
        OK + b"Content-Length: +2\r\n\r\n{}",
        OK + b"Content-Length: 2 2\r\n\r\n{}",
        OK + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
        OK + b"Content-Length : 2\r\n\r\n{}",
        OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip\r\n\r\n{}",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: identity\r\n\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        OK + b"A: b\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\n{}",
        OK + b"A: b\r c\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"A: b\0\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}",
        OK + b": b\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n{}",
        b"HTTP/1.1 99 Low\r\n\r\n{}",
        b"HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/0.9 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"{}",
        OK + b"X: " + b"x" * HEAD_BYTES_MAX,
        OK + b"X: y\r\n" * (HEAD_BYTES_MAX // 6 + 1),
        OK + b"X: " + b"x" * HEAD_BYTES_MAX + b"\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 100 Continue\r\n\r\n" * (HEAD_BYTES_MAX // 25 + 1) + OK + b"Content-Length: 2\r\n\r\n{}",
    ],
)
def test_heads_with_two_readings_are_not_http(data: bytes) -> None:
    """No byte of a body is let through, however they arrive, and no other answer follows."""
    for chunks in ([data], cut(data, list(range(0, len(data), max(1, len(data) // 200))))):
        reading, body = read("POST", chunks)

        assert (body, reading.has_head, reading.is_whole) == (b"", False, False)
        assert (reading.broken or "").startswith((NOT_HTTP, HEAD_TOO_LARGE))
        assert not reading.is_persistent


@pytest.mark.parametrize(
    "rest",
    [
        b"2\r\n{}XX0\r\n\r\n",
        b"2\n{}\n0\n\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
        b"0x2\r\n{}\r\n0\r\n\r\n",
        b"zz\r\n{}\r\n0\r\n\r\n",
        b"ffffffffffffffffff\r\n{}",
    ],
)
def test_bodies_that_cannot_be_read_on_are_broken(rest: bytes) -> None:
    """What came before is a beginning at most."""
    for chunks in ([CHUNKED + rest], [CHUNKED, rest], [CHUNKED, *cut(rest, list(range(len(rest))))]):
        reading, body = read("POST", chunks)

        assert b"{}".startswith(body)
        assert (reading.is_whole, reading.is_persistent) == (False, False)
        assert (reading.broken or "").startswith(f"{BODY_NOT_HTTP}: ")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (OK + b"Content-Length: +2\r\n\r\n{}", "its Content-Length is no number"),
        (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "it has two lengths"),
        (OK + b"Transfer-Encoding: gzip\r\n\r\n{}", "its transfer-encoding is not plain chunked"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "it changes to another protocol"),
        (b"HTTP/2.0 200 OK\r\n\r\n", "it is HTTP/2.0"),
        (b"HTTP/1.1 099 Low\r\n\r\n", "its status is 99"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 40, "more than 32 heads"),
        (b"SSH-2.0-OpenSSH_9\r\n", "it does not begin with HTTP/"),
        (CHUNKED + b"zz\r\n", "the size of a chunk is no number"),
        (CHUNKED + b"2\r\n{}abc\r\n", "a chunk is longer than its size says"),
    ],
)
def test_why_it_is_not_http_is_told(data: bytes, words: str) -> None:
    """The connection did not break off: the upstream made a mistake, and this is which."""
    reading, _ = read("POST", [data])
    what = BODY_NOT_HTTP if data.startswith(CHUNKED) else NOT_HTTP

    assert (reading.broken or "").startswith(f"{what}: {words}")


@pytest.mark.parametrize(
    "rest", [b"0\r\n" + b"x-late: y\r\n" * 10_000, b"0\r\nx-late: " + b"y" * 90_000, b"2;" + b"x" * 90_000]
)
def test_frames_without_a_body_do_not_go_on_for_ever(rest: bytes) -> None:
    """Neither trailers nor what is noted behind a chunk's size."""
    reading, body = read("POST", [CHUNKED, b"2\r\n{}\r\n", *cut(rest, list(range(0, len(rest), 5_000)))])

    assert (body, reading.is_whole, reading.is_persistent) == (b"{}", False, False)
    assert (reading.broken or "").startswith(f"{BODY_NOT_HTTP}: {HEAD_BYTES_MAX} bytes")


@given(st.sampled_from(["length", "chunks", "trailers", "notes before"]), st.integers(0, 10_000))
def test_an_answer_that_breaks_off(name: str, place: int) -> None:
    """Half of it is never whole."""
    method, data, _, body, _ = GOOD[name]
    reading, seen = read(method, [data[: place % len(data)]])
    reading.end(is_clean=True)

    assert not reading.is_whole
    assert body.startswith(seen)
    assert reading.broken == NOT_WHOLE


@pytest.mark.parametrize("behind", [b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad", b"x", b"\x00", OK])
@pytest.mark.parametrize("name", ["length", "empty", "chunks", "no content", "closing", "not modified"])
def test_what_nobody_asked_for_ends_the_connection(name: str, behind: bytes) -> None:
    """The answer stays what it was; what stands behind it is no answer to anybody."""
    method, data, status, body, _ = GOOD[name]
    for chunks in ([data + behind], [data, behind]):
        reading, seen = read(method, chunks)

        assert (reading.status, seen, reading.is_whole, reading.broken) == (status, body, True, None)
        assert not reading.is_persistent


def test_a_body_to_a_request_for_a_head_is_not_read() -> None:
    """It is dropped with its connection."""
    reading, body = read("HEAD", [OK + b"Content-Length: 2\r\n\r\n{}"])

    assert (body, reading.is_whole, reading.is_persistent) == (b"", True, False)


@given(st.binary(max_size=300))
def test_noise_is_never_an_answer(noise: bytes) -> None:
    """Whatever comes, reading it raises nothing."""
    reading, body = read("POST", [noise, b"\r\n\r\n"])

    assert (reading.has_head, body) == (False, b"")
