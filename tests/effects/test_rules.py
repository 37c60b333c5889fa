"""effects.rules: data becomes a registration."""

import pytest

from interpose.contracts.effects import HookInput, LockTools
from interpose.contracts.errors import MisuseError
from interpose.effects.rules import Rule, RuleDefinition
from tests.effects.making import engine, rule, saying

END = HookInput("turn_end", tool_name="read", metadata={"turnToolCalls": 0})


def test_a_match_emits_effect_and_id() -> None:
    """An enabled rule at its hook emits what it declares, as kind rule."""
    result = engine(rules=[rule("nudge.a")]).run_hook(END)
    assert (result.effects, result.rule_ids) == ((saying("nudge.a"),), ("nudge.a",))
    assert result.emissions[0].registration.kind == "rule"


def test_rules_that_do_not_match_emit_nothing() -> None:
    """Another hook, another tool, disabled and a false predicate all emit nothing and list no id."""
    rules = [
        rule("a", hooks=("turn_start",)),
        rule("b", tool_names=("write",)),
        rule("c", enabled=False),
        rule("d", predicate=lambda given: given.metadata.get("turnToolCalls") == 1),
    ]
    result = engine(rules=rules).run_hook(END)
    assert (result.effects, result.rule_ids) == ((), ())


def test_a_scoped_rule_needs_the_tool() -> None:
    """A rule with tool names emits for them and not without a tool."""
    one = engine(rules=[rule("a", tool_names=("read",))])
    assert one.run_hook(END).rule_ids == ("a",)
    assert one.run_hook(HookInput("turn_end")).rule_ids == ()


def test_undeclared_kinds_are_dropped() -> None:
    """Effects of kinds the rule does not declare are not emitted; with nothing left its id is omitted."""
    declared = RuleDefinition(Rule("a", "d", True, ("turn_end",), ("inject_reminder",)), (LockTools(), saying("yes")))
    undeclared = RuleDefinition(Rule("b", "d", True, ("turn_end",), ("inject_reminder",)), (LockTools(),))
    result = engine(rules=[declared, undeclared]).run_hook(END)
    assert (result.effects, result.rule_ids) == ((saying("yes"),), ("a",))


def test_a_predicate_that_raises_is_isolated() -> None:
    """Its rule fails and the next one emits."""
    rules = [rule("a", predicate=lambda given: 1 // len(given.metadata) > 1), rule("b")]
    assert engine(rules=rules).run_hook(HookInput("turn_end")).rule_ids == ("b",)


def test_a_wrong_rule_is_refused_with_all_its_issues() -> None:
    """A definition with a bad id and a blank effect is misuse, and every issue is in the text."""
    wrong = rule("Bad Id", saying(" "))
    with pytest.raises(MisuseError, match=r"rule Bad Id\.id: .*; rule Bad Id\.effects\[0\]\.message: "):
        engine(rules=[wrong])
