"""gateway.responses.stream: what providers should not send and do, and how events stay coherent."""

import json
import re
from itertools import count, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.api import Onward, ProposedCall
from interpose.gateway.driving import Driven, drive_stream
from interpose.gateway.responses import RESPONSES
from interpose.testing import responses
from interpose.testing.script import Reply, Text, ToolUse
from tests.gateway.apis import datas_of, message_of

ALLOWED = Verdict("a-1", "tool.call", "allowed")
REFUSED = Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))
LINE = "[interpose] {} was refused by rule: no"


class Events:
    """Makes numbered events."""

    def __init__(self) -> None:
        self._numbers = count()

    def __call__(self, kind: str, **fields: Any) -> bytes:
        """One event as the API writes it."""
        data = {"type": f"response.{kind}", "sequence_number": next(self._numbers), **fields}
        return f"event: response.{kind}\ndata: {json.dumps(data)}\n\n".encode()

    def call(self, index: int, arguments: str = "{}", **item: Any) -> list[bytes]:
        """A whole function call."""
        done = {"type": "function_call", "id": f"fc_{index}", "call_id": f"c{index}", "name": "Bash", **item}
        place = {"output_index": index, "item_id": done["id"]}
        return [
            self("output_item.added", output_index=index, item={**done, "arguments": ""}),
            self("function_call_arguments.delta", delta=arguments, **place),
            self("function_call_arguments.done", arguments=arguments, **place),
            self("output_item.done", output_index=index, item={**done, "arguments": arguments}),
        ]

    def end(self, *output: Any, kind: str = "completed") -> bytes:
        """The response at the end."""
        return self(kind, response={"id": "resp_1", "status": kind, "output": list(output)})


def run(frames: list[bytes], *refused: str, patched: dict[str, Any] | None = None) -> Driven:
    """The frames through the codec; calls of the names given are refused, or all get the arguments given."""

    def judge(call: ProposedCall) -> Verdict:
        if call.name in refused:
            return REFUSED
        return ALLOWED if patched is None else Verdict("a-1", "tool.call", "patched", arguments=patched)

    return drive_stream(RESPONSES, frames, judge)


def item_of(frame: bytes) -> Any:
    """The item of an event."""
    return json.loads(frame.split(b"data: ")[1])["item"]


@pytest.mark.parametrize("seen", ["delta", "arguments.done", "added", "done-id"])
def test_events_that_say_different_things_are_a_problem(seen: str) -> None:
    """Clients read different events of a call: one that says something else hides nothing."""
    make = Events()
    added, delta, done_text, done = make.call(0, '{"command": "ls"}')
    match seen:
        case "delta":
            delta = delta.replace(b"ls", b"rm")
        case "arguments.done":
            done_text = done_text.replace(b"ls", b"rm")
        case "added":
            added = added.replace(b'"arguments": ""', b'"arguments": "{}"')
        case _:
            done = done.replace(b'"c0"', b'"c9"')
    (call,) = run([added, delta, done_text, done]).asked

    assert "different things" in (call.problem or "")
    assert (call.name, call.arguments) == ("Bash", {})


@pytest.mark.parametrize("seen", ["added", "arguments.done", "done", "namespace"])
def test_events_that_name_different_tools_are_any_tools_call(seen: str) -> None:
    """A client may take the name from any of them: whoever asks about one of its tools is asked."""
    make = Events()
    added, delta, done_text, done = make.call(0, '{"command": "rm"}')
    match seen:
        case "added":
            added = added.replace(b"Bash", b"Read")
        case "arguments.done":
            done_text = done_text.replace(b'"arguments": "', b'"name": "Read", "arguments": "')
        case "done":
            done = done.replace(b"Bash", b"Read")
        case _:
            added = added.replace(b'"name"', b'"namespace": "mcp__s", "name"')
    (call,) = run([added, delta, done_text, done]).asked

    assert (call.name, call.arguments) == ("unknown:function_call", {})
    assert "different things" in (call.problem or "")


def test_a_name_that_the_arguments_repeat_is_no_problem() -> None:
    """The provider names the tool there too, with its namespace or without."""
    for name in (b"Bash", b"mcp__s__Bash"):
        make = Events()
        added, delta, text, done = make.call(0)
        added, done = (one.replace(b'"name"', b'"namespace": "mcp__s", "name"') for one in (added, done))
        text = text.replace(b'"arguments": "', b'"name": "%s", "arguments": "' % name)

        assert [(call.name, call.problem) for call in run([added, delta, text, done]).asked] == [("mcp__s__Bash", None)]


@pytest.mark.parametrize("same", [("id", "call_id"), ("id",), ("call_id",)])
def test_a_call_that_has_another_name_at_the_end_is_any_tools_call(same: tuple[str, ...]) -> None:
    """Some clients read the items as they are done, some the response at the end, some a little of both."""
    make = Events()
    frames = make.call(0, '{"command": "ls"}')
    item = {**item_of(frames[3]), "name": "Read"}
    item |= {name: "other" for name in ("id", "call_id") if name not in same}
    driven = run([*frames, make.end(item)], "unknown:function_call")

    assert [call.name for call in driven.asked] == ["Bash", "unknown:function_call"]
    assert [one["type"] for one in datas_of("responses", driven.body)[-1]["response"]["output"]] == ["message"]


def test_an_index_is_the_same_however_it_is_written() -> None:
    """To JavaScript 0 and 0.0 are one place, so a piece there is one of the same call."""
    make = Events()
    added, delta, done_text, done = make.call(0, '{"command": "ls"}')
    late = delta.replace(b'"output_index": 0', b'"output_index": 0.0')

    assert late not in run([added, delta, done_text, done, late]).body
    assert run([added, late, done_text, done]).asked[0].arguments == {"command": "ls"}


def test_a_call_that_is_announced_as_something_else_is_judged() -> None:
    """An item that turns into a call, or a call that turns into a text, is asked about before it leaves."""
    make = Events()
    message = {"type": "message", "id": "msg_0", "role": "assistant", "content": []}
    text = [make("output_item.added", output_index=0, item=message), make.call(0)[3]]
    call = [*make.call(1)[:3], make("output_item.done", output_index=1, item=message)]

    assert [asked.name for asked in run(text).asked] == ["Bash"]
    assert b"function_call" not in run(text, "Bash").body
    (asked,) = run(call).asked
    assert "'message'" in (asked.problem or "")
    assert b"function_call" not in run(call, "unknown:message").body


def test_a_call_that_nobody_announced_is_held() -> None:
    """Deltas without an item wait for it; without an end they are dropped and an error says so."""
    frames = Events().call(0)[1:]

    assert run(frames).body == b"".join(frames)
    cut = run(frames[:2])
    assert datas_of("responses", cut.body)[-1]["type"] == "error"
    assert b"arguments" not in cut.body


def test_the_response_at_the_end_is_judged_where_it_says_something_new() -> None:
    """A call that was never streamed, or that says something else at the end, is asked about there."""
    make = Events()
    frames = make.call(0, '{"command": "ls"}')
    same = item_of(frames[3])
    other = {**same, "arguments": '{"command": "rm"}'}
    unseen = {**same, "id": "fc_7", "call_id": "c7", "name": "Read"}

    assert [call.call_id for call in run([*frames, make.end(same, unseen)]).asked] == ["c0", "c7"]
    assert [call.arguments for call in run([*frames, make.end(other)]).asked][1] == {"command": "rm"}
    final = datas_of("responses", run([*frames, make.end(same, unseen)], "Read").body)[-1]["response"]["output"]
    assert [item["type"] for item in final] == ["function_call", "message"]
    assert final[1]["content"][0]["text"] == LINE.format("Read")


def test_a_refused_call_is_refused_in_the_end_too() -> None:
    """The response at the end has the message that was streamed, whatever the provider repeats there."""
    make = Events()
    frames = make.call(0, '{"command": "rm"}')
    item = {**item_of(frames[3]), "arguments": '{"command": "ls"}'}
    driven = run([*frames, make.end(item)], "Bash")

    assert len(driven.asked) == 1
    datas = datas_of("responses", driven.body)
    assert datas[-1]["response"]["output"] == [datas[-2]["item"]]


def test_an_end_before_a_call_is_complete() -> None:
    """Completed: the call is dropped and the client told. Incomplete: the call is dropped out of the response too."""
    make = Events()
    frames = make.call(0)
    item = item_of(frames[3])
    completed = run([*frames[:2], make.end(item)])
    incomplete = run([*frames[:2], make.end(item, kind="incomplete")])

    assert [drop.name for drop in completed.dropped] == [drop.name for drop in incomplete.dropped] == ["Bash"]
    assert datas_of("responses", completed.body)[-1]["type"] == "error"
    assert datas_of("responses", incomplete.body)[-1]["response"]["output"] == []


def test_what_comes_behind_a_judged_call_of_the_same_item_is_left_out() -> None:
    """A late delta cannot change what was judged; a new item with the index is another call."""
    make = Events()
    frames = make.call(0)
    late = make("function_call_arguments.delta", output_index=0, item_id="fc_0", delta="x")
    again = make.call(0, '{"again": 1}', call_id="c9")

    assert run([*frames, late]).body == b"".join(frames)
    assert [call.arguments for call in run([*frames, *again]).asked] == [{}, {"again": 1}]
    assert [drop.reason for drop in run([frames[0], *again]).dropped] == [
        "another item with its index began before it was complete"
    ]


@given(order=st.permutations([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]), refused=st.sets(st.sampled_from("AB")))
@settings(max_examples=60, deadline=None)
def test_interleaved_items_are_told_apart(order: list[int], refused: set[str]) -> None:
    """However the events of two calls and a text mix, each call is judged whole and the text never waits."""
    make = Events()
    text = [make("output_text.delta", output_index=2, item_id="msg_2", content_index=0, delta=str(n)) for n in range(4)]
    queues = [make.call(0, '{"n": 0}', name="A"), make.call(1, '{"n": 1}', name="B"), text]
    stream = RESPONSES.stream()
    driven = Driven()
    for number, lane in enumerate(order):
        frame = re.sub(rb'number": \d+', b'number": %d' % number, queues[lane].pop(0))
        written = len(driven.body)
        driven.drive(stream.feed(frame), lambda call: REFUSED if call.name in refused else ALLOWED)
        assert lane != 2 or len(driven.body) > written

    assert sorted((call.name, call.arguments["n"]) for call in driven.asked) == [("A", 0), ("B", 1)]
    assert [(name, f'"{name}"'.encode() in driven.body) for name in "AB"] == [
        (name, name not in refused) for name in "AB"
    ]
    numbers = [data["sequence_number"] for data in datas_of("responses", driven.body)]
    assert len(numbers) == len(set(numbers))


def test_events_without_numbers_and_names_stay_so() -> None:
    """Servers that leave them out get no others put in."""
    frames = [b"data: " + frame.split(b"data: ")[1] for frame in Events().call(0)]
    frames = [frame.replace(b'"sequence_number": %d, ' % at, b"") for at, frame in enumerate(frames)]
    body = run(frames, "Bash").body

    assert b"sequence_number" not in body
    assert b"event:" not in body
    assert LINE.format("Bash").encode() in body


ITEMS: list[tuple[dict[str, Any], str, dict[str, Any] | None]] = [
    ({"type": "function_call", "name": "T", "namespace": "mcp__S", "arguments": '{"a": 1}'}, "mcp__S__T", {"a": 1}),
    ({"type": "function_call", "name": "T", "namespace": "mcp__S__", "arguments": ""}, "mcp__S__T", {}),
    ({"type": "function_call", "name": "T", "arguments": {"a": 1}}, "T", {"a": 1}),
    ({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"}, "apply_patch", {"input": "*** Begin"}),
    ({"type": "custom_tool_call", "name": "apply_patch", "input": None}, "apply_patch", None),
    ({"type": "custom_tool_call", "name": "exec", "input": "await tools.x()"}, "exec", None),
    (
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls", "-l"], "env": {}}},
        "local_shell",
        {"command": ["ls", "-l"], "env": {}},
    ),
    ({"type": "shell_call", "action": {"commands": ["ls"]}}, "shell", {"command": "ls"}),
    (
        {"type": "shell_call", "action": {"commands": ["cat <<E", "rm -r x"]}},
        "shell",
        {"command": "sh -c 'cat <<E'\nsh -c 'rm -r x'"},
    ),
    ({"type": "shell_call", "action": {"commands": "ls"}}, "shell", None),
    ({"type": "shell_call"}, "shell", None),
    (
        {"type": "apply_patch_call", "operation": {"type": "update_file", "path": "a", "diff": "@@\n-x\n+y"}},
        "apply_patch",
        {"input": "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch"},
    ),
    (
        {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
        "apply_patch",
        {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"},
    ),
    ({"type": "apply_patch_call", "operation": {"type": "move_file", "path": "a"}}, "apply_patch", None),
    ({"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a\nb"}}, "apply_patch", None),
    ({"type": "tool_search_call", "execution": "client", "arguments": {"q": "x"}}, "tool_search", {"q": "x"}),
    ({"type": "computer_call", "action": {"type": "click"}}, "computer", {"action": {"type": "click"}}),
    ({"type": "new_call", "name": "N"}, "unknown:new_call", None),
    ({"type": "new_thing"}, "unknown:new_thing", None),
    ({"name": "no type"}, "unknown:", None),
]


@pytest.mark.parametrize(("item", "name", "arguments"), ITEMS)
def test_every_kind_of_call_is_read(item: dict[str, Any], name: str, arguments: dict[str, Any] | None) -> None:
    """Streamed and at the end alike; what cannot be read is a problem, and never passes as text."""
    make = Events()
    whole = {**item, "id": "x_1", "call_id": "c1"}
    frames = [
        make("output_item.added", output_index=0, item=whole),
        make("output_item.done", output_index=0, item=whole),
    ]
    driven = run([*frames, make.end(whole)])
    (call,) = driven.asked

    assert driven.body.startswith(b"".join(frames))
    assert (call.call_id, call.name, call.arguments) == ("c1", name, arguments or {})
    assert (call.problem is None) == (arguments is not None)
    refused = datas_of("responses", run([*frames, make.end(whole)], name).body)
    assert refused[-1]["response"]["output"][0]["content"][0]["text"] == LINE.format(name)
    assert refused[-1]["response"]["output"][0]["id"] == "msg_1"
    assert [data["type"].split(".", 1)[1] for data in refused] == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "reasoning", "summary": []},
        {"type": "web_search_call", "status": "completed"},
        {"type": "mcp_call", "name": "x", "arguments": "{}"},
        {"type": "tool_search_call", "execution": "server"},
        {"type": "shell_call", "environment": {"type": "container_reference"}, "action": {"commands": ["ls"]}},
        {"type": "compaction", "encrypted_content": "x"},
    ],
)
def test_what_runs_at_the_provider_passes(item: dict[str, Any]) -> None:
    """Nobody is asked, and not a byte changes."""
    make = Events()
    frames = [make("output_item.added", output_index=0, item=item), make("output_item.done", output_index=0, item=item)]
    stream = b"".join([*frames, make.end(item)])

    assert (run([stream]).asked, run([stream]).body) == ([], stream)


PATCHES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None]] = [
    ({"type": "custom_tool_call", "name": "p", "input": "a"}, {"input": "b"}, {"input": "b"}),
    ({"type": "custom_tool_call", "name": "p", "input": "a"}, {"input": "b", "more": 1}, None),
    (
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["rm"]}},
        {"command": ["ls"]},
        {"action": {"type": "exec", "command": ["ls"]}},
    ),
    (
        {"type": "shell_call", "action": {"commands": ["a", "b"], "timeout_ms": 1}},
        {"command": "c", "timeout_ms": 1},
        {"action": {"commands": ["c"], "timeout_ms": 1}},
    ),
    (
        {"type": "tool_search_call", "execution": "client", "arguments": {}},
        {"q": 1},
        {"arguments": {"q": 1}},
    ),
    ({"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}}, {"input": "x"}, None),
]


@pytest.mark.parametrize(("item", "arguments", "changed"), PATCHES)
def test_every_kind_of_call_is_rewritten_or_refused(
    item: dict[str, Any], arguments: dict[str, Any], changed: dict[str, Any] | None
) -> None:
    """Other arguments stand in all events and at the end; where they cannot be written, the call does not leave."""
    make = Events()
    whole = {**item, "id": "x_1", "call_id": "c1", "status": "completed", "new_member": 1.0}
    frames = [
        make("output_item.added", output_index=0, item=whole),
        make("output_item.done", output_index=0, item=whole),
    ]
    datas = datas_of("responses", run([*frames, make.end(whole)], patched=arguments).body)

    (final,) = datas[-1]["response"]["output"]
    assert final == datas[-2]["item"]
    if changed is None:
        assert "cannot be" in final["content"][0]["text"]
        return
    assert final == {**whole, **changed}


def test_numbers_make_room_for_what_is_put_in() -> None:
    """Whichever calls are refused: the numbers grow, and nothing that follows is told twice."""
    parts = [ToolUse(name, "", id=f"call_{name}") for name in "AB"]
    frames = list(responses.stream(Reply(*parts, Text("words")), 1, {}))
    for refused in [(), *permutations("AB", 1), ("A", "B")]:
        message = message_of("responses", run(frames, *refused).body)
        assert [call[1] for call in message.calls] == [name for name in "AB" if name not in refused]
        assert message.text.endswith("words")


@pytest.mark.parametrize("junk", [b"\xff", b"\xc3"])
def test_bytes_that_are_not_utf8_hide_no_call(junk: bytes) -> None:
    """A client that replaces them would run the call."""
    make = Events()
    frames = make.call(0, '{"command": "x"}')
    broken = [frame.replace(b"x\\", junk + b"\\") for frame in frames]

    assert run([*broken, make.end(item_of(frames[3]))]).asked[0].name == "Bash"
    assert b"function_call" not in run(broken, "Bash").body


@pytest.mark.parametrize("refused", [(), ("Bash",), ("Read",), ("Bash", "Read")])
@pytest.mark.parametrize("streamed", [0, 1])
def test_calls_that_stand_only_at_the_end_get_events(refused: tuple[str, ...], streamed: int) -> None:
    """Whichever events a client reads, it has the same reply: refusals and calls, in their places, with numbers."""
    make = Events()
    frames = make.call(0, '{"a": 0}') if streamed else []
    items: list[dict[str, Any]] = [
        {"type": "function_call", "id": f"fc_{at}", "call_id": f"c{at}", "name": name, "arguments": f'{{"a": {at}}}'}
        for at, name in enumerate(["Bash", "Read"])
    ]
    driven = run([*frames, make.end(*items)], *refused)

    message = message_of("responses", driven.body)
    assert [call.call_id for call in driven.asked] == ["c0", "c1"]
    assert message.calls == [
        (item["call_id"], item["name"], {"a": at}) for at, item in enumerate(items) if item["name"] not in refused
    ]
    assert message.text == "\n\n".join(LINE.format(name) for name in ("Bash", "Read") if name in refused)


def test_calls_that_stand_only_at_the_end_are_told_of_before_another_reply() -> None:
    """The end does not leave, and what it alone said has been told."""
    make = Events()
    item = {"type": "function_call", "id": "fc_0", "call_id": "c0", "name": "Bash", "arguments": "{}"}
    machine = RESPONSES.stream()
    driven = Driven()
    driven.onward = lambda over: Onward() if len(driven.over) == 1 else None
    later = {**item, "id": "fc_1", "call_id": "c1", "name": "Read"}

    def judge(call: ProposedCall) -> Verdict:
        return REFUSED if call.name == "Bash" else ALLOWED

    driven.drive(machine.feed(make.end(item)), judge)
    make = Events()
    driven.drive(machine.feed(b"".join([*make.call(0, **later), make.end(later)])), judge)
    driven.drive(machine.finish(), judge)

    message = message_of("responses", driven.body)
    assert (message.text, [call[0] for call in message.calls]) == (LINE.format("Bash"), ["c1"])


def test_a_response_that_was_never_streamed_leaves_as_it_came_without_calls() -> None:
    """Events are made for calls only."""
    make = Events()
    frames = [make.end({"type": "message", "id": "m", "role": "assistant", "content": []})]

    assert run(frames).body == frames[0]
