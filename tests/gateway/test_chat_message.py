"""gateway.chat.message: a completion and its chunks."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.testing.script import Reply, Text, ToolUse
from tests.gateway.apis import CODECS, frames_of, message_of

CODEC = CODECS["chat"]
WORDS = st.text(max_size=8)
COUNTS = st.integers(0, 99)
DONE = b"data: [DONE]\n\n"


def optional(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any of the members."""
    return st.fixed_dictionaries({}, optional=members)


FUNCTION = st.fixed_dictionaries({"name": WORDS, "arguments": WORDS})
CALLS = st.one_of(
    st.fixed_dictionaries({"id": st.text(min_size=1), "type": st.just("function"), "function": FUNCTION}),
    st.fixed_dictionaries(
        {
            "id": st.text(min_size=1),
            "type": st.just("custom"),
            "custom": st.fixed_dictionaries({"name": WORDS, "input": WORDS}),
        }
    ),
)
CITATION = st.fixed_dictionaries({"type": st.just("url_citation"), "url_citation": optional(url=WORDS)})
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.none() | WORDS, "refusal": st.none() | WORDS},
    optional={
        "annotations": st.lists(CITATION, max_size=2),
        "audio": st.none()
        | st.fixed_dictionaries({"id": WORDS, "data": WORDS, "transcript": WORDS, "expires_at": COUNTS}),
        "tool_calls": st.lists(CALLS, max_size=3),
        "function_call": st.none() | FUNCTION,
        "reasoning_content": st.none() | WORDS,
        "new_member": st.lists(COUNTS, max_size=1),
    },
)
TOKENS = st.none() | st.lists(optional(token=WORDS, logprob=st.just(-1.5)), max_size=2)
FINISHES = st.sampled_from(["stop", "length", "tool_calls", "content_filter", "function_call"])
USAGE = optional(
    prompt_tokens=COUNTS,
    completion_tokens=COUNTS,
    total_tokens=COUNTS,
    completion_tokens_details=optional(reasoning_tokens=COUNTS),
)


@st.composite
def completions(draw: st.DrawFn) -> dict[str, Any]:
    """Whole completions with all that the API defines, and members that it does not."""
    choices = [
        {
            "index": index,
            "message": draw(MESSAGES),
            "logprobs": draw(st.none() | st.fixed_dictionaries({"content": TOKENS, "refusal": TOKENS})),
            "finish_reason": draw(FINISHES),
        }
        for index in range(draw(st.integers(1, 3)))
    ]
    head = {"id": draw(WORDS), "object": "chat.completion", "created": draw(COUNTS), "model": draw(WORDS)}
    more = draw(optional(usage=USAGE, service_tier=st.none() | WORDS, system_fingerprint=WORDS, new=st.just({"a": 1})))
    return {**head, "choices": choices, **more}


@given(completions())
def test_a_completion_is_what_its_chunks_add_up_to(body: dict[str, Any]) -> None:
    """Taken apart and put together it is the same, with members that nobody knows."""
    assert CODEC.collected(CODEC.as_stream(body)) == body


@given(completions())
def test_what_is_spoken_is_the_first_choices_text(body: dict[str, Any]) -> None:
    """The quick way and the slow one give the same."""
    stream = CODEC.as_stream(body)
    message = body["choices"][0]["message"]

    said = "\n\n".join(filter(None, (message["content"], message["refusal"])))
    assert CODEC.spoken(stream) == CODEC.final_text(body) == said
    assert CODEC.spoken(stream.replace(b'"content"', b'"cont\\u0065nt"')) == CODEC.spoken(stream)


def test_a_scripted_stream_is_its_whole_reply() -> None:
    """Deltas of text and calls are joined in order, also when the last event does not end."""
    reply = Reply(Text("I «run» 😀 it."), ToolUse("Bash", {"command": "ls"}, id="a"), ToolUse("Read", "", id="b"))
    raw = b"".join(frames_of("chat", reply))
    whole = CODEC.collected(raw)

    assert whole is not None
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["message"] == {
        "role": "assistant",
        "content": "I «run» 😀 it.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}},
            {"id": "b", "type": "function", "function": {"name": "Read", "arguments": ""}},
        ],
    }
    assert whole["choices"][0]["finish_reason"] == "tool_calls"
    assert whole["usage"]["completion_tokens"] > 0
    assert CODEC.collected(raw.removesuffix(DONE).removesuffix(b"\n")) == whole
    assert CODEC.spoken(raw) == CODEC.final_text(whole) == "I «run» 😀 it."


def chunk(*deltas: dict[str, Any], **top: Any) -> bytes:
    """Chunks of one choice."""
    return b"".join(
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}], **top}).encode() + b"\n\n"
        for delta in deltas
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        DONE,
        b": alive\n\n",
        b"data: no json\n\n",
        b'data: {"choices": [7]}\n\n',
        b'data: {"choices": [], "error": {"message": "m"}}\n\n',
        chunk({"content": "a"}, {"content": ["b"]}),
        chunk({"new": "a"}, {"new": "b"}),
        chunk({"new": "a"}, {"new": "a"}),
        chunk({"role": "a"}, {"role": "b"}),
        chunk({"reasoning_details": [1]}, {"reasoning_details": "s"}),
    ],
)
def test_chunks_that_nobody_knows_to_join(raw: bytes) -> None:
    """There is no whole reply then, and nothing that is told."""
    assert CODEC.collected(raw) is None
    assert CODEC.spoken(raw) in ("", "a")


def test_odds_of_tokens_come_in_pieces() -> None:
    """They are put together as the texts are; a chunk without them changes nothing."""
    logprobs = [{"content": [1], "refusal": None}, None, {"content": [2]}]
    choices = [{"index": 0, "delta": {"content": "a", "tool_calls": None}, "logprobs": one} for one in logprobs]
    raw = b"".join(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n" for choice in choices)
    whole = CODEC.collected(raw)

    assert whole is not None
    assert whole["choices"][0]["logprobs"] == {"content": [1, 2], "refusal": None}
    assert whole["choices"][0]["message"] == {"content": "aaa", "tool_calls": None}
    assert CODEC.collected(CODEC.as_stream(whole)) == whole


def test_a_text_that_is_no_json_is_not_spoken() -> None:
    """The quick way finds it, the slow one knows better."""
    assert CODEC.spoken(b'data: {"choices": [{"delta": {"content": "\\x"}}]}\n\n') == ""


def test_pieces_that_servers_send() -> None:
    """Roles in every chunk, thoughts, parts, details and audio in pieces are joined."""
    audio = [{"audio": {"id": "i", "data": "AA"}}, {"audio": {"data": "AA", "transcript": "hi"}}]
    raw = chunk(
        {"role": "assistant", "content": "", "reasoning": "h"},
        {"role": "assistant", "reasoning": "m", "annotations": [1]},
        {"content": [{"type": "thinking"}], "annotations": [2], "reasoning_details": [{"a": 1}]},
        {"content": [{"type": "text", "text": "So."}], "reasoning_details": [{"b": 1}], "refusal": None},
        *audio,
        object="chat.completion.chunk",
        service_tier=None,
    )
    whole = CODEC.collected(raw + chunk({}, service_tier="default"))

    assert whole is not None
    assert (whole["object"], whole["service_tier"]) == ("chat.completion", "default")
    assert whole["choices"][0]["message"] == {
        "role": "assistant",
        "reasoning": "hm",
        "content": [{"type": "thinking"}, {"type": "text", "text": "So."}],
        "annotations": [1, 2],
        "reasoning_details": [{"a": 1}, {"b": 1}],
        "refusal": None,
        "audio": {"id": "i", "data": "AAAA", "transcript": "hi"},
    }
    assert CODEC.spoken(raw) == "So."


@pytest.mark.parametrize("body", [{}, {"choices": None}, {"choices": [7]}, {"choices": [{"message": None}]}])
def test_a_reply_that_says_nothing(body: dict[str, Any]) -> None:
    """Its text is empty."""
    assert CODEC.final_text(body) == ""


def test_what_interpose_says_is_a_reply_like_any_other() -> None:
    """Whole and streamed it is one text and a natural end, under an id of its own."""
    said = CODEC.said("[interpose] no", "gpt-x")
    stream = CODEC.as_stream(said)

    assert (said["model"], CODEC.said("x", None)["model"]) == ("gpt-x", "interpose")
    assert said["id"] != CODEC.said("x", None)["id"]
    assert message_of("chat", stream).text == CODEC.final_text(said) == CODEC.spoken(stream) == "[interpose] no"
    assert message_of("chat", stream).stop == "stop"
    assert CODEC.collected(CODEC.as_stream({"choices": [], "usage": None})) == {"choices": [], "usage": None}
