"""The OpenAI chat completions API, and the many servers that speak it.

Knows: its requests, replies and chunks. Does not know: sockets, policy.
"""

from collections.abc import Sequence

from interpose.contracts.json import JsonObject
from interpose.gateway.api import ApiName, RefusedCall, ReplyStream, RequestView
from interpose.gateway.chat import history, message
from interpose.gateway.chat.reply import ChatReply
from interpose.gateway.chat.request import ChatRequest
from interpose.gateway.chat.stream import ChatStream


class ChatCodec:
    """The port `Codec` for `POST /v1/chat/completions`."""

    api: ApiName = "chat"
    streams_arrays = False

    def read(self, body: bytes) -> RequestView:
        """The request. Raises Unreadable when it is not JSON or its messages are no list."""
        return ChatRequest(body)

    def whole(self) -> ReplyStream:
        """A reader for one reply that is not streamed."""
        return ChatReply()

    def stream(self) -> ReplyStream:
        """A reader for one streamed reply."""
        return ChatStream()

    def collected(self, raw: bytes) -> JsonObject | None:
        """The whole completion that a stream's bytes add up to; None when that cannot be told for sure."""
        return message.collected(raw)

    def spoken(self, raw: bytes) -> str:
        """What a streamed completion tells the person."""
        return message.spoken(raw)

    def as_stream(self, reply: JsonObject) -> bytes:
        """A whole completion as the API streams it."""
        return message.as_stream(reply)

    def said(self, text: str, model: str | None) -> JsonObject:
        """A whole completion that says `text` and is done."""
        return message.said(text, model)

    def final_text(self, reply: JsonObject) -> str:
        """What a whole completion tells the person."""
        return message.text_of(reply)

    def onward(
        self, sent: bytes, reply: JsonObject, answers: Sequence[tuple[RefusedCall, str]], nudge: str | None
    ) -> bytes | None:
        """The next request within one reply of the client's, or None, as the port says."""
        return history.gone_on(sent, reply, answers, nudge)
