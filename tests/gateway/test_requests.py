"""What of a request is new, and how edits are written into it, for both APIs."""

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.json import Json
from interpose.contracts.verdict import ToolChoice
from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import Codec, ResultEdit, TurnEdit, Unreadable
from interpose.gateway.bodies import content_digest
from interpose.gateway.chat import CHAT
from interpose.gateway.gemini import GEMINI
from interpose.gateway.responses import RESPONSES

A, C = ANTHROPIC, CHAT
EDIT = ResultEdit("[interpose:warn] look twice")
REMINDER = TurnEdit("<system-reminder>\nbe kind\n</system-reminder>")


class GivenEdits:
    """The port `Edits` with fixed answers: by call id, and by position."""

    def __init__(self, results: dict[str, ResultEdit] | None = None, turns: dict[int, TurnEdit] | None = None) -> None:
        self.results = results or {}
        self.turns = turns or {}

    @property
    def edited_calls(self) -> list[str]:
        """The ids given."""
        return list(self.results)

    @property
    def edited_positions(self) -> list[int]:
        """The positions given."""
        return list(self.turns)

    restores = False
    changed_calls: tuple[str, ...] = ()

    def lines(self, root: str) -> tuple[str, ...]:
        """None."""
        return ()

    def mark(self, root: str, line: str, nth: int) -> None:
        """None."""
        return

    def original(self, call_id: str, arguments: object) -> None:
        """None."""
        return

    def resumed(self, response_id: str) -> None:
        """None."""
        return

    def result_edit(self, call_id: str, digest: str, nth: int = 0) -> ResultEdit | None:
        """The edit given."""
        return self.results.get(call_id)

    def turn_edit(self, position: int, digest: str) -> TurnEdit | None:
        """The edit given."""
        return self.turns.get(position)


def body(*messages: Any, **top: Any) -> bytes:
    """A request body with odd spaces, so that any rewriting shows."""
    return json.dumps({"model": "m", **top, "messages": list(messages), "zz": 1.0}, indent=1).encode()


def user(content: Any) -> dict[str, Any]:
    """A message of the person."""
    return {"role": "user", "content": content}


def text(words: str, **more: Any) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words, **more}


def tool_use(call_id: str = "t1", **call_input: Any) -> dict[str, Any]:
    """An assistant message of the Anthropic API with one call."""
    return {
        "role": "assistant",
        "content": [text("ok"), {"type": "tool_use", "id": call_id, "name": "Bash", "input": call_input}],
    }


def tool_result(content: Any, call_id: str = "t1", **more: Any) -> dict[str, Any]:
    """A tool result block of the Anthropic API."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def tool_calls(call_id: str = "t1", arguments: str = '{"c": 1}') -> dict[str, Any]:
    """An assistant message of the chat API with one call."""
    function = {"name": "bash", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def tool(content: Any, call_id: str = "t1") -> dict[str, Any]:
    """A result message of the chat API."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.parametrize("codec", [A, C], ids=["anthropic", "chat"])
@pytest.mark.parametrize(
    ("messages", "prompt"),
    [
        ([user("hi")], "hi"),
        ([user([text("a"), text("b")])], "a\nb"),
        ([user([text("<system-reminder>x</system-reminder>"), text("real")])], "real"),
        ([user("<system-reminder>only</system-reminder>")], None),
        ([user("old"), {"role": "assistant", "content": "x"}], "old"),
        ([user("old"), {"role": "assistant", "content": "x"}, user("new")], "new"),
        ([user("first"), user("second")], "second"),
        ([user("real"), user([text("<system-reminder>x</system-reminder>")])], "real"),
        ([{"role": "system", "content": "s"}, user("hi"), {"role": "system", "content": "mid"}], "hi"),
        ([user([{"type": "image", "source": {}}])], None),
        ([user("   ")], None),
        ([user([text("hi", cache_control={"type": "ephemeral"})])], "hi"),
        ([], None),
        ([{"content": "no role"}, "odd", None], None),
    ],
)
def test_the_newest_message_of_the_person(codec: Codec, messages: list[Any], prompt: str | None) -> None:
    """Only what stands behind the model's last message, and is not the agent's own reminder, is a new turn."""
    turn = codec.read(body(*messages)).turn

    assert (turn.prompt if turn else None) == prompt


def test_a_message_with_results_is_no_new_turn() -> None:
    """Results, and the agent's own reminders beside them, belong to the turn that runs."""
    own = text("<system-reminder>own</system-reminder>\n<system-reminder>too</system-reminder>")
    request = A.read(body(user("go"), tool_use(), user([tool_result("out"), own])))

    assert request.turn is None
    assert request.turn_key == A.read(body(user("go"))).turn_key
    assert request.turn_key is not None


@pytest.mark.parametrize(
    ("content", "output"),
    [("out", "out"), ([text("a"), text("b")], "a\nb"), ([{"type": "image"}], ""), (None, "")],
)
def test_new_results_with_their_calls(content: Any, output: str) -> None:
    """Results behind the model's last message come with name and arguments from the history."""
    (result,) = A.read(body(user("go"), tool_use(command="ls"), user([tool_result(content, is_error=True)]))).results
    (chat,) = C.read(body(user("go"), tool_calls(), tool(content))).results

    assert (result.call_id, result.name, result.arguments, result.output) == ("t1", "Bash", {"command": "ls"}, output)
    assert result.is_error
    assert (chat.call_id, chat.name, chat.arguments, chat.output) == ("t1", "bash", {"c": 1}, output)


def test_results_of_parallel_calls_and_old_ones() -> None:
    """All new results are found, in order; those the model has seen are not new."""
    first = [user("go"), tool_use("t0"), user([tool_result("old", "t0")]), tool_use("t1"), user([tool_result("new")])]
    chat = [user("go"), tool_calls("t0"), tool("old", "t0"), tool_calls("t1"), tool("new"), tool("stray", "tx")]

    assert [result.output for result in A.read(body(*first)).results] == ["new"]
    assert [(r.output, r.name) for r in C.read(body(*chat)).results] == [("new", "bash"), ("stray", "")]
    assert "not in the history" in (C.read(body(*chat)).results[1].problem or "")


def test_the_older_function_result() -> None:
    """A `function` message answers the newest `function_call` of its name."""
    called = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"x": 1}'}}
    (result,) = C.read(body(user("go"), called, {"role": "function", "name": "f", "content": "out"})).results

    assert (result.call_id, result.name, result.arguments) == ("function_call:f", "f", {"x": 1})


def test_ambiguous_arguments_in_the_history_are_a_problem() -> None:
    """The history's arguments are read as strictly as the reply's."""
    (result,) = C.read(body(user("go"), tool_calls(arguments='{"a": 1, "a": 2}'), tool("out"))).results

    assert result.arguments == {}
    assert "twice" in (result.problem or "")


@pytest.mark.parametrize("codec", [A, C], ids=["anthropic", "chat"])
def test_a_body_that_nobody_edits_goes_on_as_its_bytes(codec: Codec) -> None:
    """Spaces, order and numbers are the client's own."""
    raw = body(user("hi"), tools=[])

    assert codec.read(raw).rewritten(GivenEdits(), None).body is raw
    assert codec.read(raw).rewritten(GivenEdits({"other": EDIT}, {7: REMINDER}), None).body is raw


@pytest.mark.parametrize("codec", [A, C], ids=["anthropic", "chat"])
def test_an_edit_touches_only_its_message(codec: Codec) -> None:
    """All other members keep their bytes and their order."""
    raw = body({"role": "user", "content": "a", "n": 1.50}, user("b"), temperature=0.10)
    edited = codec.read(raw).rewritten(GivenEdits(turns={1: REMINDER}), None).body

    assert json.dumps({"role": "user", "content": "a", "n": 1.50}, indent=1)[1:].strip()[:10].encode() in edited
    assert list(json.loads(edited)) == ["model", "temperature", "messages", "zz"]
    assert json.loads(edited)["messages"][0] == {"role": "user", "content": "a", "n": 1.5}
    assert b'"zz":1.0' in edited


def test_a_reminder_before_the_prompt_in_list_form() -> None:
    """Anthropic's clients turn a string into a list between requests; with a reminder it is always the list."""
    expected = [text(REMINDER.reminder), text("hi")]
    for content in ("hi", [text("hi")]):
        edited = A.read(body(user(content))).rewritten(GivenEdits(turns={0: REMINDER}), None).body
        assert json.loads(edited)["messages"][0]["content"] == expected


def test_a_reminder_stands_behind_results_and_other_reminders() -> None:
    """Tool results stay first, the agent's own reminders too."""
    own = text("<system-reminder>own</system-reminder>")
    edited = A.read(body(user([own, text("hi")]))).rewritten(GivenEdits(turns={0: REMINDER}), None).body
    chat = C.read(body(user([own, text("hi")]))).rewritten(GivenEdits(turns={0: REMINDER}), None).body
    plain = C.read(body(user("hi"))).rewritten(GivenEdits(turns={0: REMINDER}), None).body

    assert json.loads(edited)["messages"][0]["content"] == [own, text(REMINDER.reminder), text("hi")]
    assert json.loads(chat)["messages"][0]["content"] == [own, text(REMINDER.reminder), text("hi")]
    assert json.loads(plain)["messages"][0]["content"] == f"{REMINDER.reminder}\n\nhi"


@pytest.mark.parametrize(
    ("content", "edit", "expected"),
    [
        ("out", EDIT, "out\n\n[interpose:warn] look twice"),
        ("", EDIT, "[interpose:warn] look twice"),
        (None, EDIT, "[interpose:warn] look twice"),
        ([text("out")], EDIT, [text("out"), text("[interpose:warn] look twice")]),
        ("secret", ResultEdit(replacement="withheld"), "withheld"),
        ([text("secret"), {"type": "image"}], ResultEdit("note", "withheld"), [text("withheld"), text("note")]),
        ("out", ResultEdit("note", front="careful"), "careful\n\nout\n\nnote"),
        ([text("out")], ResultEdit(front="careful"), [text("careful"), text("out")]),
    ],
)
def test_annotated_and_withheld_results(content: Any, edit: ResultEdit, expected: Any) -> None:
    """A string stays a string, a list gets one more block; withheld output is replaced."""
    edits = GivenEdits({"t1": edit})
    request = A.read(body(user("go"), tool_use(), user([tool_result(content, cache_control={"type": "e"})])))
    anthropic = json.loads(request.rewritten(edits, None).body)["messages"][2]["content"][0]
    chat = json.loads(C.read(body(user("go"), tool_calls(), tool(content))).rewritten(edits, None).body)

    assert anthropic == tool_result(expected, cache_control={"type": "e"})
    assert chat["messages"][2] == tool(expected)


def test_digests_ignore_what_clients_move() -> None:
    """cache_control and the form of a content do not make it another one; a word does."""
    same = [user("hi"), user([text("hi")]), user([text("hi", cache_control={"type": "ephemeral"})])]
    digests = {turn.digest for message in same if (turn := A.read(body(message)).turn)}

    assert len(digests) == 1
    other = A.read(body(user("ho"))).turn
    assert other is not None
    assert other.digest not in digests


@pytest.mark.parametrize(
    ("choice", "top", "anthropic", "chat"),
    [
        (ToolChoice("none"), True, {"type": "none"}, "none"),
        (
            ToolChoice("required", "bash"),
            True,
            {"type": "tool", "name": "bash"},
            {"type": "function", "function": {"name": "bash"}},
        ),
        (ToolChoice("required", "other"), True, None, None),
        (ToolChoice("none"), False, None, None),
    ],
)
def test_tool_choice_where_it_is_simple(choice: ToolChoice, top: bool, anthropic: Any, chat: Any) -> None:
    """It is set where the request has such tools, and is said to be not applied everywhere else."""
    a_tools = {"tools": [{"name": "bash"}]} if top else {}
    c_tools = {"tools": [{"type": "function", "function": {"name": "bash"}}]} if top else {}
    a = A.read(body(user("x"), **a_tools)).rewritten(GivenEdits(), choice)
    c = C.read(body(user("x"), **c_tools)).rewritten(GivenEdits(), choice)

    assert (a.choice_applied, c.choice_applied) == (anthropic is not None, chat is not None)
    assert json.loads(a.body).get("tool_choice") == anthropic
    assert json.loads(c.body).get("tool_choice") == chat


def test_a_thinking_model_is_not_forced() -> None:
    """The provider refuses a forced tool beside thinking."""
    raw = body(user("x"), tools=[{"name": "bash"}], thinking={"type": "adaptive"})

    assert A.read(raw).rewritten(GivenEdits(), ToolChoice("required", "bash")).body is raw


@pytest.mark.parametrize("codec", [A, C], ids=["anthropic", "chat"])
@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"", "^the body is empty"),
        (b" \r\n", "^the body is empty"),
        (b'\xef\xbb\xbf{"messages": []}', "byte order mark .*, which must be left out$"),
        (b"<html>", "not JSON"),
        (b'{"messages": [', "not JSON"),
        (b'{"messages": [{"role": NaN}]}', r"the number at messages\[0\].role is NaN, which JSON cannot say$"),
        (b"[]", "not an object"),
        (b'{"messages": {}}', "array"),
        (b'{"messages": [{"role": "user", "content": "\xff"}]}', "UTF-8"),
        (b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "not JSON"),
    ],
)
def test_bodies_that_are_no_requests(codec: Codec, raw: bytes, word: str) -> None:
    """Each is Unreadable, in words."""
    with pytest.raises(Unreadable, match=word):
        codec.read(raw)


@pytest.mark.parametrize("codec", [A, C], ids=["anthropic", "chat"])
def test_half_a_surrogate_pair_is_borne(codec: Codec) -> None:
    """Agents that cut texts send them; the request is read, and the client's bytes go on."""
    raw = b'{"messages": [{"role": "user", "content": "cut \\ud83d"}]}'
    request = codec.read(raw)

    assert request.turn is not None
    assert request.turn.prompt == "cut ?"
    assert request.rewritten(GivenEdits(), None).body is raw


@pytest.mark.parametrize(
    ("codec", "top", "names"),
    [
        (A, {"tools": [{"name": "Bash", "input_schema": {}}, {"type": "web_search_1", "name": "web_search"}]}, 2),
        (
            C,
            {"tools": [{"type": "function", "function": {"name": "a"}}, {"type": "custom", "custom": {"name": "b"}}]},
            2,
        ),
        (C, {"functions": [{"name": "a"}, {"name": "a"}]}, 1),
        (A, {"tools": [{}, 5, {"name": 5}, {"name": ""}]}, 0),
        (C, {"tools": {"type": "function"}, "functions": None}, 0),
        (C, {"tools": [{"type": "function"}, {"function": "x"}, None]}, 0),
        (A, {}, 0),
    ],
)
def test_the_tools_on_offer_are_named(codec: Codec, top: dict[str, Any], names: int) -> None:
    """Each tool with a name once; what cannot be read is left out and breaks nothing."""
    assert len(codec.read(body(user("go"), **top)).tool_names()) == names


@pytest.mark.parametrize("codec", [A, C])
def test_a_turn_knows_how_much_was_said_before_it(codec: Codec) -> None:
    """The messages of the person and the model count; those of the system and of tools do not."""
    said = [user("hi"), {"role": "assistant", "content": "hello"}, {"role": "tool", "tool_call_id": "x", "content": ""}]

    first, later = codec.read(body(user("go"))).turn, codec.read(body(*said, user("go"))).turn

    assert (first and first.earlier, later and later.earlier) == (0, 2)


WITHHELD = TurnEdit(refusal="no", replacement="withheld")
NOTE = "<system-reminder>\nof the agent\n</system-reminder>"


@pytest.mark.parametrize(
    ("codec", "key", "parts", "left"),
    [
        (
            A,
            "messages",
            [{"type": "tool_result", "tool_use_id": "t"}, text(NOTE), {"type": "image"}, text("mine"), text("more")],
            [{"type": "tool_result", "tool_use_id": "t"}, text(NOTE), text("withheld")],
        ),
        (C, "messages", [{"type": "image_url"}, text("mine"), text(NOTE)], [text(NOTE), text("withheld")]),
        (
            RESPONSES,
            "input",
            [{"type": "input_image"}, {"type": "input_text", "text": "mine"}, {"type": "input_text", "text": NOTE}],
            [{"type": "input_text", "text": NOTE}, {"type": "input_text", "text": "withheld"}],
        ),
        (
            GEMINI,
            "contents",
            [{"inlineData": {}}, {"text": "mine"}, {"functionResponse": {"name": "f"}}],
            [{"functionResponse": {"name": "f"}}, {"text": "withheld"}],
        ),
    ],
)
def test_of_a_refused_message_only_what_is_not_the_persons_is_left(
    codec: Codec, key: str, parts: list[Any], left: list[Any]
) -> None:
    """Pictures go with the words; results and the agent's own reminders stay."""
    name = "parts" if codec.api == "gemini" else "content"
    message = {"role": "user", name: parts}
    request = codec.read(json.dumps({"model": "m", key: [message]}).encode())

    edited = json.loads(request.rewritten(GivenEdits(turns={0: WITHHELD}), None).body)

    assert edited[key] == [{"role": "user", name: left}]


@given(st.text(st.characters(codec=None)))
def test_a_text_says_the_same_as_a_list_with_one_text(text: str) -> None:
    """Clients turn one into the other between two requests; the digest is the one of earlier versions."""
    blocks: Json = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
    written = json.dumps([{"text": text, "type": "text"}], separators=(",", ":"), ensure_ascii=False)
    expected = sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
    assert content_digest(text) == content_digest(blocks) == expected
