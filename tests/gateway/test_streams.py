"""Streamed replies of both APIs: what every cut of the network must leave equal."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.anthropic import AnthropicCodec
from interpose.gateway.api import Codec, ProposedCall
from interpose.gateway.chat import ChatCodec
from interpose.gateway.driving import Driven, drive_stream
from interpose.testing import anthropic, chat
from interpose.testing.script import Reply, Text, Thinking, ToolUse
from interpose.wire.sse import SseReader

REPLY = Reply(
    Thinking("Look first."),
    Text("I will run «it» 😀."),
    ToolUse("Bash", {"command": "ls -la", "note": "ünï\u2028"}, id="call_a"),
    ToolUse("Read", {"path": "a.txt"}, id="call_b"),
    ToolUse("Clock", "", id="call_c"),
)
CODECS: dict[str, Codec] = {"anthropic": AnthropicCodec(), "chat": ChatCodec()}
STREAMS: dict[str, list[bytes]] = {
    "anthropic": list(anthropic.stream(REPLY, 1, {})),
    "chat": list(chat.stream(REPLY, 1, {"stream_options": {"include_usage": True}})),
}
Judge = Callable[[ProposedCall], Verdict]


def judging(refused: frozenset[str] = frozenset(), patched: frozenset[str] = frozenset()) -> Judge:
    """A judge that refuses and patches the calls of the given names."""

    def judge(call: ProposedCall) -> Verdict:
        if call.name in refused:
            return Verdict("a-1", "tool.call", "refused", Refusal("no-" + call.name.lower(), "not here"))
        if call.name in patched:
            return Verdict("a-1", "tool.call", "patched", arguments={"changed": [call.name, "ü"]})
        return Verdict("a-1", "tool.call", "allowed")

    return judge


JUDGES = {
    "allow": judging(),
    "refuse-one": judging(frozenset({"Bash"})),
    "refuse-last": judging(frozenset({"Clock"})),
    "refuse-all": judging(frozenset({"Bash", "Read", "Clock"})),
    "patch": judging(patched=frozenset({"Read", "Clock"})),
    "mixed": judging(frozenset({"Bash"}), frozenset({"Read"})),
}


def message_of(api: str, stream: bytes) -> dict[str, Any]:
    """What a client puts together from a stream: texts, calls, stop reason; checks that indexes are coherent."""
    return _anthropic_message(stream) if api == "anthropic" else _chat_message(stream)


def _data(stream: bytes) -> list[dict[str, Any]]:
    events = SseReader().feed(stream)
    return [json.loads(event.data) for event in events if event.data is not None and event.data != b"[DONE]"]


def _anthropic_message(stream: bytes) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    stop = None
    for data in _data(stream):
        match data["type"]:
            case "content_block_start":
                assert data["index"] == len(blocks)
                blocks.append({**data["content_block"], "pieces": "", "open": True})
            case "content_block_delta":
                assert blocks[data["index"]]["open"]
                delta = data["delta"]
                blocks[data["index"]]["pieces"] += delta.get("text", "") + delta.get("partial_json", "")
            case "content_block_stop":
                blocks[data["index"]]["open"] = False
            case "message_delta":
                stop = data["delta"]["stop_reason"]
    assert not any(block["open"] for block in blocks)
    calls = [(b["id"], b["name"], json.loads(b["pieces"] or "{}")) for b in blocks if b["type"] == "tool_use"]
    return {"text": [b["pieces"] for b in blocks if b["type"] == "text"], "calls": calls, "stop": stop}


def _chat_message(stream: bytes) -> dict[str, Any]:
    text, stop = "", None
    calls: dict[int, list[str]] = {}
    for data in _data(stream):
        for choice in data["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            stop = choice["finish_reason"] or stop
            for entry in delta.get("tool_calls", []):
                call = calls.setdefault(entry["index"], [entry.get("id", ""), "", ""])
                call[1] += entry["function"].get("name") or ""
                call[2] += entry["function"].get("arguments") or ""
    assert list(calls) == list(range(len(calls)))
    found = [(call_id, name, json.loads(arguments or "{}")) for call_id, name, arguments in calls.values()]
    return {"text": text, "calls": found, "stop": stop}


def run(api: str, chunks: list[bytes], judge: Judge) -> Driven:
    """A stream through its codec."""
    return drive_stream(CODECS[api], chunks, judge)


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("api", CODECS)
def test_every_cut_in_two_gives_the_same_bytes(api: str, judge: str) -> None:
    """Wherever one cut falls, the same bytes leave and the same calls are asked for."""
    stream = b"".join(STREAMS[api])
    whole = run(api, [stream], JUDGES[judge])

    for at in range(0, len(stream), 1 if judge in ("allow", "mixed") else 7):
        cut = run(api, [stream[:at], stream[at:]], JUDGES[judge])
        assert cut.body == whole.body
        assert cut.asked == whole.asked


@given(data=st.data())
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("api", CODECS)
def test_any_cuts_give_the_same_bytes(api: str, judge: str, data: st.DataObject) -> None:
    """Many cuts, empty pieces among them, change nothing."""
    stream = b"".join(STREAMS[api])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=40)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert run(api, chunks, JUDGES[judge]).body == run(api, [stream], JUDGES[judge]).body


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("api", CODECS)
def test_what_is_allowed_leaves_byte_for_byte(api: str, newline: bytes) -> None:
    """Without a refusal the client gets the upstream's bytes, one byte at a time or at once."""
    stream = b"".join(STREAMS[api]).replace(b"\n", newline)

    assert run(api, [stream], JUDGES["allow"]).body == stream
    assert run(api, [bytes([byte]) for byte in stream], JUDGES["allow"]).body == stream


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("api", CODECS)
@pytest.mark.parametrize("judge", JUDGES)
def test_the_reply_stays_coherent(api: str, judge: str, newline: bytes) -> None:
    """Refused calls are told as text, the others arrive whole, and the stop reason says whether a call is left."""
    stream = b"".join(STREAMS[api]).replace(b"\n", newline)
    driven = run(api, [stream], JUDGES[judge])
    message = message_of(api, driven.body)
    verdicts = [JUDGES[judge](call) for call in driven.asked]
    kept = [
        (call.call_id, call.name, dict(call.arguments if verdict.arguments is None else verdict.arguments))
        for call, verdict in zip(driven.asked, verdicts, strict=True)
        if verdict.allowed
    ]

    assert [call.name for call in driven.asked] == ["Bash", "Read", "Clock"]
    assert message["calls"] == kept
    assert message["stop"] == {("anthropic", True): "tool_use", ("anthropic", False): "end_turn"}.get(
        (api, bool(kept)), "tool_calls" if kept else "stop"
    )
    for call, verdict in zip(driven.asked, verdicts, strict=True):
        line = f"[interpose] {call.name} was refused by no-{call.name.lower()}: not here"
        assert (line in "".join(message["text"])) is not verdict.allowed


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("api", CODECS)
def test_text_leaves_at_once_and_calls_only_after_their_verdict(api: str, judge: str) -> None:
    """Each frame that is no part of a call is written within its own feed; no byte of a call before it is judged."""
    codec = CODECS[api]
    stream = codec.stream()
    driven = Driven()
    for frame in STREAMS[api]:
        written = len(driven.body)
        asked = len(driven.asked)
        driven.drive(stream.feed(frame), JUDGES[judge])
        is_call = any(mark in frame for mark in (b"tool_use", b"input_json", b"tool_calls"))
        if b"text" in frame or b'"content": "' in frame or b"thinking" in frame:
            assert driven.body[written:].endswith(frame)
        if is_call and len(driven.asked) == asked:
            assert len(driven.body) == written


@pytest.mark.parametrize("api", CODECS)
def test_a_stream_that_dies_while_a_call_is_held(api: str) -> None:
    """The call is dropped, the client gets an error in its API's shape, and nothing of the call."""
    frames = STREAMS[api]
    at = next(i for i, frame in enumerate(frames) if b'"command' in frame) + 1
    for fault in ("interpose: the upstream broke off", None):
        driven = drive_stream(CODECS[api], frames[:at], JUDGES["allow"], fault)

        assert [(drop.call_id, drop.name) for drop in driven.dropped] == [("call_a", "Bash")]
        assert driven.asked == []
        assert b"call_a" not in driven.body
        error = _data(driven.body)[-1]
        assert error["error"]["message"] == (fault or "the reply ended before the call was complete")
        assert ("type" in error) == (api == "anthropic")


@pytest.mark.parametrize("api", CODECS)
def test_a_stream_that_dies_without_a_held_call_says_so(api: str) -> None:
    """What came is passed on, then an error in the API's shape; a clean end adds nothing."""
    frames = STREAMS[api][:2]

    died = drive_stream(CODECS[api], frames, JUDGES["allow"], "interpose: it broke off")
    ended = drive_stream(CODECS[api], frames, JUDGES["allow"])

    assert died.body.startswith(b"".join(frames))
    assert _data(died.body)[-1]["error"]["message"] == "interpose: it broke off"
    assert ended.body == b"".join(frames)


@pytest.mark.parametrize("api", CODECS)
def test_a_fault_after_the_end_is_nothing_to_the_client(api: str) -> None:
    """A connection that breaks behind a complete reply adds no error."""
    stream = b"".join(STREAMS[api])

    assert drive_stream(CODECS[api], [stream], JUDGES["allow"], "reset").body == stream


@pytest.mark.parametrize("api", CODECS)
def test_arguments_that_two_parsers_may_read_differently_are_a_problem(api: str) -> None:
    """The judge gets no arguments and is told why."""
    reply = Reply(ToolUse("Bash", '{"command": "ls", "command": "rm -rf /"}'))
    dialect = anthropic if api == "anthropic" else chat
    driven = run(api, list(dialect.stream(reply, 1, {})), JUDGES["allow"])

    assert driven.asked[0].arguments == {}
    assert "'command' twice" in (driven.asked[0].problem or "")


@pytest.mark.parametrize("api", CODECS)
def test_a_megabyte_of_arguments_in_small_deltas(api: str) -> None:
    """Large arguments are put together in time that grows with their size only, and released as they came."""
    reply = Reply(Text("So."), ToolUse("Write", {"content": "x" * 400_000}))
    dialect = anthropic if api == "anthropic" else chat
    frames = list(dialect.stream(reply, 1, {}))
    driven = run(api, frames, JUDGES["allow"])

    assert driven.body == b"".join(frames)
    assert len(driven.asked[0].arguments["content"]) == 400_000


@pytest.mark.parametrize("api", CODECS)
def test_comments_unknown_events_and_rubbish_pass(api: str) -> None:
    """What is no part of a call passes untouched, also what is not JSON and what has no end."""
    odd = (
        b': keep-alive\n\nevent: new_thing\ndata: {"type": "new_thing", "x": 1}\n\ndata: not json \\u\n\ndata: [1]\n\n'
    )
    stream = odd + b"".join(STREAMS[api][:2]) + odd + b"data: {unfinished"

    assert run(api, [stream], JUDGES["allow"]).body == stream


@pytest.mark.parametrize("api", CODECS)
def test_a_call_without_the_last_blank_line_is_still_judged(api: str) -> None:
    """Readers that take an unfinished last event must not get a call that nobody judged."""
    frames = {
        "anthropic": b'data: {"type": "content_block_start", "index": 0, "content_block": '
        b'{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}}',
        "chat": b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "t", "function": '
        b'{"name": "Bash", "arguments": "{}"}}]}, "finish_reason": null}]}',
    }
    driven = run(api, [frames[api]], JUDGES["allow"])

    assert b"Bash" not in driven.body
    assert [drop.name for drop in driven.dropped] == ["Bash"]


@pytest.mark.parametrize("api", CODECS)
def test_escapes_do_not_hide_a_call(api: str) -> None:
    """A call whose marks are written with escapes is still seen."""
    stream = b"".join(STREAMS[api]).replace(b"tool_use", b"tool\\u005fuse").replace(b"tool_calls", b"tool\\u005fcalls")
    driven = run(api, [stream], JUDGES["refuse-all"])

    assert [call.name for call in driven.asked] == ["Bash", "Read", "Clock"]
    assert message_of(api, driven.body)["calls"] == []


@pytest.mark.parametrize("api", CODECS)
def test_an_error_event_passes_and_drops_what_is_held(api: str) -> None:
    """A provider's own error reaches the client as it came; a held call does not."""
    frames = STREAMS[api]
    at = next(i for i, frame in enumerate(frames) if b'"command' in frame) + 1
    error = {
        "anthropic": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": ""}}\n\n',
        "chat": b'data: {"error": {"message": "m", "type": "overloaded_error"}}\n\n',
    }[api]
    driven = run(api, [*frames[:at], error], JUDGES["allow"])

    assert driven.body.endswith(error)
    assert driven.body.count(b"error") == error.count(b"error")
    assert [drop.name for drop in driven.dropped] == ["Bash"]
