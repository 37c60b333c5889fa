"""guards.skill_wait: a turn that suggested a skill and stopped there."""

from dataclasses import replace

import pytest

from interpose.contracts.effects import MetadataValue, RequestContinuation
from interpose.effects.rules import rule_registration
from interpose.guards.skill_wait import is_skill_suggestion_wait, skill_suggestion_wait
from tests.guards.making import NOTHING, call, ended, turn_hook

SUGGESTED = "Suggested skill: /skill release\n\n"


@pytest.mark.parametrize(
    "last",
    [
        "Shall I go on?",
        "Call /skill release to use it.",
        "Use the skill or skip it.",
        "Other Skills are there.",
        "Say skip.",
        "Let me know.",
        "It is ready. (Should I?)",
    ],
)
def test_a_turn_that_waits_for_an_answer_is_seen(last: str) -> None:
    """The last sentence asks, or talks of skills, of skipping or of being told."""
    assert is_skill_suggestion_wait(ended(SUGGESTED + last))


@pytest.mark.parametrize(
    "text",
    [
        SUGGESTED + "I went on and fixed the bug.",
        "suggested skill: /skill release\nShall I?",
        "Shall I use the skill?",
        "Suggested skill: release\nShall I?",
        SUGGESTED + "It takes much skillfulness.",
    ],
)
def test_a_turn_that_suggested_nothing_or_went_on_is_left_alone(text: str) -> None:
    """The suggestion is literal, and the last sentence must wait."""
    assert not is_skill_suggestion_wait(ended(text))


@pytest.mark.parametrize(
    ("metadata", "waits"),
    [
        ({"turnToolNames": "context"}, True),
        ({"turnToolNames": "context, context"}, True),
        ({"turnToolNames": ""}, True),
        ({"turnToolNames": "context,read"}, False),
        ({"turnToolNames": "context", "turnToolCalls": 5}, True),
        ({"turnToolCalls": 0}, True),
        ({"turnToolCalls": None}, True),
        ({"turnToolCalls": 1}, False),
        ({"turnToolCalls": "0"}, False),
        ({}, True),
        ({"stopReason": "length"}, False),
        ({"stopReason": "end_turn"}, True),
        ({"assistantTextChars": 99_999}, False),
    ],
)
def test_only_the_listing_call_may_stand_behind_it(metadata: dict[str, MetadataValue], waits: bool) -> None:
    """Another tool, or a stop that is not normal, is no waiting."""
    assert is_skill_suggestion_wait(replace(ended(SUGGESTED + "Shall I?"), metadata=metadata)) is waits


def test_other_hooks_never_wait() -> None:
    """Only the end of a turn is looked at."""
    assert not is_skill_suggestion_wait(call())
    assert not is_skill_suggestion_wait(turn_hook("turn_start", SUGGESTED + "Shall I?"))
    assert not is_skill_suggestion_wait(turn_hook("turn_end"))


def test_the_rule_asks_for_one_continuation() -> None:
    """The rule is data with one effect."""
    registration = rule_registration(skill_suggestion_wait())
    assert registration.evaluate is not None
    effects = registration.evaluate(ended(SUGGESTED + "Shall I?"), NOTHING)
    assert [type(effect) for effect in effects] == [RequestContinuation]  # type: ignore[union-attr]
