"""The OpenAI Responses API, over HTTP and server-sent events.

Knows: its requests, replies and events. Does not know: sockets, policy, what a provider keeps of a conversation.
"""

from interpose.gateway.api import Codec
from interpose.gateway.responses import events, history, response
from interpose.gateway.responses.reply import ResponsesReply
from interpose.gateway.responses.request import ResponsesRequest
from interpose.gateway.responses.stream import ResponsesStream

RESPONSES = Codec(
    api="responses",
    read=ResponsesRequest,
    whole=ResponsesReply,
    stream=ResponsesStream,
    collected=response.collected,
    shown=response.collected,
    spoken=response.spoken,
    as_stream=response.as_stream,
    said=response.said,
    final_text=response.text_of,
    onward=history.gone_on,
    closes=events.closes,
)
"""`POST /v1/responses`."""
