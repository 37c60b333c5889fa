"""Effects and rules as JSON, with the field names of the snapshot and hook formats.

Knows: which field is called what in JSON. Does not know: where the JSON goes or comes from.
"""

from typing import TypeVar

from interpose.contracts.effects import Effect
from interpose.contracts.errors import ConfigError
from interpose.contracts.json import Json
from interpose.effects.fields import EFFECT_FIELDS
from interpose.effects.rules import Rule
from interpose.effects.validation import Invalid, Valid, validate_effect, validate_rule

_T = TypeVar("_T")


def effect_to_json(effect: Effect) -> dict[str, Json]:
    """A plain object: `kind` first, an absent severity left out."""
    texts = EFFECT_FIELDS[effect.kind].texts
    value: dict[str, Json] = {"kind": effect.kind, **{name: getattr(effect, field) for name, field in texts.items()}}
    severity = getattr(effect, "severity", None)
    if severity is not None:
        value["severity"] = severity
    return value


def effect_from_json(value: Json, source: str = "$") -> Effect:
    """The effect that was written. Raises ConfigError with all issues when it is not one; see `validate_effect`."""
    return _valid_or_raise(validate_effect(value, source), source)


def rule_to_json(rule: Rule) -> dict[str, Json]:
    """A plain object with exactly the six fields of a rule."""
    return {
        "id": rule.id,
        "source": rule.source,
        "description": rule.description,
        "enabled": rule.enabled,
        "hooks": list(rule.hooks),
        "effectKinds": list(rule.effect_kinds),
    }


def rule_from_json(value: Json, source: str = "$") -> Rule:
    """The rule that was written. Raises ConfigError with all issues when it is not one; see `validate_rule`."""
    return _valid_or_raise(validate_rule(value, source), source)


def _valid_or_raise(outcome: Valid[_T] | Invalid, source: str) -> _T:
    if isinstance(outcome, Valid):
        return outcome.value
    raise ConfigError(source, "; ".join(map(str, outcome.issues)))
