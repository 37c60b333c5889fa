"""effects.codec: effects and rules go to JSON and come back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.effects import (
    ANNOTATION_SEVERITIES,
    EFFECT_KINDS,
    HOOKS,
    REMINDER_SEVERITIES,
    AnnotateToolResult,
    BlockTool,
    Effect,
    InjectReminder,
    LockTools,
    NotifyOperator,
    ProtectPath,
    RequestContinuation,
    RequireTool,
)
from interpose.contracts.errors import ConfigError
from interpose.effects.codec import effect_from_json, effect_to_json, rule_from_json, rule_to_json
from interpose.effects.rules import Rule

TEXTS = st.text(min_size=1).filter(lambda text: bool(text.strip()))
EFFECTS: st.SearchStrategy[Effect] = st.one_of(
    st.builds(InjectReminder, TEXTS, st.sampled_from((None, *REMINDER_SEVERITIES))),
    st.builds(AnnotateToolResult, TEXTS, st.sampled_from((None, *ANNOTATION_SEVERITIES))),
    st.builds(BlockTool, TEXTS),
    st.builds(ProtectPath, TEXTS, TEXTS),
    st.builds(RequestContinuation, TEXTS),
    st.builds(RequireTool, TEXTS),
    st.builds(LockTools),
    st.builds(NotifyOperator, TEXTS, TEXTS),
)
RULES = st.builds(
    Rule,
    st.from_regex(r"\A[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*\Z"),
    TEXTS,
    st.booleans(),
    st.lists(st.sampled_from(HOOKS), min_size=1, unique=True).map(tuple),
    st.lists(st.sampled_from(EFFECT_KINDS), min_size=1, unique=True).map(tuple),
)


@given(EFFECTS)
def test_effects_come_back_from_json(effect: Effect) -> None:
    """Every effect is the same after a trip through JSON text."""
    assert effect_from_json(json.loads(json.dumps(effect_to_json(effect)))) == effect


@given(RULES)
def test_rules_come_back_from_json(rule: Rule) -> None:
    """Every rule is the same after a trip through JSON text."""
    assert rule_from_json(json.loads(json.dumps(rule_to_json(rule)))) == rule


def test_field_names_are_those_of_the_format() -> None:
    """JSON says toolName and effectKinds, the kind comes first, an absent severity is left out."""
    assert list(effect_to_json(RequireTool("read")).items()) == [("kind", "require_tool"), ("toolName", "read")]
    assert effect_to_json(InjectReminder("m")) == {"kind": "inject_reminder", "message": "m"}
    assert effect_to_json(BlockTool("r")) == {"kind": "block_tool", "reason": "r", "severity": "hard-block"}
    assert list(rule_to_json(Rule("a", "d", False, ("turn_end",), ("lock_tools",)))) == [
        "id",
        "source",
        "description",
        "enabled",
        "hooks",
        "effectKinds",
    ]


def test_what_was_not_written_by_it_is_refused_with_every_issue() -> None:
    """Reading something else raises one error that holds all issues."""
    with pytest.raises(ConfigError, match=r"\$\.path: expected text.*\$\.reason: expected text"):
        effect_from_json({"kind": "protect_path"})
    with pytest.raises(ConfigError, match="line 4"):
        rule_from_json(None, "line 4")
