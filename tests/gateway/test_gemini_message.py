"""gateway.gemini: whole replies, put together from their chunks and told as such."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.gemini_talks import (
    FIRST,
    MODELS,
    G,
    Round,
    call,
    model,
    text,
)

words = st.text(st.sampled_from(["a", "é", " ", "\n", '"', "\\", "[", "😀"]), max_size=6)
json_values = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | words, st.lists, max_leaves=4)
any_parts = st.one_of(
    st.builds(text, words),
    st.builds(text, words, thought=st.just(value=True)),
    st.builds(text, words, thoughtSignature=words),
    st.builds(call, words, words, words, x=json_values),
    st.fixed_dictionaries({"newThing": json_values}),
)
replies = st.fixed_dictionaries(
    {
        "candidates": st.lists(
            st.fixed_dictionaries(
                {"content": st.builds(lambda parts: model(*parts), st.lists(any_parts, max_size=4))},
                optional={"finishReason": words, "newMember": json_values, "index": st.just(0)},
            ),
            max_size=2,
        )
    },
    optional={"usageMetadata": st.just({"totalTokenCount": 3}), "newMember": json_values, "responseId": words},
)


@given(reply=replies)
@settings(max_examples=60, deadline=None)
def test_a_whole_reply_streams_and_comes_back(reply: dict[str, Any]) -> None:
    """Nothing is lost on the way, what nobody knows included; and both tell the same."""
    assert G.collected(G.as_stream(reply)) == reply
    assert G.spoken(G.as_stream(reply)) == G.final_text(reply)


@pytest.mark.parametrize("form", ["events", "array"])
def test_a_stream_adds_up(form: str) -> None:
    """Pieces of texts are one, what each chunk has of a list is all there, the last word on the rest counts."""
    chunks = [FIRST.chunk([part]) for part in FIRST.parts]
    for number, chunk in enumerate(chunks):
        chunk["candidates"][0]["citationMetadata"] = {"citationSources": [number]}
    del chunks[-1]["candidates"][0]["index"]
    chunks.append({"candidates": [{"finishReason": "STOP", "index": 0}], "modelVersion": "last"})
    frames = [json.dumps(chunk).encode() for chunk in chunks]
    raw = b"[" + b",".join(frames) + b"]" if form == "array" else b"".join(b"data: " + one + b"\n\n" for one in frames)

    whole = G.collected(raw)
    assert whole is not None
    assert whole["candidates"] == [
        {
            "content": MODELS[1],
            "index": 0,
            "finishReason": "STOP",
            "citationMetadata": {"citationSources": [0, 1, 2, 3]},
        }
    ]
    assert (whole["modelVersion"], whole["responseId"]) == ("last", "r-1")
    assert G.spoken(raw) == G.final_text(whole) == "I clean."


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"data: not json\n\n",
        b"data: [1]\n\n",
        b"[1]",
        b"[",
        b'data: {"error": {"message": "m"}}\n\n',
        b'data: {"candidates": [{"content": {"parts": [{"text": "\\q"}]}}]}\n\n',
        b'data: {"candidates": 1}\n\ndata: {"candidates": 1}\n\n',
        b'data: {"candidates": ["odd"]}\n\ndata: {}\n\n',
    ],
)
def test_streams_that_add_up_to_nothing(raw: bytes) -> None:
    """What cannot be told for sure is None, and says nothing."""
    assert G.collected(raw) is None
    assert G.spoken(raw) == ""


@pytest.mark.parametrize("form", ["events", "array"])
def test_what_a_stream_tells_the_person(form: str) -> None:
    """Texts without thoughts; the quick way and the long one say the same."""
    quick = Round((text("hm", thought=True), text('say "hi"\n'), text("\\é😀", thoughtSignature="s"), text("")))
    slow = Round((*quick.parts, {"executableCode": {"code": "1"}}))

    assert G.spoken(quick.raw(form)) == G.spoken(slow.raw(form)) == 'say "hi"\n\\é😀'


def test_what_interpose_says_itself() -> None:
    """A reply like any other, whole or streamed."""
    reply = G.said("[interpose] no", None)

    assert G.final_text(reply) == "[interpose] no"
    assert (reply["candidates"][0]["finishReason"], reply["modelVersion"]) == ("STOP", "interpose")
    assert G.said("x", "m")["modelVersion"] == "m"
    assert G.as_stream(reply).endswith(b"\r\n\r\n")
