"""The OpenAI Responses API, over HTTP and server-sent events.

Knows: its requests, replies and events. Does not know: sockets, policy, what a provider keeps of a conversation.
"""

from interpose.gateway.api import ApiName, ReplyStream, RequestView, Steps
from interpose.gateway.responses.reply import judged_reply
from interpose.gateway.responses.request import ResponsesRequest
from interpose.gateway.responses.stream import ResponsesStream


class ResponsesCodec:
    """The port `Codec` for `POST /v1/responses`."""

    api: ApiName = "responses"
    streams_arrays = False

    def read(self, body: bytes) -> RequestView:
        """The request. Raises Unreadable when it is not JSON or its input is neither text nor a list."""
        return ResponsesRequest(body)

    def reply(self, body: bytes) -> Steps:
        """A whole reply; its last step is the body for the client. Raises Unreadable when it is not JSON."""
        return judged_reply(body)

    def stream(self) -> ReplyStream:
        """A reader for one streamed reply."""
        return ResponsesStream()
