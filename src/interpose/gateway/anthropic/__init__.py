"""The Anthropic messages API.

Knows: its requests, replies and events. Does not know: sockets, policy.
"""

from collections.abc import Sequence

from interpose.contracts.json import JsonObject
from interpose.gateway.anthropic import history, message
from interpose.gateway.anthropic.reply import AnthropicReply
from interpose.gateway.anthropic.request import AnthropicRequest
from interpose.gateway.anthropic.stream import AnthropicStream
from interpose.gateway.api import ApiName, RefusedCall, ReplyStream, RequestView


class AnthropicCodec:
    """The port `Codec` for `POST /v1/messages`."""

    api: ApiName = "anthropic"
    streams_arrays = False

    def read(self, body: bytes) -> RequestView:
        """The request. Raises Unreadable when it is not JSON or has no messages."""
        return AnthropicRequest(body)

    def whole(self) -> ReplyStream:
        """A reader for one reply that is not streamed."""
        return AnthropicReply()

    def stream(self) -> ReplyStream:
        """A reader for one streamed reply."""
        return AnthropicStream()

    def collected(self, raw: bytes) -> JsonObject | None:
        """The whole message that a stream's bytes add up to; None when that cannot be told for sure."""
        return message.collected(raw)

    def spoken(self, raw: bytes) -> str:
        """What a streamed message tells the person."""
        return message.spoken(raw)

    def as_stream(self, reply: JsonObject) -> bytes:
        """A whole message as the API streams it."""
        return message.as_stream(reply)

    def said(self, text: str, model: str | None) -> JsonObject:
        """A whole message that says `text` and ends the turn."""
        return message.said(text, model)

    def final_text(self, reply: JsonObject) -> str:
        """What a whole message tells the person."""
        return message.text_of(reply)

    def onward(
        self, sent: bytes, reply: JsonObject, answers: Sequence[tuple[RefusedCall, str]], nudge: str | None
    ) -> bytes | None:
        """The next request within one message of the client's, or None, as the port says."""
        return history.gone_on(sent, reply, answers, nudge)
