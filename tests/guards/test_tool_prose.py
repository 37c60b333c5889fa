"""guards.tool_prose: prose about tool calls in their place."""

from dataclasses import replace

import pytest

from interpose.contracts.effects import InjectReminder, MetadataValue
from interpose.guards.tool_prose import narrates_tools, tool_prose
from tests.guards.making import ended, evaluated

PADDING = "I think about it. " * 80
METADATA: dict[str, MetadataValue] = {
    "runtimeTier": "local-native",
    "hasStructuredToolCall": False,
    "activeToolNames": "read,code_nav",
}
NARRATION = PADDING + "The read tool call is next. " * 4


def test_a_narrating_local_model_is_stopped() -> None:
    """One reminder that ends the run."""
    effects = evaluated(tool_prose(), replace(ended(NARRATION), metadata=METADATA))
    assert [(type(effect), effect.severity) for effect in effects if isinstance(effect, InjectReminder)] == [
        (InjectReminder, "hard-block")
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"runtimeTier": "cloud"},
        {"runtimeTier": None},
        {"hasStructuredToolCall": True},
        {"hasStructuredToolCall": None},
        {"activeToolNames": ""},
        {"activeToolNames": None},
        {"activeToolNames": "write"},
        {"stopReason": "aborted"},
    ],
)
def test_every_other_turn_is_left_alone(change: dict[str, MetadataValue]) -> None:
    """Another runtime, a real call, no tools or a cut turn are no such loop."""
    assert evaluated(tool_prose(), replace(ended(NARRATION), metadata=METADATA | change)) == ()


@pytest.mark.parametrize(
    ("text", "narrates"),
    [
        ("the read tool call, " * 3, False),
        ("the read tool call, " * 4, True),
        ("the READ\n  tool   call, " * 4, True),
        ("execute the read tool, " * 4, True),
        ("make the read tool, " * 4, False),
        ("use the read tool call. " * 2, True),
        ("use the read tool call. ", False),
        ("code nav tool call, code-nav tool call, code_nav tool call, code nav tool call", True),
        ("the unread tool call, " * 4, False),
        ("the write tool call, " * 4, False),
        ("I will execute the write call. " * 4, True),
        ("I\u2019ll now make the write tool call. " * 4, True),
        ("I'm going to use the some-tool call. " * 4, True),
        ("I'll use the write tool. " * 4, False),
        ("I'll use the write call. " * 2 + "the read tool call. " * 3, False),
    ],
)
def test_four_phrases_about_one_tool_make_a_narration(text: str, narrates: bool) -> None:
    """The three patterns are summed for each tool; the first person counts on its own."""
    assert narrates_tools(PADDING + text, ["read", "code_nav"]) is narrates


def test_a_short_text_is_no_narration() -> None:
    """It takes 1,200 characters."""
    text = "the read tool call. " * 60
    assert len(text) == 1_200
    assert narrates_tools(text, ["read"])
    assert not narrates_tools(text[:-1], ["read"])
    assert not narrates_tools(text, [])


def test_a_tool_name_is_no_pattern() -> None:
    """Characters of a name mean themselves."""
    assert not narrates_tools(PADDING + "the read tool call. " * 4, ["r.*d", "(", "[a-z"])
