"""The OpenAI Responses API, over HTTP and server-sent events.

Knows: its requests, replies and events. Does not know: sockets, policy, what a provider keeps of a conversation.
"""

from collections.abc import Sequence

from interpose.contracts.json import JsonObject
from interpose.gateway.api import ApiName, RefusedCall, ReplyStream, RequestView
from interpose.gateway.responses.reply import judged_reply
from interpose.gateway.responses.request import ResponsesRequest
from interpose.gateway.responses.stream import ResponsesStream
from interpose.gateway.single import SingleReply


class ResponsesCodec:
    """The port `Codec` for `POST /v1/responses`."""

    api: ApiName = "responses"
    streams_arrays = False

    def read(self, body: bytes) -> RequestView:
        """The request. Raises Unreadable when it is not JSON or its input is neither text nor a list."""
        return ResponsesRequest(body)

    def whole(self) -> ReplyStream:
        """A reader for one reply that is not streamed."""
        return SingleReply(judged_reply)

    def stream(self) -> ReplyStream:
        """A reader for one streamed reply."""
        return ResponsesStream()

    def collected(self, raw: bytes) -> JsonObject | None:  # noqa: ARG002
        """The whole reply that a stream's bytes add up to; None when that cannot be told for sure."""
        return None

    def spoken(self, raw: bytes) -> str:  # noqa: ARG002
        """What a streamed reply tells the person."""
        return ""

    def as_stream(self, reply: JsonObject) -> bytes:
        """A whole reply as the API streams it."""
        raise NotImplementedError

    def said(self, text: str, model: str | None) -> JsonObject:
        """A whole reply that says `text` and is done."""
        raise NotImplementedError

    def final_text(self, reply: JsonObject) -> str:  # noqa: ARG002
        """What a whole reply tells the person."""
        return ""

    def onward(  # noqa: D102
        self,
        sent: bytes,
        reply: JsonObject,
        answers: Sequence[tuple[RefusedCall, str]],
        nudge: str | None,  # noqa: ARG002
    ) -> bytes | None:
        return None
