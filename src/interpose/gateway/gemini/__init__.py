"""The Gemini API: generateContent and streamGenerateContent, as events and as one array.

Knows: its requests, replies and chunks. Does not know: sockets, policy.
"""

from collections.abc import Sequence

from interpose.contracts.json import JsonObject
from interpose.gateway.api import ApiName, RefusedCall, ReplyStream, RequestView
from interpose.gateway.gemini import history, message
from interpose.gateway.gemini.reply import GeminiReply
from interpose.gateway.gemini.request import GeminiRequest
from interpose.gateway.gemini.stream import GeminiStream


class GeminiCodec:
    """The port `Codec` for `POST …/models/MODEL:generateContent` and `:streamGenerateContent`."""

    api: ApiName = "gemini"
    streams_arrays = True

    def read(self, body: bytes) -> RequestView:
        """The request. Raises Unreadable when it is not JSON or its contents are no list."""
        return GeminiRequest(body)

    def whole(self) -> ReplyStream:
        """A reader for one reply that is not streamed."""
        return GeminiReply()

    def stream(self) -> ReplyStream:
        """A reader for one streamed reply, of events or of one array."""
        return GeminiStream()

    def collected(self, raw: bytes) -> JsonObject | None:
        """The whole reply that a stream's bytes add up to, events or one array; None when that cannot be told."""
        return message.collected(raw)

    def spoken(self, raw: bytes) -> str:
        """What a streamed reply tells the person."""
        return message.spoken(raw)

    def as_stream(self, reply: JsonObject) -> bytes:
        """A whole reply as the API streams it, in events."""
        return message.as_stream(reply)

    def said(self, text: str, model: str | None) -> JsonObject:
        """A whole reply that says `text` and is done."""
        return message.said(text, model)

    def final_text(self, reply: JsonObject) -> str:
        """What a whole reply tells the person."""
        return message.text_of(reply)

    def onward(
        self, sent: bytes, reply: JsonObject, answers: Sequence[tuple[RefusedCall, str]], nudge: str | None
    ) -> bytes | None:
        """The next request within one reply of the client's, or None, as the port says."""
        return history.gone_on(sent, reply, answers, nudge)
