"""gateway.chat.stream: what the many servers of this API send."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.api import ProposedCall
from interpose.gateway.chat import CHAT
from interpose.gateway.driving import Driven, drive_stream
from interpose.wire.sse import SseReader

ALLOWED = Verdict("a-1", "tool.call", "allowed")
REFUSED = Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))
DONE = b"data: [DONE]\n\n"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, index: int = 0, **top: Any) -> bytes:
    """One chunk with one choice."""
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c-1", "object": "chunk", "choices": [choice], **top}).encode() + b"\n\n"


def call(index: Any, arguments: str, **entry: Any) -> dict[str, Any]:
    """A delta with one item of tool_calls; `name` and `id` begin a call."""
    function = {"arguments": arguments}
    if "name" in entry:
        function["name"] = entry.pop("name")
    item = {"function": function, **entry}
    return {"tool_calls": [item if index is None else {"index": index, **item}]}


def run(frames: list[bytes], *refused: str, fault: str | None = None) -> Driven:
    """The frames through the codec; calls of the names given are refused."""

    def judge(proposed: ProposedCall) -> Verdict:
        return REFUSED if proposed.name in refused else ALLOWED

    return drive_stream(CHAT, frames, judge, fault)


def datas(body: bytes) -> list[dict[str, Any]]:
    """The chunks of a stream."""
    return [json.loads(event.data) for event in SseReader().feed(body) if event.data and event.data != b"[DONE]"]


def finishes(body: bytes) -> list[tuple[int, str]]:
    """Index and finish reason of each finished choice."""
    return [(c["index"], c["finish_reason"]) for d in datas(body) for c in d["choices"] if c["finish_reason"]]


def content(body: bytes, index: int = 0) -> str:
    """All text of one choice."""
    return "".join(c["delta"].get("content") or "" for d in datas(body) for c in d["choices"] if c["index"] == index)


def calls(body: bytes) -> list[dict[str, Any]]:
    """All items of tool_calls."""
    return [entry for d in datas(body) for c in d.get("choices", []) for entry in c["delta"].get("tool_calls", [])]


BASH = call(0, "{}", name="Bash", id="b", type="function")


def test_everything_in_one_chunk() -> None:
    """Text, a call and the finish in one chunk: the text passes, the rest is judged."""
    one = chunk({"role": "assistant", "content": "So. ", **BASH}, "tool_calls")

    assert content(run([one, DONE]).body) == "So. "
    assert [entry["id"] for entry in calls(run([one, DONE]).body)] == ["b"]
    assert finishes(run([one, DONE]).body) == [(0, "tool_calls")]
    refused = run([one, DONE], "Bash").body
    assert content(refused) == "So. \n\n[interpose] Bash was refused by rule: no"
    assert finishes(refused) == [(0, "stop")]


def test_a_call_and_its_finish_in_one_chunk_stay_one_chunk() -> None:
    """Nothing is taken apart that is allowed as it is."""
    one = chunk({"role": "assistant", "content": None, **BASH}, "tool_calls")

    assert run([one, DONE]).body == one + DONE
    refused = run([one, DONE], "Bash").body
    assert datas(refused)[0]["choices"][0]["delta"]["role"] == "assistant"
    assert finishes(refused) == [(0, "stop")]


def test_the_last_piece_of_a_call_may_carry_the_finish() -> None:
    """Several servers write it so; allowed, the bytes stay what they were."""
    frames = [chunk(call(0, '{"a"', name="Bash", id="b")), chunk(call(0, ": 1}"), "tool_calls"), DONE]

    assert run(frames).body == b"".join(frames)
    assert run(frames).asked[0].arguments == {"a": 1}
    assert finishes(run(frames, "Bash").body) == [(0, "stop")]


def test_text_beside_a_call_does_not_wait() -> None:
    """The text of a mixed chunk leaves in the same feed, the call's part when it is judged."""
    mixed = chunk({"content": "now", **call(0, "{", name="Bash", id="b")})
    driven = run([mixed, chunk(call(0, "}")), chunk(None, "tool_calls"), DONE])

    assert content(driven.writes[0]) == "now"
    assert calls(driven.writes[0]) == []
    assert driven.asked[0].arguments == {}
    assert content(driven.body) == "now"
    assert [entry["function"]["arguments"] for entry in calls(driven.body)] == ["{", "}"]


def test_two_choices_are_judged_apart() -> None:
    """A refused call of one choice leaves the other one's call, text and finish alone."""
    frames = [
        chunk(call(0, '{"a"', name="Bash", id="b"), index=0),
        chunk({"content": "other"}, index=1),
        chunk(call(0, '{"c":1}', name="Read", id="r"), index=1),
        chunk(call(0, ":1}"), index=0),
        chunk(None, "tool_calls", index=1),
        chunk(None, "tool_calls", index=0),
    ]
    driven = run([*frames, DONE], "Bash")

    assert [(c.name, c.arguments) for c in driven.asked] == [("Read", {"c": 1}), ("Bash", {"a": 1})]
    assert finishes(driven.body) == [(1, "tool_calls"), (0, "stop")]
    assert content(driven.body, 1) == "other"
    assert content(driven.body, 0).startswith("[interpose] Bash")
    assert frames[2] in driven.body


def test_several_choices_in_one_chunk() -> None:
    """A chunk that carries calls of one choice and text of another is taken apart; one without calls is not."""
    both = {
        "id": "c-1",
        "choices": [
            {"index": 0, "delta": {"content": "text"}, "finish_reason": None},
            {"index": 1, "delta": BASH, "finish_reason": None},
        ],
    }
    plain = {"id": "c-1", "choices": [{"index": i, "delta": {"content": "x"}, "finish_reason": None} for i in (0, 1)]}
    raw = b"data: " + json.dumps(plain).encode() + b"\n\n"
    driven = run([raw, b"data: " + json.dumps(both).encode() + b"\n\n", chunk(None, "tool_calls", 1), DONE], "Bash")

    assert driven.body.startswith(raw)
    assert content(driven.body, 0) == "xtext"
    assert "Bash was refused" in content(driven.body, 1)


def test_the_calls_that_are_left_are_counted_anew() -> None:
    """After a refusal in front, the next call is call 0, with all its members."""
    extra = {"google": {"thought_signature": "s"}}
    frames = [
        chunk(BASH),
        chunk(call(1, '{"p"', name="Read", id="r", type="function", extra_content=extra)),
        chunk(call(1, ": 1}")),
        chunk(None, "tool_calls"),
        DONE,
    ]
    body = run(frames, "Bash").body

    assert calls(body) == [
        {
            "index": 0,
            "function": {"name": "Read", "arguments": '{"p": 1}'},
            "id": "r",
            "type": "function",
            "extra_content": extra,
        }
    ]
    assert finishes(body) == [(0, "tool_calls")]


def test_the_older_function_call() -> None:
    """`function_call` is judged, refused and rewritten like any call."""
    frames = [
        chunk({"function_call": {"name": "Bash", "arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ": 1}"}}),
        chunk(None, "function_call"),
        DONE,
    ]
    allowed = run(frames)
    patched = drive_stream(CHAT, frames, lambda _: Verdict("a-1", "tool.call", "patched", arguments={"b": 2}))

    assert allowed.body == b"".join(frames)
    assert (allowed.asked[0].call_id, allowed.asked[0].arguments) == ("function_call:Bash", {"a": 1})
    assert finishes(run(frames, "Bash").body) == [(0, "stop")]
    delta = datas(patched.body)[0]["choices"][0]["delta"]
    assert delta == {"function_call": {"name": "Bash", "arguments": '{"b":2}'}}
    assert finishes(patched.body) == [(0, "function_call")]


def test_a_custom_tool_is_judged_by_its_text() -> None:
    """Free text is the argument `input`, and a change of it is written back."""
    custom = {"index": 0, "id": "p", "type": "custom", "custom": {"name": "patch", "input": "*** Be"}}
    more = {"index": 0, "custom": {"input": "gin"}}
    frames = [chunk({"tool_calls": [custom]}), chunk({"tool_calls": [more]}), chunk(None, "tool_calls"), DONE]
    patched = drive_stream(CHAT, frames, lambda _: Verdict("a-1", "tool.call", "patched", arguments={"input": "x"}))

    assert run(frames).asked[0].arguments == {"input": "*** Begin"}
    assert calls(patched.body)[0]["custom"] == {"name": "patch", "input": "x"}


def test_a_call_of_an_unknown_kind_is_a_problem() -> None:
    """What cannot be read is asked about as such, never let through as text."""
    asked = run(
        [chunk({"tool_calls": [{"index": 0, "id": "x", "type": "new"}]}), chunk(None, "tool_calls"), DONE]
    ).asked

    assert (asked[0].name, asked[0].problem) == ("unknown:new", "a call of the kind 'new', which interpose cannot read")


def test_indexes_that_are_missing_or_collide() -> None:
    """Servers that leave indexes out, or give all calls one, are read by the ids; what leaves can be read by either."""
    for second in (None, 0, 0.0, "0"):
        frames = [
            chunk(call(second, "{}", name="Bash", id="b")),
            chunk(call(second, '{"p"', name="Read", id="r")),
            chunk(call(second, ":1}")),
            chunk(None, "tool_calls"),
            DONE,
        ]
        driven = run(frames)

        assert [(c.name, c.arguments) for c in driven.asked] == [("Bash", {}), ("Read", {"p": 1})]
        assert [(e["index"], e["id"], e["function"]["arguments"]) for e in calls(driven.body)] == [
            (0, "b", "{}"),
            (1, "r", '{"p":1}'),
        ]


def test_an_index_that_is_no_number_is_a_place_of_its_own() -> None:
    """Its pieces are never those of the call 1, however many of them are alike."""
    frames = [chunk(call(1, "{}", name="Read", id="r")), *[chunk(call(True, "x"))] * 3]

    asked = run([*frames, chunk(None, "tool_calls"), DONE]).asked
    assert [(c.name, bool(c.problem)) for c in asked] == [("Read", False), ("unknown:function", True)]


def test_one_call_without_an_index_stays_as_it_is() -> None:
    """There is no other call that a client could take it for."""
    frames = [chunk(call(None, "{", name="Bash", id="b")), chunk(call(None, "}")), chunk(None, "tool_calls"), DONE]

    assert run(frames).body == b"".join(frames)


@pytest.mark.parametrize(
    ("pieces", "name"),
    [
        (["Bash", "Bash"], "Bash"),
        (["Bash", "", "Bash", "Bash"], "Bash"),
        (["", "Bash", "Bash"], "Bash"),
        (["Ba", "sh"], "Bash"),
        (["Bash", "_x"], "Bash_x"),
        (["Ba", "Bash"], "BaBash"),
    ],
)
@pytest.mark.parametrize("kind", ["function", "custom", "function_call"])
def test_a_name_in_several_deltas_is_told_once(kind: str, pieces: list[str], name: str) -> None:
    """Some clients take the first name that comes, some the last, some join all: they get the one that was judged."""
    text = "input" if kind == "custom" else "arguments"
    bodies = [{"name": piece, text: given} for piece, given in zip(pieces, ["{", "}", "", ""], strict=False)]
    deltas: list[dict[str, Any]]
    if kind == "function_call":
        deltas = [{kind: body} for body in bodies]
    else:
        deltas = [{"tool_calls": [{"index": 0, "id": "b", "type": kind, kind: body}]} for body in bodies]
    frames = [*map(chunk, deltas), chunk(None, "tool_calls"), DONE]
    driven = run(frames)
    (delta,) = [d["choices"][0]["delta"] for d in datas(driven.body) if d["choices"][0]["delta"]]

    assert [(c.name, c.problem) for c in driven.asked] == [(name, None)]
    told = delta[kind] if kind == "function_call" else delta["tool_calls"][0][kind]
    assert told == {"name": name, text: "{}"}
    assert calls(run(frames, name).body) == []
    assert finishes(driven.body) == [(0, "tool_calls")]


def test_a_name_that_is_told_once_among_empty_ones_stays_as_it_is() -> None:
    """Many servers say an empty name in each later delta."""
    later = call(0, "}", name="")
    frames = [chunk(call(0, "{", name="Bash", id="b")), chunk(later), chunk(None, "tool_calls"), DONE]

    assert run(frames).asked[0].name == "Bash"
    assert run(frames).body == b"".join(frames)


@pytest.mark.parametrize(
    "deltas",
    [
        [{"function": {"name": "Read", "arguments": {"p": 1}}}, {"function": {"arguments": '{"command": "rm"}'}}],
        [{"function": {"name": "Read", "arguments": '{"p": 1}'}}, {"function": {"arguments": {"command": "rm"}}}],
        [{"function": {"name": "Read", "arguments": {"p": 1}}}, {"function": {"arguments": {"command": "rm"}}}],
        [{"function": {"name": "Read", "arguments": "{}"}}, {"custom": {"name": "Bash", "input": "rm"}}],
        [{"function": {"name": ["Bash"], "arguments": "{}"}}, {"function": {"name": "Read"}}],
        [{"function": {"name": "Read"}}, {"function": {"name": ["Bash"], "arguments": "{}"}}],
        [{"function": "Bash"}, {"function": {"name": "Read", "arguments": "{}"}}],
        [{"function": {"name": "Read", "arguments": "{}"}}, {"function": "Bash"}],
    ],
)
def test_a_call_that_says_two_things_cannot_be_read(deltas: list[dict[str, Any]]) -> None:
    """Clients may each take another of the two, so it is asked about as any tool's."""
    frames = [chunk({"tool_calls": [{"index": 0, "id": "b", "type": "function", **one}]}) for one in deltas]
    driven = run([*frames, chunk(None, "tool_calls"), DONE])

    assert [(c.name, c.arguments, bool(c.problem)) for c in driven.asked] == [("unknown:function", {}, True)]


def test_a_choice_without_a_number_is_the_first() -> None:
    """Pieces of one call are one call's where some chunks leave the choice's number out."""
    second = chunk(call(0, '"rm"}')).replace(b'"index": 0, "delta"', b'"delta"')
    frames = [chunk(call(0, '{"command": ', name="Bash", id="b")), second, chunk(None, "tool_calls"), DONE]

    assert [(c.name, c.arguments) for c in run(frames).asked] == [("Bash", {"command": "rm"})]
    assert run(frames).body == b"".join(frames)


def test_a_finish_before_the_call_is_complete_waits() -> None:
    """The call is judged with all its arguments, and the finish that is then told is true."""
    frames = [chunk(call(0, '{"a"', name="Bash", id="b")), chunk(None, "tool_calls"), chunk(call(0, ": 1}")), DONE]

    assert run(frames).asked[0].arguments == {"a": 1}
    assert finishes(run(frames).body) == [(0, "tool_calls")]
    assert finishes(run(frames, "Bash").body) == [(0, "stop")]
    assert run(frames[:-1], "Bash").dropped == []


def test_a_finish_before_the_call_begins_waits_too() -> None:
    """A finish that announces calls which have not come is told when the stream is over."""
    usage = b'data: {"id": "c-1", "choices": [], "usage": {"total_tokens": 3}}\n\n'
    frames = [chunk(None, "tool_calls"), chunk(BASH), usage, DONE]

    assert finishes(run(frames, "Bash").body) == [(0, "stop")]
    assert run(frames).body.endswith(usage + DONE)
    assert run([chunk(None, "tool_calls"), usage, DONE]).body == chunk(None, "tool_calls") + usage + DONE


def test_arguments_cut_off_by_the_length_limit() -> None:
    """A truncated call is asked about as unreadable; allowed, the stream is what it was."""
    usage = b'data: {"id": "c-1", "choices": [], "usage": {"total_tokens": 3}}\n\n'
    frames = [chunk(call(0, '{"a', name="Bash", id="b")), chunk(None, "length"), usage, DONE]

    assert "not JSON" in (run(frames).asked[0].problem or "")
    assert run(frames).body == b"".join(frames)
    assert finishes(run(frames, "Bash").body) == [(0, "length")]


def test_done_completes_a_call_without_finish() -> None:
    """Servers that forget the finish reason still say [DONE]."""
    frames = [chunk(BASH), DONE]

    assert run(frames).body == b"".join(frames)
    assert calls(run(frames, "Bash").body) == []


def test_what_would_change_a_judged_call_is_left_out() -> None:
    """Arguments behind the finish never reach a client that would add them."""
    late = chunk(call(0, '{"command": "rm"}'))
    driven = run([chunk(BASH), chunk(None, "tool_calls"), late, DONE])

    assert late not in driven.body
    assert len(driven.asked) == 1


def test_a_fault_drops_even_what_is_finished_late() -> None:
    """A stream that dies never lets a held call go, finished or not."""
    driven = run([chunk(call(0, '{"a"', name="Bash", id="b")), chunk(None, "tool_calls")], fault="it broke off")

    assert [drop.name for drop in driven.dropped] == ["Bash"]
    assert calls(driven.body) == []


def test_a_late_piece_does_not_ride_on_a_late_call() -> None:
    """A new call behind the finish is judged; what would change the judged one is not released with it."""
    frames = [
        chunk(BASH),
        chunk(None, "tool_calls"),
        chunk(call(0, '{"command": "rm"}')),
        chunk(call(1, "{}", name="Read", id="r")),
        DONE,
    ]
    body = run(frames).body

    assert b'"command' not in body
    assert [(entry["index"], entry["id"]) for entry in calls(body)] == [(0, "b"), (1, "r")]


def test_calls_in_no_list_are_judged_too() -> None:
    """Whatever stands where calls stand is asked about."""
    single = {"tool_calls": {"index": 0, "id": "b", "function": {"name": "Bash", "arguments": "{}"}}}
    for delta in (single, {"tool_calls": ["odd"]}):
        driven = run([chunk(delta), chunk(None, "tool_calls"), DONE], "Bash", "unknown:")

        assert len(driven.asked) == 1
        assert finishes(driven.body) == [(0, "stop")]


@given(
    texts=st.lists(st.text(st.sampled_from('{}"\\ab é😀\n')), min_size=1, max_size=20),
    others=st.lists(
        st.tuples(
            st.integers(0, 20),
            st.sampled_from(
                [
                    chunk({"content": "words"}),
                    chunk(call(1, "more", name="Read", id="r")),
                    chunk({**call(0, "x"), "content": "beside"}),
                    chunk(call(0, "y", id="z", name="Other")),
                    chunk({"tool_calls": call(0, "y")["tool_calls"] + call(0, "z")["tool_calls"]}),
                    chunk(call(0, "q", type="function", id="b")),
                    chunk(call(0, "q"), index=1),
                    b": ping\n\n",
                ]
            ),
        ),
        max_size=4,
    ),
    spaced=st.lists(st.booleans(), min_size=25, max_size=25),
)
def test_a_piece_says_the_same_however_it_is_written(
    texts: list[str], others: list[tuple[int, bytes]], spaced: list[bool]
) -> None:
    """Chunks that repeat each other but for a piece are read as those are that all look different."""
    pieces = [chunk(call(0, text)) for text in texts]
    for place, other in others:
        pieces.insert(min(place, len(pieces)), other)
    frames = [chunk(call(0, "", name="Bash", id="b", type="function")), *pieces]
    varied = [_spaced(frame, place) if spaced[place] else frame for place, frame in enumerate(frames)]
    end = [chunk({}, "tool_calls"), DONE]

    one, same = run([*frames, *end]), run([*varied, *end])

    assert one.asked == same.asked
    assert same.body.replace(b" ", b"") == one.body.replace(b" ", b"")


def _spaced(frame: bytes, width: int) -> bytes:
    """The same chunk with white space that no other has."""
    return frame.replace(b"data: {", b"data: {" + b" " * (width + 1), 1)
