"""gateway.shapes: a reply of another API's is not let through as if it were judged; what is merely odd passes."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.verdict import Verdict
from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import Codec, ProposedCall, Unreadable
from interpose.gateway.chat import CHAT
from interpose.gateway.driving import Driven, drive_reply, drive_stream
from interpose.gateway.gemini import GEMINI
from interpose.gateway.responses import RESPONSES
from interpose.gateway.shapes import refuse_foreign

CODECS: dict[str, Codec] = {"anthropic": ANTHROPIC, "chat": CHAT, "responses": RESPONSES, "gemini": GEMINI}
ARGUMENTS = '{"command":"rm -rf /"}'
ITEM = {"type": "function_call", "id": "f", "call_id": "c", "name": "Bash", "arguments": ARGUMENTS}
BLOCK = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "rm -rf /"}}
FUNCTION = {"name": "Bash", "arguments": ARGUMENTS}
PART = {"functionCall": {"name": "Bash", "args": {"command": "rm -rf /"}}}
WHOLES: dict[str, Any] = {
    "anthropic": {"type": "message", "role": "assistant", "content": [BLOCK], "stop_reason": "tool_use"},
    "chat": {
        "object": "chat.completion",
        "choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "c", "function": FUNCTION}]}}],
    },
    "responses": {"object": "response", "status": "completed", "output": [ITEM]},
    "gemini": {"candidates": [{"content": {"role": "model", "parts": [PART]}, "finishReason": "STOP"}]},
}
PAIRS = [(own, other) for own, other in product(CODECS, CODECS) if own != other]


def refuse(_call: ProposedCall) -> Verdict:
    """No call may be asked about."""
    raise AssertionError(_call)


def allow(_call: ProposedCall) -> Verdict:
    """Every call runs."""
    return Verdict("a", "tool.call", "allowed")


def streamed(api: str) -> bytes:
    """The reply of this API as it streams it."""
    return CODECS[api].as_stream(WHOLES[api])


def told(api: str, chunks: list[bytes]) -> Driven:
    """What the client gets, as the gateway drives it: what cannot be read is the end."""
    driven, stream = Driven(), CODECS[api].stream()
    try:
        for chunk in chunks:
            driven.drive(stream.feed(chunk), refuse)
        driven.drive(stream.finish(), refuse)
    except Unreadable as error:
        driven.drive(stream.finish(f"unreadable: {error}"), refuse)
    return driven


@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_a_stream_of_another_api_ends_in_an_error(own: str, other: str) -> None:
    """None of its calls leaves, wherever it is cut, also behind comments, pings and what nobody knows."""
    stream = streamed(other)
    before = b': hello\n\nevent: ping\ndata: {"type": "ping"}\n\ndata: {"odd": 1}\n\n'
    for cut in range(0, len(stream), 7):
        driven = told(own, [stream[:cut], stream[cut:]])
        assert b"Bash" not in driven.body
        assert b"shape of" in driven.body
    driven = told(own, [before, stream])

    assert driven.body.startswith(before)
    assert b"Bash" not in driven.body
    assert b"shape of" in driven.body


@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_a_stream_that_does_not_end_its_event_is_looked_at_too(own: str, other: str) -> None:
    """The end completes it."""
    event = f"data: {json.dumps(WHOLES[other])}".encode()

    assert b"Bash" not in told(own, [event]).body


@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_a_whole_reply_of_another_api_is_unreadable(own: str, other: str) -> None:
    """It is named, and so is what the client speaks."""
    with pytest.raises(Unreadable, match=r"it has the shape of .*, where the client speaks .*address right"):
        drive_reply(CODECS[own], json.dumps(WHOLES[other]).encode(), refuse)


@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_members_of_another_api_beside_its_own_are_extras(own: str, other: str) -> None:
    """Providers that imitate an API put in what they have."""
    both = {**WHOLES[other], **WHOLES[own]}
    body = json.dumps(both).encode()

    driven = drive_reply(CODECS[own], body, allow)

    assert driven.body == body
    assert [call.name for call in driven.asked] == ["Bash"]


ODD: list[Any] = [
    {},
    {"type": "message"},
    {"type": "message_start"},
    {"type": ["message_start"]},
    {"type": "response.x"},
    {"object": "response"},
    {"choices": "no"},
    {"choices": []},
    {"choices": [1]},
    {"candidates": []},
    {"candidates": [{"content": "x"}]},
    {"error": {"message": "no"}},
    {"usage": {"total_tokens": 1}},
    {"type": "error", "error": {"type": "overloaded_error"}},
    {"output": "text"},
    {"object": "text_completion", "choices": [{"text": "x"}]},
]


@pytest.mark.parametrize("api", CODECS)
@pytest.mark.parametrize("odd", ODD)
def test_what_is_merely_odd_passes(api: str, odd: Any) -> None:
    """It is nobody's whole signature: it leaves as it came, whole and before a stream's own events."""
    refuse_foreign(CODECS[api].api, odd)
    event = f"data: {json.dumps(odd)}\n\n".encode()
    if "error" in odd:
        return

    driven = drive_stream(CODECS[api], [event, streamed(api)], allow)

    assert event.strip() in driven.body
    assert [call.name for call in driven.asked] == ["Bash"]


@pytest.mark.parametrize("api", CODECS)
def test_an_empty_stream_is_nobodys(api: str) -> None:
    """So are comments alone."""
    assert drive_stream(CODECS[api], [], refuse).body == b""
    assert drive_stream(CODECS[api], [b": x\n\n"], refuse).body == b": x\n\n"


JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "choices", "candidates", "content", "delta", "object", "item"]), inner
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["type", "choices", "candidates", "content", "object", "output"]), JSON))
def test_any_object_is_looked_at(data: dict[str, Any]) -> None:
    """Nothing but Unreadable is ever raised, and never for all of the APIs."""
    found = 0
    for codec in CODECS.values():
        try:
            refuse_foreign(codec.api, data)
        except Unreadable:
            found += 1
    assert found < len(CODECS)


CODE_ASSIST = {"response": WHOLES["gemini"], "traceId": "t"}
TEXT = {"response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}, "index": 0}]}}


@pytest.mark.parametrize("own", CODECS)
def test_a_reply_within_a_reply_is_code_assists(own: str) -> None:
    """Its candidates stand in an object of their own: nobody here reads the calls in it."""
    stream = b"".join(b"data: " + json.dumps(one).encode() + b"\r\n\r\n" for one in (TEXT, CODE_ASSIST))
    driven = told(own, [stream])

    assert b"Bash" not in driven.body
    assert b"hello" not in driven.body
    assert b"shape of Google's Code Assist" in driven.body
    with pytest.raises(Unreadable, match="Code Assist"):
        drive_reply(CODECS[own], json.dumps(CODE_ASSIST).encode(), refuse)


def test_a_request_within_a_request_is_unreadable() -> None:
    """What is sent as Code Assist has it is nothing that the policy was shown."""
    request = {"contents": [{"role": "user", "parts": [{"text": "go"}]}]}
    for body in ({"model": "g", "project": "p", "request": request}, {**request, "request": request}):
        with pytest.raises(Unreadable, match="`request`"):
            GEMINI.read(json.dumps(body).encode())
    assert GEMINI.read(json.dumps({**request, "request": "r-1"}).encode()).turn is not None
