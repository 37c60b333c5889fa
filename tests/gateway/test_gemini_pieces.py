"""gateway.gemini: calls whose arguments come in pieces, and single objects where lists are expected."""

import json
from typing import Any

import pytest

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.api import ProposedCall
from interpose.gateway.driving import Driven, drive_reply, drive_stream
from interpose.gateway.gemini import GEMINI

REFUSED = Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))
ALLOWED = Verdict("a-1", "tool.call", "allowed")
PATCHED = Verdict("a-1", "tool.call", "patched", arguments={"n": 1})


def chunk(*parts: Any, **candidate: Any) -> dict[str, Any]:
    """A chunk with one candidate."""
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, **candidate}]}


def piece(*partial: dict[str, Any], goes_on: bool = True, **members: Any) -> dict[str, Any]:
    """A part with one piece of a call."""
    arguments = {"partialArgs": list(partial)} if partial else {}
    return {"functionCall": {**members, **arguments, **({"willContinue": True} if goes_on else {})}}


def text(path: str, said: str, *, goes_on: bool = False) -> dict[str, Any]:
    """One piece of the arguments."""
    return {"jsonPath": path, "stringValue": said, **({"willContinue": True} if goes_on else {})}


NAME = piece(name="Bash", id="c1")
FIRST = piece(text("$.command", "rm -rf ", goes_on=True))
SECOND = piece(text("$.command", "build"))
LAST = piece(goes_on=False)
END = chunk({"text": ""}, finishReason="STOP")


def run(*chunks: dict[str, Any], verdict: Verdict = REFUSED, fault: str | None = None) -> Driven:
    """The chunks as events through the codec, each call judged so."""
    frames = [b"data: " + json.dumps(one).encode() + b"\r\n\r\n" for one in chunks]
    return drive_stream(GEMINI, frames, lambda call: verdict, fault)


def parts(driven: Driven) -> list[Any]:
    """The parts that the client has in the end."""
    lines = [line[6:] for line in driven.body.split(b"\r\n") if line.startswith(b"data: ")]
    told = [json.loads(line) for line in lines]
    every = [part for one in told for c in one.get("candidates", ()) for part in c["content"]["parts"]]
    return [part for part in every if part != {"text": ""}]


def asked(driven: Driven) -> list[tuple[str, str, Any]]:
    """What was asked for."""
    return [(call.call_id, call.name, call.arguments) for call in driven.asked]


def test_pieces_are_one_call_that_is_held_until_it_is_complete() -> None:
    """It is judged as a whole, and leaves as it came, or not at all; a text between them does not wait."""
    chunks = [chunk(NAME), chunk(FIRST), chunk({"text": "so"}), chunk(SECOND), chunk(LAST), END]
    allowed, refused = run(*chunks, verdict=ALLOWED), run(*chunks)

    assert asked(allowed) == asked(refused) == [("c1", "Bash", {"command": "rm -rf build"})]
    assert parts(allowed) == [{"text": "so"}, NAME, FIRST, SECOND, LAST]
    assert [list(part) for part in parts(refused)] == [["text"], ["text"]]
    assert "was refused by rule" in parts(refused)[1]["text"]
    assert b"functionCall" not in refused.body
    assert parts(run(*chunks, verdict=PATCHED)) == [
        {"text": "so"},
        {"functionCall": {"name": "Bash", "id": "c1", "args": {"n": 1}}},
    ]


def test_no_piece_leaves_before_the_verdict() -> None:
    """Each chunk leaves, without the piece."""
    machine = GEMINI.stream()
    driven = Driven()
    for one in (chunk(NAME), chunk(FIRST), chunk(SECOND)):
        driven.drive(machine.feed(b"data: " + json.dumps(one).encode() + b"\r\n\r\n"), lambda call: ALLOWED)

    assert parts(driven) == []
    assert driven.body.count(b"data: ") == 3


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        ([{"jsonPath": "$.n", "numberValue": 1.5}], {"n": 1.5}),
        ([{"jsonPath": "$.b", "boolValue": False}], {"b": False}),
        ([{"jsonPath": "$.x", "nullValue": "NULL_VALUE"}], {"x": None}),
        ([text("$.a.b", "1"), text("$.a.c", "2")], {"a": {"b": "1", "c": "2"}}),
        ([text("$.l[0]", "1"), text("$.l[1].k", "2")], {"l": ["1", {"k": "2"}]}),
        ([text("$['odd name']", "1"), text('$["other"]', "2")], {"odd name": "1", "other": "2"}),
        ([{"json_path": "$.s", "string_value": "snake"}], {"s": "snake"}),
    ],
)
def test_paths_tell_where_pieces_belong(pieces: list[dict[str, Any]], arguments: Any) -> None:
    """Numbers, truths, nothing, objects and lists are put together."""
    driven = run(chunk(piece(*pieces, name="Bash", goes_on=False)), END)

    assert [(call.arguments, call.problem) for call in driven.asked] == [(arguments, None)]


@pytest.mark.parametrize(
    "pieces",
    [
        [text("command", "no root")],
        [text("$", "all of it")],
        [text("$[0]", "a list")],
        [text("$..command", "any depth")],
        [text("$.command", "ls"), text("$.command", "rm")],
        [text("$.command", "ls"), text("$.command.x", "rm")],
        [text("$.l[3]", "a gap")],
        [{"jsonPath": "$.x"}],
        [{"jsonPath": "$.x", "stringValue": "a", "numberValue": 1}],
        [text("$.command", "never ends", goes_on=True)],
        ["odd"],
    ],
)
def test_pieces_that_do_not_fit_together_are_a_call_that_cannot_be_read(pieces: list[Any]) -> None:
    """Nothing is guessed."""
    (call,) = run(chunk(piece(*pieces, name="Bash", goes_on=False)), END).asked

    assert (call.name, call.arguments) == ("Bash", {})
    assert "do not fit together" in (call.problem or "")


def test_pieces_that_name_no_tool_are_one_unknown_call() -> None:
    """All of them are refused at once."""
    driven = run(chunk(FIRST), chunk(SECOND), chunk(LAST), END)

    assert [(call.name, call.problem) for call in driven.asked] == [("unknown:functionCall", "the call names no tool")]
    assert len(parts(driven)) == 1


def test_a_call_that_another_one_interrupts_cannot_be_read() -> None:
    """The other one is judged for itself."""
    whole = {"functionCall": {"name": "Read", "id": "c2", "args": {"p": 1}}}
    first, second = run(chunk(NAME), chunk(whole), END).asked

    assert "another call began" in (first.problem or "")
    assert (second.name, second.arguments, second.problem) == ("Read", {"p": 1}, None)


def test_a_reply_that_ends_before_the_call_is_complete_refuses_it() -> None:
    """The end is told behind the refusal, also where its chunk has no content, and in a reply that is not streamed."""
    bare = {"candidates": [{"finishReason": "STOP", "index": 0}]}
    for end in (END, bare):
        driven = run(chunk(NAME), chunk(FIRST), end)
        assert [call.problem for call in driven.asked] == ["the reply ended before the call was complete"]
        assert "was refused" in parts(driven)[-1]["text"]
        assert b'"STOP"' in driven.body
    whole = drive_reply(GEMINI, json.dumps(chunk(NAME, FIRST)).encode(), lambda call: REFUSED)
    assert [call.problem for call in whole.asked] == ["the reply ended before the call was complete"]


@pytest.mark.parametrize("fault", [None, "it broke off"])
def test_a_stream_that_dies_in_the_middle_drops_the_call(fault: str | None) -> None:
    """The client is told of it."""
    driven = run(chunk(NAME), chunk(FIRST), fault=fault)

    assert [(drop.call_id, drop.name) for drop in driven.dropped] == [("c1", "Bash")]
    assert (fault or "before the call was complete").encode() in driven.body
    assert not driven.asked


def test_a_second_call_with_the_same_id_cannot_be_read() -> None:
    """Calls without an id of their own are told apart by their places."""
    named = {"functionCall": {"name": "Read", "id": "c1", "args": {}}}
    plain = {"functionCall": {"name": "Read", "args": {}}}

    assert [bool(call.problem) for call in run(chunk(named, named), END).asked] == [False, True]
    assert [bool(call.problem) for call in run(chunk(plain, plain), END).asked] == [False, False]


def test_a_single_object_is_a_list_of_one() -> None:
    """Google's readers take it so, in candidates and in parts."""
    part = {"functionCall": {"name": "Bash", "id": "c1", "args": {}}}
    single = {"candidates": {"content": {"role": "model", "parts": part}, "finishReason": "STOP"}}
    seen: list[ProposedCall] = []

    def judge(call: ProposedCall) -> Verdict:
        seen.append(call)
        return REFUSED if len(seen) < 3 else ALLOWED

    body = json.dumps(single).encode()
    assert b"functionCall" not in drive_reply(GEMINI, body, judge).body
    assert b"functionCall" not in drive_stream(GEMINI, [b"data: " + body + b"\n\n"], judge).body
    assert drive_reply(GEMINI, body, judge).body == body
    assert [call.name for call in seen] == ["Bash"] * 3


@pytest.mark.parametrize("other", [{"id": "c2"}, {"name": "Read"}, {"name": ["Bash"]}])
def test_a_piece_with_another_name_or_id_is_another_call(other: dict[str, Any]) -> None:
    """What was begun before it never is complete."""
    first, *_ = asked_calls = run(chunk(NAME), chunk(piece(text("$.command", "rm"), **other)), END).asked

    assert (len(asked_calls), first.name, first.arguments) == (2, "Bash", {})
    assert first.problem == "another call began before it was complete"


def test_a_piece_may_repeat_the_name_and_the_id() -> None:
    """It is one of the same call."""
    last = piece(text("$.command", "rm"), goes_on=False, name="Bash", id="c1")

    assert asked(run(chunk(NAME), chunk(last), END)) == [("c1", "Bash", {"command": "rm"})]
