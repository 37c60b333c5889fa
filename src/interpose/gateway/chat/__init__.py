"""The OpenAI chat completions API, and the many servers that speak it.

Knows: its requests, replies and chunks. Does not know: sockets, policy.
"""

from interpose.gateway.api import Codec
from interpose.gateway.chat import chunks, history, message
from interpose.gateway.chat.reply import ChatReply
from interpose.gateway.chat.request import ChatRequest
from interpose.gateway.chat.stream import ChatStream

CHAT = Codec(
    api="chat",
    read=ChatRequest,
    whole=ChatReply,
    stream=ChatStream,
    collected=message.collected,
    shown=message.shown,
    spoken=message.spoken,
    as_stream=message.as_stream,
    said=message.said,
    final_text=message.text_of,
    onward=history.gone_on,
    closes=chunks.closes,
)
"""`POST /v1/chat/completions`."""
