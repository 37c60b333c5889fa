"""What leaves a stream without being read still counts at its end."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.verdict import Verdict
from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import Codec, ProposedCall
from interpose.gateway.chat import CHAT
from interpose.gateway.driving import drive_stream

FAULT = "interpose: the upstream broke off"


def _nothing_is_asked(call: ProposedCall) -> Verdict:
    raise AssertionError(call)


def _anthropic(text: str) -> bytes:
    data = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return f"event: content_block_delta\ndata: {json.dumps(data)}\n\n".encode()


def _chat(text: str) -> bytes:
    data = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    return f"data: {json.dumps(data)}\n\n".encode()


ANTHROPIC_ERROR = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
CHAT_ERROR = b'data: {"error":{"message":"busy"}}\n\n'
CHAT_DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("codec", "stream"),
    [
        (ANTHROPIC, _anthropic("hello") + ANTHROPIC_ERROR),
        (ANTHROPIC, b'event: error\ndata: {"error":{"message":"no type"}}\n\n'),
        (CHAT, _chat("hello") + CHAT_ERROR),
        (CHAT, _chat("hello") + CHAT_DONE),
    ],
)
def test_a_stream_that_said_how_it_ended_is_told_no_second_end(codec: Codec, stream: bytes) -> None:
    """A connection that breaks behind an error of the provider, or behind its last word, adds nothing."""
    for size in (1, 7, len(stream)):
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert drive_stream(codec, chunks, _nothing_is_asked, FAULT).body == stream


@pytest.mark.parametrize(
    ("codec", "stream"),
    [(ANTHROPIC, _anthropic('an "error" of [DONE]')), (CHAT, _chat('an {"error": 1} of [DONE]'))],
)
def test_a_text_about_errors_ends_nothing(codec: Codec, stream: bytes) -> None:
    """The words of an end within a text do not keep the client from being told that the stream broke off."""
    body = drive_stream(codec, [stream], _nothing_is_asked, FAULT).body
    assert body.startswith(stream)
    assert b"the upstream broke off" in body[len(stream) :]


@given(
    texts=st.lists(st.text(max_size=8) | st.sampled_from(["message_", "_call", "tool_use", "\\u0041"]), max_size=6),
    extra=st.lists(st.sampled_from(["", "\n", "\n\n", "\r\n", ": life\n\n"]), max_size=6),
    cuts=st.lists(st.integers(0, 2_000), max_size=8),
)
def test_texts_leave_as_they_came(texts: list[str], extra: list[str], cuts: list[int]) -> None:
    """Whatever texts say, however many line ends stand between events, and wherever the network cuts."""
    for codec, made in ((ANTHROPIC, _anthropic), (CHAT, _chat)):
        pieces = [made(text) for text in texts]
        for place, more in enumerate(extra):
            pieces.insert(place * 2, more.encode())
        stream = b"".join(pieces)
        places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
        chunks = [stream[start:end] for start, end in itertools.pairwise(places)]
        assert drive_stream(codec, chunks, _nothing_is_asked).body == stream
