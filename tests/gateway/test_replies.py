"""Whole replies of both APIs."""

import json
from typing import Any

import pytest

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import Codec, ProposedCall, Unreadable
from interpose.gateway.chat import CHAT
from interpose.gateway.driving import drive_reply
from interpose.testing import anthropic, chat
from interpose.testing.script import Reply, Text, ToolUse
from tests.gateway.apis import CODECS, DIALECTS

A, C = ANTHROPIC, CHAT
REPLY = Reply(Text("So."), ToolUse("Bash", {"command": "ls"}, id="a"), ToolUse("Read", {"path": "x"}, id="b"))
LINE = "[interpose] {} was refused by rule: no"


def judge_by(refused: tuple[str, ...] = (), patched: tuple[str, ...] = ()) -> Any:
    """A judge by names."""

    def judge(call: ProposedCall) -> Verdict:
        if call.name in refused:
            return Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))
        if call.name in patched:
            return Verdict("a-1", "tool.call", "patched", arguments={"n": 1})
        return Verdict("a-1", "tool.call", "allowed")

    return judge


def spaced(value: Any) -> bytes:
    """JSON whose rewriting would show."""
    return json.dumps(value, indent=1).encode()


@pytest.mark.parametrize("codec", [A, C], ids=["anthropic", "chat"])
def test_allowed_replies_are_the_same_bytes(codec: Codec) -> None:
    """Nothing is written anew that nobody changed."""
    whole = (anthropic if codec is A else chat).whole(REPLY, 1, {})
    raw = spaced(whole)
    driven = drive_reply(codec, raw, judge_by())

    assert driven.body is raw
    assert [(call.name, call.call_id) for call in driven.asked] == [("Bash", "a"), ("Read", "b")]


def test_refused_and_patched_blocks() -> None:
    """A refused block is text in its place, a patched one has the other input; the rest stays."""
    raw = spaced({**anthropic.whole(REPLY, 1, {}), "new_member": 1.0})
    one = json.loads(drive_reply(A, raw, judge_by(("Bash",), ("Read",))).body)
    both = json.loads(drive_reply(A, raw, judge_by(("Bash", "Read"))).body)

    assert one["content"] == [
        {"type": "text", "text": "So."},
        {"type": "text", "text": LINE.format("Bash")},
        {"type": "tool_use", "id": "b", "name": "Read", "input": {"n": 1}},
    ]
    assert (one["stop_reason"], both["stop_reason"]) == ("tool_use", "end_turn")
    assert one["new_member"] == 1.0


def test_refused_and_patched_tool_calls() -> None:
    """A refused call is told in the content; the finish says whether one is left."""
    raw = spaced(chat.whole(REPLY, 1, {}))
    one = json.loads(drive_reply(C, raw, judge_by(("Bash",), ("Read",))).body)["choices"][0]
    both = json.loads(drive_reply(C, raw, judge_by(("Bash", "Read"))).body)["choices"][0]

    assert one["message"]["content"] == f"So.\n\n{LINE.format('Bash')}"
    assert [call["function"] for call in one["message"]["tool_calls"]] == [{"name": "Read", "arguments": '{"n":1}'}]
    assert "tool_calls" not in both["message"]
    assert (one["finish_reason"], both["finish_reason"]) == ("tool_calls", "stop")


def test_the_older_function_call_and_several_choices() -> None:
    """Each choice is judged by itself."""
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "Bash", "arguments": "{}"}}
    plain = {"role": "assistant", "content": "hi"}
    choices = [
        {"index": 0, "message": legacy, "finish_reason": "function_call"},
        {"index": 1, "message": plain, "finish_reason": "stop"},
    ]
    body = drive_reply(C, spaced({"choices": choices}), judge_by(("Bash",))).body
    patched = json.loads(drive_reply(C, spaced({"choices": choices}), judge_by(patched=("Bash",))).body)

    first, second = json.loads(body)["choices"]
    assert first["message"] == {"role": "assistant", "content": LINE.format("Bash")}
    assert first["finish_reason"] == "stop"
    assert second == choices[1]
    assert patched["choices"][0]["message"]["function_call"] == {"name": "Bash", "arguments": '{"n":1}'}


@pytest.mark.parametrize("calls", [{"id": "a", "function": {"name": "Bash", "arguments": "{}"}}, ["odd"], "odd"])
def test_calls_in_no_list_are_judged_too(calls: Any) -> None:
    """Whatever stands where calls stand is asked about; allowed, it stays."""
    raw = spaced({"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]})
    (refused,) = json.loads(drive_reply(C, raw, judge_by(("Bash", "unknown:"))).body)["choices"]

    assert drive_reply(C, raw, judge_by()).body is raw
    assert "tool_calls" not in refused["message"]
    assert refused["finish_reason"] == "stop"


def test_ambiguous_input_is_a_problem() -> None:
    """The input is read from its bytes, so repeated keys show."""
    raw = b'{"content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {"a": 1, "a": 2}}]}'

    assert "twice" in (drive_reply(A, raw, judge_by()).asked[0].problem or "")


@pytest.mark.parametrize("codec", [A, C], ids=["anthropic", "chat"])
@pytest.mark.parametrize("raw", [b"{}", b'{"content": "x", "choices": {}}', b'{"content": [], "choices": [1, {}]}'])
def test_replies_of_another_shape_pass(codec: Codec, raw: bytes) -> None:
    """Without a place for calls there is nothing to judge."""
    assert drive_reply(codec, raw, judge_by()).body == raw


@pytest.mark.parametrize("codec", [A, C], ids=["anthropic", "chat"])
@pytest.mark.parametrize(("raw", "words"), [(b"", "empty"), (b"\n", "empty"), (b"<html>", "JSON"), (b"[]", "JSON")])
def test_replies_that_are_not_json(codec: Codec, raw: bytes, words: str) -> None:
    """They cannot be judged, so they are Unreadable."""
    with pytest.raises(Unreadable, match=words):
        drive_reply(codec, raw, judge_by())


@pytest.mark.parametrize("api", ["anthropic", "chat", "responses", "gemini"])
def test_a_reply_with_half_a_surrogate_pair_can_be_gone_on_with(api: str) -> None:
    """Models that cut a text leave halves behind; the next request has them as they were."""
    history = {"responses": ("input", "hi"), "gemini": ("contents", [{"role": "user", "parts": [{"text": "hi"}]}])}
    key, value = history.get(api, ("messages", [{"role": "user", "content": "hi"}]))
    reply: Any = DIALECTS[api].whole(Reply(Text("cut \ud800")), 1, {})

    body = CODECS[api].onward(json.dumps({key: value, "model": "m"}).encode(), reply, (), "go on")

    assert body is not None
    assert [len(json.loads(body)[key]), b"cut \\ud800" in body] == [3, True]
