"""Server-sent events: read to the letter of the WHATWG text, kept byte for byte.

Knows: lines, fields, the byte order mark, where an event ends. Does not know: what the data means, sockets.
Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from interpose.contracts.errors import InterposeError

EVENT_BYTES_MAX = 64 * 1024 * 1024
"""An event longer than this is not waited for."""

_BOM = b"\xef\xbb\xbf"
_LINE = re.compile(rb"([^\r\n]*)(\r\n|\n|\r|\Z)")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_EVENT_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_PLAIN = re.compile(rb"(?:event: ?([^\r\n]*)\n)?data: ?([^\r\n]*)\n\n")
"""How nearly all events look; the fields of all others are read line by line."""

_LONGEST_END = 4
_END = b"\n\n"
_LONG_END = b"\n\n\n"
"""Where the stream is cut behind such an end, what follows may belong to the next event."""

_JSON_ENDS = (b"}\n\n", b"]\n\n")
"""How nearly all reads end, none of which is a long end."""


class EventTooLong(InterposeError):  # noqa: N818 - says what is wrong with the peer
    """The peer sent more than `EVENT_BYTES_MAX` bytes without ending an event."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event as it came. `raw` holds all its bytes, its blank line included; fields are read when asked for.

    `opens` says that it is the first of its stream, the only one that may start with a byte order mark: before any
    other line that is part of a name which nobody knows.
    """

    raw: bytes
    opens: bool = False

    @classmethod
    def build(cls, name: str | None, data: bytes, newline: bytes = b"\n") -> Self:
        """A new event with a data line for each line of `data`; whoever reads it gets line ends as LF."""
        head = b"event: " + name.encode() + newline if name else b""
        return cls(head + b"data: " + _on_data_lines(data, newline) + newline + newline)

    @property
    def name(self) -> str:
        """The event's name; `message` when it has none, as the text says."""
        plain = _PLAIN.fullmatch(self.raw)
        found = (plain[1] or b"") if plain is not None else b""
        for _, _, field, value in self._lines() if plain is None else ():
            if field == b"event":
                found = value
        return found.decode("utf-8", "replace") or "message"

    @property
    def data(self) -> bytes | None:
        """The data lines, joined by LF; None when there is none, and then nobody is told of this event."""
        plain = _PLAIN.fullmatch(self.raw)
        if plain is not None:
            return plain[2]
        values = [value for _, _, field, value in self._lines() if field == b"data"]
        return b"\n".join(values) if values else None

    @property
    def newline(self) -> bytes:
        """The line end that this event uses."""
        found = _LINE_END.search(self.raw)
        return found.group() if found else b"\n"

    def with_data(self, data: bytes) -> "SseEvent":
        """The same event with `data` as its only data: a line of the event for each of its lines.

        All other lines stay as they are, and all line ends that end a line which stays.
        """
        fresh = b"data: " + _on_data_lines(data, self.newline)
        pieces: list[bytes] = []
        placed = False
        for line, end, field, _ in self._lines():
            if field != b"data":
                pieces += (line, end)
                continue
            if placed:
                pieces[-1] = end  # a CR from further up would be one line end with an LF further down
                continue
            bom = _BOM if line.startswith(_BOM) else b""
            pieces += (bom, fresh, end)
            placed = True

        if placed:
            return SseEvent(b"".join(pieces), self.opens)
        bom = _BOM if self.opens and self.raw.startswith(_BOM) else b""
        return SseEvent(bom + fresh + self.newline + self.raw.removeprefix(bom), self.opens)

    def _lines(self) -> Iterator[tuple[bytes, bytes, bytes, bytes]]:
        """Each line, its end, and the field that it says; a comment's name is ""."""
        may_have_mark = self.opens
        for line, end in _lines(self.raw):
            name, _, value = (line.removeprefix(_BOM) if may_have_mark else line).partition(b":")
            may_have_mark = False
            yield line, end, name, value.removeprefix(b" ")


class SseReader:
    """Splits a stream into events, wherever the network cut it. One stream, one reader; not for several threads."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._is_new = True
        self.opens = False
        """Whether the stream begins with what was taken last."""

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes. Raises EventTooLong when an event does not end.

        An event that ends in a lone CR is complete only when the next byte shows that no LF belongs to it.
        """
        return self.split(self.take(data))

    def split(self, block: bytes) -> list[SseEvent]:
        """The events of what `take` gave last."""
        return split(block, opens=self.opens)

    def each(self, block: bytes) -> Iterator[SseEvent]:
        """The same events one by one, for whoever may need the first of them only."""
        return each(block, opens=self.opens)

    def split_from(self, block: bytes, position: int) -> tuple[bytes, list[SseEvent]]:
        """As the function `split_from`, for what `take` gave last."""
        return split_from(block, position, opens=self.opens)

    def take(self, data: bytes) -> bytes:
        """All complete events in one piece, for whoever may not need them apart. Raises EventTooLong."""
        buffer = self._buffer
        if not buffer and data[-3:] in _JSON_ENDS and data.find(b"\r") < 0:
            if self._is_new or self.opens:
                self.opens, self._is_new = self._is_new, False
            return data
        buffer += data
        end = self._last_end()
        block = bytes(buffer[:end])
        self.opens = self._is_new and bool(block)
        self._is_new = self._is_new and not block
        del buffer[:end]
        self._searched = max(0, len(buffer) - _LONGEST_END)
        if len(buffer) > EVENT_BYTES_MAX:
            raise EventTooLong(f"an event of more than {EVENT_BYTES_MAX} bytes does not end")
        return block

    def finish(self) -> tuple[list[SseEvent], bytes]:
        """At the end of the stream: the event that waited for its last byte, and what is left of an unfinished one.

        A reader to the letter discards the rest; readers that do not are common.
        """
        rest = bytes(self._buffer)
        self.opens, self._is_new = self._is_new, False
        self._buffer.clear()
        self._searched = 0
        found = _EVENT_END.search(rest)
        if found is None or found.end() != len(rest):
            return [], rest
        return [SseEvent(rest, self.opens)], b""

    def _last_end(self) -> int:
        """Where the last complete event ends; 0 when none does."""
        buffer = self._buffer
        if b"\r" not in buffer:
            end = buffer.rfind(_END, self._searched) + len(_END)
            if end < len(_END):
                return 0
            if not _is_long_end(buffer, end):
                return end

        last, position = 0, self._searched
        while (found := _EVENT_END.search(buffer, position)) is not None:
            position = found.end()
            if position == len(buffer) and buffer[-1] == 0x0D:
                break
            last = position
        return last


def split(block: bytes, *, opens: bool = False) -> list[SseEvent]:
    """The events of a piece that `SseReader.take` gave; `opens` says that the stream begins with it."""
    if b"\r" not in block:
        *whole, _ = block.split(_END)
        plain = [SseEvent(raw + _END) for raw in whole]
        return [SseEvent(plain[0].raw, opens), *plain[1:]] if plain and opens else plain
    return list(each(block, opens=opens))


def each(block: bytes, *, opens: bool = False) -> Iterator[SseEvent]:
    """As `split`, one event at a time."""
    start = 0
    if b"\r" not in block:
        while (end := block.find(_END, start)) >= 0:
            yield SseEvent(block[start : end + len(_END)], opens and not start)
            start = end + len(_END)
        return
    for found in _EVENT_END.finditer(block):
        yield SseEvent(block[start : found.end()], opens and not start)
        start = found.end()


def split_from(block: bytes, position: int, *, opens: bool = False) -> tuple[bytes, list[SseEvent]]:
    """What stands before the event at `position`, in one piece, and the events from there on."""
    start = block.rfind(_END, 0, position) + len(_END)
    if start < len(_END) or b"\r" in block or _is_long_end(block, start):
        return b"", split(block, opens=opens)
    return block[:start], split(block[start:])


def _is_long_end(data: bytes | bytearray, end: int) -> bool:
    """Whether more line ends stand before the two in front of `end`."""
    return data[max(0, end - len(_LONG_END)) : end] == _LONG_END


def _on_data_lines(data: bytes, newline: bytes) -> bytes:
    """What stands behind the first `data: ` of an event that says `data`, up to its last line end."""
    if b"\n" not in data and b"\r" not in data:
        return data
    return (newline + b"data: ").join(_LINE_END.split(data))


def _lines(raw: bytes) -> list[tuple[bytes, bytes]]:
    lines: list[tuple[bytes, bytes]] = _LINE.findall(raw)
    return lines if lines[-1] != (b"", b"") else lines[:-1]
