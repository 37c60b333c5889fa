"""Small makers for the values that these tests talk about."""

from collections.abc import Callable, Sequence

from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import (
    Effect,
    EvaluationContext,
    Hook,
    HookInput,
    InjectReminder,
    Mode,
    Registration,
)
from interpose.effects.budget import BudgetTracker
from interpose.effects.contract import MiddlewareContract, create_middleware
from interpose.effects.diagnostics import Diagnostic
from interpose.effects.rules import Rule, RuleDefinition

ALL_HOOKS: tuple[Hook, ...] = ("before_tool", "after_tool", "turn_start", "turn_end", "on_compaction")


def saying(text: str) -> InjectReminder:
    """An effect that is known by its text."""
    return InjectReminder(text)


def emitting(
    registration_id: str,
    *effects: Effect,
    hooks: tuple[Hook, ...] = ("before_tool",),
    tool_names: tuple[str, ...] | None = None,
    mode: Mode = "enforce",
    fail_closed: bool = False,
    blocking: bool = False,
) -> Registration:
    """A registration that always emits `effects`; without any it says its own id."""
    emitted = effects or (saying(registration_id),)

    def evaluate(_hook_input: HookInput, _context: EvaluationContext) -> Sequence[Effect]:
        return emitted

    return Registration(
        registration_id,
        f"Emits what {registration_id} emits.",
        hooks,
        tool_names,
        evaluate=evaluate,
        mode=mode,
        fail_closed=fail_closed,
        blocking=blocking,
    )


def calling(
    registration_id: str,
    evaluate: Callable[[HookInput, EvaluationContext], Sequence[Effect] | Unknown],
    *,
    hooks: tuple[Hook, ...] = ("before_tool",),
    fail_closed: bool = False,
    mode: Mode = "enforce",
) -> Registration:
    """A registration that answers with what `evaluate` returns or raises."""
    return Registration(registration_id, "Calls back.", hooks, evaluate=evaluate, fail_closed=fail_closed, mode=mode)


def raising(registration_id: str, error: Exception, *, fail_closed: bool = False) -> Registration:
    """A registration that always raises `error`."""

    def evaluate(_hook_input: HookInput, _context: EvaluationContext) -> Sequence[Effect]:
        raise error

    return calling(registration_id, evaluate, hooks=ALL_HOOKS, fail_closed=fail_closed)


def rule(
    rule_id: str,
    *effects: Effect,
    enabled: bool = True,
    hooks: tuple[Hook, ...] = ("turn_end",),
    tool_names: tuple[str, ...] | None = None,
    predicate: Callable[[HookInput], bool] | None = None,
) -> RuleDefinition:
    """A rule that declares the kinds it emits; without effects it reminds with its own id."""
    emitted = effects or (saying(rule_id),)
    kinds = tuple(dict.fromkeys(effect.kind for effect in emitted))
    return RuleDefinition(Rule(rule_id, f"Says {rule_id}.", enabled, hooks, kinds), emitted, tool_names, predicate)


def engine(
    *registrations: Registration, rules: Sequence[RuleDefinition] = (), told: list[Diagnostic] | None = None
) -> MiddlewareContract:
    """An engine whose diagnostics are appended to `told`."""
    heard = [] if told is None else told
    return create_middleware(
        rules=rules, registrations=registrations, on_diagnostic=heard.append, budget=BudgetTracker()
    )


def unheard(_diagnostic: Diagnostic) -> None:
    """A sink for tests that are not about diagnostics."""


def ids(registrations: Sequence[Registration]) -> list[str]:
    """The ids, in order."""
    return [registration.id for registration in registrations]
