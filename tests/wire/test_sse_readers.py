"""wire.sse beside two well-kept readers: httpx-sse, and the decoder of the anthropic SDK.

They differ from the text in what they do with a byte order mark in front of a stream, with events without data and with
an id that stays; none of that is compared.
"""

from collections.abc import Callable, Iterable

import anthropic._streaming
import httpx
import httpx_sse
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.wire.sse import SseReader

Seen = list[tuple[str, str]]
"""Name and data of each event that has data."""

LINES = st.sampled_from(
    [
        "data: {}",
        "data:x",
        "data:  y",
        "data: 😀ü\u2028\u0085",
        "event: e",
        ": note",
        "retry: 9",
        "x",
        "datax: 1",
        "",
        "\ufeffdata: x",
    ]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def ours(chunks: Iterable[bytes]) -> Seen:
    """What this package reads."""
    reader = SseReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [(event.name, event.data.decode()) for event in [*events, *reader.finish()[0]] if event.data]


def by_httpx_sse(chunks: Iterable[bytes]) -> Seen:
    """What httpx-sse reads."""
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=iter(chunks))
    return [(event.event, event.data) for event in httpx_sse.EventSource(response).iter_sse() if event.data]


def by_anthropic(chunks: Iterable[bytes]) -> Seen:
    """What the anthropic SDK reads."""
    events = anthropic._streaming.SSEDecoder().iter_bytes(iter(chunks))
    return [(event.event or "message", event.data) for event in events if event.data]


@given(lines=st.lists(st.tuples(LINES, ENDS), max_size=14), data=st.data())
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("read", [by_httpx_sse, by_anthropic])
def test_the_same_events_are_read(
    read: Callable[[Iterable[bytes]], Seen], lines: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Odd lines and ends, cut anywhere: every event with data is the same to all readers."""
    stream = (": begins\n" + "".join(line + end for line, end in lines) + "data: last\n\n").encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert ours(chunks) == ours([stream]) == read([stream])
    assert read is by_anthropic or read([chunk for chunk in chunks if chunk]) == ours(chunks)
