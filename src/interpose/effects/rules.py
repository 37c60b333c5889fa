"""Rules: registrations that are data.

Knows: a rule's declarative half, its effects and its pure predicate. Does not know: which rules are built in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from interpose.contracts.effects import Effect, EffectKind, EvaluationContext, Hook, HookInput, Registration

RuleSource: TypeAlias = Literal["builtin"]
Predicate: TypeAlias = Callable[[HookInput], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """The half of a rule that travels in snapshots: names and kinds, no payload."""

    id: str
    description: str
    enabled: bool
    hooks: tuple[Hook, ...]
    effect_kinds: tuple[EffectKind, ...]
    source: RuleSource = "builtin"


@dataclass(frozen=True, slots=True)
class RuleDefinition:
    """A rule with what it emits.

    Attributes:
        rule: its declarative half.
        effects: emitted in this order, those alone whose kind `rule.effect_kinds` lists.
        tool_names: as in `Registration`.
        predicate: emits only when it is true of the input; None is always true. Pure, and safe from any thread.
        reads: as in `Registration`.
    """

    rule: Rule
    effects: tuple[Effect, ...] = ()
    tool_names: tuple[str, ...] | None = None
    predicate: Predicate | None = None
    reads: tuple[str, ...] = ()


def rule_registration(definition: RuleDefinition) -> Registration:
    """The registration that evaluates a rule: nothing while it is disabled or its predicate is false."""
    rule = definition.rule
    predicate = definition.predicate
    declared = tuple(effect for effect in definition.effects if effect.kind in rule.effect_kinds)

    def evaluate(hook_input: HookInput, _context: EvaluationContext) -> tuple[Effect, ...]:
        if not rule.enabled or (predicate is not None and not predicate(hook_input)):
            return ()
        return declared

    return Registration(
        id=rule.id,
        description=rule.description,
        hooks=rule.hooks,
        tool_names=definition.tool_names,
        evaluate=evaluate,
        kind="rule",
        reads=definition.reads,
    )
