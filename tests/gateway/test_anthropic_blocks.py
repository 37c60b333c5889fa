"""gateway.anthropic: blocks of types that nobody knows, blocks that are overtaken, and what calls must have."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import Mark, ProposedCall, Unreadable
from interpose.gateway.driving import Driven, drive_reply, drive_stream
from interpose.gateway.ledger import SessionLedger
from interpose.wire.sse import SseReader

REFUSED = Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))
ALLOWED = Verdict("a-1", "tool.call", "allowed")
START: dict[str, Any] = {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}
REASON: dict[str, Any] = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}}
END: dict[str, Any] = {"type": "message_stop"}


def events(*datas: dict[str, Any]) -> bytes:
    """The events as the API writes them."""
    return b"".join(f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode() for data in datas)


def block(index: int, kind: str, **members: Any) -> list[dict[str, Any]]:
    """A block of this type with an input, or a text."""
    piece = {"type": "input_json_delta", "partial_json": '{"command": "rm -rf x"}'}
    if kind == "text":
        piece = {"type": "text_delta", "text": "words"}
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": kind, **members}},
        {"type": "content_block_delta", "index": index, "delta": piece},
        {"type": "content_block_stop", "index": index},
    ]


def call(index: int, name: str = "Bash", call_id: str = "") -> list[dict[str, Any]]:
    """A block with a call."""
    return block(index, "tool_use", id=call_id or f"t{index}", name=name, input={})


def message(*blocks: dict[str, Any]) -> bytes:
    """A reply that is not streamed."""
    return json.dumps({"id": "m", "role": "assistant", "content": list(blocks), "stop_reason": "tool_use"}).encode()


def refusing(*names: str) -> Any:
    """A judge that refuses calls of these names, and all that cannot be read."""
    return lambda proposed: REFUSED if proposed.problem or proposed.name in names else ALLOWED


def datas(driven: Driven) -> list[dict[str, Any]]:
    """What the client's events say."""
    return [json.loads(event.data) for event in SseReader().feed(driven.body) if event.data]


def blocks_of(driven: Driven) -> list[dict[str, Any]]:
    """The blocks as a client keeps them: appended when they begin, looked up by their index from then on."""
    blocks: list[dict[str, Any]] = []
    for data in datas(driven):
        if data["type"] == "content_block_start":
            assert data["index"] == len(blocks)
            blocks.append({**data["content_block"], "said": ""})
        if data["type"] == "content_block_delta":
            delta = data["delta"]
            blocks[data["index"]]["said"] += delta.get("text", "") + delta.get("partial_json", "")
    return blocks


@pytest.mark.parametrize("kind", ["future_call", "bash", "tool_use_2", ""])
def test_a_block_of_an_unknown_type_is_a_call_that_cannot_be_read(kind: str) -> None:
    """It is held, judged and refused, streamed and whole."""
    members = {"id": "t0", "name": "Bash", "input": {}}
    streamed = drive_stream(ANTHROPIC, [events(START, *block(0, kind, **members), REASON, END)], refusing())
    whole = drive_reply(ANTHROPIC, message({"type": kind, **members}), refusing())

    for driven in (streamed, whole):
        (proposed,) = driven.asked
        assert (proposed.call_id, proposed.name, proposed.arguments) == ("t0", f"unknown:{kind}", {})
        assert "cannot read" in (proposed.problem or "")
        assert b"rm -rf" not in driven.body
        assert b"end_turn" in driven.body


@pytest.mark.parametrize("content", [None, 5, "text", {}, {"type": 5}])
def test_a_block_without_a_type_is_a_call_too(content: Any) -> None:
    """What is not known to be harmless is judged."""
    start = {"type": "content_block_start", "index": 0, "content_block": content}
    streamed = drive_stream(
        ANTHROPIC, [events(START, start, {"type": "content_block_stop", "index": 0}, REASON, END)], refusing()
    )
    whole = drive_reply(ANTHROPIC, message(content), refusing())

    assert [proposed.name for driven in (streamed, whole) for proposed in driven.asked] == ["unknown:", "unknown:"]


@pytest.mark.parametrize(
    "kind",
    [
        "text",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "mcp_tool_use",
        "mcp_tool_result",
        "web_search_tool_result",
        "bash_code_execution_tool_result",
        "container_upload",
        "compaction",
    ],
)
def test_what_the_model_says_and_the_provider_runs_leaves_as_it_came(kind: str) -> None:
    """Nobody is asked, in a stream and in a whole reply."""
    stream = events(START, *block(0, kind, name="bash"), REASON, END)
    whole = message({"type": kind, "name": "bash"})

    assert (drive_stream(ANTHROPIC, [stream], refusing()).body, drive_reply(ANTHROPIC, whole, refusing()).body) == (
        stream,
        whole,
    )


def test_an_unknown_block_at_the_start_of_the_message_is_dropped() -> None:
    """A client may take it for the message's first block."""
    begun = {**START, "message": {**START["message"], "content": [{"type": "future_call", "id": "t0"}]}}
    driven = drive_stream(ANTHROPIC, [events(begun, REASON, END)], refusing())

    assert [(dropped.call_id, dropped.name) for dropped in driven.dropped] == [("t0", "future_call")]
    assert b"future_call" not in driven.body


def test_a_call_without_a_name_cannot_be_read() -> None:
    """A rule for tools cannot match it, so it is unknown."""
    nameless = {"type": "tool_use", "id": "t0", "input": {"command": "ls"}}
    streamed = drive_stream(ANTHROPIC, [events(START, *block(0, "tool_use", id="t0"), REASON, END)], refusing())
    whole = drive_reply(ANTHROPIC, message(nameless), refusing())

    for driven in (streamed, whole):
        assert [(one.name, one.problem) for one in driven.asked] == [("unknown:tool_use", "the call names no tool")]


def test_a_second_call_with_the_same_id_cannot_be_read() -> None:
    """A result could answer either; the first one stays what it is."""
    streamed = drive_stream(ANTHROPIC, [events(START, *call(0), *call(1, call_id="t0"), REASON, END)], refusing())
    same = {"type": "tool_use", "id": "t0", "name": "Bash", "input": {}}
    whole = drive_reply(ANTHROPIC, message(same, same), refusing())

    for driven in (streamed, whole):
        first, second = driven.asked
        assert first.problem is None
        assert "another call" in (second.problem or "")
        assert (first.call_id, second.call_id) == ("t0", "t0#2")
        assert driven.body.count(b'"tool_use", "id"') + driven.body.count(b'"tool_use","id"') == 1


def test_a_refused_call_without_an_index_is_told_without_one() -> None:
    """Nothing is put in that the provider does not say."""
    bare = [{name: value for name, value in data.items() if name != "index"} for data in call(0)]
    driven = drive_stream(ANTHROPIC, [events(START, *bare, REASON, END)], refusing("Bash"))

    assert not any("index" in data for data in datas(driven))


@pytest.mark.parametrize("refused", [(), ("Bash",)])
def test_a_block_that_overtakes_a_held_call_takes_its_place(refused: tuple[str, ...]) -> None:
    """Clients append blocks in the order in which they begin, and look them up by index."""
    first, text = call(0), block(1, "text", text="")
    frames = [START, first[0], text[0], text[1], first[1], text[1], first[2], text[2], *call(2, "Read"), REASON, END]
    seen: list[int] = []

    def judge(proposed: ProposedCall) -> Verdict:
        seen.append(len(seen))
        return REFUSED if proposed.name in refused else ALLOWED

    driven = drive_stream(ANTHROPIC, [events(frame) for frame in frames], judge)

    blocks = blocks_of(driven)
    assert [one["type"] for one in blocks] == ["text", "text" if refused else "tool_use", "tool_use"]
    assert blocks[0]["said"] == "wordswords"
    assert (blocks[1]["said"].startswith("[interpose]"), blocks[2]["name"]) == (bool(refused), "Read")
    stops = [data["index"] for data in datas(driven) if data["type"] == "content_block_stop"]
    assert sorted(stops) == [0, 1, 2]


@given(data=st.data(), kinds=st.lists(st.sampled_from(["text", "Bash", "Read"]), min_size=1, max_size=5))
def test_however_blocks_interleave_their_indexes_are_counted_from_nought(data: st.DataObject, kinds: list[str]) -> None:
    """Each block begins once, in order, and has all of its text; what is not overtaken leaves as it came."""
    waiting = [block(at, "text") if kind == "text" else call(at, kind) for at, kind in enumerate(kinds)]
    begun, frames = 0, []
    while any(waiting):
        ready = [at for at, left in enumerate(waiting) if left and at <= begun]
        at = data.draw(st.sampled_from(ready))
        begun = max(begun, at + 1)
        frames.append(waiting[at].pop(0))
    driven = drive_stream(ANTHROPIC, [events(START, *frames, REASON, END)], refusing("Bash"))

    blocks = blocks_of(driven)
    assert len(blocks) == len(kinds)
    assert sorted(one.get("name", "text") for one in blocks) == sorted("text" if k == "Bash" else k for k in kinds)
    assert all(one["said"] for one in blocks)


def test_odd_indexes_that_nobody_overtakes_are_the_providers() -> None:
    """Renumbering is for blocks that wait, not for what a server chose."""
    stream = events(START, *block(3, "text", text=""), *call(7), *block(3, "text", text=""), REASON, END)

    assert drive_stream(ANTHROPIC, [stream], refusing()).body == stream


def test_a_history_with_calls_put_first_keeps_our_line_as_text() -> None:
    """The model's reply ended at the line; a call before it has its result behind the whole message only."""
    line, entry = (
        "[interpose] Bash was refused by rule: no",
        {"type": "tool_use", "id": "t0", "name": "Bash", "input": {}},
    )
    ran = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"changed": 1}}
    told, prompt = {"type": "text", "text": line}, {"role": "user", "content": "go"}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "out"}]}
    later = [{"role": "assistant", "content": [told]}, {"role": "user", "content": "more"}]

    def model_history(*blocks: dict[str, Any]) -> list[Any]:
        messages = [prompt, {"role": "assistant", "content": list(blocks)}, result, *later]
        view = ANTHROPIC.read(json.dumps({"messages": messages}).encode())
        ledger = SessionLedger()
        for nth in range(2):
            ledger.keep_mark(view.root, line, nth, Mark(entry, "no", ends_round=True))
        ledger.keep_original("t1", {"changed": 1}, {"own": 1})
        restored: list[Any] = json.loads(view.rewritten(ledger, None).body)["messages"]
        return restored

    first, ordered = model_history(ran, told), model_history(told, ran)
    own = {**ran, "input": {"own": 1}}
    answer = {"type": "tool_result", "tool_use_id": "t0", "content": "no", "is_error": True}
    assert first[:3] == [prompt, {"role": "assistant", "content": [own, told]}, result]
    assert ordered[1:4] == [
        {"role": "assistant", "content": [entry]},
        {"role": "user", "content": [answer]},
        {"role": "assistant", "content": [own]},
    ]
    assert first[3] == ordered[5] == {"role": "assistant", "content": [entry]}


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"content_block_start","index":0,"content_block":{"type":"text","type":"tool_use","id":"t0"}}',
        (
            b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""},'
            b'"content_block":{"type":"tool_use","id":"t0"}}'
        ),
        b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","type":"tool_use"}}',
        b'{"type":"message_start","message":{"content":[],"content":[{"type":"tool_use","id":"t0"}]}}',
    ],
)
def test_what_looks_plain_at_first_hides_nothing(data: bytes) -> None:
    """A block or a message that says twice what it is can be read in two ways, and does not leave."""
    machine, driven = ANTHROPIC.stream(), Driven()
    with pytest.raises(Unreadable, match="twice"):
        driven.drive(machine.feed(b"data: " + data + b"\n\n"), refusing())
    assert driven.body == b""
