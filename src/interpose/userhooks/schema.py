"""The JSON Schema of hooks.yaml, for editors, made from the vocabulary.

Knows: JSON Schema 2020-12. Does not know: patterns' inner grammar, which only reading checks.
"""

import json
from collections.abc import Mapping

from interpose.contracts.effects import EFFECT_KINDS, HOOKS, Hook
from interpose.contracts.json import Json
from interpose.userhooks.vocabulary import (
    APPLICABILITY,
    EFFECT_KEYS,
    GUARD_EFFECTS,
    HOOK_KINDS,
    ID_MAX_CHARS,
    ID_PATTERN,
    KEYS,
    NAMELESS_TOOLS,
    OWN_KEYS,
    TOOL_HOOKS,
    Key,
)

_TEXT: Json = {"type": "string", "pattern": r"\S"}


def hooks_schema() -> dict[str, Json]:
    """The schema as a plain value; new each time."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "interpose hooks",
        "description": "Rules for AI agents: what they may do, and what they are told.",
        "oneOf": [
            {"$ref": "#/$defs/hooks"},
            {
                "type": "object",
                "properties": {"hooks": {"oneOf": [{"$ref": "#/$defs/hooks"}, {"type": "null"}]}},
                "required": ["hooks"],
                "additionalProperties": False,
            },
            {"type": "null"},
        ],
        "$defs": {
            "hooks": {"type": "array", "items": {"$ref": "#/$defs/hook"}},
            "hook": _hook_schema(),
            "effect": {
                "type": "object",
                "properties": {"kind": {"enum": list(EFFECT_KINDS)}},
                "required": ["kind"],
                "oneOf": [_effect_schema(kind, keys) for kind, keys in EFFECT_KEYS.items()],
            },
        },
    }


def hooks_schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(hooks_schema(), indent=2, ensure_ascii=False) + "\n"


def _hook_schema() -> dict[str, Json]:
    return {
        "type": "object",
        "properties": {name: _key_schema(name, key) for name, key in KEYS.items()},
        "required": [name for name, key in KEYS.items() if key.required],
        "additionalProperties": False,
        "allOf": [
            *(_kind_rule(kind) for kind in HOOK_KINDS),
            *(_event_rule(event) for event in HOOKS),
            {
                "if": {"properties": {"on": {"enum": list(TOOL_HOOKS)}}},
                "else": _without("tools", "command", "path", "access"),
            },
            *(
                {"if": {"required": [key, "tools"]}, "then": {"properties": {"tools": _names_other_than(tools)}}}
                for key, tools in NAMELESS_TOOLS.items()
            ),
            {"if": {"required": ["access"]}, "then": {"required": ["path"]}},
            {
                "if": {"required": ["on_unknown"]},
                "then": {"properties": {"effect": {"properties": {"kind": {"enum": sorted(GUARD_EFFECTS)}}}}},
            },
            {
                "if": {"properties": {"fail_closed": {"const": True}}, "required": ["fail_closed"]},
                "then": {"properties": {"on": {"const": "before_tool"}}},
            },
        ],
    }


def _key_schema(name: str, key: Key) -> dict[str, Json]:
    schema: dict[str, Json]
    match key.shape:
        case "flag":
            schema = {"type": "boolean"}
        case "choice":
            schema = {"enum": list(key.choices)}
        case "choices":
            schema = {"type": "array", "items": {"enum": list(key.choices)}, "minItems": 1}
        case "words":
            schema = {"type": "array", "items": _TEXT}
        case "word_or_words":
            schema = {"oneOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}
        case "effect":
            schema = {"$ref": "#/$defs/effect"}
        case "text" if name == "id":
            schema = {"type": "string", "pattern": f"^{ID_PATTERN}$", "maxLength": ID_MAX_CHARS}
        case "text":
            schema = dict(_TEXT)
    return {"description": key.doc, **schema}


def _kind_rule(kind: str) -> dict[str, Json]:
    """The keys that `kind` needs, and those of the other kinds that it must not have."""
    foreign = [key for owner, own in OWN_KEYS.items() if owner != kind for key in own]
    needed = next(own[0] for owner, own in OWN_KEYS.items() if owner == kind)
    only_guards = _without("on_unknown") if kind == "prompt" else {}
    return {
        "if": {"properties": {"kind": {"const": kind}}},
        "then": {"required": [needed], "allOf": [_without(*foreign), only_guards]},
    }


def _event_rule(event: Hook) -> dict[str, Json]:
    """What may be done at `event`."""
    allowed = APPLICABILITY[event]
    then: dict[str, Json] = {"properties": {"effect": {"properties": {"kind": {"enum": list(allowed)}}}}}
    if "inject_reminder" not in allowed:
        then["properties"]["kind"] = {"const": "effect"}
    return {"if": {"properties": {"on": {"const": event}}}, "then": then}


def _effect_schema(kind: str, keys: Mapping[str, Key]) -> dict[str, Json]:
    return {
        "properties": {"kind": {"const": kind}, **{name: _key_schema("", key) for name, key in keys.items()}},
        "required": [name for name, key in keys.items() if key.required],
        "additionalProperties": False,
    }


def _names_other_than(tools: tuple[str, ...]) -> Json:
    return {"contains": {"not": {"enum": list(tools)}}}


def _without(*keys: str) -> dict[str, Json]:
    return {"properties": dict.fromkeys(keys, False)}
