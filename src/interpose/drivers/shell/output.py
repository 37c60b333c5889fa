"""A program's output within a bound: the beginning and the end are kept, the middle is counted.

Knows: bytes and where characters end. Does not know: where they come from.
"""

import codecs


class Capped:
    """Keeps at most `most` bytes, half from the beginning and half from the end. For one thread at a time."""

    def __init__(self, most: int) -> None:
        self._head_most = most // 2
        self._tail_most = most - self._head_most
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        """Takes the next bytes."""
        self._total += len(data)
        room = self._head_most - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_most:
            del self._tail[: -self._tail_most or None]

    def text(self) -> str:
        """What was kept, with a line in the middle that says how much is not there. No UTF-8 becomes U+FFFD."""
        left_out = self._total - len(self._head) - min(len(self._tail), self._tail_most)
        if left_out == 0:
            return (self._head + self._tail).decode("utf-8", "replace")

        tail = self._tail[-self._tail_most :] if self._tail_most else b""
        # A character cut in two is left out at either side; one that never was UTF-8 is replaced.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head), final=False)
        begin = next((number for number, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)
        return f"{head}\n[{left_out:,} bytes left out here]\n{tail[begin:].decode('utf-8', 'replace')}"
