"""What of a Responses or Gemini request is new, and how edits are written into it."""

import json
from typing import Any

import pytest

from interpose.contracts.verdict import ToolChoice
from interpose.gateway.api import ResultEdit, TurnEdit, Unreadable
from interpose.gateway.gemini import GEMINI
from interpose.gateway.ledger import SessionLedger
from interpose.gateway.responses import RESPONSES
from tests.gateway.test_requests import GivenEdits

R, G = RESPONSES, GEMINI
NOTE = ResultEdit("[interpose:warn] look twice")
WITHHELD = ResultEdit("below", replacement="withheld", front="above")
REMINDER = TurnEdit("<system-reminder>\nbe kind\n</system-reminder>")
OWN = "<system-reminder>own</system-reminder>"


def items(*given: Any, **top: Any) -> bytes:
    """A Responses body with odd spaces, so that any rewriting shows."""
    return json.dumps({"model": "m", **top, "input": list(given), "zz": 1.0}, indent=1).encode()


def contents(*given: Any, **top: Any) -> bytes:
    """A Gemini body with odd spaces."""
    return json.dumps({**top, "contents": list(given), "zz": 1.0}, indent=1).encode()


def user(*parts: str, content: Any = None) -> dict[str, Any]:
    """A message of the person, of text parts or with any content."""
    return {"role": "user", "content": content or [{"type": "input_text", "text": part} for part in parts]}


def said(*parts: Any, role: str = "user") -> dict[str, Any]:
    """A Gemini content; a str is a text part."""
    return {"role": role, "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "T",
    "namespace": "mcp__S",
    "arguments": '{"a": 1}',
}


def output(value: Any, call_id: str = "c1", kind: str = "function_call", **more: Any) -> dict[str, Any]:
    """The output of a call."""
    return {"type": f"{kind}_output", "call_id": call_id, "output": value, **more}


def asked(*names: str, ids: bool = True) -> dict[str, Any]:
    """A content of the model with calls."""
    calls = [{"id": f"i{at}"} if ids else {} for at in range(len(names))]
    parts = [{"functionCall": {**call, "name": n, "args": {"n": n}}} for call, n in zip(calls, names, strict=True)]
    return said("ok", *parts, role="model")


def answer(name: str, response: Any, call_id: str | None = None, key: str = "functionResponse") -> dict[str, Any]:
    """A part that answers a call."""
    return {key: {**({"id": call_id} if call_id else {}), "name": name, "response": response}}


@pytest.mark.parametrize(
    ("given", "prompt"),
    [
        ("hi", "hi"),
        ([user("hi")], "hi"),
        ([user(content="hi")], "hi"),
        ([user("a", "b")], "a\nb"),
        ([user(OWN, "real")], "real"),
        ([user(content=OWN)], None),
        ([{"role": "developer", "content": "be brief"}, user("first"), user("second")], "second"),
        ([user("old"), ANSWER], "old"),
        ([user("old"), {"type": "reasoning", "id": "rs_1", "summary": []}, CALL, output("x")], None),
        ([user("old"), CALL, output("x"), user("new")], "new"),
        ([user("old"), {"type": "item_reference", "id": "msg_1"}, user("new")], "new"),
        ([{"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "x"}]}], None),
        ([], None),
        (["odd", None, {"content": "no role"}], None),
    ],
)
def test_the_newest_message_of_the_person_in_items(given: Any, prompt: str | None) -> None:
    """Only what stands behind the model's last item is a new turn; developer messages are nobody's."""
    turn = R.read(json.dumps({"model": "m", "input": given}).encode()).turn

    assert (turn.prompt if turn else None) == prompt


@pytest.mark.parametrize(
    ("given", "prompt"),
    [
        ([said("hi")], "hi"),
        ([{"parts": [{"text": "hi"}]}], "hi"),
        ([said(OWN, "real", {"inlineData": {}})], "real"),
        ([said(OWN)], None),
        ([said("old"), said("x", role="model")], "old"),
        ([said("old"), asked("f"), said(answer("f", {}), "and then")], "and then"),
        ([said("old"), asked("f"), said(answer("f", {}), OWN)], None),
        ([said("old"), asked("f"), said(answer("f", {}, key="function_response"))], None),
        ([said("old"), said("x", role="model"), said("new")], "new"),
        ([said({"inlineData": {}})], None),
        ([], None),
    ],
)
def test_the_newest_message_of_the_person_in_contents(given: Any, prompt: str | None) -> None:
    """Results belong to the turn that runs; words of the person's beside them begin another one."""
    turn = G.read(contents(*given)).turn

    assert (turn.prompt if turn else None) == prompt


def test_the_same_prompt_is_the_same_turn_in_every_form() -> None:
    """A text, and the list that clients make of it, have one digest; what the provider keeps before it counts."""
    forms: list[Any] = ["hi", [user(content="hi")], [user("hi")]]
    turns = [R.read(json.dumps({"input": form}).encode()).turn for form in forms]
    later = R.read(json.dumps({"input": "hi", "previous_response_id": "resp_1"}).encode()).turn

    assert len({(turn.position, turn.digest) for turn in turns if turn}) == 1
    assert later is not None
    assert later.digest != (turns[0].digest if turns[0] else "")
    assert R.read(items(user("hi"), CALL, output("x"))).turn_key == R.read(items(user("hi"))).turn_key


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (output("out"), "out"),
        (
            output([{"type": "input_text", "text": "a"}, {"type": "input_image"}, {"type": "input_text", "text": "b"}]),
            "a\nb",
        ),
        (output([{"stdout": "o", "stderr": "e"}, {"stdout": "p"}], kind="shell_call"), "oep"),
        (output({"type": "computer_screenshot"}, kind="computer_call"), '{"type":"computer_screenshot"}'),
        (output(None, kind="apply_patch_call", status="failed"), ""),
        ({"type": "local_shell_call_output", "id": "c1", "output": "out"}, "out"),
    ],
)
def test_outputs_with_their_calls(item: Any, text: str) -> None:
    """Outputs behind the model's last item come with name and arguments from the history."""
    (result,) = R.read(items(user("go"), CALL, item)).results

    assert (result.call_id, result.name, result.arguments, result.output) == ("c1", "mcp__S__T", {"a": 1}, text)
    assert result.is_error is (item.get("status") == "failed")
    assert "not in the history" in (R.read(items(user("go"), item)).results[0].problem or "")


@pytest.mark.parametrize(
    ("response", "text", "is_error"),
    [
        ({"output": "out"}, "out", False),
        ({"result": "out", "x": 1}, "out", False),
        ({"error": "bad"}, "bad", True),
        ({"a": 1}, '{"a":1}', False),
        (None, "", False),
    ],
)
def test_function_responses_with_their_calls(response: Any, text: str, is_error: bool) -> None:
    """The text is where agents put it, and else the response itself."""
    (result,) = G.read(contents(said("go"), asked("f"), said(answer("f", response, "i0")))).results

    assert (result.call_id, result.name, result.arguments) == ("i0", "f", {"n": "f"})
    assert (result.output, result.is_error, result.problem) == (text, is_error, None)


def test_responses_find_their_calls_by_id_and_else_by_name() -> None:
    """Parallel calls are told apart however they are answered; what answers nothing is a problem."""
    swapped = said(answer("f", {"output": "1"}, "i1"), answer("f", {"output": "0"}, "i0"))
    by_name = said(answer("g", {"output": "g"}, "own"), answer("f", {"output": "f"}), answer("f", {"output": "f2"}))
    stray = said(answer("h", {}, "x"))

    assert [r.call_id for r in G.read(contents(said("go"), asked("f", "f"), swapped)).results] == ["i1", "i0"]
    assert [r.name for r in G.read(contents(said("go"), asked("f", "g", "f"), by_name)).results] == ["g", "f", "f"]
    (lost,) = G.read(contents(said("go"), asked("f"), stray)).results
    assert (lost.name, "not in the history" in (lost.problem or "")) == ("h", True)


def test_a_body_that_nobody_edits_goes_on_as_its_bytes() -> None:
    """Spaces, order and numbers are the client's own."""
    edits = GivenEdits({"other": NOTE}, {7: REMINDER})
    for codec, raw in (
        (R, items(user("hi"), CALL, output("x"))),
        (G, contents(said("hi"), asked("f"), said(answer("f", {})))),
    ):
        assert codec.read(raw).rewritten(edits, None).body is raw


def test_a_reminder_before_the_prompt() -> None:
    """Always a list, behind the agent's own reminders; a text becomes items only when it is edited."""
    edits = GivenEdits(turns={0: REMINDER})
    reminder = {"type": "input_text", "text": REMINDER.reminder}
    for given in ("hi", [user("hi")], [user(content="hi")]):
        body = json.loads(R.read(json.dumps({"input": given}).encode()).rewritten(edits, None).body)
        assert body["input"][0]["content"] == [reminder, {"type": "input_text", "text": "hi"}]
    own = json.loads(R.read(items(user(OWN, "hi"))).rewritten(edits, None).body)["input"][0]["content"]
    gemini = json.loads(G.read(contents(said(OWN, "hi"))).rewritten(edits, None).body)["contents"][0]["parts"]

    assert [part["text"] for part in own] == [part["text"] for part in gemini] == [OWN, REMINDER.reminder, "hi"]


PIECES = [{"stdout": "a", "stderr": "e", "outcome": {"type": "exit"}}, {"stdout": "b"}]


@pytest.mark.parametrize(
    ("value", "noted", "withheld"),
    [
        ("out", f"out\n\n{NOTE.addition}", "above\n\nwithheld\n\nbelow"),
        (
            [{"type": "input_text", "text": "out"}],
            [{"type": "input_text", "text": "out"}, {"type": "input_text", "text": NOTE.addition}],
            [{"type": "input_text", "text": part} for part in ("above", "withheld", "below")],
        ),
        (
            PIECES,
            [PIECES[0], {"stdout": f"b\n\n{NOTE.addition}"}],
            [{"stdout": "above\n\nwithheld\n\nbelow", "stderr": "", "outcome": {"type": "exit"}}],
        ),
        ({"type": "picture"}, {"type": "picture"}, "above\n\nwithheld\n\nbelow"),
    ],
)
def test_outputs_are_annotated_and_withheld_in_their_shape(value: Any, noted: Any, withheld: Any) -> None:
    """Only the output changes; the call and other items keep their bytes."""
    raw = items(user("go"), CALL, output(value, extra=1.50))
    for edit, expected in ((NOTE, noted), (WITHHELD, withheld)):
        body = json.loads(R.read(raw).rewritten(GivenEdits({"c1": edit}), None).body)
        assert body["input"][2] == output(expected, extra=1.5)
        assert body["input"][:2] == [user("go"), CALL]


@pytest.mark.parametrize("key", ["functionResponse", "function_response"])
@pytest.mark.parametrize(
    ("response", "noted", "withheld"),
    [
        ({"output": "out", "x": 1}, {"output": f"out\n\n{NOTE.addition}", "x": 1}, "output"),
        ({"error": "bad"}, {"error": f"bad\n\n{NOTE.addition}"}, "error"),
        ({"a": 1}, {"a": 1, "interpose": NOTE.addition}, "output"),
        (None, {"interpose": NOTE.addition}, "output"),
    ],
)
def test_function_responses_are_annotated_and_withheld(response: Any, noted: Any, withheld: str, key: str) -> None:
    """The text stays where it was; what is withheld takes pictures along; the other response is not touched."""
    part = answer("f", response, "i0", key)
    part[key]["parts"] = [{"inlineData": {}}]
    other = answer("g", {"output": "g"}, "i1")
    raw = contents(said("go"), asked("f", "g"), said(part, other))
    edited, gone = (
        json.loads(G.read(raw).rewritten(GivenEdits({"i0": edit}), None).body)["contents"][2]["parts"]
        for edit in (NOTE, WITHHELD)
    )

    assert edited == [{key: {**part[key], "response": noted}}, other]
    assert gone == [{key: {"id": "i0", "name": "f", "response": {withheld: "above\n\nwithheld\n\nbelow"}}}, other]


def test_a_warning_stands_in_front_of_a_response_without_a_text() -> None:
    """The model reads it first."""
    raw = contents(said("go"), asked("f"), said(answer("f", {"a": 1}, "i0")))
    body = G.read(raw).rewritten(GivenEdits({"i0": ResultEdit(front="careful")}), None).body

    assert b'"response":{"interpose":"careful","a":1}' in body


def test_tools_by_name() -> None:
    """Namespaces are part of the name, hosted tools go by their type, tools that ride in the input count."""
    tools = [
        {"type": "function", "name": "f"},
        {"type": "custom", "name": "apply_patch"},
        {"type": "namespace", "name": "mcp__S", "tools": [{"type": "function", "name": "T"}, "odd"]},
        {"type": "web_search"},
        "odd",
    ]
    ride = {"type": "additional_tools", "tools": [{"type": "custom", "name": "exec"}]}
    declared = [
        {"functionDeclarations": [{"name": "f"}]},
        {"googleSearch": {}},
        {"function_declarations": [{"name": "g"}]},
    ]

    assert R.read(items(ride, tools=tools)).tool_names() == ("f", "apply_patch", "mcp__S__T", "web_search", "exec")
    assert G.read(contents(tools=declared)).tool_names() == ("f", "g")


@pytest.mark.parametrize(
    ("wanted", "responses", "gemini"),
    [
        (ToolChoice("none"), "none", {"mode": "NONE"}),
        (
            ToolChoice("required", "f"),
            {"type": "function", "name": "f"},
            {"mode": "ANY", "allowedFunctionNames": ["f"]},
        ),
        (ToolChoice("required", "nowhere"), None, None),
    ],
)
def test_tools_are_required_and_locked(wanted: ToolChoice, responses: Any, gemini: Any) -> None:
    """Where the tool is offered; other settings of tools stay, in the client's own spelling."""
    ask = R.read(items(user("hi"), tools=[{"type": "function", "name": "f"}])).rewritten(GivenEdits(), wanted)
    declared = {"tools": [{"functionDeclarations": [{"name": "f"}]}]}
    config = {"retrieval_config": {"x": 1}, "function_calling_config": {"mode": "AUTO"}}
    plain = G.read(contents(said("hi"), **declared)).rewritten(GivenEdits(), wanted)
    spelled = G.read(contents(said("hi"), **declared, tool_config=config)).rewritten(GivenEdits(), wanted)

    assert json.loads(ask.body).get("tool_choice") == responses
    assert json.loads(plain.body).get("toolConfig") == (gemini and {"functionCallingConfig": gemini})
    assert json.loads(spelled.body)["tool_config"] == {
        **config,
        **({"function_calling_config": gemini} if gemini else {}),
    }
    assert ask.choice_applied is plain.choice_applied is spelled.choice_applied is (responses is not None)
    assert not R.read(items(user("hi"))).rewritten(GivenEdits(), wanted).choice_applied
    assert not G.read(contents(said("hi"))).rewritten(GivenEdits(), wanted).choice_applied


@pytest.mark.parametrize(
    "raw", [b"", b"<html>", b"[]", b'{"input": {}, "contents": "x"}', b'{"input": 1, "contents": 1}']
)
def test_bodies_of_another_shape(raw: bytes) -> None:
    """They cannot be read, and say so."""
    for codec in (R, G):
        with pytest.raises(Unreadable):
            codec.read(raw)


def test_what_the_provider_was_never_sent_is_owed_to_its_conversation() -> None:
    """Under our reply's id and the conversation's; a provider that keeps nothing is owed nothing."""
    kept = json.dumps({"input": "mine", "conversation": {"id": "conv_1"}}).encode()

    unsent = RESPONSES.read(kept).unsent(SessionLedger(), {"id": "resp_ours"})

    assert set(unsent) == {"resp_ours", "conv_1"}
    assert [mark.entry for mark in unsent["conv_1"].owed] == [{"role": "user", "content": "mine"}]
    forgetful = json.dumps({"input": "mine", "store": False}).encode()
    assert RESPONSES.read(forgetful).unsent(SessionLedger(), {"id": "resp_ours"}) == {}
