"""gateway.framing: how a first line is spaced and how long a chunk will be, wherever the bytes are cut."""

from itertools import pairwise

import httptools
from hypothesis import given
from hypothesis import strategies as st

from interpose.gateway.framing import Framing

HOST = b"Host: 127.0.0.1\r\n"


class Reader:
    """A parser with its framing, as a connection has them."""

    def __init__(self) -> None:
        self.framing = Framing()
        self.parser = httptools.HttpRequestParser(self)
        self.plain: list[bool] = []
        self.sizes: list[int] = []
        self._target = b""
        self._is_inside = self._is_chunked = False

    def feed(self, data: bytes) -> None:
        """One read."""
        self.framing.read(data, is_inside=self._is_inside)
        self.parser.feed_data(data)
        self.framing.fed()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_inside, self._target, self._is_chunked = True, b"", False
        self.framing.begin()

    def on_url(self, url: bytes) -> None:
        """A piece of its target."""
        self._target += url

    def on_header(self, name: bytes, _value: bytes) -> None:
        """A field of its head."""
        self._is_chunked = self._is_chunked or name.lower() == b"transfer-encoding"

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        line = self.parser.get_method(), self._target, self.parser.get_http_version()
        self.plain.append(self.framing.has_plain_line(*line, is_chunked=self._is_chunked))

    def on_chunk_header(self) -> None:
        """A chunk begins."""
        self.sizes.append(self.framing.chunk())

    def on_message_complete(self) -> None:
        """It is whole."""
        self._is_inside = False


def read(data: bytes, places: list[int]) -> Reader:
    """All that is found when the bytes come in these pieces."""
    reader = Reader()
    for start, end in pairwise(sorted({0, len(data), *(place % (len(data) + 1) for place in places)})):
        reader.feed(data[start:end])
    return reader


PLACES = st.lists(st.integers(0, 10_000), max_size=12)
PLAIN = st.sampled_from(
    [
        b"GET /a?b=c HTTP/1.1\r\n" + HOST + b"\r\n",
        b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello",
        b"POST /longer HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n",
    ]
)


@given(st.lists(PLAIN, min_size=1, max_size=4), PLACES)
def test_what_is_plain_is_found_to_be(requests: list[bytes], places: list[int]) -> None:
    """One request or several, in any pieces."""
    assert read(b"".join(requests), places).plain == [True] * len(requests)


@given(
    st.lists(PLAIN, max_size=2),
    st.sampled_from(
        [
            b"GET  /odd HTTP/1.1\r\n",
            b"GET /odd  HTTP/1.1\r\n",
            b"GET   /odd   HTTP/1.1\r\n",
            b"\r\nGET  /odd HTTP/1.1\r\n",
            b"GET /odd RTSP/1.0\r\n",
        ]
    ),
    PLACES,
)
def test_what_is_not_plain_never_is(before: list[bytes], line: bytes, places: list[int]) -> None:
    """Also behind other requests, and in any pieces."""
    assert read(b"".join([*before, line, HOST, b"\r\n"]), places).plain == [True] * len(before) + [False]


CHUNKS = st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.sampled_from([b"", b";a", b';a="b;c"', b"0"])))


@given(CHUNKS, PLACES, st.booleans())
def test_chunks_are_announced(chunks: list[tuple[bytes, bytes]], places: list[int], is_second: bool) -> None:
    """Each by its size, as soon as its first line is whole; not behind a request in the same read."""
    body = b"".join(
        b"%b%x%b\r\n%b\r\n" % (b"0" if extra == b"0" else b"", len(data), extra.strip(b"0"), data)
        for data, extra in chunks
    )
    first = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
    data = b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\nX: y\r\n\r\n"
    reader = read(first + data if is_second else data, places)

    sizes = [*(len(chunk) for chunk, _ in chunks), 0]
    assert reader.sizes == sizes or (is_second and reader.sizes == [0] * len(sizes))


def test_a_chunk_is_announced_before_it_comes() -> None:
    """Its line is enough, and a line that is cut is waited for."""
    reader = read(b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n", [])
    reader.feed(b"4")
    reader.feed(b"0000000\r")
    assert reader.sizes == []
    reader.feed(b"\n")

    assert reader.sizes == [0x4000_0000]
