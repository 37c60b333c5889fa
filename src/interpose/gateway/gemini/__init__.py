"""The Gemini API: generateContent and streamGenerateContent, as events and as one array.

Knows: its requests, replies and chunks. Does not know: sockets, policy.
"""

from interpose.gateway.api import ApiName, ReplyStream, RequestView, Steps
from interpose.gateway.gemini.reply import judged_reply
from interpose.gateway.gemini.request import GeminiRequest
from interpose.gateway.gemini.stream import GeminiStream


class GeminiCodec:
    """The port `Codec` for `POST …/models/MODEL:generateContent` and `:streamGenerateContent`."""

    api: ApiName = "gemini"
    streams_arrays = True

    def read(self, body: bytes) -> RequestView:
        """The request. Raises Unreadable when it is not JSON or its contents are no list."""
        return GeminiRequest(body)

    def reply(self, body: bytes) -> Steps:
        """A whole reply; its last step is the body for the client. Raises Unreadable when it is not JSON."""
        return judged_reply(body)

    def stream(self) -> ReplyStream:
        """A reader for one streamed reply, of events or of one array."""
        return GeminiStream()
