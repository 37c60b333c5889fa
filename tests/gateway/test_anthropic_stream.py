"""gateway.anthropic.stream: what providers should not send and do."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import ProposedCall
from interpose.gateway.driving import Driven, drive_stream
from interpose.wire.sse import SseReader

ALLOWED = Verdict("a-1", "tool.call", "allowed")
REFUSED = Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))


def frame(data: dict[str, Any]) -> bytes:
    """One event as the API writes it."""
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def start(index: Any, name: str = "Bash", **block: Any) -> bytes:
    """The start of a tool_use block."""
    content = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}, **block}
    return frame({"type": "content_block_start", "index": index, "content_block": content})


def piece(index: Any, text: str) -> bytes:
    """One delta of a call's input."""
    return frame(
        {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}}
    )


def stop(index: Any) -> bytes:
    """The end of a block."""
    return frame({"type": "content_block_stop", "index": index})


def reason(text: str) -> bytes:
    """The message_delta that tells why the model stopped."""
    return frame({"type": "message_delta", "delta": {"stop_reason": text}, "usage": {"output_tokens": 1}})


END = frame({"type": "message_stop"})
TEXT = frame({"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "words"}})


def run(frames: list[bytes], *refused: str) -> Driven:
    """The frames through the codec; calls of the names given are refused."""

    def judge(call: ProposedCall) -> Verdict:
        return REFUSED if call.name in refused else ALLOWED

    return drive_stream(ANTHROPIC, frames, judge)


def stops(body: bytes) -> list[str]:
    """The stop reasons in a stream."""
    datas = [json.loads(event.data) for event in SseReader().feed(body) if event.data]
    return [data["delta"]["stop_reason"] for data in datas if data["type"] == "message_delta"]


def test_a_stop_reason_before_the_call_is_complete_waits_for_it() -> None:
    """The call is judged when it is complete, and the reason then told is true."""
    frames = [start(0), piece(0, '{"a"'), reason("tool_use"), piece(0, ": 1}"), stop(0), END]

    assert run(frames).asked[0].arguments == {"a": 1}
    assert stops(run(frames).body) == ["tool_use"]
    assert stops(run(frames, "Bash").body) == ["end_turn"]


def test_a_stop_reason_before_the_call_begins_waits_for_it_too() -> None:
    """A refused call behind its stop reason leaves no reason to use a tool."""
    frames = [reason("tool_use"), start(0), piece(0, "{}"), stop(0), END]

    assert stops(run(frames, "Bash").body) == ["end_turn"]
    assert stops(run(frames).body) == ["tool_use"]


def test_the_end_of_the_message_while_a_call_is_held_is_an_error() -> None:
    """The call is dropped and the client is told instead of being left with half a message."""
    driven = run([start(0), piece(0, "{"), reason("tool_use"), END])

    assert [drop.call_id for drop in driven.dropped] == ["toolu_0"]
    assert b"event: error" in driven.body
    assert stops(driven.body) == []


def test_other_stop_reasons_stay() -> None:
    """Only `tool_use` is wrong when no call is left."""
    assert stops(run([start(0), stop(0), reason("max_tokens"), END], "Bash").body) == ["max_tokens"]
    assert stops(run([reason("tool_use"), END]).body) == ["tool_use"]


def test_calls_that_are_woven_into_each_other() -> None:
    """Deltas find their own call; text between them does not wait."""
    frames = [
        start(0),
        start(1, "Read"),
        piece(1, '{"b":'),
        TEXT,
        piece(0, '{"a":1}'),
        stop(0),
        piece(1, "2}"),
        stop(1),
    ]
    driven = run([*frames, reason("tool_use"), END], "Bash")

    assert [(call.name, call.arguments) for call in driven.asked] == [("Bash", {"a": 1}), ("Read", {"b": 2})]
    assert driven.writes[0] == TEXT
    assert b"".join([start(1, "Read"), piece(1, '{"b":'), piece(1, "2}"), stop(1)]) in driven.body
    assert stops(driven.body) == ["tool_use"]


def test_the_input_may_come_in_the_start() -> None:
    """Some servers send the whole input at once; a change then takes its place."""
    driven = run([start(0, input={"a": 1}), stop(0), END])
    patched = drive_stream(
        ANTHROPIC,
        [start(0, input={"a": 1}), stop(0), END],
        lambda _: Verdict("a-1", "tool.call", "patched", arguments={"b": 2}),
    )

    assert driven.asked[0].arguments == {"a": 1}
    datas = [json.loads(event.data) for event in SseReader().feed(patched.body) if event.data]
    assert datas[0]["content_block"]["input"] == {}
    assert datas[1]["delta"]["partial_json"] == '{"b":2}'


def test_an_input_that_comes_twice_is_a_problem() -> None:
    """Start and deltas that both carry an input may be read either way."""
    call = run([start(0, input={"a": 1}), piece(0, '{"a": 2}'), stop(0), END]).asked[0]

    assert call.arguments == {}
    assert "twice" in (call.problem or "")


def test_what_would_change_a_judged_call_is_left_out() -> None:
    """Deltas behind a call's end never reach a client that would add them to it."""
    late = piece(0, '{"command": "rm"}')
    driven = run([start(0), piece(0, "{}"), stop(0), late, stop(0), reason("tool_use"), END])

    assert late not in driven.body
    assert driven.body.count(b"content_block_stop\n") == 1


def test_a_second_block_under_a_held_index_drops_the_first() -> None:
    """Colliding indexes never join two calls into one."""
    driven = run([start(0), piece(0, '{"a":'), start(0, "Read"), piece(0, '{"b":1}'), stop(0), reason("tool_use"), END])

    assert [drop.name for drop in driven.dropped] == ["Bash"]
    assert [(call.name, call.arguments) for call in driven.asked] == [("Read", {"b": 1})]


def test_missing_indexes_and_names_are_borne() -> None:
    """A block without an index is held under none, and one without an event name is seen all the same."""
    nameless = start(None).partition(b"\n")[2]
    driven = run([nameless, piece(None, "{}"), stop(None), reason("tool_use"), END], "Bash")

    assert [call.name for call in driven.asked] == ["Bash"]
    assert b"was refused by rule: no" in driven.body


def test_an_index_is_the_same_however_it_is_written() -> None:
    """To JavaScript 0 and 0.0 are one place, so a piece there is one of the same call."""
    late = piece(0.0, '{"command": "rm"}')

    assert late not in run([start(0), piece(0, "{}"), stop(0), late, END]).body
    assert [call.arguments for call in run([start(0), late, stop(0), END]).asked] == [{"command": "rm"}]


def test_a_name_that_is_no_text_is_none() -> None:
    """A program may take a list of one name for that name."""
    block = {"type": "tool_use", "id": "t", "name": ["Bash"], "input": {}}
    begun = frame({"type": "content_block_start", "index": 0, "content_block": block})

    assert [call.name for call in run([begun, piece(0, "{}"), stop(0), END]).asked] == ["unknown:tool_use"]


def test_half_a_pair_in_each_delta_is_one_character() -> None:
    """A character that the provider cut in two is read whole, and released as it came."""
    frames = [start(0), piece(0, '{"a": "\ud83d'), piece(0, '\ude00"}'), stop(0), END]
    driven = run(frames)

    assert driven.asked[0].arguments == {"a": "😀"}
    assert driven.body == b"".join(frames)


def test_calls_that_the_provider_runs_pass() -> None:
    """A server tool is no call of the agent's."""
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    frames = [frame({"type": "content_block_start", "index": 0, "content_block": block}), piece(0, "{}"), stop(0), END]
    driven = run(frames)

    assert driven.asked == []
    assert driven.body == b"".join(frames)


def test_calls_in_the_start_of_the_message_are_left_out() -> None:
    """A client that starts from what message_start holds must find no call there."""
    block = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    driven = run(
        [frame({"type": "message_start", "message": {"id": "m", "content": [block]}}), reason("tool_use"), END]
    )

    assert [drop.name for drop in driven.dropped] == ["Bash"]
    assert b"Bash" not in driven.body
    assert stops(driven.body) == ["end_turn"]


def test_a_piece_that_is_no_text_is_a_problem() -> None:
    """What clients would join in ways of their own is not trusted."""
    odd = frame({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": 5}})

    assert "not a text" in (run([start(0), odd, stop(0), END]).asked[0].problem or "")


def differently(event: bytes) -> bytes:
    """The same event with its members in another order."""
    name, _, data = event.partition(b"\ndata: ")
    turned = dict(reversed(json.loads(data).items()))
    return name + b"\ndata: " + json.dumps(turned, separators=(", ", " : ")).encode() + b"\n\n"


@given(
    st.lists(st.text(st.sampled_from('{}"\\ab é😀\n\ud83d')), min_size=1, max_size=20),
    st.lists(st.booleans(), min_size=20, max_size=20),
)
def test_a_piece_says_the_same_however_it_is_written(texts: list[str], turned: list[bool]) -> None:
    """As the provider writes its events, or in any other form of the same: one call, and the bytes that came."""
    plain = [start(0), *(piece(0, text) for text in texts), stop(0), END]
    other = [
        start(0),
        *(differently(piece(0, text)) if turned[at] else piece(0, text) for at, text in enumerate(texts)),
    ]

    one, same = run(plain), run([*other, stop(0), END])

    assert [(call.arguments, call.problem) for call in one.asked] == [
        (call.arguments, call.problem) for call in same.asked
    ]
    assert one.body == b"".join(plain)
    assert same.body == b"".join([*other, stop(0), END])
