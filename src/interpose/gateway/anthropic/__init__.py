"""The Anthropic messages API.

Knows: its requests, replies and events. Does not know: sockets, policy.
"""

from interpose.gateway.anthropic.reply import judged_reply
from interpose.gateway.anthropic.request import AnthropicRequest
from interpose.gateway.anthropic.stream import AnthropicStream
from interpose.gateway.api import ApiName, ReplyStream, RequestView, Steps


class AnthropicCodec:
    """The port `Codec` for `POST /v1/messages`."""

    api: ApiName = "anthropic"
    streams_arrays = False

    def read(self, body: bytes) -> RequestView:
        """The request. Raises Unreadable when it is not JSON or has no messages."""
        return AnthropicRequest(body)

    def reply(self, body: bytes) -> Steps:
        """A whole reply; its last step is the body for the client. Raises Unreadable when it is not JSON."""
        return judged_reply(body)

    def stream(self) -> ReplyStream:
        """A reader for one streamed reply."""
        return AnthropicStream()
