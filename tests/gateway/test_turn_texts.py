"""What a streamed reply tells the person: the same in every read, and whatever else is in the stream."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.verdict import Verdict
from interpose.gateway.driving import drive_stream
from tests.gateway.apis import CODECS

WORDS = [f"word {number} " for number in range(40)]
PLAIN = "".join(WORDS)


def chat(delta: Any, index: int = 0, **members: Any) -> bytes:
    """A chunk of a chat stream."""
    choice = {"index": index, "delta": delta, "finish_reason": None}
    return b"data: " + json.dumps({"id": "c", "choices": [choice], **members}).encode() + b"\n\n"


def anthropic(kind: str, **members: Any) -> bytes:
    """An event of a messages stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()


def block(index: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    """A block with its deltas."""
    pieces = [anthropic("content_block_delta", index=index, delta=delta) for delta in deltas]
    start = anthropic("content_block_start", index=index, content_block=begun)
    return b"".join([start, *pieces, anthropic("content_block_stop", index=index)])


def texts(*words: str) -> list[dict[str, Any]]:
    """Deltas of a text."""
    return [{"type": "text_delta", "text": word} for word in words]


def gemini(*parts: dict[str, Any], index: int = 0) -> bytes:
    """A chunk of Gemini's."""
    content = {"parts": list(parts), "role": "model"}
    return b"data: " + json.dumps({"candidates": [{"content": content, "index": index}]}).encode() + b"\r\n\r\n"


def responses(kind: str, **members: Any) -> bytes:
    """An event of a response."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()


def item(text: str, **members: Any) -> dict[str, Any]:
    """A message item."""
    return {"type": "message", "id": "m", "content": [{"type": "output_text", "text": text}], **members}


def told(api: str, raw: bytes, cuts: list[int]) -> list[str]:
    """What the stream tells when it comes in these reads."""
    codec = CODECS[api]
    chunks = [raw[start:end] for start, end in pairwise(sorted({0, *cuts, len(raw)}))]
    driven = drive_stream(codec, chunks, lambda _: Verdict("a-1", "tool.call", "allowed"))
    return [codec.spoken(over.raw, over.parts) for over in driven.over]


TEXT = {"type": "text", "text": ""}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
ESCAPED = anthropic("content_block_delta", index=0, delta=texts("WORD ")[0]).replace(b"text_d", b"text\\u005fd")


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (chat({"thinking_blocks": [{"thinking": "hm"}]}) * 2, ""),
        (chat({"reasoning_text": "hm"}) * 2 + chat({"content": "Grüße <b> "}), "Grüße <b> "),
        (chat({"content": "a ", "provider_specific_fields": {"x": "1"}}) * 2, "a a "),
        (chat({"content": "a "}).replace(b'"content"', b'"cont\\u0065nt"') + chat({"new": "x"}) * 2, "a "),
        (chat({"content": [{"type": "text", "text": "w "}, {"type": "thinking", "thinking": []}]}), "w "),
        (chat({"content": None}), ""),
        (chat({"content": "w "}, content="FAKE"), "w "),
        (chat({"content": "w "}, x={"choices": [{"delta": {"content": "FAKE"}}]}), "w "),
        (chat({"x": {"content": "FAKE"}, "content": "w "}), "w "),
        (chat({}, x={"content": 'FAKE"}'}), ""),
        (chat({"content": "second"}, 1), ""),
        (chat({"content": "w "}).replace(b'"index": 0, ', b""), "w "),
        (b'data: {"choices": [{"delta": {"content": "w "}, "index": 0}]}\n\n', "w "),
        (b'data: {"choices": [{"delta": {"content": "second"}, "index": 1}]}\n\n', ""),
        (b'data: {"choices": [7, {"delta": 7}, {"message": {"content": "w "}}, {"index": "x"}]}\n\n', "w "),
        (b'data: {"choices": [{"delta": {"content": "w "}, "message": {"content": "all that came"}}]}\n\n', "w "),
        (chat({"content": "w "}, usage={"a": 1}) + b"data: no json\n\n: alive\n\n", "w "),
        (chat({"content": "\ud83d"}) + chat({"content": "\ude00"}), "\U0001f600"),
    ],
)
def test_chat(odd: bytes, said: str) -> None:
    """Members that nobody knows, escapes, parts, other choices and texts elsewhere: nothing is lost or made up."""
    for words in (WORDS[:1], WORDS):
        front = b"".join(chat({"content": word}) for word in words)
        _check("chat", front, odd, chat({"content": "end"}) + b"data: [DONE]\n\n", "".join(words) + said + "end")


@pytest.mark.parametrize("words", [WORDS[:1], WORDS])
def test_a_chat_refusal_stands_behind_what_else_is_said(words: list[str]) -> None:
    """Streamed or whole, wherever it comes: the person is told both."""
    front, said = b"".join(chat({"content": word}) for word in words), "".join(words)
    message = {"role": "assistant", "content": said, "refusal": "NO"}

    _check("chat", front, chat({"refusal": "N"}), chat({"refusal": "O"}) + b"data: [DONE]\n\n", f"{said}\n\nNO")
    _check("chat", chat({"content": "", "refusal": "NO"}), front, b"data: [DONE]\n\n", f"{said}\n\nNO")
    _check("chat", front, chat({"refusal": "second"}, 1), b"data: [DONE]\n\n", said)
    _check("chat", front, chat({"refusal": None}) + chat({"refusal": ""}), b"data: [DONE]\n\n", said)
    assert CODECS["chat"].final_text({"choices": [{"message": message}]}) == f"{said}\n\nNO"
    assert CODECS["chat"].final_text({"choices": [{"message": {**message, "refusal": None}}]}) == said


def test_a_chat_refusal_stands_where_nothing_else_is_said() -> None:
    """Also where members that nobody knows come in pieces."""
    odd = chat({"thinking_blocks": [1]}) * 2
    _check("chat", odd, chat({"refusal": "I can"}) + chat({"content": "", "refusal": "not"}), b"", "I cannot")
    _check("chat", odd, chat({"tool_calls": None}), b"data: [DONE]\n\n", "")
    _check("chat", b"", chat({"content": "only"}, 1), b"", "only")


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (block(1, THINKING, {"type": "thinking_delta", "thinking": "hm"}, {"type": "new_delta", "x": 1}), ""),
        (block(1, {"type": "compaction", "content": ""}, {"type": "compaction_delta", "content": "x"}), ""),
        (block(1, SEARCH, {"type": "input_json_delta", "partial_json": '{"q": '}), ""),
        (block(1, TEXT, *texts("a"), {"type": "newtext_delta", "text": "x"}, *texts("b")), "\n\nab"),
        (block(1, {"type": "text", "text": "FIRST "}, *texts("then")), "\n\nFIRST then"),
        (block(1, {"type": "text", "text": "ALONE"}), "\n\nALONE"),
        (block(1, {"type": "thinking", "text": "no"}), ""),
        (block(1, {**TEXT, "citations": []}), ""),
        (anthropic("new_event", delta={"text_delta": 1}, x={"text": "FAKE"}), ""),
        (anthropic("ping", x={"delta": {"type": "text_delta", "text": "FAKE"}}), ""),
        (anthropic("content_block_delta", index=3, delta={"text": "late", "type": "text_delta"}), "\n\nlate"),
        (anthropic("content_block_delta", index=3, delta=7) + b"data: 7\n\n", ""),
        (anthropic("content_block_start", index=3) + anthropic("content_block_stop", index=3), ""),
    ],
)
def test_anthropic(odd: bytes, said: str) -> None:
    """Deltas that nobody knows, texts in the start of a block, half an input: each text that is known is told."""
    end = anthropic("message_delta", delta={"stop_reason": "end_turn"}) + anthropic("message_stop")
    for words in (WORDS[:1], WORDS):
        _check("anthropic", begun() + block(0, TEXT, *texts(*words)), odd, end, "".join(words) + said)


def begun(*content: dict[str, Any]) -> bytes:
    """The start of a message."""
    return anthropic("message_start", message={"id": "m", "role": "assistant", "content": list(content), "usage": {}})


@pytest.mark.parametrize("words", [[], WORDS[:1], WORDS])
def test_the_first_text_of_a_block(words: list[str]) -> None:
    """It may stand in its start, or in that of the message, with deltas behind or without; a key may be escaped."""
    said = "".join(words)
    first = {"type": "text", "text": "FIRST "}
    _check("anthropic", begun(), block(0, first, *texts(*words)), b"", "FIRST " + said)
    _check(
        "anthropic",
        begun(),
        block(0, first, *texts(*words)).replace(b'"text": "F', b'"te\\u0078t": "F'),
        b"",
        "FIRST " + said,
    )
    _check("anthropic", begun(first), block(0, TEXT, *texts(*words)), b"", "\n\n".join(filter(None, ["FIRST ", said])))
    _check("anthropic", begun(), block(0, TEXT, *texts(*words)), ESCAPED, said + "WORD ")
    _check("anthropic", begun(), b"", ESCAPED.rstrip(), "WORD ")


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (gemini({"text": "w "}).replace(b'"text"', b'"te\\u0078t"'), "w "),
        (gemini({"text": "w "}).replace(b'"parts"', b'"p\\u0061rts"'), "w "),
        (gemini({"text": "w "}).replace(b'"candidates"', b'"c\\u0061ndidates"'), "w "),
        (gemini({"text": "it's <b> Grüße "}).replace(b"<", b"\\u003c"), "it's <b> Grüße "),
        (gemini({"text": "hm", "thought": True}), ""),
        (gemini({"newThing": 1}, {"text": "w "}), "w "),
        (gemini({"text": "second"}, index=1), ""),
        (b'data: {"x": {"parts": [{"text": "FAKE"}]}, "candidates": []}\r\n\r\n', ""),
        (b'data: {"candidates": 7}\r\n\r\ndata: {"candidates": [7]}\r\n\r\n', ""),
        (b'data: {"error": {"message": "overloaded"}}\r\n\r\n', ""),
        (b"data: no json\r\n\r\n", ""),
        (gemini({"text": "\ud83d"}) + gemini({"text": "\ude00"}), "\U0001f600"),
    ],
)
def test_gemini(odd: bytes, said: str) -> None:
    """Escaped keys, parts of new kinds, errors, chunks that cannot be read: each text that is known is told."""
    spoken = CODECS["gemini"].spoken
    for words in (WORDS[:1], WORDS):
        front = b"".join(gemini({"text": word}) for word in words)
        assert spoken(front + odd + gemini({"text": "end"})) == "".join(words) + said + "end"
    assert spoken(odd) == said or b'"index": 1' in odd


def test_a_gemini_array_that_breaks_off() -> None:
    """The chunks that came whole are told."""
    chunks = [gemini({"text": word}).strip().removeprefix(b"data: ") for word in WORDS]
    whole = b"[" + b",\r\n".join(chunks)
    spoken = CODECS["gemini"].spoken

    assert spoken(whole + b"]") == spoken(whole) == PLAIN
    assert spoken(whole + b',{"candidates": [{"te\\u0078t"') == PLAIN
    assert spoken(b"[" + chunks[0] + b",7,{}]") == WORDS[0]


COMPLETED = responses("response.completed", response={"id": "r", "status": "completed", "output": []})


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (responses("response.output_item.done", output_index=0, item=item("One.")), "One."),
        (responses("response.output_item.done", item=item("No index.")) + COMPLETED, "No index."),
        (
            responses("response.output_item.done", output_index=0, item=item("One.")) + responses("error", code=1),
            "One.",
        ),
        (
            responses("response.output_text.delta", output_index=0, content_index=0, delta="On")
            + responses("response.output_text.delta", output_index=0, content_index=0, delta="e.")
            + responses("response.new_thing.delta", output_index=0, content_index=0, delta="x")
            + responses("response.refusal.delta", output_index=0, content_index=1, delta="No.")
            + responses("response.output_text.delta", output_index=1, content_index=0, delta="Two")
            + responses("response.output_item.done", output_index=1, item=item("Two."))
            + COMPLETED,
            "One.\n\nNo.\n\nTwo.",
        ),
        (
            responses("response.output_item.done", output_index=0, item=item("One.", id="a"))
            + responses("response.incomplete", response={"output": [item("Other.", id="b")]}),
            "One.",
        ),
        (
            responses("response.output_item.done", output_index=0, item=item("One."))
            + responses("response.completed", response={"output": [{"type": "reasoning"}]}),
            "One.",
        ),
        (responses("response.incomplete", response={"output": [item("End.")]}), "End."),
        (responses("response.completed", response={"output": [item("End.")]}), "End."),
        (
            responses("response.completed", response={"output": [item("End.")]}).replace(
                b"completed", b"compl\\u0065ted"
            ),
            "End.",
        ),
        (responses("response.completed", response={"output": 7}) + responses("response.failed", response=7), ""),
    ],
)
def test_responses(raw: bytes, said: str) -> None:
    """Without an end, or where it does not agree with the items, each text that is known is told."""
    assert CODECS["responses"].spoken(raw) == said


DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "role": st.just("assistant"),
        "reasoning_text": st.text(max_size=3),
        "content": st.none() | st.text(st.sampled_from('ab "\\{}é😀'), max_size=4),
        "x": st.fixed_dictionaries({"content": st.just("FAKE")}),
    },
)


@given(
    deltas=st.lists(st.tuples(DELTAS, st.booleans(), st.integers(1, 40)), max_size=8),
    cuts=st.lists(st.integers(1, 9000), max_size=4),
)
def test_every_content_of_chat_is_told(deltas: list[tuple[dict[str, Any], bool, int]], cuts: list[int]) -> None:
    """Whatever stands beside it, however its keys are written, and wherever a read ends."""
    events = [
        (chat(delta).replace(b'"content"', b'"\\u0063ontent"') if escaped else chat(delta)) * times
        for delta, escaped, times in deltas
    ]
    said = "".join((delta.get("content") or "") * times for delta, _, times in deltas)

    assert told("chat", b"".join([*events, b"data: [DONE]\n\n"]), cuts) == [said]


def test_a_handler_is_shown_what_nobody_knows_to_join() -> None:
    """As it came last; a history, which must be exact, is not made of it."""
    codec = CODECS["chat"]
    raw = chat({"content": "a", "role": "assistant", "new": [1]}) + chat({"content": [{"b": 1}], "new": [2]})
    shown = codec.shown(raw)

    assert codec.collected(raw) is None
    assert shown is not None
    assert shown["choices"][0]["message"] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "a"}, {"b": 1}],
        "new": [2],
    }
    assert codec.shown(codec.as_stream(shown)) == shown
    assert codec.shown(chat({"content": "a"}) + chat({"content": 7})) is not None
    assert codec.shown(chat({}, error={"message": "m"})) is None


def test_a_handler_is_shown_unknown_deltas() -> None:
    """As they came last, and the input of a tool of the provider's as it began; a call must be whole."""
    codec = CODECS["anthropic"]
    half = {"type": "input_json_delta", "partial_json": '{"q": '}
    raw = begun() + block(0, {"type": "compaction", "content": ""}, {"type": "compaction_delta", "content": "x"})
    raw += block(1, SEARCH, half) + block(2, TEXT, *texts("Hello."))
    shown = codec.shown(raw)

    assert codec.collected(raw) is None
    assert shown is not None
    assert shown["content"] == [{"type": "compaction", "content": "x"}, SEARCH, {"type": "text", "text": "Hello."}]
    assert codec.shown(codec.as_stream(shown)) == {
        **shown,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"output_tokens": 0},
    }
    assert codec.shown(raw + block(3, {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}, half)) is None
    assert codec.shown(begun() + anthropic("content_block_delta", index=0, delta={"type": "new"})) is None


def _check(api: str, front: bytes, odd: bytes, end: bytes, said: str) -> None:
    """The text in one read, in two, and in one for each part."""
    raw = front + odd + end
    everywhere: list[Callable[[], list[int]]] = [list, lambda: [len(front)], lambda: [len(front), len(front + odd)]]
    assert CODECS[api].spoken(raw) == said
    for cuts in everywhere:
        assert told(api, raw, cuts()) == [said]
