"""gateway.proposed: what a call must have, in chat completions and responses too; calls where none belong."""

import json
from typing import Any

import pytest

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.api import ProposedCall
from interpose.gateway.chat import CHAT
from interpose.gateway.driving import Driven, drive_reply, drive_stream
from interpose.gateway.proposed import CallIds, place_of, with_name
from interpose.gateway.responses import RESPONSES

REFUSED = Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))
ALLOWED = Verdict("a-1", "tool.call", "allowed")


def chat(*entries: Any) -> tuple[Driven, Driven]:
    """A reply with these tool calls, streamed and whole; what cannot be read is refused."""
    message = {"role": "assistant", "content": None, "tool_calls": list(entries)}
    numbered = [{"index": place, **entry} for place, entry in enumerate(entries)]
    streamed = [
        {"choices": [{"index": 0, "delta": {**message, "tool_calls": numbered}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    return (
        drive_stream(CHAT, [_event(one) for one in streamed] + [b"data: [DONE]\n\n"], judge),
        drive_reply(CHAT, json.dumps(whole).encode(), judge),
    )


def responses(*items: Any) -> tuple[Driven, Driven]:
    """As `chat`, with these output items."""
    whole = {"id": "r", "status": "completed", "output": list(items)}
    done = [
        {"type": f"response.output_item.{kind}", "output_index": place, "item": item}
        for place, item in enumerate(items)
        for kind in ("added", "done")
    ]
    events = [*done, {"type": "response.completed", "response": whole}]
    return (
        drive_stream(RESPONSES, [_event(one) for one in events], judge),
        drive_reply(RESPONSES, json.dumps(whole).encode(), judge),
    )


def judge(call: ProposedCall) -> Verdict:
    """Refuses what cannot be read, and `rm`."""
    return REFUSED if call.problem or "rm" in str(call.arguments) else ALLOWED


def function(call_id: str = "c1", name: Any = "Bash", arguments: str = "{}") -> dict[str, Any]:
    """A tool call of a chat message."""
    named = {} if name is None else {"name": name}
    return {"id": call_id, "type": "function", "function": {**named, "arguments": arguments}}


def item(place: int, call_id: str = "c1", **members: Any) -> dict[str, Any]:
    """A function call of a response."""
    given = {"name": "Bash", "arguments": "{}", **members}
    return {"type": "function_call", "id": f"fc_{place}", "call_id": call_id, "status": "completed", **given}


def _event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def test_a_chat_call_of_an_unknown_kind_is_named_so() -> None:
    """It is a problem under the name of its kind, streamed and whole."""
    for driven in chat({"id": "c1", "type": "future", "future": {"name": "Bash", "input": "rm -rf x"}}):
        (call,) = driven.asked
        assert (call.call_id, call.name, call.arguments) == ("c1", "unknown:future", {})
        assert "'future'" in (call.problem or "")
        assert b"rm -rf" not in driven.body


@pytest.mark.parametrize("name", [None, "", ["Bash"], 5, {"Bash": 1}, True])
def test_a_call_without_a_name_cannot_be_read(name: Any) -> None:
    """No rule for a tool could match it; programs turn what is no text into names of their own kinds."""
    custom = {"id": "c1", "type": "custom", "custom": {"name": name, "input": "x"}}
    freeform = {"type": "custom_tool_call", "id": "ct_1", "call_id": "c1", "name": name, "input": "x"}
    found = [
        (call.name, call.problem)
        for driven in (
            *chat(function(name=name)),
            *chat(custom),
            *responses(item(0, name=name)),
            *responses(freeform),
        )
        for call in driven.asked
    ]

    kinds = ["function", "custom", "function_call", "custom_tool_call"]
    assert found == [(f"unknown:{kind}", "the call names no tool") for kind in kinds for _ in range(2)]


def test_a_chat_call_of_two_kinds_cannot_be_read() -> None:
    """One client runs the function, another one the custom tool."""
    for driven in chat({**function(name="Read"), "custom": {"name": "Bash", "input": "rm"}}):
        (call,) = driven.asked
        assert (call.name, call.problem) == ("unknown:function", "the call is of two kinds at once")


@pytest.mark.parametrize(
    ("index", "place"), [(0, 0), (3.0, 3), ("3", 3), ("03", "03"), (True, "True"), (0.5, "0.5"), ([], "[]")]
)
def test_a_place_is_the_same_however_it_is_written(index: Any, place: int | str) -> None:
    """What is no number at all is a place of its own."""
    assert place_of(index) == place


def test_a_second_call_with_the_same_id_cannot_be_read() -> None:
    """The first one stays what it is; the second one does not leave."""
    for driven in (
        *chat(function(), {**function(arguments='{"a": 1}'), "index": 1}),
        *responses(item(0), item(1, arguments='{"a": 1}')),
    ):
        first, second = driven.asked
        assert (first.problem, second.arguments) == (None, {})
        assert "another call" in (second.problem or "")
        assert driven.over[0].refused[0].entry is None
        assert (driven.over[0].released, len(driven.over[0].refused)) == (1, 1)


def test_each_choice_has_ids_of_its_own() -> None:
    """Servers that count calls begin anew with each choice."""
    choices = [{"index": at, "delta": {"tool_calls": [{"index": 0, **function()}]}} for at in (0, 1)]
    ends: list[dict[str, Any]] = [{"index": at, "delta": {}, "finish_reason": "tool_calls"} for at in (0, 1)]
    events = [_event({"choices": [one]}) for one in (*choices, *ends)]

    assert [call.problem for call in drive_stream(CHAT, events, judge).asked] == [None, None]


def test_ids_that_are_missing_stand_for_nothing() -> None:
    """Calls without an id, or with one that is not the provider's, are all let be."""
    ids = CallIds()
    unnamed, derived = ProposedCall("", "Bash", {}), ProposedCall("fc_1", "Bash", {})

    assert [ids.own(unnamed), ids.own(unnamed), ids.own(derived, ""), ids.own(derived, "")] == [
        unnamed,
        unnamed,
        derived,
        derived,
    ]
    assert with_name(unnamed, "kind") is unnamed
    assert with_name(ProposedCall("", " \t", {}), "kind").problem == "the call names no tool"


def test_each_call_is_judged_under_an_id_of_its_own() -> None:
    """The journal and the verdicts of one are not the other's."""
    ids, call = CallIds(), ProposedCall("c1", "Bash", {"a": 1})

    assert [ids.own(call).call_id for _ in range(3)] == ["c1", "c1#2", "c1#3"]


@pytest.mark.parametrize("delta", [None, {}, {"content": ""}])
def test_calls_of_a_message_in_a_chunk_are_judged(delta: Any) -> None:
    """Some clients run them; they leave where calls belong, or not at all."""
    calls = [function("c1", arguments='{"command": "rm -rf x"}'), function("c2")]
    said = {"index": 0, "message": {"role": "assistant", "tool_calls": calls}, "finish_reason": "tool_calls"}
    driven = drive_stream(CHAT, [_event({"choices": [{**said, "delta": delta}]}), b"data: [DONE]\n\n"], judge)

    assert [call.call_id for call in driven.asked] == ["c1", "c2"]
    assert b"rm -rf" not in driven.body
    assert b'"message"' not in driven.body
    assert driven.body.count(b'"c2"') == 1


def test_the_older_call_of_a_message_in_a_chunk_is_judged_too() -> None:
    """As in a delta."""
    message = {"role": "assistant", "function_call": {"name": "Bash", "arguments": '{"command": "rm -rf x"}'}}
    said = {"index": 0, "message": message, "finish_reason": "function_call"}
    driven = drive_stream(CHAT, [_event({"choices": [said]}), b"data: [DONE]\n\n"], judge)

    assert len(driven.asked) == 1
    assert b"rm -rf" not in driven.body
