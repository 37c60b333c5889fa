"""gateway.chat: one reply for the client of several of the model's, and the model's own history behind it."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.verdict import Verdict
from interpose.gateway.api import Mark, Onward, ProposedCall, RoundOver, TurnEdit
from interpose.gateway.driving import Driven, drive_reply, drive_stream
from interpose.gateway.ledger import SessionLedger
from interpose.testing import chat
from interpose.testing.script import Reply, Text, ToolUse
from tests.gateway.apis import judging
from tests.gateway.chatting import CODEC, REFUSE_BASH, Conversation, answers, datas, kept, prompt, results

RM = ToolUse("Bash", {"command": "rm -rf «a»"}, id="call_rm")
LS = ToolUse("Bash", {"command": "ls"}, id="call_ls")
READ = ToolUse("Read", {"path": "a.txt"}, id="call_read")
LINE = "[interpose] Bash was refused by no-bash: not here"
TOLD = "Bash was refused by no-bash: not here"
DONE = b"data: [DONE]\n\n"
ALLOWED = Verdict("a-1", "tool.call", "allowed")


def entry(call: ToolUse) -> dict[str, Any]:
    """The call in a history."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def said(content: str | None, *calls: ToolUse) -> dict[str, Any]:
    """A message of the model in a history."""
    return {"role": "assistant", "content": content} | (
        {"tool_calls": [entry(call) for call in calls]} if calls else {}
    )


def told(call: ToolUse) -> dict[str, Any]:
    """The result of a refused call."""
    return {"role": "tool", "tool_call_id": call.id, "content": TOLD}


def messages(body: bytes) -> list[Any]:
    """The messages of a request."""
    value: list[Any] = json.loads(body)["messages"]
    return value


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, index: int = 0, **top: Any) -> bytes:
    """One chunk with one choice."""
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c-1", "choices": [choice], **top}).encode() + b"\n\n"


def call(name: str, call_id: str | None = "b", arguments: str = "{}", index: int = 0) -> dict[str, Any]:
    """A delta with one whole call."""
    one: dict[str, Any] = {"index": index, "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [one if call_id is None else {**one, "id": call_id}]}


def over(frames: list[bytes]) -> RoundOver:
    """The end of the one reply in these frames, with every Bash refused."""
    (found,) = drive_stream(CODEC, frames, REFUSE_BASH).over
    return found


@pytest.fixture(params=[True, False], ids=["stream", "whole"])
def talk(request: pytest.FixtureRequest) -> Conversation:
    """A client that streams, and one that does not."""
    return Conversation(stream=request.param)


def test_two_rounds_are_one_message(talk: Conversation) -> None:
    """The client has one text; the model's history has the call, its error, and what it said then."""
    message = talk.says([Reply(Text("I clean up."), RM), Reply(Text("Then not."))])
    talk.messages.append({"role": "user", "content": "more"})

    assert message["content"] == f"I clean up.\n\n{LINE}\n\nThen not."
    assert "tool_calls" not in message
    history = [talk.messages[0], said("I clean up.", RM), told(RM)]
    assert messages(talk.sent[1]) == history
    last = {**message, "content": "Then not."}
    assert messages(talk.rewritten()) == [*history, last, talk.messages[-1]]


def test_lines_of_rounds_without_a_text_are_parted(talk: Conversation) -> None:
    """The model said nothing between two refused calls: the person reads two lines all the same."""
    message = talk.says([Reply(RM), Reply(LS), Reply(RM), Reply(Text("So."))])

    assert message["content"] == f"{LINE}\n\n{LINE}\n\n{LINE}\n\nSo."


def test_three_rounds_and_a_call_that_runs(talk: Conversation) -> None:
    """Two calls refused at once, one more, and two beside one that runs: each stands where the model had it."""
    message = talk.says([Reply(RM, LS), Reply(Text("Hm."), LS), Reply(Text("So."), LS, READ, RM)])
    talk.messages += results(message)

    assert message["content"] == f"{LINE}\n\n{LINE}\n\nHm.\n\n{LINE}\n\nSo.\n\n{LINE}\n\n{LINE}"
    assert [one["id"] for one in message["tool_calls"]] == ["call_read"]
    first = [talk.messages[0], said(None, RM, LS), told(RM), told(LS), said("Hm.", LS), told(LS)]
    assert messages(talk.sent[2]) == first
    rewritten = messages(talk.rewritten())
    assert [one["role"] for one in rewritten[6:]] == ["assistant", "tool", "tool", "tool"]
    assert rewritten[6]["tool_calls"] == [entry(LS), entry(READ), entry(RM)]
    assert rewritten[6]["content"] == "So."
    assert [one["tool_call_id"] for one in rewritten[7:]] == ["call_ls", "call_rm", "call_read"]
    assert chat.fault(json.loads(talk.rewritten())) is None


def test_a_nudge_is_told_and_stands_as_a_message_of_the_persons(talk: Conversation) -> None:
    """The client reads a line between the two texts; the model has what the person might have said."""
    talk.nudge = "run the tests"
    message = talk.says([Reply(Text("Done.")), Reply(Text("They pass."))])

    assert message["content"] == "Done.\n\n[interpose] the turn goes on: run the tests\n\nThey pass."
    nudge = {"role": "user", "content": "<system-reminder>\nrun the tests\n</system-reminder>"}
    assert messages(talk.sent[1]) == [talk.messages[0], said("Done."), nudge]
    assert prompt(talk.rewritten())[:-1] == prompt(talk.sent[1])


def test_every_cut_gives_the_same_reply() -> None:
    """Wherever the network cuts the two replies of the model, the client gets the same bytes."""
    replies = [Reply(Text("I clean ü\n\nup."), RM), Reply(Text("Then\n"), LS, READ)]
    frames = [
        b"".join(chat.stream(one, number, {"stream_options": {"include_usage": True}}))
        for number, one in enumerate(replies)
    ]

    def run(at: int) -> bytes:
        driven = Driven(onward=lambda _: Onward() if len(driven.over) == 1 else None)
        stream = CODEC.stream()
        for number, raw in enumerate(frames):
            for piece in (raw[:at], raw[at:]):
                driven.drive(stream.feed(piece), REFUSE_BASH)
                if len(driven.over) > number:
                    break
        driven.drive(stream.finish(), REFUSE_BASH)
        return driven.body

    whole = run(10**6)
    assert kept(whole)["content"] == f"I clean ü\n\nup.\n\n{LINE}\n\nThen\n\n\n{LINE}"
    assert all(run(at) == whole for at in range(1, max(map(len, frames))))


def test_choices_keep_their_order_at_every_cut() -> None:
    """Nothing waits where there are several; what is allowed is what came."""
    frames = [
        chunk({"content": "a"}),
        chunk({"content": "b"}, None, 1),
        chunk(None, "stop"),
        chunk({"content": "b"}, None, 1),
        chunk(call("Read"), None, 1),
        chunk({"content": "c"}, None, 2),
        chunk(None, "length", 2),
        chunk(None, "tool_calls", 1),
        b'data: {"id": "c-1", "choices": [], "usage": {"total_tokens": 3}}\n\n',
        DONE,
    ]
    held = [*frames[:4], *frames[5:7], frames[4], *frames[7:]]
    raw = b"".join(frames)

    for at in range(len(raw)):
        driven = drive_stream(CODEC, [raw[:at], raw[at:]], judging())
        assert driven.body == b"".join(held)
        assert [step.is_natural for step in driven.over] == [False]


def test_what_both_replies_cost_is_told_once() -> None:
    """What the model wrote is summed; what it read is counted once."""

    def usage(read: int, written: int, thought: int) -> dict[str, Any]:
        details = {"reasoning_tokens": thought, "audio_tokens": None}
        counts = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        return {**counts, "completion_tokens_details": details}

    first, second, third = usage(10, 5, 3), usage(20, 7, 1), usage(30, 1, 0)
    talks: list[bytes] = [b"", b""]
    for is_stream in (True, False):
        driven = Driven(onward=lambda _: Onward() if len(driven.over) < 3 else None)  # noqa: B023 - used at once
        reader = CODEC.stream() if is_stream else CODEC.whole()
        for spent in (first, second, third):
            raw = whole_reply(call("Bash")["tool_calls"], usage=spent)
            driven.drive(reader.feed(CODEC.as_stream(json.loads(raw)) if is_stream else raw), REFUSE_BASH)
            if not is_stream:
                driven.drive(reader.finish(), REFUSE_BASH)
        talks[is_stream] = driven.body

    expected = usage(30, 13, 4)
    assert json.loads(talks[False])["usage"] == expected
    assert [data["usage"] for data in datas(talks[True]) if data.get("usage")] == [expected]


def whole_reply(calls: Any = None, content: Any = None, **top: Any) -> bytes:
    """A reply that is not streamed."""
    message = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return json.dumps({"id": "w-1", "object": "chat.completion", "choices": [choice], **top}).encode()


TEXTS = st.text(alphabet='a \n"\\é😀[', max_size=16)
CALLS = st.lists(st.sampled_from(["Bash", "Read"]), max_size=4)


@given(
    told_rounds=st.lists(st.tuples(TEXTS, st.integers(1, 3)), max_size=3),
    last=st.tuples(TEXTS, CALLS),
    is_stream=st.booleans(),
    size=st.integers(1, 200),
    turns=st.integers(1, 2),
)
@settings(max_examples=60, deadline=None)
def test_what_a_client_keeps_gives_the_history_that_was_sent(
    told_rounds: list[tuple[str, int]], last: tuple[str, list[str]], is_stream: bool, size: int, turns: int
) -> None:
    """The next request begins with all that the model was sent within the reply, and then what it said last."""
    talk = Conversation(stream=is_stream)
    for turn in range(turns):
        numbers = iter(range(100 * turn, 100 * turn + 100))

        def calls(names: list[str]) -> list[ToolUse]:
            return [ToolUse(name, {"n": "ü"}, id=f"call_{next(numbers)}") for name in names]  # noqa: B023 - used at once

        asked = calls(last[1])
        replies = [Reply(Text(text), *calls(["Bash"] * count)) for text, count in told_rounds]
        final = last[0] if asked else f"{last[0]}."
        message = talk.says([*replies, Reply(Text(final), *asked)], lambda raw: cut(raw, size))
        talk.messages += [*results(message), {"role": "user", "content": "more"}]

        body = talk.rewritten()
        history = messages(talk.sent[-1])
        assert chat.fault(json.loads(body)) is None
        assert prompt(body)[: len(history) + 1] == prompt(talk.sent[-1])
        runs = any(one.name == "Read" for one in asked)
        spoken = messages(body)[len(history)]
        if runs:
            assert (spoken["content"] or "") == final
            assert [one["id"] for one in spoken["tool_calls"]] == [one.id for one in asked]
        else:
            assert spoken["content"] == "\n\n".join([*([final] if final else []), *[LINE] * len(asked)])


def cut(raw: bytes, size: int) -> list[bytes]:
    """The bytes in pieces."""
    return [raw[start : start + size] for start in range(0, len(raw), size)]


def test_changed_arguments_are_the_models_own_in_its_history() -> None:
    """Only the call that was changed is touched, also a custom one; the client's bytes stay else."""
    ledger = SessionLedger()
    ledger.keep_original("c1", json.loads(entry(LS)["function"]["arguments"]), {"command": "ls"})
    ledger.keep_original("c2", {"input": "x"}, {"input": "*** Begin"})
    custom = {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "x"}, "extra": 1.0}
    calls = [entry(READ), {**entry(LS), "id": "c1"}, custom, "odd"]
    history = [{"role": "user", "content": "c1"}, {"role": "assistant", "tool_calls": calls, "content": "so"}]
    rewritten = messages(CODEC.read(json.dumps({"messages": history}).encode()).rewritten(ledger, None).body)

    assert rewritten[0] == history[0]
    assert rewritten[1]["content"] == "so"
    function = {"name": "Bash", "arguments": '{"command":"ls"}'}
    assert rewritten[1]["tool_calls"] == [
        entry(READ),
        {"id": "c1", "type": "function", "function": function},
        {**custom, "custom": {"name": "patch", "input": "*** Begin"}},
        "odd",
    ]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": LINE},
        {"role": "tool", "tool_call_id": "c", "content": LINE},
        {"role": "assistant", "content": "[interpose] Bash was refused by no-bash: elsewhere"},
        {"role": "assistant", "content": [{"type": "text"}, "odd", None], "x": "[interpose] "},
        {"role": "assistant", "content": None, "tool_calls": "[interpose] c9"},
        {"role": "assistant", "content": 5, "tool_calls": [{"id": "c", "x": "[interpose] "}]},
    ],
)
def test_nothing_else_is_touched(message: Any) -> None:
    """A line that the person quotes, words of the model like ours, and odd messages keep the client's bytes."""
    ledger = SessionLedger()
    first = {"role": "user", "content": "hi"}
    body = json.dumps({"messages": [first, message]}, indent=1).encode()
    request = CODEC.read(body)
    ledger.keep_mark(request.root, LINE, 0, Mark({**entry(RM), "index": 0}, TOLD, ends_round=True))
    ledger.keep_original("c9", {}, {})

    assert request.rewritten(ledger, None).body == body
    assert (request.length, request.is_streamed, request.occurrences(LINE)) == (2, False, 0)


def test_a_reply_ends_as_its_first_choice_does() -> None:
    """Whichever of several was finished first, however the network cut it."""
    chunks = [chunk({"content": "a"}), chunk({"content": "b"}, index=1)]
    ends = [chunk({}, "length", 1), chunk({}, "stop")]

    for cut in ([*chunks, *ends], [b"".join([*chunks, *ends])]):
        assert over([*cut, b"data: [DONE]\n\n"]).stop_reason == "stop"


def test_a_client_that_keeps_parts_gets_its_history_back_too() -> None:
    """Texts in parts of their own, parts of other kinds, and members that the API does not define."""
    talk = Conversation()
    message = talk.says([Reply(Text("I clean up."), RM), Reply(Text("Then."), READ)])
    parts = [{"type": "text", "text": text} for text in message["content"].split("\n\n")]
    thought = {"type": "thinking", "thinking": "hm"}
    talk.messages[-1] = {**message, "content": [thought, *parts], "new_member": 1.0, "reasoning_content": "hm then"}
    talk.messages += results(message)
    rewritten = messages(talk.rewritten())

    assert rewritten[1]["content"] == [thought, {"type": "text", "text": "I clean up."}]
    assert rewritten[2] == told(RM)
    assert rewritten[3] == {**said(None, READ), "content": [parts[2]], "new_member": 1.0}
    assert talk.messages[-1] == rewritten[4]


def test_a_client_that_drops_a_part_keeps_the_rest() -> None:
    """Without the line there is no call; with the line alone there is the call and its error alone."""
    talk = Conversation()
    talk.says([Reply(Text("I clean up."), RM), Reply(Text("Then."))])
    mark_alone = {"role": "assistant", "content": LINE}
    first = talk.messages[0]
    without = json.dumps({"messages": [first, said("Then.")]}).encode()
    alone = json.dumps({"messages": [first, mark_alone]}).encode()

    assert CODEC.read(without).rewritten(talk.ledger, None).body == without
    assert messages(CODEC.read(alone).rewritten(talk.ledger, None).body) == [first, said(None, RM), told(RM)]


def test_a_reply_that_dies_after_its_first_round_says_so() -> None:
    """The second reply's call is dropped and the client gets the error behind what it has."""
    driven = Driven(onward=lambda _: Onward())
    stream = CODEC.stream()
    driven.drive(stream.feed(chunk(call("Bash"), "tool_calls") + DONE + b"rest"), REFUSE_BASH)
    driven.drive(
        stream.feed(chunk({"role": "assistant", "content": ""}) + chunk(call("Read", arguments="{"))), REFUSE_BASH
    )
    driven.drive(stream.finish("it broke off"), REFUSE_BASH)

    assert [drop.name for drop in driven.dropped] == ["Read"]
    assert len(driven.over) == 1
    *_, error = datas(driven.body)
    assert error["error"]["message"] == "it broke off"
    assert b"rest" not in driven.body
    assert DONE not in driven.body


def test_a_reply_without_done_goes_on_too() -> None:
    """Servers that only close the connection."""
    driven = Driven(onward=lambda _: Onward() if len(driven.over) == 1 else None)
    stream = CODEC.stream()
    for raw in (
        chunk(call("Bash"), "tool_calls").removesuffix(b"\n\n"),
        chunk({"content": "So."}),
        chunk(None, "stop"),
    ):
        driven.drive(stream.feed(raw), REFUSE_BASH)
        if len(driven.over) == 0:
            driven.drive(stream.finish(), REFUSE_BASH)
    driven.drive(stream.finish(), REFUSE_BASH)

    deltas = [data["choices"][0] for data in datas(driven.body)]
    assert "".join(one["delta"].get("content") or "" for one in deltas) == f"{LINE}\n\nSo."
    assert [one["finish_reason"] for one in deltas if one["finish_reason"]] == ["stop"]


def test_what_passes_in_a_later_round() -> None:
    """Comments, what is no chunk, and a provider's error stay as they came."""
    odd = b': alive\n\ndata: no json\n\ndata: {"new": 1}\n\n'
    error = b'data: {"error": {"message": "m"}}\n\n'
    driven = Driven(onward=lambda _: Onward())
    stream = CODEC.stream()
    driven.drive(stream.feed(chunk(call("Bash"), "tool_calls") + DONE), REFUSE_BASH)
    driven.drive(stream.feed(odd + error), REFUSE_BASH)
    driven.drive(stream.finish(), REFUSE_BASH)

    assert driven.body.endswith(odd + error)
    assert len(driven.over) == 1


def test_the_end_of_a_reply_waits_for_what_follows() -> None:
    """No finish and no [DONE] leaves before it is asked; all texts did."""
    stream = CODEC.stream()
    frames = [
        chunk({"content": "Hi."}),
        chunk(None, "stop"),
        b'data: {"choices": [], "usage": {"total_tokens": 3}}\n\n',
    ]
    driven = Driven()
    for frame in frames:
        driven.drive(stream.feed(frame), REFUSE_BASH)
    assert driven.body == frames[0]
    driven.drive(stream.feed(DONE), REFUSE_BASH)

    assert driven.body == b"".join([*frames, DONE])
    assert (driven.over[0].raw, driven.over[0].stop_reason) == (driven.body, "stop")
    assert driven.over[0].is_natural


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        ([chunk(call("Bash"), "length"), DONE], "it was cut off"),
        ([chunk(call("Bash")), DONE], "no finish was told"),
        ([chunk(call("Bash"), "tool_calls"), chunk({"content": "and"}), DONE], "a text came behind"),
        ([chunk(call("Bash"), "tool_calls"), chunk(call("Bash", arguments=" ")), DONE], "a piece came behind"),
        ([chunk({"content": "x"}, "stop"), chunk({"content": "y"}), DONE], "a text came behind the end"),
        ([chunk({"content": "x"}, "stop"), chunk({"content": "y"}, "stop", 1), DONE], "there are two choices"),
        ([chunk({"content": "y"}, "stop", 1), DONE], "it is not the first choice"),
        ([b'data: {"choices": [{"index": 0, "finish_reason": "stop"}, {"index": 1}]}\n\n', DONE], "two in a chunk"),
        ([chunk({"content": "x"})], "it just ended"),
        ([DONE], "nothing was said"),
    ],
)
def test_replies_that_cannot_be_gone_on_with(frames: list[bytes], why: str) -> None:
    """Only a natural end of one choice is one."""
    assert not over(frames).is_natural, why


def test_a_finish_that_left_unnoticed_is_followed_by_nothing() -> None:
    """One with more of its choice behind it in the same read; one that is told twice is as good as one."""
    more, call_and_end = chunk({"content": ""}), [chunk(call("Bash"), "tool_calls"), DONE]

    assert not over([chunk(None, "stop") + more, *call_and_end]).is_natural
    assert over([*call_and_end[:1], chunk(None, "tool_calls"), DONE]).is_natural


def test_a_stream_that_fails_is_no_reply() -> None:
    """Neither a fault nor an error of the provider ends a reply of the model, nor one that drops a call."""
    error = b'data: {"error": {"message": "m"}}\n\n'

    assert drive_stream(CODEC, [chunk({"content": "x"})], REFUSE_BASH, "it died").over == []
    assert drive_stream(CODEC, [chunk({"content": "x"}), error], REFUSE_BASH).over == []
    assert drive_stream(CODEC, [chunk(call("Bash"))], REFUSE_BASH).over == []


@pytest.mark.parametrize(
    "delta",
    [
        {"function_call": {"name": "Bash", "arguments": "{}"}},
        call("Bash", None),
        call("Bash", arguments='{"a": 1, "a": 2}'),
        {"tool_calls": [{"index": 0, "id": "x", "type": "new"}]},
    ],
    ids=["older form", "no id", "read in two ways", "unknown kind"],
)
def test_calls_that_no_history_can_hold_have_no_entry(delta: dict[str, Any]) -> None:
    """They are told to the person, streamed and not."""
    judge = judging(frozenset({"Bash", "unknown:new"}))
    whole = {"choices": [{"index": 0, "message": {"role": "assistant", **delta}, "finish_reason": "stop"}]}
    (streamed,) = drive_stream(CODEC, [chunk(delta, "stop"), DONE], judge).over
    (told_whole,) = drive_reply(CODEC, json.dumps(whole).encode(), judge).over

    assert [refused.entry for refused in streamed.refused + told_whole.refused] == [None, None]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "x", "refusal": "no"},
        {"content": "x", "audio": {"id": "a"}},
        {"content": "x", "reasoning_details": [{"type": "reasoning.encrypted", "data": "s"}]},
        {"content": "x", "new_member": {"signature": "s"}},
        {"content": ""},
        {"content": "x", "tool_calls": [entry(READ)]},
        None,
    ],
)
def test_no_history_is_made_of_what_the_api_would_not_take(message: Any) -> None:
    """Members whose place nobody knows, an empty message, a call that nobody answers."""
    reply = {"choices": [{"message": message}]}

    assert CODEC.onward(b'{"messages": []}', reply, (), "go on") is None
    assert CODEC.onward(b'{"messages": []}', {"choices": [*reply["choices"], {}]}, (), "go on") is None


def test_calls_with_one_id_cannot_be_told_apart() -> None:
    """No history is made of them."""
    reply = over([chunk(call("Bash") | {}), chunk(call("Bash", index=1)), chunk(None, "tool_calls"), DONE])
    whole = CODEC.collected(reply.raw)

    assert whole is not None
    assert CODEC.onward(b'{"messages": []}', whole, answers(reply.refused), None) is None


def test_a_signature_in_a_call_stays_with_it() -> None:
    """What a provider needs back with a call is in both histories."""
    extra = {"google": {"thought_signature": "s"}}
    delta = {"tool_calls": [{**call("Bash")["tool_calls"][0], "type": "function", "extra_content": extra}]}
    (step,) = drive_stream(
        CODEC, [chunk({"reasoning_content": "hm"}), chunk(delta, "tool_calls"), DONE], REFUSE_BASH
    ).over
    whole = CODEC.collected(step.raw)
    assert whole is not None
    body = CODEC.onward(b'{"model": "m", "messages": [], "n": 1.0}', whole, answers(step.refused), None)

    assert body is not None
    assert b'"n":1.0' in body
    assert messages(body)[0] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "b", "type": "function", "function": {"name": "Bash", "arguments": "{}"}, "extra_content": extra}
        ],
    }


def test_contents_in_parts_go_on_in_parts() -> None:
    """A whole reply with a list of parts keeps them, in the reply and in the history."""
    driven = Driven(onward=lambda _: Onward() if len(driven.over) == 1 else None)
    reader = CODEC.whole()
    for raw in (whole_reply([entry(RM)], [{"type": "text", "text": "So."}]), whole_reply(None, "Then.")):
        driven.drive(reader.feed(raw), REFUSE_BASH)
        driven.drive(reader.finish(), REFUSE_BASH)
    step = driven.over[0]
    body = CODEC.onward(b'{"messages": []}', json.loads(step.raw), answers(step.refused), None)

    content = json.loads(driven.body)["choices"][0]["message"]["content"]
    assert [part["text"] for part in content] == ["So.", LINE, "Then."]
    assert messages(body or b"")[0] == {**said(None, RM), "content": [{"type": "text", "text": "So."}]}


def test_a_later_whole_reply_without_a_message_stays_as_it_is() -> None:
    """There is no place for what was said before."""
    driven = Driven(onward=lambda _: Onward() if len(driven.over) == 1 else None)
    reader = CODEC.whole()
    for raw in (whole_reply(None, "So."), b'{"choices": [7], "id": "x"}'):
        driven.drive(reader.feed(raw), REFUSE_BASH)
        driven.drive(reader.finish(), REFUSE_BASH)

    assert json.loads(driven.body) == {"choices": [7], "id": "w-1"}


def test_a_judge_may_patch_in_a_later_round() -> None:
    """A call of the second reply is rewritten under the first one's head."""

    def judge(proposed: ProposedCall) -> Verdict:
        if proposed.name == "Bash":
            return REFUSE_BASH(proposed)
        return Verdict("a-1", "tool.call", "patched", arguments={"n": 1})

    talk = Conversation(judge=judge)
    message = talk.says([Reply(RM), Reply(READ)])

    assert message["content"] == LINE
    assert message["tool_calls"][0]["function"]["arguments"] == '{"n":1}'


def test_one_chunk_with_everything_tells_its_usage_once() -> None:
    """Text, call, finish and usage in one chunk: what is taken apart has the usage at its end alone."""
    one = chunk({"content": "So.", **call("Bash")}, "tool_calls", usage={"total_tokens": 3})
    body = drive_stream(CODEC, [one, DONE], REFUSE_BASH).body

    assert ["usage" in data for data in datas(body)] == [False, False, True]
    assert drive_stream(CODEC, [one, DONE], judging()).body.count(b"usage") == 1


@pytest.mark.parametrize("is_list", [False, True])
def test_a_prompt_is_replaced(is_list: bool) -> None:
    """What a handler made of it stands in its place, in the form that the client has; other parts stay."""
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    ours = {"type": "text", "text": "<system-reminder>x</system-reminder>"}
    parts = [ours, {"type": "text", "text": "my secret"}, image, {"type": "text", "text": "word"}]
    content: Any = parts if is_list else "my secret"
    request = CODEC.read(json.dumps({"messages": [{"role": "user", "content": content}]}).encode())
    turn = request.turn
    assert turn is not None
    ledger = SessionLedger()

    async def judge() -> TurnEdit:
        return TurnEdit(reminder="note", replacement="my ***")

    asyncio.run(ledger.turn_once(turn, judge))
    (message,) = messages(request.rewritten(ledger, None).body)

    replaced = [ours, {"type": "text", "text": "note"}, {"type": "text", "text": "my ***"}, image]
    assert message["content"] == (replaced if is_list else "note\n\nmy ***")
