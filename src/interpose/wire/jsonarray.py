"""A stream that is one JSON array, taken apart into its items as they arrive, kept byte for byte.

Knows: where an item of the outermost array begins and ends. Does not know: what an item means, sockets.
"""

import re
from dataclasses import dataclass

from interpose.wire.sse import EventTooLong

ITEM_BYTES_MAX = 64 * 1024 * 1024
"""An item longer than this is not waited for."""

_TOKEN = re.compile(rb'["\\{}\[\]]')
_OPEN, _CLOSE = b"{[", b"}]"


class ItemTooLong(EventTooLong):
    """The peer sent more than `ITEM_BYTES_MAX` bytes without ending an item."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of the stream: one whole object or list of the array, or what stands around them."""

    raw: bytes
    is_item: bool


class ArrayReader:
    """Splits a stream, wherever the network cut it. One stream, one reader; not for several threads.

    All pieces joined are the bytes that came, up to the end of the array and the blanks behind it. Items that are
    neither objects nor lists count as what stands around.

    Attributes:
        has_more: whether anything else stands behind the array; no piece tells of it.
    """

    def __init__(self) -> None:
        self.has_more = False
        self._item = bytearray()
        self._depth = 0
        self._in_text = False
        self._is_escaped = False

    @property
    def is_over(self) -> bool:
        """Whether the outermost array has been closed."""
        return self._depth < 0

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces that `data` completes; what stands around items is given at once.

        Raises ItemTooLong when an item does not end.
        """
        if self._depth < 0:
            return self._behind(data)
        pieces: list[Piece] = []
        start = 0
        for at, byte in self._tokens(data):
            if byte in _OPEN:
                self._depth += 1
                if self._depth == 2:
                    pieces += _around(data[start:at])
                    start = at
                continue
            self._depth = self._depth - 1 if self._depth > 1 else -1
            if self._depth < 0:
                return [*pieces, Piece(data[start : at + 1], is_item=False), *self._behind(data[at + 1 :])]
            if self._depth == 1:
                pieces.append(Piece(bytes(self._item) + data[start : at + 1], is_item=True))
                self._item.clear()
                start = at + 1
        if self._depth < 2:
            return pieces + _around(data[start:])
        self._item += data[start:]
        if len(self._item) > ITEM_BYTES_MAX:
            raise ItemTooLong(f"an item of more than {ITEM_BYTES_MAX} bytes does not end")
        return pieces

    def finish(self) -> bytes:
        """At the end of the stream: what is left of an unfinished item."""
        rest = bytes(self._item)
        self._item.clear()
        return rest

    def _behind(self, data: bytes) -> list[Piece]:
        """What stands behind the end of the array: blanks are its, and nothing else is."""
        self.has_more = self.has_more or bool(data.strip())
        return [] if self.has_more else _around(data)

    def _tokens(self, data: bytes) -> list[tuple[int, int]]:
        """The brackets outside of texts: where, and which."""
        found: list[tuple[int, int]] = []
        position = 0
        if self._is_escaped and data:
            self._is_escaped, position = False, 1
        while (token := _TOKEN.search(data, position)) is not None:
            at, byte = token.start(), data[token.start()]
            position = at + 1
            if byte == 0x5C:
                if self._in_text:
                    self._is_escaped = position >= len(data)
                    position += 1
            elif byte == 0x22:
                self._in_text = not self._in_text
            elif not self._in_text:
                found.append((at, byte))
        return found


def _around(raw: bytes) -> list[Piece]:
    return [Piece(raw, is_item=False)] if raw else []
