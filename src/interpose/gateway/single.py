"""A whole reply of an API whose replies end with the model's first one.

Knows: how a generator over one body plays a reader. Does not know: any API.
"""

from collections.abc import Callable

from interpose.gateway.api import Steps


class SingleReply:
    """The port `ReplyStream` over a function that judges one body."""

    def __init__(self, judged: Callable[[bytes], Steps]) -> None:
        self._judged = judged
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> Steps:
        """Takes more of the body."""
        self._pieces.append(data)
        yield from ()

    def finish(self, fault: str | None = None) -> Steps:  # noqa: ARG002 - half a body is told as an error elsewhere
        """Judges the body; the client's leaves last."""
        yield from self._judged(b"".join(self._pieces))
