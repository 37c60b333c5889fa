"""effects.validation: every issue with its path, no partial values."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.effects import (
    EFFECT_KINDS,
    AnnotateToolResult,
    BlockTool,
    Effect,
    InjectReminder,
    LockTools,
    NotifyOperator,
    ProtectPath,
    Registration,
    RequestContinuation,
    RequireTool,
)
from interpose.effects.rules import Rule
from interpose.effects.validation import Invalid, Valid, registration_issues, validate_effect, validate_rule
from tests.effects.making import emitting

WHOLE_EFFECTS: list[tuple[dict[str, Any], Effect]] = [
    ({"kind": "inject_reminder", "message": " m "}, InjectReminder(" m ")),
    ({"kind": "inject_reminder", "message": "m", "severity": "hard-block"}, InjectReminder("m", "hard-block")),
    ({"kind": "annotate_tool_result", "message": "m", "severity": "warn"}, AnnotateToolResult("m", "warn")),
    ({"kind": "block_tool", "reason": "r", "severity": "hard-block"}, BlockTool("r")),
    ({"kind": "protect_path", "path": ".env", "reason": "r"}, ProtectPath(".env", "r")),
    ({"kind": "request_continuation", "message": "m"}, RequestContinuation("m")),
    ({"kind": "require_tool", "toolName": "read"}, RequireTool("read")),
    ({"kind": "lock_tools"}, LockTools()),
    ({"kind": "notify_operator", "message": "m", "key": "k"}, NotifyOperator("m", "k")),
]
RULE: dict[str, Any] = {
    "id": "nudge.stalled-turn",
    "source": "builtin",
    "description": "Carries a turn onward.",
    "enabled": True,
    "hooks": ["turn_end"],
    "effectKinds": ["request_continuation"],
}
KEYS = st.sampled_from(["kind", "message", "severity", "reason", "path", "hooks", "id", "effectKinds"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(EFFECT_KINDS),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


def effect_issues(value: Any, source: str = "$") -> list[str]:
    """The issues as lines."""
    return [str(issue) for issue in validate_effect(value, source).issues]


def rule_issues(**changes: Any) -> list[str]:
    """The issues of the good rule with `changes`."""
    return [str(issue) for issue in validate_rule(RULE | changes).issues]


@pytest.mark.parametrize(("value", "effect"), WHOLE_EFFECTS)
def test_each_kind_is_read_whole(value: dict[str, Any], effect: Effect) -> None:
    """A complete value of each kind becomes its effect; texts are kept untrimmed."""
    assert validate_effect(value) == Valid(effect)


@pytest.mark.parametrize("value", [None, 5, "block_tool", ["block_tool"], True])
def test_what_is_no_object_is_one_issue_at_the_source(value: Any) -> None:
    """A value that is not an object has one issue, at the source."""
    (issue,) = validate_effect(value, "hooks[2].effect").issues
    assert issue.path == "hooks[2].effect"
    assert issue.message.startswith("expected an object with a kind, found ")


@pytest.mark.parametrize(
    "kind", ["require_validation", "record_memory_candidate", "BLOCK_TOOL", "", None, ["x"], {}, date(2026, 1, 1)]
)
def test_an_unknown_kind_is_one_issue_and_stops(kind: Any) -> None:
    """Unknown and removed kinds are refused at `kind` with all that is possible, and nothing else is looked at."""
    (issue,) = validate_effect({"kind": kind, "extra": 1}).issues
    assert issue.path == "$.kind"
    assert ", ".join(EFFECT_KINDS) in issue.message


def test_a_missing_kind_says_so() -> None:
    """Without a kind the issue says that it is missing."""
    assert effect_issues({"message": "m"})[0].startswith("$.kind: is missing; expected one of inject_reminder")


def test_all_problems_of_one_effect_are_collected() -> None:
    """Unexpected keys (sorted), blank texts and a wrong severity are reported together."""
    value = {"kind": "block_tool", "zeta": 1, "alpha": 2, "reason": " \n", "severity": "warn"}
    assert effect_issues(value, "e") == [
        "e.alpha: unexpected key; expected only kind, reason, severity",
        "e.zeta: unexpected key; expected only kind, reason, severity",
        "e.reason: expected text that is not blank, found ' \\n'",
        "e.severity: expected one of hard-block, found 'warn'",
    ]


@pytest.mark.parametrize("severity", [None, "", 1, "hard-block", "Warn", ["warn"]])
def test_a_severity_that_is_present_must_be_one_of_its_kind(severity: Any) -> None:
    """An optional severity may be absent; null, blank, other types and other kinds' severities are refused."""
    (issue,) = validate_effect({"kind": "annotate_tool_result", "message": "m", "severity": severity}).issues
    assert issue.path == "$.severity"


def test_block_tool_needs_its_severity() -> None:
    """block_tool without a severity is refused."""
    assert effect_issues({"kind": "block_tool", "reason": "r"}) == [
        "$.severity: expected one of hard-block, found nothing"
    ]


def test_lock_tools_takes_its_kind_alone() -> None:
    """Any other key of lock_tools is unexpected, a key that is no text too."""
    assert effect_issues({"kind": "lock_tools", "reason": "r", 7: 1}) == [
        "$.7: unexpected key; expected only kind",
        "$.reason: unexpected key; expected only kind",
    ]


@given(JSON_VALUES)
def test_validation_never_raises(value: Any) -> None:
    """Whatever JSON comes, the outcome is a value, and an invalid one has issues."""
    for outcome in (validate_effect(value), validate_rule(value)):
        assert isinstance(outcome, Valid) or outcome.issues


def test_a_whole_rule_is_read() -> None:
    """The good rule is valid, one with a continuation effect as well as any."""
    assert validate_rule(RULE) == Valid(
        Rule("nudge.stalled-turn", "Carries a turn onward.", True, ("turn_end",), ("request_continuation",))
    )


@pytest.mark.parametrize("rule_id", ["Nudge", "1st", "a..b", ".a", "a.", "a_b", "a b", "a.-b", "a\n"])
def test_a_rule_id_is_lowercase_kebab_in_segments(rule_id: str) -> None:
    """Ids outside the grammar are refused."""
    (issue,) = rule_issues(id=rule_id)
    assert issue.startswith("$.id: expected lowercase words")


def test_lists_of_a_rule_report_by_position() -> None:
    """Removed, unknown, repeated and mistyped members are reported by their index; an empty list as a whole."""
    assert rule_issues(hooks=["turn_end", "before_model", "turn_end"], effectKinds=[]) == [
        "$.hooks[1]: 'before_model' is not one of before_tool, after_tool, turn_start, turn_end, on_compaction",
        "$.hooks[2]: 'turn_end' is listed twice",
        f"$.effectKinds: expected a list of at least one of {', '.join(EFFECT_KINDS)}",
    ]
    assert rule_issues(effectKinds=["require_validation", 3])[0].startswith("$.effectKinds[0]: 'require_validation'")
    assert rule_issues(effectKinds=["lock_tools", 3])[0].startswith("$.effectKinds[1]: the number 3 is not one of")


def test_other_fields_of_a_rule() -> None:
    """Source, description, enabled and unknown keys are each checked; all at once."""
    found = rule_issues(source="user", description=" ", enabled=1, payload={})
    assert found == [
        "$.payload: unexpected key; expected only id, source, description, enabled, hooks, effectKinds",
        "$.source: expected \"builtin\", found 'user'",
        "$.description: expected text that is not blank, found ' '",
        "$.enabled: expected true or false, found the number 1",
    ]
    assert isinstance(validate_rule({}), Invalid)
    assert isinstance(validate_rule([]), Invalid)


def test_a_registration_that_cannot_be_evaluated_has_issues() -> None:
    """Everything wrong with a registration is named, with its id; a good one has none."""

    async def evaluate(*_given: object) -> list[Effect]:
        return []

    wrong: dict[str, Any] = {"hooks": ("before_model",), "tool_names": "read", "evaluate": evaluate, "mode": "watch"}
    wrong["reads"] = "resultKind"
    found = [str(issue) for issue in registration_issues(Registration("guard.x", "d", **wrong))]
    assert [line.split(":")[0] for line in found] == [
        "guard.x.hooks[0]",
        "guard.x.tool_names",
        "guard.x.reads",
        "guard.x.evaluate",
        "guard.x.mode",
    ]
    assert registration_issues(emitting("Any id: a person wrote it")) == ()
    neither = registration_issues(Registration(" ", "d", ("turn_end",)))
    assert [issue.path for issue in neither] == ["registration.id", "registration.evaluate"]
    mistaken: Any = "module:function"
    (uncallable,) = registration_issues(Registration("a", "d", ("turn_end",), evaluate=mistaken))
    assert str(uncallable) == "a.evaluate: expected something to call, found 'module:function'"
