"""demo: the story's project, and a model that answers to what it is told."""

from collections.abc import Mapping
from pathlib import Path

from interpose.demo.story import NOTE, PROJECT, make_project, script
from interpose.testing.upstream import RecordedRequest, Reply, Text, ToolUse


def told(*messages: Mapping[str, object]) -> RecordedRequest:
    """A request with these messages."""
    return RecordedRequest("POST", "/v1/messages", {}, b"", {"messages": list(messages)})


def test_the_project_is_written_whole(tmp_path: Path) -> None:
    """Every file of the story is there, and its hooks are those given."""
    make_project(tmp_path, "hooks: []\n")

    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {*PROJECT, ".interpose/hooks.yaml"}
    assert (tmp_path / ".interpose" / "hooks.yaml").read_text() == "hooks: []\n"


def test_the_model_tries_to_delete_first() -> None:
    """The first reply proposes the recursive delete."""
    first = script()[0]

    assert isinstance(first, Reply)
    assert ToolUse("shell", {"command": "rm -rf build"}) in first.parts


def test_the_model_answers_to_what_came_of_it() -> None:
    """It says that it was refused only when it was, and finishes by what it could read."""
    _, after_deleting, after_reading = script()
    assert callable(after_deleting)
    assert callable(after_reading)
    refusal = {"role": "assistant", "content": [{"type": "text", "text": "[interpose] shell was refused by x: no"}]}
    deleted = {"role": "user", "content": [{"type": "tool_result", "content": "(no output)"}]}
    note = {"role": "user", "content": [{"type": "tool_result", "content": PROJECT[NOTE]}]}
    secret = {"role": "user", "content": "read was refused by x: no"}

    def words(reply: object) -> str:
        assert isinstance(reply, Reply)
        texts = [part.text for part in reply.parts if isinstance(part, Text)]
        return " ".join([*texts, *(str(part.input) for part in reply.parts if isinstance(part, ToolUse))])

    assert "refused" in words(after_deleting(told(refusal)))
    assert "Deleted" in words(after_deleting(told(deleted)))
    assert "make tidy" in words(after_reading(told(note)))
    assert "could not read" in words(after_reading(told(secret)))
