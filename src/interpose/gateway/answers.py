"""An upstream's answers, read from bytes: heads, bodies, what is broken, what stands behind them.

Knows: HTTP/1.1's framing of responses and the limits of it. Does not know: connections, time.
What httptools (llhttp) refuses stays refused: CL with TE, two CL, folded lines, bare LF, control characters.
"""

from typing import TypeAlias

import httptools

HeaderList: TypeAlias = list[tuple[bytes, bytes]]

HEAD_BYTES_MAX = 65_536
"""So much may come without a byte of a body in it: a head, heads before it, the frames and trailers of chunks."""

NOTES_MAX = 32
"""So many heads may come before the one that counts."""

NOT_HTTP = "its answer is not HTTP"
HEAD_TOO_LARGE = f"the head of its answer is larger than {HEAD_BYTES_MAX} bytes"
NOT_WHOLE = "the connection broke off before the answer was whole"

BODY_NOT_HTTP = "the body of its answer is not HTTP"

_FAULTS = {
    "Expected HTTP/, RTSP/ or ICE/": "it does not begin with HTTP/",
    "Invalid status code": "its status is no number from 100 to 999",
    "Duplicate Content-Length": "it has two lengths",
    "Transfer-Encoding can't be present with Content-Length": "it has a length and chunks",
    "Content-Length can't be present with Transfer-Encoding": "it has a length and chunks",
    "Invalid character in Content-Length": "its Content-Length is no number",
    "Content-Length overflow": "its Content-Length is larger than any number says",
    "Invalid header field char": "a header's name has a character that cannot be in one, such as a space",
    "Invalid header token": "a header's name has a character that cannot be in one",
    "Invalid header value char": "a header has a character that cannot be in one, such as a zero byte",
    "Unexpected whitespace after header value": "a header goes on in a second line",
    "Missing expected CR after response line": "a line of its head ends without a carriage return",
    "Missing expected CR after header value": "a line of its head ends without a carriage return",
    "Missing expected LF after header value": "a line of its head has a carriage return in it",
    "Invalid character in chunk size": "the size of a chunk is no number",
    "Chunk size overflow": "a chunk is larger than any number says",
    "Missing expected CR after chunk size": "a chunk's first line ends without a carriage return",
    "Expected LF after chunk data": "a chunk is longer than its size says",
}
"""What the parser, llhttp, says, in our words."""

_SWITCHED = 101
_VERSIONS = ("1.1", "1.0")
_NO_BODY = frozenset({204, 304})


class Reading:
    """The answers of one connection, one after the other. Not for several threads.

    Attributes:
        status: of the answer that is being read, once `has_head`.
        phrase: what stood behind it in its line.
        headers: its fields, names in lower case, in the order and with the values that came; trailers are dropped.
        has_head: whether they are there.
        is_whole: whether its body is there, too.
        broken: what is wrong with it, in a line for people; None while nothing is.
        is_persistent: whether the connection may be asked again behind it.
        unread: how many bytes of the body wait for `take`.
        has_begun: whether any byte of it came.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.on_body = self._parts.append
        """Called by the parser for each chunk, so it is nothing but that; `feed` sees to what it collects."""
        self._parser = httptools.HttpResponseParser(self)
        self.begin("")

    def begin(self, method: str) -> None:
        """Another answer follows, to a request of this method. Only where the one before was persistent."""
        self._is_head = method == "HEAD"
        self._quiet_bytes = 0
        self._why = ""
        self._notes = 0
        self._parts_of_it = 0
        self._pieces: list[bytes] = []
        self._ends_with_connection = False
        self.status = 0
        self.phrase = b""
        self.headers: HeaderList = []
        self.has_head = False
        self.has_begun = False
        self.is_whole = False
        self.is_persistent = False
        self.broken: str | None = None
        self.unread = 0

    def feed(self, data: bytes) -> None:
        """Reads on. What is behind the answer, or cannot be read, makes it the last one of its connection."""
        self.has_begun = True
        self._quiet_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._break(self._why or _FAULTS.get(str(error), ""))
        if self._parts:
            self._collect()
        if self._quiet_bytes > HEAD_BYTES_MAX and not self.is_whole:
            self._break(f"{HEAD_BYTES_MAX} bytes without any of its content" if self.has_head else HEAD_TOO_LARGE)

    def end(self, *, is_clean: bool) -> None:
        """The connection ended: with it a body that has no length, where it was not torn down; any other is broken."""
        if self._ends_with_connection and is_clean and self.broken is None:
            self.is_whole = True
        if not self.is_whole and self.broken is None:
            self.broken = NOT_WHOLE

    def close(self) -> None:
        """Nothing more is fed. Without this, it would stay in memory until Python looks for circles."""
        del self._parser

    def take(self) -> bytes:
        """What has come of the body since the last time."""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self.unread = 0
        return data

    def on_message_begin(self) -> None:
        """Called by the parser: also for what stands behind the answer, which nobody has asked for."""
        if self.is_whole:
            self.is_persistent = False

    def on_status(self, phrase: bytes) -> None:
        """Called by the parser, for each piece that came."""
        if not self.has_head:
            self.phrase += phrase

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser: also for trailers."""
        if not self.has_head:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Called by the parser. What is raised here ends the parsing as what is not HTTP."""
        if self.is_whole:
            return
        status = self._parser.get_status_code()
        version = self._parser.get_http_version()
        if version not in _VERSIONS:
            raise self._because(f"it is HTTP/{version}")
        if status < 100:
            raise self._because(f"its status is {status}")
        if status == _SWITCHED:
            raise self._because("it changes to another protocol (101), which it was not asked to")
        if self._quiet_bytes > HEAD_BYTES_MAX and _size(self.headers) > HEAD_BYTES_MAX:
            raise self._because(HEAD_TOO_LARGE)
        if status < 200:
            self._note()
            return
        self._frame(status)
        self.status = status
        self.has_head = True

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if self.has_head and not self.is_whole:
            self._end_here()

    def _collect(self) -> None:
        """Keeps what a read brought of the body, and drops what stands behind it."""
        parts = self._parts
        if self.is_whole:
            del parts[self._parts_of_it :]
            self._parts_of_it = 0
        if parts:
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            self._pieces.append(data)
            self.unread += len(data)
            self._quiet_bytes = 0
            parts.clear()

    def _end_here(self) -> None:
        self.is_whole = True
        self._parts_of_it = len(self._parts)

    def _note(self) -> None:
        """A head on the way, such as 100 Continue; the answer follows."""
        self._notes += 1
        if self._notes > NOTES_MAX:
            raise self._because(f"more than {NOTES_MAX} heads come before the one that counts")
        self.headers = []
        self.phrase = b""

    def _frame(self, status: int) -> None:
        """How the body ends. Raises ValueError where two readers may find different ends."""
        is_chunked = has_length = False
        for name, value in self.headers:
            if name == b"content-length":
                has_length = True
            elif name == b"transfer-encoding":
                if is_chunked or value.strip().lower() != b"chunked" or self._parser.get_http_version() != "1.1":
                    raise self._because("its transfer-encoding is not plain chunked")
                is_chunked = True
        if self._is_head:
            self._end_here()  # the parser, which knows no requests, waits for a body: no other answer follows
            return
        self.is_persistent = self._parser.should_keep_alive()
        self._ends_with_connection = not (has_length or is_chunked or status in _NO_BODY)

    def _because(self, why: str) -> ValueError:
        """To be raised: the parser ends, and this is why."""
        self._why = why
        return ValueError(why)

    def _break(self, why: str) -> None:
        self.is_persistent = False
        if self.is_whole or self.broken is not None:
            return
        if why == HEAD_TOO_LARGE:
            self.broken = why
            return
        what = BODY_NOT_HTTP if self.has_head else NOT_HTTP
        self.broken = f"{what}: {why}" if why else what


def _size(headers: HeaderList) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers)
