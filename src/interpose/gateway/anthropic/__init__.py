"""The Anthropic messages API.

Knows: its requests, replies and events. Does not know: sockets, policy.
"""

from interpose.gateway.anthropic import ends, history, message
from interpose.gateway.anthropic.reply import AnthropicReply
from interpose.gateway.anthropic.request import AnthropicRequest
from interpose.gateway.anthropic.stream import AnthropicStream
from interpose.gateway.api import Codec

ANTHROPIC = Codec(
    api="anthropic",
    read=AnthropicRequest,
    whole=AnthropicReply,
    stream=AnthropicStream,
    collected=message.collected,
    shown=message.shown,
    spoken=message.spoken,
    as_stream=message.as_stream,
    said=message.said,
    final_text=message.text_of,
    onward=history.gone_on,
    closes=ends.closes,
)
"""`POST /v1/messages`."""
