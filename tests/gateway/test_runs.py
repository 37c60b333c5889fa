"""gateway.runs: events that are alike, read together as they would be one by one."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.verdict import Verdict
from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import Codec
from interpose.gateway.chat import CHAT
from interpose.gateway.chat.message import TEXT
from interpose.gateway.driving import Driven, drive_stream
from interpose.gateway.runs import hides_letter, learned, told
from interpose.wire.sse import split

TEXTS = st.lists(st.text(st.sampled_from('ab "\\\n{}:,\0é😀')), min_size=1, max_size=4)
CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "Bash", "arguments": 'x"}}'}}


def chunk(delta: dict[str, Any], end: bytes = b"\n\n", **members: object) -> bytes:
    """A chunk of a chat stream."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None, **members}
    return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + end


OTHERS = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from(
            [
                b": ping\n\n",
                chunk({"content": None}),
                chunk({"content": "a", "refusal": "no"}),
                chunk({"refusal": "no"}),
                chunk({"reasoning": "thought"}) * 10,
                chunk({"content": "b"}, b"\r\n\r\n"),
                b'data: {"content":"tight"}\n\n',
                b'data: {"choices":[{"index":0,"delta":{"content":"tight"}}]}\n\n',
                chunk({"tool_calls": [CALL]}),
                chunk({"content": "c"}, finish_reason="stop"),
            ]
        ),
    ),
    max_size=3,
)


def stream_of(texts: list[str], others: list[tuple[int, bytes]]) -> bytes:
    """A stream with these texts, and what stands between them."""
    events = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": text}) for text in texts)]
    for place, other in others:
        events.insert(min(place, len(events)), other)
    return b"".join(events)


@given(texts=TEXTS, times=st.integers(1, 20), others=OTHERS, cut=st.integers(0, 30))
def test_texts_read_together_are_those_read_one_by_one(
    texts: list[str], times: int, others: list[tuple[int, bytes]], cut: int
) -> None:
    """Whatever stands between the texts, and whatever they say, none is lost, made up or told in another order."""
    whole = stream_of(texts * times, others)
    raw = whole[: len(whole) - cut]

    found = told([raw], TEXT)

    one_by_one = TEXT.place.findall(raw)
    if b"" in one_by_one or len(one_by_one) != raw.count(b'"content"') or TEXT.hides(raw):
        assert found is None
        return
    assert found is not None
    assert "".join(found) == _joined([json.loads(one) for one in one_by_one])


@given(texts=TEXTS, times=st.integers(1, 20), others=OTHERS, cuts=st.lists(st.integers(0, 4000), max_size=4))
def test_a_stream_in_large_reads_is_the_one_in_small_reads(
    texts: list[str], times: int, others: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    """What leaves, what is asked and what it tells do not hang on how many events a read holds."""
    raw = stream_of(texts * times, others) * 3 + chunk({}, finish_reason="stop") + b"data: [DONE]\n\n"
    places = sorted({0, *cuts, len(raw)})
    large = [raw[start:end] for start, end in pairwise(places)]

    one, same = driven(CHAT, large), driven(CHAT, [event.raw for event in split(raw)])

    assert one.body == same.body
    assert one.asked == same.asked
    assert [said(CHAT, over) for over in one.over] == [said(CHAT, over) for over in same.over]


@pytest.mark.parametrize("codec", [CHAT, ANTHROPIC], ids=["chat", "anthropic"])
def test_a_run_is_not_looked_at_twice(codec: Codec) -> None:
    """Of hundreds of texts in large reads little is left to be looked at in the end."""
    texts = [f"text {number} \\ \n" for number in range(600)]
    raw = b"".join(map(chunk_of[codec.api], texts))

    over = driven(codec, [raw[:9000], raw[9000:50000], raw[50000:]], finish=END_OF[codec.api]).over[-1]

    assert over.parts
    assert sum(len(part) for part in over.parts if isinstance(part, bytes)) < len(raw) / 20
    assert said(codec, over) == codec.spoken(over.raw) == "".join(texts)


def test_a_text_that_only_looks_like_one_is_not_taken() -> None:
    """The bytes around a text stand around something else too: no run has it in it."""
    plain = [chunk({"content": f"text {number}"}) for number in range(20)]
    run = learned(b"".join(plain), TEXT)
    other = b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "said", "refusal": "no'
    tail = plain[0].partition(b"text 0")[2]

    assert run is not None
    assert run.within(b"".join([*plain, other + tail, *plain])) is None
    assert run.within(b"".join(plain)) == (0, len(b"".join(plain)), "".join(f"text {number}" for number in range(20)))


@pytest.mark.parametrize(
    "hidden", [b'a"}, "tool_calls": [{"index": 0}], "x": {"y": "b', b"a\\", b'a","b', b"\\x", b"\xff"]
)
def test_what_is_no_text_breaks_a_run(hidden: bytes) -> None:
    """More than a text, less than one, or none that can be read: then each event is looked at."""
    event = chunk({"content": "TEXT"})
    run = learned(event * 20, TEXT)

    assert run is not None
    assert run.within(event * 20) is not None
    assert run.within(event * 5 + event.replace(b"TEXT", hidden) + event * 5) is None
    both = event.replace(b"TEXT", b"a\\") + event.replace(b"TEXT", b',"c')  # together they are two texts again
    assert run.within(event * 5 + both + event * 5) is None


def test_an_event_that_is_as_long_breaks_a_run() -> None:
    """Another value of the same length behind the text is another event."""
    event = chunk({"content": "text"})
    run = learned(event * 20, TEXT)

    assert run is not None
    assert run.within(event * 5 + chunk({"content": "text"}, finish_reason="ab") + event * 5) is None


@pytest.mark.parametrize(
    "event",
    [
        chunk({"content": "text"}).replace(b'"id": "c"', b'"content": "text"'),
        chunk({"x": {"content": "text"}}),
        chunk({"content": "text", "x": {"content": "text"}}),
        chunk({"content": "text"}).replace(b'"index": 0', b'"index": 1'),
        chunk({"content": "text"}, index=1),
        chunk({"content": "text"}).replace(b'"delta"', b'"other"'),
        chunk({"content": "text"}).replace(b'"choices"', b'"others"'),
    ],
)
def test_texts_elsewhere_are_no_run(event: bytes) -> None:
    """What is not where the API has its texts is not learned, and each event is read."""
    assert learned(chunk({"content": "text"}) * 20, TEXT) is not None
    run = learned(event * 20, TEXT)
    assert run is None or run.within(event * 20) is None
    assert told([event * 100], TEXT) is None


@pytest.mark.parametrize(
    ("raw", "hides"),
    [
        (b'"cont\\u0065nt"', True),
        (b'"text\\u005fdelta"', True),
        (b'"\\u0050arts"', True),
        (b'"Gr\\u00fc\\u00dfe, it\\u0027s \\u003cb\\u003e"', False),
        (b'"\\n\\""', False),
    ],
)
def test_letters_of_keys_may_be_escapes(raw: bytes, hides: bool) -> None:
    """Signs and letters that no key has do not count: some servers escape them in every text."""
    assert hides_letter(raw) == hides


def delta(text: str) -> bytes:
    """A piece of text as Anthropic streams it."""
    data = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return b"event: content_block_delta\ndata: " + json.dumps(data).encode() + b"\n\n"


chunk_of = {"chat": lambda text: chunk({"content": text}), "anthropic": delta}
END_OF = {
    "chat": chunk({}, finish_reason="stop") + b"data: [DONE]\n\n",
    "anthropic": b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
}


def driven(codec: Codec, chunks: list[bytes], finish: bytes = b"") -> Driven:
    """The stream through the codec, every call released."""
    return drive_stream(codec, [*chunks, finish], lambda _: Verdict("a-1", "tool.call", "allowed"))


def said(codec: Codec, over: Any) -> str:
    """What the reply tells the person."""
    return codec.spoken(over.raw, over.parts)


def _joined(texts: list[Any]) -> str:
    return "".join(text for text in texts if text is not None)
