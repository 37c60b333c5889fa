"""What the parser does not tell of a request: how its first line is spaced, how long a chunk will be.

Knows: where heads and chunks stand in what was read. Does not know: what they mean, sockets.
"""

_LINE_END = b"\r\n"
_HEAD_END = b"\r\n\r\n"


class Framing:
    """The bytes of one connection, read beside the parser that is fed with them. Not for several threads."""

    def __init__(self) -> None:
        self._data = b""
        self._head: list[bytes] = []
        """The reads in which the head stands that has begun and is not whole."""
        self._is_behind = False
        """Whether what begins now stands behind another request in the same read."""
        self._follows = False
        self._chunk_at: int | None = None
        """Where in what was read the next chunk begins, or will; None where that is not known."""

    def read(self, data: bytes, *, is_inside: bool) -> None:
        """The parser is fed with `data`; `is_inside` says that a request has begun that is not whole."""
        if self._head:
            self._head.append(data)
        self._data = self._data + data if self._data else data
        self._is_behind = is_inside

    def fed(self) -> None:
        """The parser has taken all of it; only what belongs to a line that is not whole is kept."""
        at = self._chunk_at
        if at is None:
            self._data = b""
            return
        size = len(self._data)
        self._data = self._data[at:]
        self._chunk_at = max(0, at - size)

    def begin(self) -> None:
        """A request begins."""
        self._head = [self._data]
        self._follows, self._is_behind = self._is_behind, True
        self._chunk_at = None

    def has_plain_line(self, method: bytes, target: bytes, version: str, *, is_chunked: bool) -> bool:
        """Whether the head, which is whole, begins as RFC 9112 says: one space between method, target and version.

        In a read with several requests a line that only looks like this one's counts, too: it is not known which it is.
        """
        raw = self._head[0] if len(self._head) == 1 else b"".join(self._head)
        self._head = []
        line = b"%b %b HTTP/%b\r\n" % (method, target, version.encode("ascii"))
        if self._follows:
            return line in raw and b"  " + target + b" " not in raw and target + b"  " not in raw
        start = 0 if raw.startswith(line) else len(raw) - len(raw.lstrip(_LINE_END))
        if is_chunked:
            self._chunk_at = raw.find(_HEAD_END, start) + len(_HEAD_END) - (len(raw) - len(self._data))
        return raw.startswith(line, start)

    def chunk(self) -> int:
        """The size of the chunk whose first line is whole now; 0 for the last one, and where that is not known."""
        at = self._chunk_at
        end = -1 if at is None else self._data.find(_LINE_END, at)
        if end < 0:
            self._chunk_at = None
            return 0
        size = int(self._data[at:end].partition(b";")[0], 16)  # as the parser has seen
        self._chunk_at = end + size + 2 * len(_LINE_END) if size else None
        return size
