"""Streamed replies of all APIs: what every cut of the network must leave equal."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.gateway.api import CUT_SHORT_TOLD
from interpose.gateway.driving import Driven, drive_stream
from interpose.testing.script import Reply, Text, Thinking, ToolUse
from interpose.wire.sse import SseEvent, SseReader
from tests.gateway.apis import CODECS, Judge, error_of, frames_of, judging, message_of, stop_of

SSE_APIS = [api for api in CODECS if api != "gemini-array"]
HOLDING_APIS = ["anthropic", "chat", "responses"]
"""Those in which a call comes in pieces."""


def reply_of(api: str) -> Reply:
    """Thoughts, text and three calls, the last one without arguments as the API writes that."""
    return Reply(
        Thinking("Look first."),
        Text("I will run «it» 😀."),
        ToolUse("Bash", {"command": "ls -la", "note": "ünï\u2028"}, id="call_a"),
        ToolUse("Read", {"path": "a.txt"}, id="call_b"),
        ToolUse("Clock", "" if api in HOLDING_APIS else {}, id="call_c"),
    )


STREAMS = {api: frames_of(api, reply_of(api)) for api in CODECS}
JUDGES = {
    "allow": judging(),
    "refuse-one": judging(frozenset({"Bash"})),
    "refuse-last": judging(frozenset({"Clock"})),
    "refuse-all": judging(frozenset({"Bash", "Read", "Clock"})),
    "patch": judging(patched=frozenset({"Read", "Clock"})),
    "mixed": judging(frozenset({"Bash"}), frozenset({"Read"})),
}


def with_newline(stream: bytes, newline: bytes) -> bytes:
    """The stream with other line ends."""
    return stream.replace(b"\r\n", b"\n").replace(b"\n", newline)


def on_many_lines(stream: bytes, newline: bytes = b"\n") -> bytes:
    """The stream with the JSON of each event on many data lines."""
    out = b""
    for event in SseReader().feed(stream):
        assert event.data is not None
        is_json = event.data != b"[DONE]"
        spread = json.dumps(json.loads(event.data), indent=1).encode() if is_json else event.data
        out += SseEvent.build(None if event.name == "message" else event.name, spread, newline).raw
    return out


def without_numbers(frame: bytes) -> bytes:
    """The frame without its number, which follows those before it."""
    return re.sub(rb'"sequence_number": ?\d+', b"", frame)


def run(api: str, chunks: list[bytes], judge: Judge) -> Driven:
    """A stream through its codec."""
    return drive_stream(CODECS[api], chunks, judge)


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("api", CODECS)
def test_every_cut_in_two_gives_the_same_bytes(api: str, judge: str) -> None:
    """Wherever one cut falls, the same bytes leave and the same calls are asked for."""
    stream = b"".join(STREAMS[api])
    whole = run(api, [stream], JUDGES[judge])

    for at in range(0, len(stream), 1 if judge == "mixed" else 7):
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
    stream = with_newline(b"".join(STREAMS[api]), newline)

    assert run(api, [stream], JUDGES["allow"]).body == stream
    assert run(api, [bytes([byte]) for byte in stream], JUDGES["allow"]).body == stream


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("api", CODECS)
@pytest.mark.parametrize("judge", JUDGES)
def test_the_reply_stays_coherent(api: str, judge: str, newline: bytes) -> None:
    """Refused calls are told as text, the others arrive whole, and the stop reason says whether a call is left."""
    stream = with_newline(b"".join(STREAMS[api]), newline)
    driven = run(api, [stream], JUDGES[judge])
    message = message_of(api, driven.body)
    verdicts = [JUDGES[judge](call) for call in driven.asked]
    kept = [
        (call.call_id, call.name, dict(call.arguments if verdict.arguments is None else verdict.arguments))
        for call, verdict in zip(driven.asked, verdicts, strict=True)
        if verdict.allowed
    ]

    assert [call.name for call in driven.asked] == ["Bash", "Read", "Clock"]
    assert message.calls == kept
    assert message.stop == stop_of(api, calls=bool(kept))
    for call, verdict in zip(driven.asked, verdicts, strict=True):
        line = f"[interpose] {call.name} was refused by no-{call.name.lower()}: not here"
        assert (line in message.text) is not verdict.allowed
    assert message.text.startswith("I will run «it» 😀.")


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("api", SSE_APIS)
def test_data_on_many_lines_stays_an_event_when_it_is_changed(api: str, judge: str, newline: bytes) -> None:
    """The client reads the same reply as from events of one line; every line is a field of an event."""
    stream = b"".join(STREAMS[api])
    spread = run(api, [on_many_lines(stream, newline)], JUDGES[judge]).body

    assert message_of(api, spread) == message_of(api, run(api, [stream], JUDGES[judge]).body)
    assert all(re.match(rb"(?:data|event):|$", line) for line in spread.splitlines())


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
        is_call = any(mark in frame for mark in (b"tool_use", b"input_json", b'"tool_calls', b"function_call"))
        is_call = is_call and b"response.completed" not in frame
        is_last = b"response.completed" in frame or b'{"text": ""}' in frame
        if not is_call and not is_last and (b"text" in frame or b'"content": "' in frame or b"thinking" in frame):
            written_now = driven.body[written:]
            assert without_numbers(written_now).endswith(without_numbers(frame))
        if is_call and len(driven.asked) == asked:
            ended = b"content_block_stop"  # of a text of ours, which waited for a text of the model's
            assert driven.body[written:].replace(ended, b"").count(b"content_block") == 0
            assert driven.body[written:].count(b"event:") == driven.body[written:].count(b"event: " + ended)


@pytest.mark.parametrize("api", HOLDING_APIS)
def test_a_stream_that_dies_while_a_call_is_held(api: str) -> None:
    """The call is dropped, the client gets an error in its API's shape, and nothing of the call."""
    frames = STREAMS[api]
    at = next(i for i, frame in enumerate(frames) if b'"command' in frame) + 1
    for fault in ("interpose: the upstream broke off", None):
        driven = drive_stream(CODECS[api], frames[:at], JUDGES["allow"], fault)

        assert [(drop.call_id, drop.name) for drop in driven.dropped] == [("call_a", "Bash")]
        assert driven.asked == []
        assert b"call_a" not in driven.body
        assert error_of(api, driven.body) == (fault or "interpose: the reply ended before the call was complete")


@pytest.mark.parametrize("api", CODECS)
def test_a_stream_that_dies_without_a_held_call_says_so(api: str) -> None:
    """What came is passed on, then an error in the API's shape; a clean end adds nothing."""
    frames = STREAMS[api][:2]

    died = drive_stream(CODECS[api], frames, JUDGES["allow"], "interpose: it broke off")
    ended = drive_stream(CODECS[api], frames, JUDGES["allow"])

    assert died.body.startswith(b"".join(frames))
    assert error_of(api, died.body) == "interpose: it broke off"
    assert api == "gemini-array" or ended.body == b"".join(frames)


@pytest.mark.parametrize("api", CODECS)
def test_a_fault_after_the_end_is_nothing_to_the_client(api: str) -> None:
    """A connection that breaks behind a complete reply adds no error."""
    stream = b"".join(STREAMS[api])

    assert drive_stream(CODECS[api], [stream], JUDGES["allow"], "reset").body == stream


@pytest.mark.parametrize("api", CODECS)
def test_arguments_that_two_parsers_may_read_differently_are_a_problem(api: str) -> None:
    """The judge gets no arguments and is told why."""
    whole = b"".join(frames_of(api, Reply(ToolUse("Bash", {"command": "ls", "twice": "rm -rf /"}))))
    driven = run(api, [whole.replace(b"twice", b"command")], JUDGES["allow"])

    assert driven.asked[0].arguments == {}
    assert "'command' twice" in (driven.asked[0].problem or "")


@pytest.mark.parametrize("api", CODECS)
def test_a_megabyte_of_arguments_in_small_deltas(api: str) -> None:
    """Large arguments are put together in time that grows with their size only, and released as they came."""
    reply = Reply(Text("So."), ToolUse("Write", {"content": "x" * 400_000}))
    frames = frames_of(api, reply)
    driven = run(api, frames, JUDGES["allow"])

    assert driven.body == b"".join(frames)
    assert len(driven.asked[0].arguments["content"]) == 400_000


@pytest.mark.parametrize("api", SSE_APIS)
def test_comments_unknown_events_and_rubbish_pass(api: str) -> None:
    """What is no part of a call passes untouched, also what is not JSON and what has no end."""
    odd = (
        b': keep-alive\n\nevent: new_thing\ndata: {"type": "new_thing", "x": 1}\n\ndata: not json \\u\n\ndata: [1]\n\n'
    )
    stream = odd + b"".join(STREAMS[api][:2]) + odd + b"data: {unfinished"

    assert run(api, [stream], JUDGES["allow"]).body == stream


@pytest.mark.parametrize("api", HOLDING_APIS)
def test_a_call_without_the_last_blank_line_is_still_judged(api: str) -> None:
    """Readers that take an unfinished last event must not get a call that nobody judged."""
    frames = {
        "anthropic": b'data: {"type": "content_block_start", "index": 0, "content_block": '
        b'{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}}',
        "chat": b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "t", "function": '
        b'{"name": "Bash", "arguments": "{}"}}]}, "finish_reason": null}]}',
        "responses": b'data: {"type": "response.output_item.added", "output_index": 0, "item": '
        b'{"type": "function_call", "id": "fc_1", "call_id": "c", "name": "Bash", "arguments": "{}"}}',
    }
    driven = run(api, [frames[api]], JUDGES["allow"])

    assert b"Bash" not in driven.body
    assert [drop.name for drop in driven.dropped] == ["Bash"]


@pytest.mark.parametrize("api", CODECS)
def test_escapes_do_not_hide_a_call(api: str) -> None:
    """A call whose marks are written with escapes is still seen."""
    stream = b"".join(STREAMS[api])
    for mark in (b"tool_use", b"tool_calls", b"output_item", b"function_call", b"functionCall", b"finish_reason"):
        first, rest = mark[:1], mark[1:]
        stream = stream.replace(b'"' + mark + b'"', b'"\\u%04x' % first[0] + rest + b'"')
        stream = stream.replace(b"." + mark, b".\\u%04x" % first[0] + rest)
    driven = run(api, [stream], JUDGES["refuse-all"])

    assert [call.name for call in driven.asked] == ["Bash", "Read", "Clock"]
    assert message_of(api, driven.body).calls == []


@pytest.mark.parametrize("api", HOLDING_APIS)
def test_an_error_event_passes_and_drops_what_is_held(api: str) -> None:
    """A provider's own error reaches the client as it came; a held call does not."""
    frames = STREAMS[api]
    at = next(i for i, frame in enumerate(frames) if b'"command' in frame) + 1
    error = {
        "anthropic": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": ""}}\n\n',
        "chat": b'data: {"error": {"message": "m", "type": "overloaded_error"}}\n\n',
        "responses": b'event: error\ndata: {"type": "error", "message": "m", "sequence_number": 17}\n\n',
    }[api]
    driven = run(api, [*frames[:at], error], JUDGES["allow"])

    assert driven.body.endswith(error)
    created = b"".join(frames[:at]).count(b"error")
    assert driven.body.count(b"error") == error.count(b"error") + created
    assert [drop.name for drop in driven.dropped] == ["Bash"]


@pytest.mark.parametrize("judge", ["allow", "refuse-all", "patch"])
@pytest.mark.parametrize("api", SSE_APIS)
def test_a_reply_that_ends_anywhere_leaves_whole_events_and_no_call_unjudged(api: str, judge: str) -> None:
    """Wherever the provider ends its reply: no word of a call that was not let go, nothing of ours behind a torn line.

    The client is told of each call that it does not get.
    """
    stream = b"".join(STREAMS[api])
    for at in range(1, len(stream), 7):
        driven = run(api, [stream[:at]], JUDGES[judge])
        let_go = {call.name for call in driven.asked if JUDGES[judge](call).allowed}
        reader = SseReader()
        events = reader.feed(driven.body)
        last, torn = reader.finish()

        for event in [*events, *last]:
            assert event.data is None or event.data == b"[DONE]" or json.loads(event.data)
        assert stream[:at].endswith(torn)
        assert (b"ls -la" in driven.body) is ("Bash" in let_go)
        assert "Read" in let_go or b"a.txt" not in driven.body
        if driven.dropped:
            assert error_of(api, driven.body) == CUT_SHORT_TOLD


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("api", SSE_APIS)
def test_a_last_event_without_its_blank_line_leaves_as_it_came(api: str, end: bytes) -> None:
    """Nothing is added where the provider ends its reply with the last byte of what it says."""
    newline = b"\r\n" if end == b"\r\n" else b"\n"
    stream = with_newline(b"".join(STREAMS[api]), newline).removesuffix(newline + newline) + end

    assert run(api, [stream], JUDGES["allow"]).body == stream


def test_an_error_behind_a_last_event_without_line_ends_is_an_event_of_its_own() -> None:
    """A text that only lacks its line ends is told while a call is held, and what is ours begins on a new line."""
    held = (
        b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "t", "function": '
        b'{"name": "Bash", "arguments": "{"}}]}, "finish_reason": null}]}\n\n'
    )
    text = b'data: {"choices": [{"index": 0, "delta": {"content": "said"}, "finish_reason": null}]}'
    driven = run("chat", [held + text], JUDGES["allow"])

    assert driven.body.startswith(text + b"\n\ndata: ")
    assert error_of("chat", driven.body) == CUT_SHORT_TOLD
