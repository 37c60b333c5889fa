"""A call that stands in what is not quite JSON is judged, or never leaves: other readers may take it."""

import json
import re
from collections.abc import Callable

import pytest

from interpose.contracts.verdict import Verdict
from interpose.gateway.api import CUT_SHORT_TOLD, Onward, ProposedCall, RoundOver, Unreadable
from interpose.gateway.driving import Driven, drive_reply, drive_stream
from interpose.testing.script import Reply, Text, ToolUse
from interpose.wire.sse import SseEvent
from tests.gateway.apis import CODECS, DIALECTS, error_of, frames_of, judging, message_of

APIS = [api for api in CODECS if api != "gemini-array"]
HUGE = b"9" * 5000
"""A number of more digits than Python reads."""

CALL = Reply(Text("Look."), ToolUse("Bash", {"command": "rm -rf x"}, id="call_a"))
REFUSING = judging(frozenset({"Bash"}))
WORDS_OF_PYTHON = re.compile("4300|set_int_max|Out of range|Exceeds")

REQUESTS = {
    "anthropic": '{"model":"m","x":N,"messages":[{"role":"user","content":[{"type":"text","text":"hi","n":N}]}]}',
    "chat": '{"model":"m","x":N,"messages":[{"role":"user","content":[{"type":"text","text":"hi","n":N}]}]}',
    "responses": '{"model":"m","x":N,"input":[{"role":"user","content":[{"type":"input_text","text":"hi","n":N}]}]}',
    "gemini": '{"x":N,"contents":[{"role":"user","parts":[{"text":"hi","n":N}]}]}',
}


def _never(call: ProposedCall) -> Verdict:
    raise AssertionError(call)


def driven_through(api: str, stream: bytes) -> Driven:
    """The stream as the gateway drives it: what cannot be read is its end."""
    reader, driven = CODECS[api].stream(), Driven()
    try:
        driven.drive(reader.feed(stream), REFUSING)
        driven.drive(reader.finish(), REFUSING)
    except Unreadable as error:
        driven.drive(reader.finish(f"interpose: {error}"), REFUSING)
    return driven


def with_member(api: str, frames: list[bytes], member: bytes) -> bytes:
    """The stream with one more member in front of each object that tells of a call."""
    opening = b"{" if api == "gemini-array" else b"data: {"
    marked = [frame if b"Bash" not in frame else frame.replace(opening, opening + member, 1) for frame in frames]
    return b"".join(marked)


@pytest.mark.parametrize("api", CODECS)
def test_a_call_beside_a_huge_number_is_judged(api: str) -> None:
    """An event that any other reader takes is no event that says nothing."""
    stream = with_member(api, frames_of(api, CALL), b'"zz": [' + HUGE + b"], ")
    driven = driven_through(api, stream)

    assert [(call.name, call.arguments) for call in driven.asked] == [("Bash", {"command": "rm -rf x"})]
    assert b"rm -rf" not in driven.body
    assert b"not here" in driven.body


@pytest.mark.parametrize("api", APIS)
def test_a_call_beside_a_huge_number_in_a_whole_reply_is_judged(api: str) -> None:
    """The same where nothing is streamed."""
    body = json.dumps(DIALECTS[api].whole(CALL, 1, {})).encode()
    driven = drive_reply(CODECS[api], body.replace(b"{", b'{"zz": ' + HUGE + b", ", 1), REFUSING)

    assert [call.name for call in driven.asked] == ["Bash"]
    assert b"rm -rf" not in driven.body


@pytest.mark.parametrize("api", CODECS)
def test_arguments_with_a_number_beyond_a_double_are_a_problem(api: str) -> None:
    """They are not judged as something else, and the problem is told in our own words."""
    given = f'{{"command": "ls", "n": {HUGE.decode()}}}'
    in_parts = api.startswith("gemini")
    call = ToolUse("Bash", {"command": "ls", "n": 12345} if in_parts else given, id="call_a")
    driven = driven_through(api, b"".join(frames_of(api, Reply(call))).replace(b"12345", HUGE))

    assert [(call.name, call.arguments) for call in driven.asked] == [("Bash", {})]
    assert "no double can hold" in (driven.asked[0].problem or "")
    assert not WORDS_OF_PYTHON.search(driven.asked[0].problem or "")


@pytest.mark.parametrize(
    ("api", "frame"),
    [
        (
            "anthropic",
            (
                '{"type":"content_block_start","index":0,"content_block":'
                '{"type":"tool_use","id":"t","name":"Bash","input":{"n":N}}}'
            ),
        ),
        (
            "chat",
            (
                '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","type":"function",'
                '"function":{"name":"Bash","arguments":{"n":N}}}]},"finish_reason":"tool_calls"}]}'
            ),
        ),
        (
            "responses",
            (
                '{"type":"response.output_item.done","output_index":0,"item":'
                '{"type":"computer_call","id":"f","call_id":"t","action":{"n":N}}}'
            ),
        ),
        (
            "responses",
            (
                '{"type":"response.output_item.done","output_index":0,"item":'
                '{"type":"function_call","id":"f","call_id":"t","name":"Bash","arguments":{"n":N}}}'
            ),
        ),
        (
            "gemini",
            '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"Bash","args":{"n":N}}}]},"index":0}]}',
        ),
        (
            "gemini",
            (
                '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"Bash","partialArgs":'
                '[{"jsonPath":"$.n","numberValue":N}]}}]},"index":0}]}'
            ),
        ),
    ],
)
@pytest.mark.parametrize("number", ["NaN", "1e999", "9" * 5000])
def test_arguments_that_come_as_an_object_are_no_other_ones(api: str, frame: str, number: str) -> None:
    """What cannot be written is never judged as null."""
    end = 'data: {"type":"content_block_stop","index":0}\n\n' if api == "anthropic" else ""
    driven = driven_through(api, f"data: {frame.replace(':N}', f':{number}}}')}\n\n{end}".encode())

    assert [(call.arguments, "no double" in (call.problem or "")) for call in driven.asked] == [({}, True)]


@pytest.mark.parametrize("number", ["9" * 5000, "-" + "9" * 4301])
@pytest.mark.parametrize("api", APIS)
def test_a_request_with_a_huge_number_is_read(api: str, number: str) -> None:
    """It is judged and sent on as it came."""
    view = CODECS[api].read(REQUESTS[api].replace("N", number).encode())

    assert view.turn is not None
    assert view.turn.prompt == "hi"
    assert view.root


@pytest.mark.parametrize("api", APIS)
def test_a_request_with_what_json_cannot_say_names_the_field(api: str) -> None:
    """In words of ours."""
    with pytest.raises(Unreadable, match="the number at x is NaN") as refused:
        CODECS[api].read(REQUESTS[api].replace("N", "NaN").encode())
    assert not WORDS_OF_PYTHON.search(str(refused.value))


def _unclosed(data: bytes) -> bytes:
    return data[:-1] + b",}"


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "trailing comma": _unclosed,
    "comment": lambda data: data.replace(b"{", b"{/* x */", 1),
    "control character": lambda data: data.replace(b"{", b'{"zz":"\t\x01",', 1),
    "trailing garbage": lambda data: data + b"}x",
    "bare keys": lambda data: re.sub(rb'"(\w+)": ?', rb"\1:", data),
    "in a list": lambda data: b"[" + data + b"]",
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
}


@pytest.mark.parametrize("spoilt", SPOILT)
@pytest.mark.parametrize("api", APIS)
def test_a_call_in_an_event_that_is_not_json_never_leaves(api: str, spoilt: str) -> None:
    """What came before it leaves, then an error; nothing is asked about it."""
    frames = frames_of(api, CALL)
    at = next(place for place, frame in enumerate(frames) if b"Bash" in frame)
    event = SseEvent(frames[at])
    data = SPOILT[spoilt](event.data or b"")
    driven = driven_through(api, b"".join([*frames[:at], event.with_data(data).raw, *frames[at + 1 :]]))

    assert driven.body.startswith(b"".join(frames[:at]))
    assert b"rm -rf" not in driven.body
    assert "Bash" not in driven.body.decode()
    assert "is not a JSON object" in error_of(api, driven.body)


def test_a_call_in_an_item_that_is_not_json_never_leaves() -> None:
    """The array is whole all the same, with an error as its last item."""
    frames = frames_of("gemini-array", CALL)
    stream = b"".join(frames)
    end = stream.rindex(b"}")
    driven = driven_through("gemini-array", stream[:end] + b",}" + stream[end + 1 :])

    assert b"rm -rf" not in driven.body
    assert "is not a JSON object" in error_of("gemini-array", driven.body)


@pytest.mark.parametrize("api", APIS)
def test_a_call_in_an_event_that_breaks_off_is_told_as_cut_short(api: str) -> None:
    """The event does not leave, and the client is told that the reply ended within it."""
    frames = frames_of(api, CALL)
    at = next(place for place, frame in enumerate(frames) if b"Bash" in frame)
    driven = driven_through(api, b"".join(frames[:at]) + frames[at][: frames[at].index(b"Bash") + 4])

    assert b"Bash" not in driven.body
    assert error_of(api, driven.body) == CUT_SHORT_TOLD
    assert [drop.name for drop in driven.dropped] == ["unknown"]


@pytest.mark.parametrize("api", APIS)
def test_what_has_no_words_of_a_call_passes_whatever_it_is(api: str) -> None:
    """Pings, comments, texts that are not quite JSON, and what nobody knows."""
    odd = b': hi\n\nevent: ping\ndata: ping\n\ndata: {"type": "new",}\n\ndata: {\'text\': 1}\n\nevent: x\n\ndata:\n\n'
    stream = odd + b"".join(frames_of(api, CALL)[:1]) + odd

    assert drive_stream(CODECS[api], [stream], _never).body == stream


CUTS: dict[str, Callable[[bytes], bytes]] = {
    "last line end": lambda stream: stream[:-1],
    "last line ends": lambda stream: stream.rstrip(b"\r\n"),
    "carriage returns": lambda stream: stream.replace(b"\r\n", b"\n").replace(b"\n", b"\r"),
    "half a line end": lambda stream: stream.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")[:-1],
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("api", APIS)
def test_a_reply_goes_on_however_the_one_before_it_ends(api: str, cut: str) -> None:
    """The refused call is told to the model, and the client gets its next reply with an end."""
    first, second = (b"".join(frames_of(api, reply)) for reply in (CALL, Reply(Text("Then not."))))
    reader, driven = CODECS[api].stream(), Driven(onward=lambda over: Onward() if over.refused else None)
    for stream in (CUTS[cut](first), second):
        before = len(driven.over)
        driven.drive(reader.feed(stream), REFUSING)
        if len(driven.over) == before or not driven.over[-1].refused:
            driven.drive(reader.finish(), REFUSING)

    message = message_of(api, driven.body.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    assert len(driven.over) == 2
    assert message.text.endswith("Then not.")
    assert (message.calls, bool(message.stop)) == ([], True)


@pytest.mark.parametrize("api", APIS)
def test_a_next_reply_that_has_nothing_in_it_is_told(api: str) -> None:
    """The client gets an end, or an error, and never nothing."""
    first = b"".join(frames_of(api, CALL))
    reader, driven = CODECS[api].stream(), Driven(onward=lambda over: Onward() if over.refused else None)
    driven.drive(reader.feed(first), REFUSING)
    if not driven.over:
        driven.drive(reader.finish(), REFUSING)
    size = len(driven.body)
    driven.drive(reader.finish("interpose: it broke off"), REFUSING)

    assert b"it broke off" in driven.body[size:]


@pytest.mark.parametrize("api", APIS)
def test_why_a_history_cannot_go_on_is_said_as_it_is(api: str) -> None:
    """Either the model did not stop by itself, with its word for why, or it said more behind the call."""
    stops = {"anthropic": "tool_use", "chat": "tool_calls", "gemini": "STOP", "responses": "completed"}
    whole = b"".join(frames_of(api, CALL))
    over = _over(api, whole.replace(f'"{stops[api]}"'.encode(), b'"incomplete"'))
    assert over.why_not == "it did not stop by itself (incomplete)"

    if api != "chat":
        behind = Reply(ToolUse("Bash", {"command": "rm -rf x"}, id="call_a"), Text("So be it."))
        over = _over(api, b"".join(frames_of(api, behind)))
        assert over.why_not == "it said more behind the call"
    assert _over(api, whole).why_not == ""


def _over(api: str, stream: bytes) -> RoundOver:
    (over,) = driven_through(api, stream).over
    return over


UNREAD = {
    "twice": b'{"candidates":[{"content":{"parts":[CALL]},"index":0,"finishReason":"STOP"}],"u":1,"u":2}',
    "no list": b'{"candidates":[{"content":{"parts":[CALL,{"x":1}]},"finishReason":"STOP"},{"content":{"parts":[{]}}]}',
    "no JSON": b'{"candidates":[{"content":{"parts":[CALL]},"index":0,"finishReason":"STOP"}],}',
}


@pytest.mark.parametrize("unread", UNREAD)
@pytest.mark.parametrize("is_finished", [False, True])
def test_a_last_chunk_that_cannot_be_read_is_an_error_in_both_forms(unread: str, is_finished: bool) -> None:
    """Whatever was told of the end before; an array is closed, with the error as its last item."""
    call = b'{"functionCall":{"name":"Bash","args":{"command":"rm -rf x"}}}'
    finish = b',"finishReason":"STOP"' if is_finished else b""
    text = b'{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"index":0' + finish + b"}]}"
    last = UNREAD[unread].replace(b"CALL", call)
    events = driven_through("gemini", b"data: " + text + b"\r\n\r\ndata: " + last + b"\r\n\r\n")
    array = driven_through("gemini-array", b"[" + text + b",\r\n" + last + b"]")

    assert error_of("gemini", events.body)
    assert error_of("gemini-array", array.body)
    assert [len(driven.body.split(b"Hi")) for driven in (events, array)] == [2, 2]
    assert not any(b"Bash" in driven.body for driven in (events, array))
