"""The Gemini API: generateContent and streamGenerateContent, as events and as one array.

Knows: its requests, replies and chunks. Does not know: sockets, policy.
"""

from interpose.gateway.api import Codec
from interpose.gateway.gemini import chunks, history, message
from interpose.gateway.gemini.reply import GeminiReply
from interpose.gateway.gemini.request import GeminiRequest
from interpose.gateway.gemini.stream import GeminiStream

GEMINI = Codec(
    api="gemini",
    read=GeminiRequest,
    whole=GeminiReply,
    stream=GeminiStream,
    collected=message.collected,
    shown=message.collected,
    spoken=message.spoken,
    as_stream=message.as_stream,
    said=message.said,
    final_text=message.text_of,
    onward=history.gone_on,
    closes=chunks.closes,
    streams_arrays=True,
)
"""`POST …/models/MODEL:generateContent` and `:streamGenerateContent`."""
