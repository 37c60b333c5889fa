"""journal.text."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.journal import Record, StoredRecord
from interpose.journal.text import SUBJECT_CHARS, plain, record_line, story_lines, subject

GOLDEN = Path(__file__).parent / "golden"

CALL = Record(
    at=1_700_000_000.25,
    action="a7f3ak29xq",
    step="verdict",
    stage="tool.call",
    mount="wire",
    workspace="/home/me/project",
    session="s1",
    launch="l7f3ak29x",
    agent="claude-code",
    tool="shell",
    wire_name="Bash",
    call_id="toolu_01",
)
REFUSED = replace(
    CALL,
    handler="no-recursive-delete",
    outcome="refused",
    reason="Deleting folders is not allowed here. Name the files instead.",
    duration_ms=1.24,
    data={"input": {"command": "rm -rf build", "timeout": 5}},
)
ANSWER = replace(
    CALL,
    step="answer",
    handler="no-recursive-delete",
    kind="rule",
    phase="check",
    answer="effects",
    reason="",
    duration_ms=0.42,
    data={
        "effects": [
            {"kind": "block_tool", "reason": "Deleting folders is not allowed here.", "severity": "hard-block"},
            {"kind": "notify_operator", "message": "a delete was tried", "key": "delete"},
        ]
    },
)
OBSERVED = replace(
    CALL,
    step="answer",
    handler="try-out",
    kind="user_hook",
    phase="check",
    answer="unknown",
    outcome="observed",
    reason="the command has a variable in it",
)
APPLIED = replace(CALL, at=1_700_000_000.5, step="applied", outcome="the refusal was written to the reply")
RESULT = replace(
    CALL,
    at=1_700_000_002.0,
    stage="tool.result",
    outcome="allowed",
    duration_ms=0.3,
    data={
        "output": "total 0",
        "chars": 7,
        "annotations": [{"handler": "tests", "severity": "info", "message": "Run the tests."}],
        "reminders": [{"handler": "tests", "severity": "warn", "message": "Tests have not run."}],
        "continuation": "go on",
        "tool_choice": {"mode": "required", "tool_name": "shell"},
    },
)
LINES = (
    ANSWER,
    OBSERVED,
    REFUSED,
    replace(REFUSED, outcome="allowed", handler="", reason="", agent="", launch="", data={"input": {"n": [1, 2]}}),
    APPLIED,
    RESULT,
    Record(
        CALL.at, "a1", "verdict", stage="turn.start", mount="process", outcome="allowed", data={"prompt": "Hi\nyou"}
    ),
    Record(CALL.at, "a2", "not_judged_yet", mount="wire", agent="codex", reason="the Responses API is not judged yet"),
    Record(CALL.at, "a3", "request", mount="wire", data={"method": "POST", "path": "/v1/messages", "status": 200}),
    Record(CALL.at, "a4", "notice", handler="limits", reason="half of the budget is used"),
    Record(CALL.at, "g1", "problem", outcome="gap", reason="3 records are missing"),
    Record(CALL.at, "a5", "failed", handler="slow", reason="TimeoutError", duration_ms=1000.0),
    Record(CALL.at, "a6", "started"),
    Record(CALL.at, "a7", "verdict"),
    Record(1e300, "a8", "answer"),
    Record(CALL.at, "r9", "skipped", mount="wire", outcome="unjudged", reason="a model runs at /batches, unjudged"),
    Record(CALL.at, "a10", "skipped", handler="guard", outcome="disabled"),
)


def test_each_kind_of_record_is_one_readable_line(golden: Callable[[str, Path], None]) -> None:
    """The golden file holds a line for every step that people see."""
    text = "".join(plain(record_line(record)) + "\n" for record in LINES)

    golden(text, GOLDEN / "lines.txt")


@pytest.mark.parametrize(
    ("name", "records"),
    [
        ("refused", (ANSWER, OBSERVED, REFUSED, APPLIED)),
        ("allowed", (replace(REFUSED, outcome="allowed", handler="", reason=""), RESULT)),
        ("unjudged", (LINES[7],)),
    ],
)
def test_a_story_tells_who_saw_it_what_each_said_and_how_it_ended(
    name: str, records: tuple[Record, ...], golden: Callable[[str, Path], None]
) -> None:
    """The golden files hold what `explain` prints for a refusal, a call with its result, and an unjudged request."""
    story = [StoredRecord(number, record) for number, record in enumerate(records, 1)]

    text = "".join(plain(line) + "\n" for line in story_lines(story))

    golden(text, GOLDEN / f"explain-{name}.txt")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"input": {"timeout": 5, "command": "ls"}}, "ls"),
        ({"input": {"path": "notes/a.md", "content": "x"}}, "notes/a.md"),
        ({"input": {}}, ""),
        ({"input": "not an object"}, ""),
        ({"output": "abc"}, "3 characters"),
        ({"input": {"command": "x" * 5_000}}, "x" * (SUBJECT_CHARS - 1) + "…"),
    ],
)
def test_the_subject_is_what_a_person_looks_for_first(data: dict[str, object], told: str) -> None:
    """The command, path or size, short enough for a line; nothing where there is none."""
    assert subject(replace(CALL, data=data)) == told


def test_an_unknown_action_has_no_story() -> None:
    """Nothing is made up."""
    assert story_lines(()) == ()


def test_times_are_shown_where_the_person_is() -> None:
    """The zone is the caller's to choose."""
    assert plain(record_line(CALL, tz=timezone(timedelta(hours=2)))).startswith("00:13:20")


def test_pieces_say_what_they_are() -> None:
    """A screen can colour a refusal without reading the words."""
    pieces = record_line(REFUSED)

    assert [piece.text.strip() for piece in pieces if piece.role == "bad"] == ["refused"]
    assert [piece.text for piece in pieces if piece.role == "name"] == ["by no-recursive-delete"]


@given(st.text(), st.text(), st.text(), st.floats(allow_nan=False))
def test_nothing_in_a_record_breaks_the_line_or_moves_the_cursor(
    tool: str, command: str, reason: str, at: float
) -> None:
    """Escapes, line ends and bidirectional marks are shown, never sent to the terminal."""
    record = replace(
        REFUSED,
        at=at,
        tool=tool,
        reason=f"\x1b[2J{reason}\r\n\u202e",
        handler=tool,
        data={"input": {"command": command}, "effects": [{"kind": reason, "message": command}]},
    )

    lines = [record_line(record), *story_lines([StoredRecord(1, record)])]

    assert all(piece.text.isprintable() for line in lines for piece in line)
    assert "\\x1b[2J" in plain(lines[0])


def test_a_patch_is_told_with_what_it_changed() -> None:
    """Each field with before and after, short enough for a line; a dash where there was nothing."""
    changes = {
        "command": {"before": "ls", "after": "ls -l"},
        "cwd": {"before": None, "after": "/w"},
        "messages": {"before": [{"a": 1}], "after": ["x" * 1_000]},
        "odd": 7,
    }
    patch = replace(
        CALL, step="answer", handler="safer", kind="python", phase="shape", answer="patch", data={"changes": changes}
    )

    told = [plain(line).strip() for line in story_lines([StoredRecord(1, patch)])]

    assert "command: ls → ls -l" in told
    assert "cwd: - → /w" in told
    (long,) = (line for line in told if line.startswith("messages: "))
    assert long.startswith('messages: [{"a": 1}] → ["xxx')
    assert len(long) < 2 * SUBJECT_CHARS + 20
    assert not any("odd" in line for line in told)
