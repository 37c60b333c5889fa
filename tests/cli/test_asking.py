"""cli.asking: how a question looks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from interpose.cli.asking import LINES_SHOWN, question_block, question_json, subject, visible
from interpose.trust.questions import Question, State


def question(
    arguments: dict[str, object] | None = None,
    *,
    tool_name: str = "Bash",
    reason: str = "the program is hidden",
    state: State = "waiting",
    is_whole: bool = True,
) -> Question:
    """A question that was asked at second 100 and waits until second 220."""
    return Question(
        id="q-7f3a",
        digest="8a1f" * 16,
        tool_name=tool_name,
        arguments=arguments if arguments is not None else {"command": '"$TOOL" x', "timeout": 5},
        is_whole=is_whole,
        reason=reason,
        handler="no-deletes",
        agent="codex",
        session="s1",
        workspace="/home/me/project",
        call_id="c1",
        pid=7,
        mark="m",
        asked_at=100.0,
        expires_at=220.0,
        state=state,
        who="",
        settled_at=None,
    )


def test_everything_that_an_answer_needs_is_there() -> None:
    """Who, where, what, the command on a line of its own, why, how long."""
    block = question_block(question(), now=102.0, width=100, place=(1, 3)).plain

    assert block.splitlines() == [
        "── a call waits for your yes (1 of 3) ──",
        "  agent      codex",
        "  workspace  /home/me/project",
        "  tool       Bash",
        '  command    "$TOOL" x',
        "  arguments  {",
        '               "timeout": 5',
        "             }",
        "  why        the program is hidden",
        "  asked by   no-deletes",
        "  question   q-7f3a  (digest 8a1f8a1f8a1f)",
        "  answer     within 118 s, or the call is refused",
    ]


def test_a_settled_question_says_how_it_ended() -> None:
    """In place of the time that is left."""
    block = question_block(question(state="expired"), now=500.0, width=100).plain

    assert "answer     it expired: nobody answered in time" in block
    assert "(1 of" not in block


def test_what_is_left_out_is_said() -> None:
    """Long arguments lose their middle, and arguments that were too long to keep are marked."""
    long = "\n".join(f"line {number}" for number in range(500))

    block = question_block(question({"command": long}, is_whole=False), now=0, width=100).plain

    assert "line 0\n" in block
    assert "line 499\n" in block
    assert f"… {500 - LINES_SHOWN} lines are not shown here" in block
    assert "too long to be shown whole" in block


@pytest.mark.parametrize("arguments", [{}, {"command": ""}, {"command": ["ls"]}, {"path": "a"}])
def test_arguments_of_any_form_are_shown(arguments: dict[str, object]) -> None:
    """No arguments are said to be none; a command that is no text is shown as it is."""
    block = question_block(question(arguments), now=0, width=100).plain

    assert "arguments  none" in block if not arguments else "arguments  {" in block


TEXTS = st.text() | st.text(alphabet="ab \n\t\r\x1b[31m\u202e\u200b界")


@given(TEXTS, TEXTS, TEXTS, st.integers(10, 120))
def test_no_text_of_the_call_poses_as_ours(command: str, tool: str, reason: str, width: int) -> None:
    """Nothing moves the cursor, and no line of the call starts where our labels stand."""
    told = question({"command": command, "x": command}, tool_name=tool, reason=reason)
    block = question_block(told, now=0, width=width).plain
    lines = block.removesuffix("\n").split("\n")

    assert all(line.isprintable() for line in lines)
    labels = [line[:13].strip() for line in lines[1:]]
    assert [label for label in labels if label] in (
        ["agent", "workspace", "tool", "command", "arguments", "why", "asked by", "question", "answer"],
        ["agent", "workspace", "tool", "arguments", "why", "asked by", "question", "answer"],
    )
    assert all(cell_len(line) <= max(width, 37) for line in lines[1:])


def test_a_line_of_a_list_is_short_and_harmless() -> None:
    """The command in one line, cut, with escapes for what does not print."""
    assert subject(question({"command": "a\nb"}), 70) == "a\\nb"
    assert subject(question({"n": 1}), 70) == '{"n": 1}'
    assert subject(question({"path": "x" * 100}), 10) == "x" * 9 + "…"
    assert visible("ok") == "ok"


def test_machines_get_everything_but_the_mark() -> None:
    """One JSON object with the state in words."""
    told = json.loads(json.dumps(question_json(question())))

    assert told["arguments"] == {"command": '"$TOOL" x', "timeout": 5}
    assert (told["state"], told["ending"]) == ("waiting", "waits")
    assert "mark" not in told
