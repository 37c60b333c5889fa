"""The OpenAI chat completions API, and the many servers that speak it.

Knows: its requests, replies and chunks. Does not know: sockets, policy.
"""

from interpose.gateway.api import ApiName, ReplyStream, RequestView, Steps
from interpose.gateway.chat.reply import judged_reply
from interpose.gateway.chat.request import ChatRequest
from interpose.gateway.chat.stream import ChatStream


class ChatCodec:
    """The port `Codec` for `POST /v1/chat/completions`."""

    api: ApiName = "chat"
    streams_arrays = False

    def read(self, body: bytes) -> RequestView:
        """The request. Raises Unreadable when it is not JSON or its messages are no list."""
        return ChatRequest(body)

    def reply(self, body: bytes) -> Steps:
        """A whole reply; its last step is the body for the client. Raises Unreadable when it is not JSON."""
        return judged_reply(body)

    def stream(self) -> ReplyStream:
        """A reader for one streamed reply."""
        return ChatStream()
