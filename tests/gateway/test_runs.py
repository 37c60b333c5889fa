"""gateway.runs: the texts of a stream, read together as they would be one by one."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.chat import CHAT
from interpose.gateway.runs import STRING, told

CONTENT = re.compile(rb'"content"\s*:\s*(null|' + STRING + rb"|)")
TEXTS = st.lists(st.text(st.sampled_from('ab "\\\n{}:,\0é😀')), min_size=1, max_size=4)


def one_by_one(raw: bytes) -> list[object]:
    """What the pattern finds, each value read by itself."""
    return [json.loads(found) for found in CONTENT.findall(raw)]


def chunk(delta: dict[str, object], end: bytes = b"\n\n", **members: object) -> bytes:
    """A chunk of a chat stream."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None, **members}
    return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + end


@given(
    texts=TEXTS,
    times=st.integers(1, 12),
    others=st.lists(
        st.tuples(
            st.integers(0, 40),
            st.sampled_from(
                [
                    b": ping\n\n",
                    chunk({"content": None}),
                    chunk({"tool_calls": [{"index": 0, "function": {"arguments": 'x"}}'}}]}),
                    chunk({"content": "a", "refusal": "no"}),
                    chunk({"refusal": "no"}),
                    chunk({"content": "b"}, b"\r\n\r\n"),
                    chunk({"content": "c"}, finish_reason="stop"),
                    b'data: {"content":"tight"}\n\n',
                ]
            ),
        ),
        max_size=3,
    ),
    cut=st.integers(0, 30),
)
def test_texts_read_together_are_those_read_one_by_one(
    texts: list[str], times: int, others: list[tuple[int, bytes]], cut: int
) -> None:
    """Whatever stands between the texts, and whatever they say, none is lost, made up or told in another order."""
    events = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": text}) for text in texts * times)]
    for place, other in others:
        events.insert(min(place, len(events)), other)
    whole = b"".join(events)
    raw = whole[: len(whole) - cut]

    found = told(raw, CONTENT)

    broken = b"" in CONTENT.findall(raw)
    assert found.texts == (None if broken else one_by_one(raw))


def test_the_rest_holds_what_is_around_the_texts_once() -> None:
    """What is looked for beside the texts is found in little: hundreds of texts leave a few events."""
    raw = b"".join(chunk({"content": f"text {number}"}) for number in range(300))

    found = told(raw, CONTENT)

    assert found.texts == [f"text {number}" for number in range(300)]
    assert len(found.rest) < 5 * len(chunk({"content": "text 100"}))


def test_a_text_that_only_looks_like_one_is_not_taken() -> None:
    """The bytes around a text stand around something else too: each text is then looked at by itself."""
    plain = [chunk({"content": f"text {number}"}) for number in range(20)]
    other = b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "said", "refusal": "no'
    tail = plain[0].partition(b"text 0")[2]
    raw = b"".join([*plain, other + tail, *plain])

    assert told(raw, CONTENT).texts == one_by_one(raw)
    assert len(one_by_one(raw)) == 41


@pytest.mark.parametrize("escaped", [r"\n", r"\"", r"\\", r"é", r"\ud83d\ude00"])
def test_escapes_in_a_run_are_read(escaped: str) -> None:
    """Texts of a run are JSON: what they escape is undone, in both APIs that are read so."""
    said = json.loads(f'"{escaped}"')
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "TEXT"}}
    event = f"event: content_block_delta\ndata: {json.dumps(delta)}\n\n".replace("TEXT", f"a{escaped}b")

    assert ANTHROPIC.spoken(event.encode() * 30) == f"a{said}b" * 30
    chat = chunk({"content": "TEXT"}).replace(b"TEXT", f"a{escaped}b".encode())
    assert CHAT.spoken(chat * 30 + chunk({}, finish_reason="stop")) == f"a{said}b" * 30
