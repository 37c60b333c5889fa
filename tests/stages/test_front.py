"""stages.front: the decorator."""

import pytest

import interpose
from interpose.contracts.decisions import Cancel, Patch
from interpose.contracts.errors import MisuseError
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.stages import ToolCall
from interpose.stages.front import on


def test_a_function_becomes_a_handler() -> None:
    """Its name is the id, its docstring the description, and it can still be called."""

    @on("tool.call", tools="shell")
    def safer(call: ToolCall) -> Patch:
        """Makes it safer.

        With more words.
        """
        return Patch({"command": f"echo {call.tool_name}"})

    assert isinstance(safer, ShapeHandler)
    assert (safer.id, safer.stages, safer.tools, safer.description) == (
        "safer",
        ("tool.call",),
        ("shell",),
        "Makes it safer.",
    )
    assert (safer.fail_closed, safer.on_unknown, safer.mode, safer.can_change) == (False, "ask", "enforce", True)


def test_everything_can_be_said() -> None:
    """One name stands for a tuple of one, several are taken as they are."""
    made = on(
        "llm.request",
        "llm.response",
        id="mine",
        agents=["codex", "opencode"],
        protocols="chat",
        fail_closed=True,
        timeout_s=1,
        before="a",
        after=("b", "c"),
        on_unknown="refuse",
        mode="observe",
    )(lambda _point: None)
    assert (made.id, made.stages, made.agents, made.protocols) == (
        "mine",
        ("llm.request", "llm.response"),
        ("codex", "opencode"),
        ("chat",),
    )
    assert (made.tools, made.before, made.after, made.timeout_s) == (None, ("a",), ("b", "c"), 1)
    assert (made.fail_closed, made.on_unknown, made.mode, made.description) == (True, "refuse", "observe", "")
    assert on("llm.chunk", protocols=["chat", "gemini"])(lambda _point: None).protocols == ("chat", "gemini")


def test_a_mistake_is_told_where_it_is_written() -> None:
    """Without stages, and with one that does not exist."""
    with pytest.raises(MisuseError, match=r'write @on\("tool.call"\)'):
        on(lambda _call: None)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="stages names none"):
        on()(lambda _call: None)
    with pytest.raises(MisuseError, match="'before_tool' is not possible"):
        on("before_tool")(lambda _call: None)  # type: ignore[arg-type]


def test_the_package_has_the_names() -> None:
    """`from interpose import on, Cancel, Patch, Continue, Unknown`."""
    assert interpose.on is on
    assert (interpose.Cancel, interpose.Patch) == (Cancel, Patch)
    assert {"on", "Cancel", "Patch", "Continue", "Unknown", "ShapeHandler"} <= set(interpose.__all__)
