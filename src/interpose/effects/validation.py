"""Is this value an effect, a rule, a registration? Every problem is named, with its path.

Knows: the closed vocabulary and the field names of the JSON form. Does not know: files, lines, or who wrote it.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, get_args

from interpose.contracts.decisions import OnUnknown
from interpose.contracts.effects import EFFECT_KINDS, HOOKS, Effect, HandlerKind, Mode, Registration
from interpose.contracts.json import Json
from interpose.effects.fields import EFFECT_FIELDS, EffectFields
from interpose.effects.rules import Rule

_T = TypeVar("_T", covariant=True)


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem: where it is, and what was expected there."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Valid(Generic[_T]):
    """The value, complete."""

    value: _T
    issues: ClassVar[tuple[Issue, ...]] = ()


@dataclass(frozen=True, slots=True)
class Invalid:
    """Everything that is wrong; there is no partial value."""

    issues: tuple[Issue, ...]


def validate_effect(value: Json, source: str = "$") -> Valid[Effect] | Invalid:
    """The effect that a JSON value says, or all of its issues with paths that start at `source`. Never raises."""
    if not isinstance(value, dict):
        return Invalid((Issue(source, f"expected an object with a kind, found {_named(value)}"),))

    kind = value.get("kind")
    fields = EFFECT_FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        found = "is missing" if "kind" not in value else f"{_named(kind)} is not an effect kind"
        return Invalid((Issue(f"{source}.kind", f"{found}; expected one of {', '.join(EFFECT_KINDS)}"),))

    allowed = ["kind", *fields.texts, *(["severity"] if fields.severities else [])]
    issues = _unexpected_keys(value, allowed, source)
    for name in fields.texts:
        issues += _text_issues(value, name, source)
    issues += _severity_issues(value, fields, source)
    if issues:
        return Invalid(tuple(issues))

    arguments = {field: value[name] for name, field in fields.texts.items()}
    if "severity" in value:
        arguments["severity"] = value["severity"]
    return Valid(fields.build(**arguments))


def validate_rule(
    value: Json, source: str = "$", *, effect_kinds: Sequence[str] = EFFECT_KINDS
) -> Valid[Rule] | Invalid:
    """The rule that a JSON value says, or all of its issues with paths that start at `source`. Never raises.

    `effect_kinds` are the kinds a rule may declare; where fewer are admitted, the others are refused as unknown.
    """
    if not isinstance(value, dict):
        return Invalid((Issue(source, f"expected an object, found {_named(value)}"),))

    issues = _unexpected_keys(value, ["id", "source", "description", "enabled", "hooks", "effectKinds"], source)
    issues += _text_issues(value, "id", source) or _id_issues(value["id"], source)
    if value.get("source") != "builtin":
        issues.append(Issue(f"{source}.source", f'expected "builtin", found {_found(value, "source")}'))
    issues += _text_issues(value, "description", source)
    if not isinstance(value.get("enabled"), bool):
        issues.append(Issue(f"{source}.enabled", f"expected true or false, found {_found(value, 'enabled')}"))
    issues += _list_issues(value, "hooks", HOOKS, source)
    issues += _list_issues(value, "effectKinds", effect_kinds, source)
    if issues:
        return Invalid(tuple(issues))

    return Valid(
        Rule(
            id=value["id"],
            description=value["description"],
            enabled=value["enabled"],
            hooks=tuple(value["hooks"]),
            effect_kinds=tuple(value["effectKinds"]),
        )
    )


def registration_issues(registration: Registration) -> tuple[Issue, ...]:
    """What is wrong with a registration that a program made; empty when it can be evaluated. Never raises.

    The paths start with its id. Any id that is not blank is fine; the grammar of rule ids is not asked for.
    """
    where = registration.id if isinstance(registration.id, str) and registration.id.strip() else "registration"
    fields: dict[str, Any] = {"id": registration.id, "hooks": registration.hooks}
    evaluations = {"evaluate": registration.evaluate, "evaluate_async": registration.evaluate_async}
    issues = _text_issues(fields, "id", where) + _list_issues(fields, "hooks", HOOKS, where)
    if not _is_scope(registration.tool_names):
        issues.append(Issue(f"{where}.tool_names", "expected None or a tuple of names"))
    if registration.reads is None or not _is_scope(registration.reads):
        issues.append(Issue(f"{where}.reads", "expected a tuple of metadata keys"))
    issues += [
        Issue(f"{where}.{name}", f"expected something to call, found {_named(value)}")
        for name, value in evaluations.items()
        if value is not None and not callable(value)
    ]
    plain: tuple[tuple[str, Any, type], ...] = (
        ("fail_closed", registration.fail_closed, bool),
        ("blocking", registration.blocking, bool),
        ("description", registration.description, str),
    )
    issues += [
        Issue(f"{where}.{name}", f"expected {kind.__name__}, found {_named(value)}")
        for name, value, kind in plain
        if not isinstance(value, kind)
    ]
    if not any(evaluations.values()):
        issues.append(Issue(f"{where}.evaluate", "expected evaluate, evaluate_async or both, found neither"))
    if inspect.iscoroutinefunction(registration.evaluate):
        issues.append(Issue(f"{where}.evaluate", "is an async function; give it as evaluate_async"))
    issues += [
        Issue(f"{where}.{name}", f"{_named(value)} is not one of {', '.join(choices)}")
        for name, value, choices in (
            ("kind", registration.kind, get_args(HandlerKind)),
            ("mode", registration.mode, get_args(Mode)),
            ("on_unknown", registration.on_unknown, get_args(OnUnknown)),
        )
        if value not in choices
    ]
    return tuple(issues)


_ID = re.compile(r"[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*")


def _unexpected_keys(value: Mapping[Any, Any], allowed: Sequence[str], source: str) -> list[Issue]:
    unexpected = sorted(str(key) for key in value if key not in allowed)
    return [Issue(f"{source}.{key}", f"unexpected key; expected only {', '.join(allowed)}") for key in unexpected]


def _text_issues(value: Mapping[str, Any], name: str, source: str) -> list[Issue]:
    text = value.get(name)
    if isinstance(text, str) and text.strip():
        return []
    return [Issue(f"{source}.{name}", f"expected text that is not blank, found {_found(value, name)}")]


def _id_issues(identifier: str, source: str) -> list[Issue]:
    if _ID.fullmatch(identifier):
        return []
    expected = "expected lowercase words joined by - and segments joined by ., each starting with a letter"
    return [Issue(f"{source}.id", f"{expected}, found {_named(identifier)}")]


def _severity_issues(value: Mapping[str, Any], fields: EffectFields, source: str) -> list[Issue]:
    if not fields.severities or ("severity" not in value and not fields.severity_required):
        return []
    severity = value.get("severity")
    if isinstance(severity, str) and severity in fields.severities:
        return []
    expected = f"expected one of {', '.join(fields.severities)}"
    return [Issue(f"{source}.severity", f"{expected}, found {_found(value, 'severity')}")]


def _list_issues(value: Mapping[str, Any], name: str, known: Sequence[str], source: str) -> list[Issue]:
    items = value.get(name)
    if not isinstance(items, list | tuple) or not items:
        return [Issue(f"{source}.{name}", f"expected a list of at least one of {', '.join(known)}")]

    issues: list[Issue] = []
    for position, item in enumerate(items):
        path = f"{source}.{name}[{position}]"
        if not isinstance(item, str) or item not in known:
            issues.append(Issue(path, f"{_named(item)} is not one of {', '.join(known)}"))
        elif item in items[:position]:
            issues.append(Issue(path, f"{_named(item)} is listed twice"))
    return issues


def _is_scope(tool_names: object) -> bool:
    if tool_names is None:
        return True
    return isinstance(tool_names, tuple) and all(isinstance(name, str) for name in tool_names)


def _found(value: Mapping[str, Any], name: str) -> str:
    return _named(value[name]) if name in value else "nothing"


def _named(value: object) -> str:
    """How a message speaks of a value: texts and small scalars as written, the rest by their sort."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(value if len(value) <= 60 else value[:60] + "…")
        case int() | float():
            return f"the number {value}" if -1e12 < value < 1e12 else "a number"
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"
