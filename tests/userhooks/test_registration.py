"""userhooks.registration: what a refusal says."""

from pathlib import Path
from typing import Any

import pytest

from interpose.catalog.reading import read_call
from interpose.command.reader import CommandReader
from interpose.contracts.effects import BlockTool, EvaluationContext, HookInput
from interpose.userhooks.hooks import Source
from interpose.userhooks.matching import Workspace
from interpose.userhooks.normalise import normalise
from interpose.userhooks.registration import registration_of

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n*** Delete File: .env\n*** End Patch\n"


def said(root: Path, tool: str, arguments: dict[str, Any], **keys: Any) -> tuple[object, ...]:
    """The effects of one hook about one call."""
    raw = {"on": "before_tool", "kind": "effect", "effect": {"kind": "block_tool", "reason": "No."}, **keys}
    hook, problems = normalise(raw, Source("project", "hooks.yaml"))
    assert hook is not None, problems
    form = read_call("process", tool, arguments)
    evaluate = registration_of(hook, Workspace(str(root), "/home/ann"), CommandReader()).evaluate
    assert evaluate is not None
    answer = evaluate(HookInput("before_tool", tool_name=form.name, tool_args=form.input), EvaluationContext())
    assert isinstance(answer, tuple)
    return answer


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("read", {"path": ".env"}, "No."),
        ("read", {"path": "./src/../.env"}, "No."),
        ("read", {"path": "notes"}, "No. (file: .env)"),
        ("search", {"pattern": "x", "glob": ".e*"}, "No. (file: .e*)"),
        ("patch", {"patch": PATCH}, "No. (file: .env)"),
        ("shell", {"command": "cat .env"}, "No. (file: .env)"),
        ("shell", {"command": "grep -r x ."}, "No. (file: .env)"),
        ("shell", {"command": "cd src && ls && cat ../.env"}, "No. (in: cat ../.env; file: .env)"),
        ("shell", {"command": "ls; tar cf x ../x"}, "No. (in: tar cf x ../x; file: .env)"),
    ],
)
def test_a_refusal_names_the_file_and_the_part(
    tmp_path: Path, tool: str, arguments: dict[str, Any], reason: str
) -> None:
    """What the call says in so many words is not said again."""
    root = tmp_path / "x"
    (root / "src").mkdir(parents=True)
    (root / ".env").touch()
    (root / "notes").symlink_to(root / ".env")

    assert said(root, tool, arguments, path=".env") == (BlockTool(reason),)


def test_a_refused_command_is_named_where_there_are_several(tmp_path: Path) -> None:
    """A line of one command is that command."""
    rule = {"command": "rm -r"}
    long = "x" * 200

    assert said(tmp_path, "shell", {"command": "rm -rf build"}, **rule) == (BlockTool("No."),)
    assert said(tmp_path, "shell", {"command": "ls\nrm -rf build"}, **rule) == (BlockTool("No. (in: rm -rf build)"),)
    found = said(tmp_path, "shell", {"command": f"ls; rm -r {long}"}, **rule)[0]
    assert isinstance(found, BlockTool)
    assert found.reason.endswith("x…)")
    assert len(found.reason) < 140


def test_both_questions_of_a_hook_are_told_in_one_clause(tmp_path: Path) -> None:
    """The part from either, the file from the path."""
    (tmp_path / ".env").touch()
    found = said(tmp_path, "shell", {"command": "ls; cp .env x"}, command="cp", path=".env")

    assert found == (BlockTool("No. (in: cp .env x; file: .env)"),)


def test_other_effects_pass_as_they_are(tmp_path: Path) -> None:
    """Only a refusal needs to say what it is about."""
    effect = {"kind": "annotate_tool_result", "message": "Look."}
    found = said(tmp_path, "shell", {"command": "ls; rm -r x"}, command="rm", effect=effect)

    assert [getattr(one, "message", None) for one in found] == ["Look."]
