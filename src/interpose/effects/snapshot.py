"""Snapshots: the declarative half of an engine's rules, for a process that has the same rules built in.

Knows: the snapshot's form, which rules may travel, how they are resolved again. Does not know: how it is sent.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from interpose.contracts.effects import EFFECT_KINDS
from interpose.contracts.json import Json
from interpose.effects.codec import rule_to_json
from interpose.effects.rules import Rule, RuleDefinition
from interpose.effects.validation import Invalid, Issue, Valid, validate_rule

SNAPSHOT_VERSION = 1
WORKER_EFFECT_KINDS = tuple(kind for kind in EFFECT_KINDS if kind != "notify_operator")
"""What a worker's rules may declare: a worker has no operator to notify."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Rules without payloads; effects are looked up where the snapshot arrives."""

    rules: tuple[Rule, ...] = ()
    version: Literal[1] = 1


def create_snapshot(rules: Iterable[Rule]) -> Snapshot:
    """The rules that may travel, disabled ones too; one that declares notify_operator stays whole where it is."""
    return Snapshot(tuple(rule for rule in rules if "notify_operator" not in rule.effect_kinds))


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Json]:
    """A plain object: version and rules."""
    return {"version": snapshot.version, "rules": [rule_to_json(rule) for rule in snapshot.rules]}


def validate_snapshot(value: Json, source: str = "$") -> Valid[Snapshot] | Invalid:
    """The snapshot that a JSON value says, as a worker admits it, or all of its issues. Never raises.

    A snapshot of another version is refused whole: nothing else in it is looked at.
    """
    if not isinstance(value, dict):
        return Invalid((Issue(source, "expected an object with version and rules"),))
    version = value.get("version")
    if type(version) is not int or version != SNAPSHOT_VERSION:
        found = f"found {version!r:.60}" if "version" in value else "found nothing"
        return Invalid((Issue(f"{source}.version", f"expected {SNAPSHOT_VERSION}, {found}"),))

    issues = [
        Issue(f"{source}.{key}", "unexpected key; expected only version, rules")
        for key in sorted(str(key) for key in value if key not in ("version", "rules"))
    ]
    rules: list[Rule] = []
    items = value.get("rules")
    if not isinstance(items, list | tuple):
        return Invalid((*issues, Issue(f"{source}.rules", "expected a list of rules")))

    for position, item in enumerate(items):
        outcome = validate_rule(item, f"{source}.rules[{position}]", effect_kinds=WORKER_EFFECT_KINDS)
        if isinstance(outcome, Invalid):
            issues += outcome.issues
            continue
        rules.append(outcome.value)
    return Invalid(tuple(issues)) if issues else Valid(Snapshot(tuple(rules)))


def resolve(snapshot: Snapshot, builtins: Iterable[RuleDefinition]) -> tuple[RuleDefinition, ...]:
    """A definition for each rule of the snapshot, in its order.

    Enabled, hooks and effect kinds are the snapshot's; effects, tool names, predicate and reads are the built-in
    rule's of the same id. A rule nobody here has built in is kept and emits nothing.
    """
    known: dict[str, RuleDefinition] = {}
    for definition in builtins:
        known.setdefault(definition.rule.id, definition)
    return tuple(_resolved(rule, known.get(rule.id)) for rule in snapshot.rules)


def _resolved(rule: Rule, builtin: RuleDefinition | None) -> RuleDefinition:
    if builtin is None:
        return RuleDefinition(rule)
    return RuleDefinition(rule, builtin.effects, builtin.tool_names, builtin.predicate, builtin.reads)
