"""stages.payloads: whatever a handler patches, what will run is what the next one sees."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.catalog.reading import read_call
from interpose.contracts.decisions import Patch
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.stages import Context, ToolCall
from interpose.kernel.frozen import thaw
from interpose.stages.executor import Shaping, shape
from interpose.stages.payloads import PatchError, patched, subject_of

TOOLS = (
    ("claude-code", "Bash", {"command": "ls", "timeout": 5, "description": "x"}),
    ("codex", "shell", {"command": ["bash", "-lc", "ls -la"], "workdir": "/w"}),
    ("claude-code", "Edit", {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True}),
    ("opencode", "write", {"filePath": "a", "content": "b", "extra": [1]}),
    (None, "mystery", {"a": 1, "b": {"c": [None]}}),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(["command", "path", "old", "new", "content", "edits", "cwd", "timeout", "a", "b", "more"])
PATCHES = st.dictionaries(FIELDS, VALUES, max_size=4)


def shaped(agent: str | None, name: str, arguments: dict[str, Any], *patches: Any) -> tuple[Shaping, list[Any]]:
    """What a chain of such patches comes to, and what a handler behind them sees."""
    seen: list[Any] = []
    call = ToolCall(Context("process", "s", agent=agent), "c1", name, arguments)
    handlers = [
        ShapeHandler(f"h{number}", ("tool.call",), lambda point, patch=patch: Patch({**point.arguments, **patch}))  # type: ignore[misc]
        for number, patch in enumerate(patches)
    ]
    last = ShapeHandler("last", ("tool.call",), seen.append)
    return shape(call, (*handlers, last), read_call(agent, name, arguments)), seen


@pytest.mark.parametrize(("agent", "name", "arguments"), TOOLS)
@given(first=PATCHES, second=PATCHES)
def test_the_next_handler_sees_what_will_run(
    agent: str | None, name: str, arguments: dict[str, Any], first: Any, second: Any
) -> None:
    """Read anew from the agent's own words; a patch that would make them unreadable is not taken."""
    shaping, (seen,) = shaped(agent, name, arguments, first, second)

    assert isinstance(shaping.point, ToolCall)
    again = read_call(agent, name, shaping.point.arguments)
    assert again.problem is None
    assert thaw(seen.arguments) == thaw(again.input)
    assert shaping.form is not None
    assert thaw(shaping.form.input) == thaw(again.input)
    assert shaping.refusal is None


@pytest.mark.parametrize(("agent", "name", "arguments"), TOOLS)
def test_a_patch_of_what_is_there_changes_nothing(agent: str | None, name: str, arguments: dict[str, Any]) -> None:
    """Every field comes back as it came, those without a place in the hook form too."""
    shaping, _ = shaped(agent, name, arguments, {})

    assert isinstance(shaping.point, ToolCall)
    assert shaping.point.arguments == arguments
    assert not shaping.changed


def test_fields_that_nobody_knows_survive() -> None:
    """An edit touches the fields that it names."""
    shaping, _ = shaped(*TOOLS[3], {"content": "c"})

    assert isinstance(shaping.point, ToolCall)
    assert shaping.point.arguments == {"filePath": "a", "content": "c", "extra": [1]}


@given(payload=VALUES)
def test_no_payload_breaks_the_executor(payload: Any) -> None:
    """It is taken and can be read, or it is a PatchError."""
    call = ToolCall(Context("process", "s", agent="claude-code"), "c1", "Bash", {"command": "ls"})
    subject = subject_of(call, read_call("claude-code", "Bash", call.arguments))
    try:
        after = patched(subject, payload)
    except PatchError:
        after = subject
    assert after.form is not None
    assert after.form.problem is None
