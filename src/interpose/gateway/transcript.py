"""What the upstream has sent of one reply, kept as it came for whoever needs the whole of it at its end.

Knows: bytes and a bound. Does not know: any API.
"""

TRANSCRIPT_BYTES_MAX = 32 * 1024 * 1024
"""A longer reply is not kept: it passes as ever, and its history cannot be gone on with."""


class Transcript:
    """The bytes of one reply, in `blocks`, which are left out once `size` is too much. Not for several threads.

    `behind` is how many bytes at the end of the last block stand behind the event that is taken now.
    """

    __slots__ = ("behind", "blocks", "size")

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self.size = 0
        self.behind = 0

    def add(self, block: bytes) -> None:
        """Keeps more of the reply."""
        self.size += len(block)
        if self.size <= TRANSCRIPT_BYTES_MAX:
            self.blocks.append(block)

    def cut(self) -> None:
        """Leaves out what stands `behind`: it is none of the reply."""
        behind, self.behind = self.behind, 0
        self.size -= behind
        if behind and self.size + behind <= TRANSCRIPT_BYTES_MAX:
            self.blocks[-1] = self.blocks[-1][:-behind]

    def taken(self) -> bytes:
        """All that was kept, "" when it was too much; what follows is another reply."""
        raw = b"".join(self.blocks) if self.size <= TRANSCRIPT_BYTES_MAX else b""
        self.blocks, self.size = [], 0
        return raw
