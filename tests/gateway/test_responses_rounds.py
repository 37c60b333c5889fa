"""gateway.responses: several replies of the model within one of the client's, and both histories of them."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.api import Onward, ProposedCall, RoundOver
from interpose.gateway.driving import Driven
from interpose.gateway.responses import RESPONSES
from interpose.gateway.responses.numbering import Numbering
from interpose.testing import responses
from interpose.testing.script import Reply, Text, Thinking, ToolUse
from tests.gateway.apis import datas_of, message_of, whole_message

CODEC = RESPONSES
LINE = "[interpose] Bash was refused by rule: no"
RM = ToolUse("Bash", {"command": "rm -rf build"}, id="call_rm")
LS = ToolUse("Read", {"path": "a"}, id="call_ls")
FIRST, SECOND, THIRD = (
    Reply(Thinking("hm"), Text("I clean up."), RM),
    Reply(Thinking("so"), ToolUse("Bash", {"command": "rm -rf dist"}, id="call_dist")),
    Reply(Thinking("then"), Text("Then not."), LS),
)
SEALED = {"include": ["reasoning.encrypted_content"]}


def judge(call: ProposedCall) -> Verdict:
    """Refuses all that is called as refused things are."""
    if call.name in ("Bash", "shell", "local_shell", "apply_patch", "exec", "mcp__S__T"):
        return Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))
    return Verdict("a-1", "tool.call", "allowed")


def going_on(times: int, note: str = "") -> Any:
    """Goes on so many times."""
    left = [Onward(note)] * times

    def answer(_: RoundOver) -> Onward | None:
        return left.pop() if left else None

    return answer


def streamed(replies: list[list[bytes]], note: str = "", fault: str | None = None) -> Driven:
    """Replies of the model, each cut as given, driven as the gateway does; after each but the last another follows."""
    driven = Driven(onward=going_on(len(replies) - 1, note))
    stream = CODEC.stream()
    for number, chunks in enumerate(replies, 1):
        for chunk in chunks:
            driven.drive(stream.feed(chunk), judge)
            if len(driven.over) == number < len(replies):
                break
    driven.drive(stream.finish(fault), judge)
    return driven


def whole(bodies: Iterable[bytes], note: str = "") -> Driven:
    """As `streamed`, of replies that come whole."""
    given_bodies = list(bodies)
    driven = Driven(onward=going_on(len(given_bodies) - 1, note))
    reader = CODEC.whole()
    for body in given_bodies:
        driven.drive(reader.feed(body), judge)
        driven.drive(reader.finish(), judge)
    return driven


def frames(reply: Reply, number: int) -> bytes:
    """The reply as a stream."""
    return b"".join(responses.stream(reply, number, SEALED))


def body_of(reply: Reply, number: int) -> bytes:
    """The reply in one body."""
    return json.dumps(responses.whole(reply, number, SEALED)).encode()


def collected(raw: bytes) -> dict[str, Any]:
    """What a stream adds up to, which must be told."""
    found = CODEC.collected(raw)
    assert found is not None
    return dict(found)


@pytest.mark.parametrize("note", ["", "[interpose] the turn goes on: x"])
@pytest.mark.parametrize("count", [2, 3])
def test_several_replies_are_one_response(count: int, note: str) -> None:
    """One id, items and numbers without a gap, one end that has all and what it cost; whole and streamed the same."""
    replies = [FIRST, THIRD] if count == 2 else [FIRST, SECOND, THIRD]
    streams = [[frames(reply, number)] for number, reply in enumerate(replies, 1)]
    driven = streamed(streams, note)
    datas = datas_of("responses", driven.body)
    message = message_of("responses", driven.body)
    final = datas[-1]["response"]

    assert [data["sequence_number"] for data in datas] == list(range(len(datas)))
    assert [data["type"] for data in datas if "response" in data] == [
        "response.created",
        "response.in_progress",
        "response.completed",
    ]
    assert {data["response"]["id"] for data in datas if "response" in data} == {"resp_000000000001"}
    told = [LINE, note, *([LINE, note] if count == 3 else [])]
    assert message.text.split("\n\n") == [text for text in ("I clean up.", *told, "Then not.") if text]
    assert [call[1] for call in message.calls] == ["Read"]
    each = [responses.whole(reply, number, SEALED)["usage"] for number, reply in enumerate(replies, 1)]
    assert final["usage"]["output_tokens"] == sum(usage["output_tokens"] for usage in each)
    assert final["usage"]["total_tokens"] == final["usage"]["output_tokens"] + each[-1]["input_tokens"]
    assert [over.is_natural for over in driven.over] == [True] * count
    assert [over.raw for over in driven.over] == [stream for (stream,) in streams]

    together = whole((body_of(reply, number) for number, reply in enumerate(replies, 1)), note)
    assert json.loads(together.body) == final == collected(driven.body)
    assert whole_message("responses", together.body) == message
    assert [over.refused for over in together.over] == [over.refused for over in driven.over]


def test_every_cut_gives_the_same_response() -> None:
    """Wherever the network cuts the replies, and where it leaves their last line ends out."""
    streams = [frames(FIRST, 1), frames(THIRD, 2)]
    expected = streamed([[stream] for stream in streams]).body
    for number, stream in enumerate(streams):
        for at in range(1, len(stream), 41):
            cut = [[one] for one in streams]
            cut[number] = [stream[:at], stream[at:]]
            assert streamed(cut).body == expected
    assert streamed([[bytes([byte]) for byte in stream] for stream in streams]).body == expected
    assert streamed([[stream, b"data: [DONE]\n\n"] for stream in streams]).body == expected + b"data: [DONE]\n\n"


@given(
    said=st.lists(st.lists(st.sampled_from("tsrl"), min_size=1, max_size=4), min_size=1, max_size=3),
    noted=st.booleans(),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_model_says_in_however_many_replies(
    said: list[list[str]], noted: bool, data: st.DataObject
) -> None:
    """Thoughts, texts and calls in any order, and cut anywhere, are one response, as if each reply came whole."""
    parts: dict[str, Any] = {"t": Thinking("hm"), "s": Text("So it is."), "r": RM, "l": LS}
    replies = [
        Reply(
            *(
                replace(parts[kind], id=f"call_{number}_{at}") if kind in "rl" else parts[kind]
                for at, kind in enumerate(kinds)
            )
        )
        for number, kinds in enumerate(said)
    ]
    note = "[interpose] on" if noted else ""
    cut = []
    for number, reply in enumerate(replies, 1):
        stream = frames(reply, number)
        ends = sorted({*data.draw(st.lists(st.integers(1, len(stream) - 1), max_size=6)), len(stream)})
        cut.append([stream[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)])
    driven = streamed(cut, note)
    together = whole((body_of(reply, number) for number, reply in enumerate(replies, 1)), note)

    assert message_of("responses", driven.body) == whole_message("responses", together.body)
    assert collected(driven.body) == json.loads(together.body)
    numbers = [event["sequence_number"] for event in datas_of("responses", driven.body)]
    assert numbers == list(range(len(numbers)))
    assert driven.asked == together.asked
    assert [replace(over, raw=b"") for over in driven.over] == [replace(over, raw=b"") for over in together.over]


def test_a_round_is_over_behind_all_that_was_said() -> None:
    """What came before the end has left when the gateway is asked, also where all comes in one read."""
    driven = Driven()
    written: list[int] = []

    def over(step: RoundOver) -> Onward | None:
        written.append(len(driven.body))
        return None

    driven.onward = over
    stream = CODEC.stream()
    driven.drive(stream.feed(frames(FIRST, 1)), judge)
    assert driven.body[written[0] :].startswith(b"event: response.completed")
    assert driven.body[: written[0]].count(b"event: response.output_item.done") == 3


@pytest.mark.parametrize(
    ("reply", "natural", "reason"),
    [
        (FIRST, True, "completed"),
        (Reply(RM, Text("behind")), False, "completed"),
        (Reply(RM, LS), False, "completed"),
        (Reply(LS, RM), True, "completed"),
    ],
)
def test_whether_a_reply_can_be_gone_on_with(reply: Reply, natural: bool, reason: str) -> None:
    """Only where nothing stands behind the last refused call, and the model stopped by itself."""
    cut = frames(reply, 1).replace(b"response.completed", b"response.incomplete")
    cut = cut.replace(b'"status": "completed", "error"', b'"status": "incomplete", "error"')
    cut = cut.replace(b'"incomplete_details": null', b'"incomplete_details": {"reason": "max_output_tokens"}')
    for over in (streamed([[frames(reply, 1)]]).over, whole([body_of(reply, 1)]).over):
        assert [(one.is_natural, one.stop_reason) for one in over] == [(natural, reason)]
        assert [one.line for one in over[0].refused] == [LINE]
    (incomplete,) = streamed([[cut]]).over
    assert (incomplete.is_natural, incomplete.stop_reason) == (False, "max_output_tokens")


def test_a_reply_without_an_end_is_over_too() -> None:
    """What was refused and released in it is told; nothing follows on it, and not on an error or on nothing at all."""
    stream = frames(Reply(RM, LS), 1)
    bare = stream[: stream.index(b"event: response.completed")]
    (over,) = streamed([[bare]]).over

    assert ([call.line for call in over.refused], over.released) == ([LINE], 1)
    assert (over.stop_reason, over.is_natural) == (None, False)
    assert streamed([[]]).over == []
    assert streamed([[bare]], fault="died").over == []
    assert streamed([[bare, b'event: error\ndata: {"type": "error"}\n\n']]).over == []


def test_a_later_reply_that_dies_is_told() -> None:
    """Cut in the middle, empty, with an error of the provider, or of ours: the client reads one error, numbered on."""
    first, second = frames(FIRST, 1), frames(THIRD, 2)
    calls = second.index(b"function_call")
    for chunks, fault in (([second[:calls]], None), ([second[:calls]], "died"), ([], None), ([second[:40]], "died")):
        driven = streamed([[first], chunks], fault=fault)
        datas = datas_of("responses", driven.body)
        numbers = [data["sequence_number"] for data in datas]
        assert datas[-1]["type"] == "error"
        assert numbers == sorted(set(numbers))
        assert len(driven.over) == 1
    error = b'event: error\ndata: {"type": "error", "sequence_number": 2, "message": "no"}\n\n'
    driven = streamed([[first], [second[: second.index(b"event: response.output")] + error]])
    assert datas_of("responses", driven.body)[-1]["message"] == "no"
    end = datas_of("responses", streamed([[first]]).body)[-1]["sequence_number"]
    assert datas_of("responses", driven.body)[-1]["sequence_number"] == end
    assert len(driven.over) == 1


def test_a_failed_later_reply_has_the_first_ones_head() -> None:
    """The client knows one response, whatever becomes of it."""
    second = frames(THIRD, 2).replace(b"response.completed", b"response.failed")
    final = datas_of("responses", streamed([[frames(FIRST, 1)], [second]]).body)[-1]

    assert (final["type"], final["response"]["id"]) == ("response.failed", "resp_000000000001")
    assert len(final["response"]["output"]) == 6


@pytest.mark.parametrize("key", [b'"\\u0073equence_number"', b'"sequence\\u005Fnumber"', b'"sequence_numbe\\u0072"'])
def test_numbers_whose_key_has_an_escape_are_counted_on_too(key: bytes) -> None:
    """A key is known by what it says."""
    for second in (frames(THIRD, 2), frames(THIRD, 2)[:-60]):
        escaped = second.replace(b'"sequence_number"', key)
        plain = streamed([[frames(FIRST, 1)], [second]])
        driven = streamed([[frames(FIRST, 1)], [escaped]])

        assert datas_of("responses", driven.body) == datas_of("responses", plain.body)


def test_numbers_inside_a_call_are_its_own() -> None:
    """Only an event's own number is counted on; arguments that have such a word keep theirs."""
    item = {
        "type": "tool_search_call",
        "id": "ts_1",
        "call_id": "c1",
        "execution": "client",
        "arguments": {"sequence_number": 7},
    }
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "sequence_number": 0, "output_index": 0, "item": item},
        {"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": item},
        {"type": "response.completed", "sequence_number": 2, "response": {"status": "completed", "output": [item]}},
    ]
    second = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)
    datas = datas_of("responses", streamed([[frames(FIRST, 1)], [second]]).body)

    assert [data["sequence_number"] for data in datas] == list(range(len(datas)))
    assert [data["item"]["arguments"] for data in datas[-3:-1]] == [{"sequence_number": 7}] * 2
    assert datas[-1]["response"]["output"][-1] == item


def test_ids_that_are_counted_anew_name_other_calls() -> None:
    """What became of a call of the first reply says nothing of one of the second, though it has the same ids."""
    first = frames(Reply(replace(RM, id="call_0")), 1)
    item = {"type": "function_call", "id": "fc_000001000000", "call_id": "call_0", "name": "Read", "arguments": "{}"}
    end = {"type": "response.completed", "sequence_number": 0, "response": {"status": "completed", "output": [item]}}
    driven = streamed([[first], [f"data: {json.dumps(end)}\n\n".encode()]])

    assert [call.name for call in driven.asked] == ["Bash", "Read"]
    assert datas_of("responses", driven.body)[-1]["response"]["output"][1] == item


def test_replies_without_numbers_and_names_go_on_without() -> None:
    """A server that leaves them out gets none put in."""
    bare = [
        b"".join(
            b"data: " + json.dumps({k: v for k, v in data.items() if k != "sequence_number"}).encode() + b"\n\n"
            for data in datas_of("responses", frames(reply, number))
        )
        for number, reply in ((1, FIRST), (2, THIRD))
    ]
    body = streamed([[one] for one in bare], "[interpose] on").body

    assert b"sequence_number" not in body
    assert b"event:" not in body
    assert [data["output_index"] for data in datas_of("responses", body) if data["type"].endswith("item.added")] == [
        *range(7)
    ]


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
PARTS = st.one_of(
    TEXTS.map(
        lambda text: {"type": "output_text", "text": text, "annotations": [{"type": "url_citation"}], "logprobs": []}
    ),
    TEXTS.map(lambda text: {"type": "refusal", "refusal": text}),
    st.just({"type": "new_part", "x": 1}),
)
ITEMS = st.one_of(
    st.lists(PARTS, max_size=3).map(
        lambda parts: {"type": "message", "role": "assistant", "status": "completed", "content": parts, "phase": "x"}
    ),
    st.tuples(st.lists(TEXTS, max_size=2), TEXTS).map(
        lambda said: {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text} for text in said[0]],
            "content": [{"type": "reasoning_text", "text": said[1]}],
            "encrypted_content": "x",
        }
    ),
    TEXTS.map(
        lambda text: {"type": "function_call", "call_id": "c", "name": "f", "arguments": json.dumps({"a": text})}
    ),
    TEXTS.map(lambda text: {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": text}),
    TEXTS.map(
        lambda text: {"type": "shell_call", "call_id": "c", "action": {"commands": [text]}, "status": "completed"}
    ),
    st.just({"type": "web_search_call", "status": "completed", "action": {"type": "search"}}),
    st.just({"type": "new_thing", "deep": {"x": [1, None]}}),
)


@given(
    listed=st.lists(ITEMS, max_size=4), status=st.sampled_from(["completed", "incomplete", "failed"]), new=st.booleans()
)
@settings(max_examples=80, deadline=None)
def test_a_response_taken_apart_adds_up_again(listed: list[dict[str, Any]], status: str, new: bool) -> None:
    """Whatever items it has, known or not; and what it tells the person is the same from its events."""
    output = [{"id": f"id_{at}", **item} for at, item in enumerate(listed)]
    base = responses.whole(Reply(), 1, {})
    response = {**base, "status": status, "output": output, **({"new_member": {"a": 1}} if new else {})}
    raw = CODEC.as_stream(response)

    assert CODEC.collected(raw) == response
    assert CODEC.spoken(raw) == CODEC.final_text(response)
    numbers = [data["sequence_number"] for data in datas_of("responses", raw)]
    assert numbers == list(range(len(numbers)))


def test_what_adds_up_to_no_response() -> None:
    """Without an end, with an error, with another end than what came, or with items nobody can place."""
    raw = frames(FIRST, 1)
    end = raw.index(b"event: response.completed")
    other = raw[end:].replace(b'"id": "fc_', b'"id": "fc_9')
    assert CODEC.collected(raw) is not None
    assert CODEC.collected(raw[:end]) is None
    assert CODEC.collected(raw[:end] + other) is None
    assert CODEC.collected(b'event: error\ndata: {"type":"error"}\n\n' + raw) is None
    assert CODEC.collected(raw.replace(b'"output_index"', b'"place"')) is None
    assert CODEC.collected(b"") is None
    assert CODEC.collected(b"event: x\n\n" + raw.rstrip()) == CODEC.collected(raw)


def test_a_provider_that_repeats_no_items_at_the_end() -> None:
    """The items that were done are the response; a text is told from them too."""
    raw = frames(Reply(Text("Hi."), LS), 1)
    at = raw.index(b"event: response.completed")
    event = json.loads(raw[at:].split(b"data: ")[1])
    items = event["response"]["output"]
    event["response"]["output"] = []
    bare = raw[:at] + f"event: response.completed\ndata: {json.dumps(event)}\n\n".encode()

    assert collected(bare)["output"] == items
    assert CODEC.spoken(bare) == "Hi."


def test_what_interpose_says_is_a_response() -> None:
    """Streamed or not, it says the text and is complete."""
    said = CODEC.said("no", "m")
    assert (CODEC.final_text(said), said["model"], said["status"]) == ("no", "m", "completed")
    message = message_of("responses", CODEC.as_stream(said))
    assert (message.text, message.calls, message.stop) == ("no", [], "completed")


def test_a_number_that_comes_after_what_was_put_in_is_read_by_its_value() -> None:
    """In events that leave behind a refused call too, whose key has an escape, and in none that cannot be read."""
    numbering = Numbering()
    numbering.put_in([3], 2)
    escaped = b'data: {"type":"x","\\u0073equence_number":7,"a": [1]}\n\n'
    text = b'data: {"type":"x", "sequence_number": 7, "delta": "\\u0073equence_number"}\n\n'
    odd = b'data: {"\\u0073equence_number": 7\n\n'

    assert numbering.renumbered(escaped) == b'data: {"type":"x","sequence_number":8,"a":[1]}\n\n'
    assert json.loads(numbering.renumbered(text)[6:]) == {**json.loads(text[6:]), "sequence_number": 8}
    assert numbering.renumbered(odd) == odd
    assert numbering.behind(escaped) == 9
