"""What the replies of all APIs that come whole do alike.

Knows: that a body is judged when all of it is there. Does not know: what is in it.
"""

from abc import ABC, abstractmethod

from interpose.gateway.api import Steps


class WholeReply(ABC):
    """The port `ReplyStream` for replies that come whole; the client's body is its last step."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> bytes:
        """Takes more of the body; nothing leaves."""
        self._pieces.append(data)
        return b""

    def finish(self, fault: str | None = None) -> Steps:  # noqa: ARG002 - half a body is told as an error elsewhere
        """Asks for each call in order, then yields the body: the upstream's bytes when nothing was changed.

        Raises Unreadable when the body is not a JSON object, or can be read in two ways.
        """
        yield from self._judged_body(self._taken())

    @property
    def is_ended(self) -> bool:
        """As the port says: half a body is no reply."""
        return True

    @abstractmethod
    def _judged_body(self, body: bytes) -> Steps:
        """The steps for one body of the model's."""

    def _taken(self) -> bytes:
        """The body; what comes next is another one."""
        body, self._pieces = b"".join(self._pieces), []
        return body
