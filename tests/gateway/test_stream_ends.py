"""How streams end: what stands behind the last event, what is over in the middle of a read, what never ends."""

import pytest

from interpose.gateway.api import Unreadable
from interpose.gateway.driving import Driven, drive_stream
from interpose.testing.script import Reply, Text
from tests.gateway.apis import CODECS, error_of, frames_of, judging

SSE_APIS = [api for api in CODECS if api != "gemini-array"]
ENDS = {"anthropic": b"event: message_stop", "chat": b"data: [DONE]", "responses": b"event: response.completed"}
"""How the event begins that ends a stream; Gemini has none."""

FRAMES = {api: frames_of(api, Reply(Text("It is done."))) for api in SSE_APIS}


@pytest.mark.parametrize("api", SSE_APIS)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("rest", [b"\n", b"\n\n", b": bye\n", b": bye", b"id: 5\n", b"\n: bye\n\n"])
@pytest.mark.parametrize("has_end", [True, False])
def test_what_tells_nothing_stays_behind_the_last_event(api: str, newline: bytes, rest: bytes, has_end: bool) -> None:
    """Half an event without data leaves as it came, and the event before it keeps its blank line."""
    frames = FRAMES[api] if has_end else [one for one in FRAMES[api] if not one.startswith(ENDS.get(api, b"-"))]
    stream = (b"".join(frames).replace(b"\r\n", b"\n") + rest).replace(b"\n", newline)
    by_byte = [stream[at : at + 1] for at in range(len(stream))]

    assert drive_stream(CODECS[api], [stream], judging()).body == stream
    assert drive_stream(CODECS[api], by_byte, judging()).body == stream


@pytest.mark.parametrize("api", ["anthropic", "chat"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_what_cannot_be_read_is_told_whatever_waits_behind_it(api: str, newline: bytes) -> None:
    """An end that came in the same read is not taken for the reply's: the client hears why there is no more."""
    broken = b'data: {"type": "content_block_start", "content_block": {"type": "tool_use", "tool_calls": [{"in\n\n'
    stream = b"".join([*FRAMES[api][:3], broken, *FRAMES[api][3:]]).replace(b"\n", newline)
    reader, driven = CODECS[api].stream(), Driven()

    with pytest.raises(Unreadable):
        driven.drive(reader.feed(stream), judging())
    driven.drive(reader.finish("interpose: it cannot be read"), judging())

    assert error_of(api, driven.body) == "interpose: it cannot be read"
    assert ENDS[api] not in driven.body
    assert not driven.over


@pytest.mark.parametrize("api", ["anthropic", "chat"])
def test_a_turn_ends_where_the_reply_does(api: str) -> None:
    """What a provider sends behind the end is none of the turn's text, however the network cut it."""
    frames = [*FRAMES[api], *FRAMES[api][1:-1]]
    codec = CODECS[api]

    at_once, apart = (drive_stream(codec, cut, judging()) for cut in ([b"".join(frames)], frames))

    told = [codec.spoken(over.raw, over.parts) for driven in (at_once, apart) for over in driven.over]
    assert told == ["It is done."] * 2
    assert at_once.body == apart.body == b"".join(frames)
