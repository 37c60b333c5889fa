"""gateway.responses: the model's history where the client's has lines of ours, and how one goes on within a reply."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.api import Mark, Onward, ProposedCall, RefusedCall, Resumed, RoundOver, TurnEdit
from interpose.gateway.driving import Driven, drive_reply
from interpose.gateway.ledger import SessionLedger
from interpose.gateway.marks import ITEMS, TOLD_ITEMS
from interpose.gateway.responses import RESPONSES
from interpose.gateway.wording import TOLD_AS, nudge_line, reminded
from tests.gateway.test_requests import GivenEdits

CODEC = RESPONSES
LINE = "[interpose] Bash was refused by rule: no"

KINDS: list[dict[str, Any]] = [
    {"type": "function_call", "name": "Bash", "arguments": '{"command": "rm  x"}'},
    {"type": "function_call", "name": "T", "namespace": "mcp__S", "arguments": "{}"},
    {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"},
    {"type": "custom_tool_call", "name": "exec", "input": "await tools.x()"},
    {"type": "local_shell_call", "action": {"type": "exec", "command": ["rm", "x"]}},
    {"type": "shell_call", "action": {"commands": ["rm x", "ls"], "max_output_length": 9}},
    {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
]
THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": "sealed"}
SAID = {
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "So.", "annotations": []}],
}


def refusing(call: ProposedCall) -> Verdict:
    """A judge that lets nothing pass."""
    return Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))


def changing(arguments: dict[str, Any], ledger: SessionLedger) -> Any:
    """A judge that gives each call other arguments, as the gateway remembers it."""

    def judge(call: ProposedCall) -> Verdict:
        verdict = Verdict("a-1", "tool.call", "patched", arguments=arguments)
        ledger.remember_call(call, verdict)
        return verdict

    return judge


def of(*items: Any) -> bytes:
    """A response with these items."""
    return json.dumps({"id": "resp", "status": "completed", "output": items}).encode()


def numbered(groups: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Items with ids and call ids of their own."""
    made: list[list[dict[str, Any]]] = []
    for round_number, group in enumerate(groups):
        items = []
        for at, item in enumerate(group):
            call = {"call_id": f"call_{round_number}_{at}"} if "call" in item["type"] else {}
            items.append({**item, "id": f"x_{round_number}{at}", **call})
        made.append(items)
    return made


class Conversation:
    """What the gateway keeps of a conversation, as it goes on within replies and after them."""

    def __init__(self, sent: bytes) -> None:
        self.ledger = SessionLedger()
        self.sent = sent
        self.request = CODEC.read(sent)
        self.lines: list[str] = []

    def keep(self, line: str, mark: Mark) -> None:
        """As `Rounds` keeps it."""
        nth = self.request.occurrences(line) + self.lines.count(line)
        self.lines.append(line)
        self.ledger.keep_mark(self.request.root, line, nth, mark)

    def go_on(self, raw: bytes, refused: tuple[RefusedCall, ...], nudge: str | None = None) -> Onward:
        """Another reply is asked for."""
        answers = [(call, call.line.removeprefix(TOLD_AS)) for call in refused]
        said = None if nudge is None else reminded(nudge)
        body = CODEC.onward(self.sent, json.loads(raw), answers, said)
        assert body is not None
        self.sent = body
        for place, (call, answer) in enumerate(answers):
            self.keep(call.line, Mark(call.entry, answer, place == len(answers) - 1))
        if nudge is None:
            return Onward()
        self.keep(nudge_line(nudge), Mark(None, reminded(nudge), ends_round=True))
        return Onward(nudge_line(nudge))


def nameless(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items as a client sends them that keeps no ids."""
    return [{name: value for name, value in item.items() if name != "id"} for item in items]


@given(
    groups=st.lists(
        st.tuples(st.lists(st.sampled_from([THOUGHT, SAID]), max_size=2), st.lists(st.sampled_from(KINDS), max_size=3)),
        min_size=1,
        max_size=3,
    ),
    stores=st.booleans(),
    as_text=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_what_is_restored_is_what_was_gone_on_with(groups: list[Any], stores: bool, as_text: bool) -> None:
    """Of replies with refused calls, or with a nudge, the client's history gives what the model was sent already."""
    replies = numbered([[*before, *(calls or [SAID])] for before, calls in groups])
    first = {"role": "user", "content": "go"}
    top = {"model": "m", "store": stores}
    chat = Conversation(json.dumps({**top, "input": "go" if as_text else [first]}).encode())
    reader, driven = CODEC.whole(), Driven()
    for items in replies:

        def over(step: RoundOver) -> Onward:
            return chat.go_on(step.raw, step.refused, None if step.refused else "tests first")

        driven.onward = over
        driven.drive(reader.feed(of(*items)), refusing)
        driven.drive(reader.finish(), refusing)
    last = [{**SAID, "id": "x_last"}]
    driven.onward = None
    driven.drive(reader.feed(of(*last)), refusing)
    driven.drive(reader.finish(), refusing)
    output = json.loads(driven.body)["output"]

    more = {"role": "user", "content": "more"}
    sent = json.loads(chat.sent)["input"]
    for history, expected in (
        ([first, *output, more], [*sent, *last, more]),
        (nameless([first, *output, more]), nameless([*sent, *last, more])),
    ):
        body = json.dumps({**top, "input": history}).encode()
        restored = json.loads(CODEC.read(body).rewritten(chat.ledger, None).body)["input"]
        assert (restored if history[1].get("id") else nameless(restored)) == expected
        assert TOLD_AS not in json.dumps(restored)


def refused(item: dict[str, Any]) -> RefusedCall:
    """The call of an item, refused."""
    (over,) = drive_reply(CODEC, of(item), refusing).over
    return over.refused[0]


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "Bash", "arguments": "{}"}


@pytest.mark.parametrize(
    "output",
    [
        [],
        None,
        ["odd"],
        [SAID],
        [CALL, {**CALL, "call_id": "c2"}],
        [{**CALL, "call_id": "c9"}],
        [CALL, THOUGHT],
        [{"type": "mcp_approval_request", "id": "mcpr_1"}, CALL],
    ],
)
def test_replies_that_cannot_be_gone_on_with(output: Any) -> None:
    """Where something would have no answer, or an answer no call, no history is made."""
    sent = b'{"input": "go"}'
    assert CODEC.onward(sent, {"id": "r", "output": output}, [(refused(CALL), "no")], None) is None
    assert CODEC.onward(sent, {"id": "r", "output": [CALL]}, [(refused(CALL), "no")], None) is not None


@pytest.mark.parametrize(
    "item",
    [
        {**CALL, "arguments": "{broken"},
        {**CALL, "call_id": ""},
        {"type": "tool_search_call", "execution": "client", "call_id": "c", "arguments": {}},
        {"type": "computer_call", "call_id": "c", "action": {"type": "click"}},
        {"type": "unheard_of", "call_id": "c"},
        {"type": "custom_tool_call", "call_id": "c", "name": "Bash", "input": None},
    ],
)
def test_calls_that_the_history_cannot_hold(item: dict[str, Any]) -> None:
    """What cannot be read, or has no output that is an error, is told to the person alone."""
    driven = drive_reply(CODEC, of(item), refusing)
    assert [call.entry for over in driven.over for call in over.refused] == [None]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (KINDS[0], {"type": "function_call_output", "call_id": "c", "output": "no"}),
        (KINDS[2], {"type": "custom_tool_call_output", "call_id": "c", "output": "no"}),
        (KINDS[3], {"type": "custom_tool_call_output", "call_id": "c", "output": "no"}),
        (KINDS[4], {"type": "local_shell_call_output", "id": "c", "output": "no"}),
        (
            KINDS[5],
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 1}}],
                "max_output_length": 9,
            },
        ),
        (KINDS[6], {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no"}),
    ],
)
def test_each_kind_of_call_has_its_own_output(item: dict[str, Any], expected: dict[str, Any]) -> None:
    """Behind the call, whole input or kept by the provider."""
    call = {**item, "id": "x_1", "call_id": "c"}
    answers = [(refused(call), "no")]
    plain = CODEC.onward(b'{"input": [], "store": false}', {"id": "r", "output": [THOUGHT, call]}, answers, None)
    kept = CODEC.onward(b'{"input": [], "previous_response_id": "q"}', {"id": "r", "output": [call]}, answers, None)

    assert json.loads(plain or b"")["input"][-1] == expected
    assert json.loads(kept or b"") == {"input": [expected], "previous_response_id": "r"}


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ({"previous_response_id": "p"}, {"previous_response_id": "r", "input": "follows"}),
        (
            {"previous_response_id": "p", "store": True},
            {"previous_response_id": "r", "store": True, "input": "follows"},
        ),
        ({"conversation": "conv_1"}, {"conversation": "conv_1", "input": "follows"}),
        ({"conversation": {"id": "conv_1"}}, {"conversation": {"id": "conv_1"}, "input": "follows"}),
        ({"previous_response_id": "p", "store": False}, {"previous_response_id": "p", "store": False, "input": "all"}),
        ({}, {"input": "all"}),
    ],
)
def test_who_keeps_the_history(top: dict[str, Any], expected: dict[str, Any]) -> None:
    """A provider that has what was said is sent what follows alone."""
    sent = json.dumps({"model": "m", **top, "input": "go"}).encode()
    reply = {"id": "r", "output": [SAID]}
    body = json.loads(CODEC.onward(sent, reply, [], "on") or b"")
    nudge = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "on"}]}

    whole_input = [{"role": "user", "content": "go"}, SAID, nudge]
    assert body == {"model": "m", **expected, "input": [nudge] if expected["input"] == "follows" else whole_input}


def test_thoughts_that_are_not_sealed_say_nothing_to_who_kept_none() -> None:
    """They are left out; what is sealed or in the open keeps its place, and so do all where they are kept."""
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    sealed = {**THOUGHT, "id": "rs_2"}
    spelled = {**bare, "id": "rs_3", "content": [{"type": "reasoning_text", "text": "hm"}]}
    reply = {"id": "r", "output": [bare, sealed, spelled, CALL]}
    answers = [(refused(CALL), "no")]
    kept = json.loads(CODEC.onward(b'{"input": []}', reply, answers, None) or b"")["input"]
    not_kept = json.loads(CODEC.onward(b'{"input": [], "store": false}', reply, answers, None) or b"")["input"]

    assert kept[:4] == [bare, sealed, spelled, CALL]
    assert not_kept[:3] == [sealed, spelled, CALL]


def test_a_conversation_goes_on_from_the_providers_own_last_response() -> None:
    """The client names the first response of several; what the provider waits for is answered ahead of its input."""
    ledger = SessionLedger()
    ledger.keep_resumed("resp_1", Resumed("resp_3", (Mark(CALL, "no", ends_round=False),)))
    ledger.keep_resumed("conv_1", Resumed("resp_3", (Mark(CALL, "no", ends_round=False),)))
    ledger.keep_resumed("resp_2", Resumed("resp_2"))
    output = {"type": "function_call_output", "call_id": "c1", "output": "no"}

    def sent(**top: Any) -> Any:
        body = json.dumps({"input": [{"role": "user", "content": "hi"}], **top}, indent=1).encode()
        rewritten = CODEC.read(body).rewritten(ledger, None).body
        return None if rewritten == body else json.loads(rewritten)

    user = {"role": "user", "content": "hi"}
    assert sent(previous_response_id="resp_1") == {"previous_response_id": "resp_3", "input": [output, user]}
    assert sent(conversation="conv_1") == {"conversation": "conv_1", "input": [output, user]}
    assert sent(conversation={"id": "conv_1"}) == {"conversation": {"id": "conv_1"}, "input": [output, user]}
    assert sent(previous_response_id="resp_1", input="hi")["input"] == [output, user]
    assert sent(previous_response_id="resp_9") is None
    assert sent() is None


@pytest.mark.parametrize(
    ("item", "changed"),
    [
        (KINDS[0], {"command": "ls"}),
        (KINDS[2], {"input": "other"}),
        (KINDS[4], {"command": ["ls"]}),
        (KINDS[5], {"command": "ls", "max_output_length": 9}),
        ({"type": "shell_call", "action": {"commands": ["rm x"]}}, {"command": "ls"}),
        ({"type": "tool_search_call", "execution": "client", "arguments": {"q": 1}}, {"q": 2}),
    ],
)
def test_changed_calls_get_the_models_arguments_back(item: dict[str, Any], changed: dict[str, Any]) -> None:
    """The agent's history has the call as it ran; the model's as it was made, however often it is asked."""
    call = {**item, "id": "x_1", "call_id": "c1", "new_member": 1.5}
    ledger = SessionLedger()

    driven = drive_reply(CODEC, of(call), changing(changed, ledger))
    (ran,) = json.loads(driven.body)["output"]
    later = CODEC.read(json.dumps({"input": [{"role": "user", "content": "a"}, ran]}).encode())
    restored = json.loads(later.rewritten(ledger, None).body)["input"][1]

    assert ran != call
    if "arguments" in call and isinstance(call["arguments"], str):
        ran, call, restored = ({**one, "arguments": json.loads(one["arguments"])} for one in (ran, call, restored))
    assert restored == call


def test_lines_that_the_person_quotes_stay() -> None:
    """Only the model's own words stand for something, each as often as it was told."""
    chat = Conversation(b'{"input": "go"}')
    chat.keep(LINE, Mark(CALL, "no", ends_round=True))
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": LINE}], "id": "msg_1"}
    quoted = [{"role": "user", "content": "go"}, {"role": "user", "content": LINE}]
    output = {"type": "function_call_output", "call_id": "c1", "output": "no"}

    def restored(*items: Any) -> Any:
        body = json.dumps({"input": [*quoted, *items]}).encode()
        return json.loads(CODEC.read(body).rewritten(chat.ledger, None).body)["input"][2:]

    assert restored() == []
    assert restored(said) == [CALL, output]
    assert restored(said, said) == [CALL, output, said]


@pytest.mark.parametrize("as_text", [False, True])
def test_a_client_that_joins_texts(as_text: bool) -> None:
    """A line within a longer text parts it: what stood before keeps the id, what stood behind has none."""
    chat = Conversation(b'{"input": "go"}')
    chat.keep(LINE, Mark(CALL, "no", ends_round=True))
    text = f"So.\n\n{LINE}\n\nThen."
    content: Any = text if as_text else [{"type": "output_text", "text": text}]
    items = [{"role": "user", "content": "go"}, {"role": "assistant", "content": content, "id": "msg_1"}]
    restored = json.loads(CODEC.read(json.dumps({"input": items}).encode()).rewritten(chat.ledger, None).body)["input"]

    assert restored[1] == {"role": "assistant", "content": [{"type": "output_text", "text": "So."}], "id": "msg_1"}
    assert [item.get("type") for item in restored[2:]] == ["function_call", "function_call_output", None]
    assert restored[4] == {"role": "assistant", "content": [{"type": "output_text", "text": "Then."}]}


def test_a_prompt_that_is_replaced_keeps_its_pictures() -> None:
    """In one part, where its first text stood; the agent's own reminders stay in front."""
    own = {"type": "input_text", "text": "<system-reminder>own</system-reminder>"}
    picture = {"type": "input_image", "image_url": "x"}
    parts = [own, {"type": "input_text", "text": "a"}, picture, {"type": "input_text", "text": "b"}]
    body = json.dumps({"input": [{"role": "user", "content": parts}]}).encode()
    edits = GivenEdits(turns={0: TurnEdit("note", replacement="other")})
    content = json.loads(CODEC.read(body).rewritten(edits, None).body)["input"][0]["content"]

    assert content == [
        own,
        {"type": "input_text", "text": "note"},
        {"type": "input_text", "text": "other"},
        picture,
    ]


def test_the_conversation_is_known_however_long_it_is() -> None:
    """By what the person said first, as a text or in parts."""
    forms: list[Any] = [
        "hi",
        [{"role": "developer", "content": "x"}, {"role": "user", "content": "hi"}],
        [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}, SAID, {"role": "user", "content": "b"}],
    ]
    views = [CODEC.read(json.dumps({"input": form, "stream": True}).encode()) for form in forms]

    assert len({view.root for view in views}) == 1
    assert [view.length for view in views] == [1, 2, 3]
    assert all(view.is_streamed for view in views)
    assert CODEC.read(b'{"input": []}').root == ""
    assert [view.occurrences("So.") for view in views] == [0, 0, 0]


def test_items_that_the_client_only_names() -> None:
    """The provider knows none of ours by an id: it gets what they stand for, and what they told where that is all."""
    call, told = refused(CALL), refused({**CALL, "id": "fc_2", "call_id": "c2"})
    ledger = SessionLedger()
    ledger.keep_mark(TOLD_ITEMS, call.item_id, 0, Mark(None, call.line, ends_round=False))
    ledger.keep_mark(ITEMS, call.item_id, 0, Mark(call.entry, "no", ends_round=True))
    ledger.keep_mark(TOLD_ITEMS, told.item_id, 0, Mark(None, told.line, ends_round=False))
    ledger.keep_mark(ITEMS, "msg_n", 0, Mark(None, "on", ends_round=True))
    names = [{"type": "item_reference", "id": name} for name in ("rs_1", call.item_id, told.item_id, "msg_n", "msg_9")]
    items = [{"role": "user", "content": "go"}, *names, {"id": call.item_id}, {"id": 5}]
    restored = json.loads(CODEC.read(json.dumps({"input": items}).encode()).rewritten(ledger, None).body)["input"]

    output = {"type": "function_call_output", "call_id": "c1", "output": "no"}
    assert restored == [
        *items[:2],
        CALL,
        output,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": LINE}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "on"}]},
        items[5],
        CALL,
        output,
        {"id": 5},
    ]
