"""The OpenAI Responses API, over HTTP and server-sent events.

Knows: its requests, replies and events. Does not know: sockets, policy, what a provider keeps of a conversation.
"""

from collections.abc import Sequence

from interpose.contracts.json import JsonObject
from interpose.gateway.api import ApiName, RefusedCall, ReplyStream, RequestView
from interpose.gateway.responses import history, response
from interpose.gateway.responses.reply import ResponsesReply
from interpose.gateway.responses.request import ResponsesRequest
from interpose.gateway.responses.stream import ResponsesStream


class ResponsesCodec:
    """The port `Codec` for `POST /v1/responses`."""

    api: ApiName = "responses"
    streams_arrays = False

    def read(self, body: bytes) -> RequestView:
        """The request. Raises Unreadable when it is not JSON or its input is neither text nor a list."""
        return ResponsesRequest(body)

    def whole(self) -> ReplyStream:
        """A reader for one reply that is not streamed."""
        return ResponsesReply()

    def stream(self) -> ReplyStream:
        """A reader for one streamed reply."""
        return ResponsesStream()

    def collected(self, raw: bytes) -> JsonObject | None:
        """The whole response that a stream's bytes add up to; None when that cannot be told for sure."""
        return response.collected(raw)

    def spoken(self, raw: bytes) -> str:
        """What a streamed response tells the person."""
        return response.spoken(raw)

    def as_stream(self, reply: JsonObject) -> bytes:
        """A whole response as the API streams it."""
        return response.as_stream(reply)

    def said(self, text: str, model: str | None) -> JsonObject:
        """A whole response that says `text` and is complete."""
        return response.said(text, model)

    def final_text(self, reply: JsonObject) -> str:
        """What a whole response tells the person."""
        return response.text_of(reply)

    def onward(
        self, sent: bytes, reply: JsonObject, answers: Sequence[tuple[RefusedCall, str]], nudge: str | None
    ) -> bytes | None:
        """The next request within one response of the client's, or None, as the port says."""
        return history.gone_on(sent, reply, answers, nudge)
