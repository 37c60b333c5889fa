"""The rule `nudge.skill-suggestion-wait`: a turn that suggested a skill, asked whether to use it, and stopped there.

Knows: how such a turn reads. Does not know: which skills exist.
"""

import re
from typing import Final

from interpose.contracts.effects import HookInput, RequestContinuation
from interpose.effects.rules import Rule, RuleDefinition
from interpose.guards.given import ended_normally, names_in, number_of, whole_text
from interpose.guards.sentences import is_question, last_line, last_sentence

SKILL_WAIT_ID: Final = "nudge.skill-suggestion-wait"
SUGGESTION: Final = "Suggested skill: /skill "
"""How a suggestion begins, to the letter."""

_LISTING_TOOL: Final = "context"
_WAITS: Final = re.compile(r"(?<!\w)/skill\b|\bskills?\b|\bskip\b|\blet me know\b", re.IGNORECASE)
_MESSAGE: Final = (
    "You suggested a skill and stopped to wait for an answer. A suggestion needs none: carry on with the task without "
    "the skill; the person can still call it."
)


def skill_suggestion_wait() -> RuleDefinition:
    """The rule; it keeps no state."""
    return RuleDefinition(
        rule=Rule(
            id=SKILL_WAIT_ID,
            description="carries on a turn that waits after suggesting a skill",
            enabled=True,
            hooks=("turn_end",),
            effect_kinds=("request_continuation",),
        ),
        effects=(RequestContinuation(_MESSAGE),),
        predicate=is_skill_suggestion_wait,
        reads=("turnToolNames",),
    )


def is_skill_suggestion_wait(given: HookInput) -> bool:
    """Whether the turn suggested a skill and ended by waiting, with nothing but the listing call behind it."""
    if given.hook != "turn_end" or not ended_normally(given):
        return False

    text = whole_text(given)
    if text is None or SUGGESTION not in text or not _only_listed(given):
        return False

    sentence = last_sentence(last_line(text))
    return is_question(sentence) or _WAITS.search(sentence) is not None


def _only_listed(given: HookInput) -> bool:
    names = names_in(given, "turnToolNames")
    if names is not None:
        return all(name == _LISTING_TOOL for name in names)
    return given.metadata.get("turnToolCalls") is None or number_of(given, "turnToolCalls") == 0
