"""One entry of a hook file, as plain values, to a checked user hook or to all that is wrong with it.

Knows: the vocabulary, ids and hashes, command and path patterns. Never sees YAML or files.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from difflib import get_close_matches
from typing import Final, get_args

from interpose.catalog.names import CANONICAL_TOOLS, MCP_PREFIX
from interpose.catalog.table import COMMON, tool_of
from interpose.command.globs import is_glob
from interpose.command.paths import PathPattern
from interpose.command.pattern import CommandPattern
from interpose.contracts.effects import (
    AnnotateToolResult,
    BlockTool,
    Effect,
    EffectKind,
    InjectReminder,
    LockTools,
    NotifyOperator,
    ProtectPath,
    RequestContinuation,
    RequireTool,
)
from interpose.contracts.json import Json, JsonObject
from interpose.kernel.canonical import canonical_hash
from interpose.userhooks.hooks import EffectSpec, Matchers, PromptSpec, Source, Spec, UserHook
from interpose.userhooks.issues import Place, Problem, choices, shown
from interpose.userhooks.vocabulary import (
    APPLICABILITY,
    EFFECT_KEYS,
    GUARD_EFFECTS,
    HOOK_KINDS,
    ID_MAX_CHARS,
    ID_PATTERN,
    KEYS,
    MESSAGE_MAX_CHARS,
    NAMELESS_TOOLS,
    OWN_KEYS,
    TOOL_HOOKS,
    Key,
    events_for,
)

_ID = re.compile(ID_PATTERN)
_EFFECT_TYPES: Final[Mapping[str, Callable[..., Effect]]] = {
    "inject_reminder": InjectReminder,
    "annotate_tool_result": AnnotateToolResult,
    "block_tool": BlockTool,
    "protect_path": ProtectPath,
    "request_continuation": RequestContinuation,
    "require_tool": RequireTool,
    "lock_tools": LockTools,
    "notify_operator": NotifyOperator,
}
_NEAR: Final = 0.82
"""How much two names must have in common, from 0 to 1, for the one to be a slip of the other."""

_FIELD_NAMES: Final[Mapping[str, str]] = {"toolName": "tool_name"}


def normalise(raw: Json, source: Source) -> tuple[UserHook | None, tuple[Problem, ...]]:
    """The hook that `raw` declares and notes about it, or None and everything that is wrong; never raises.

    A pure function.
    """
    if not isinstance(raw, dict):
        return None, (
            Problem((), f"the hook is {shown(raw)}, expected a mapping", "write 'on:', 'kind:' and the rest"),
        )
    problems = list(_problems(raw))
    if problems:
        return None, tuple(problems)
    hook = _hook(raw, source)
    problems = list(_contradictions(hook, raw))
    return (None, tuple(problems)) if problems else (hook, tuple(_notes(hook)))


def _problems(raw: JsonObject) -> Iterator[Problem]:
    """Each value taken by itself."""
    kind = raw.get("kind")
    foreign = {key: owner for owner, own in OWN_KEYS.items() if owner != kind for key in own}
    for key, value in raw.items():
        if key not in KEYS:
            yield Problem((key,), f"unknown key {key!r}", choices(key, tuple(KEYS)), on_key=True)
        elif key in foreign and kind in HOOK_KINDS:
            yield Problem((key,), f"the key {key!r} belongs to kind {foreign[key]}, this is kind {kind}", on_key=True)
        else:
            yield from _value_problems((key,), KEYS[key], value)
    required = [key for key, spec in KEYS.items() if spec.required]
    if kind in HOOK_KINDS:
        required.append(OWN_KEYS[kind][0])
    for key in required:
        if key not in raw:
            yield Problem(
                (), f"the key {key!r} is missing", choices(None, KEYS[key].choices) if KEYS[key].choices else ""
            )


def _value_problems(place: Place, key: Key, value: Json) -> Iterator[Problem]:
    name = place[-1] if isinstance(place[-1], str) else f"{place[-2]}[{place[-1]}]"
    match key.shape:
        case "flag":
            if not isinstance(value, bool):
                yield Problem(place, f"{name} is {shown(value)}, expected true or false")
        case "choice":
            yield from _choice_problems(place, str(name), key, value)
        case "text":
            if not isinstance(value, str):
                yield Problem(place, f"{name} is {shown(value)}, expected a text", _quoting(value))
            elif not value.strip():
                yield Problem(place, f"{name} is empty, expected a text")
            elif name == "id" and (_ID.fullmatch(value) is None or len(value) > ID_MAX_CHARS):
                rule = f"small letters, digits, '-' and '.', a letter first, at most {ID_MAX_CHARS}: no-force-push"
                yield Problem(place, f"id is {shown(value)}", rule)
        case "effect":
            yield from _effect_problems(place, value)
        case "words" | "word_or_words" | "choices":
            yield from _list_problems(place, str(name), key, value)


def _choice_problems(place: Place, name: str, key: Key, value: Json) -> Iterator[Problem]:
    if value in key.choices and isinstance(value, str):
        return
    if name == "kind" and value == "command":
        yield Problem(place, "kind is 'command', which is not yet supported", "possible: " + ", ".join(HOOK_KINDS))
        return
    yield Problem(place, f"{name} is {shown(value)}", choices(value, key.choices))


def _list_problems(place: Place, name: str, key: Key, value: Json) -> Iterator[Problem]:
    if key.shape == "word_or_words" and isinstance(value, str):
        problems = list(_word_problems(place, name, value))
        yield from problems
        if name == "path" and value.startswith("!") and not problems:
            yield _takes_back(place)
        return
    if not isinstance(value, list):
        expected = "a text or a list of texts" if key.shape == "word_or_words" else "a list"
        yield Problem(place, f"{name} is {shown(value)}, expected {expected}", f"write {name}: [...]")
        return
    if not value and name != "tools":
        yield Problem(place, f"{name} is an empty list", "name one, or leave the key out")
    for index, item in enumerate(value):
        inner = (*place, index)
        if key.shape == "choices":
            yield from _choice_problems(inner, f"{name}[{index}]", key, item)
        elif not isinstance(item, str) or not item.strip():
            text = "empty" if isinstance(item, str) else shown(item)
            yield Problem(inner, f"{name}[{index}] is {text}, expected a text", _quoting(item))
        else:
            yield from _word_problems(inner, name, item)
    if name == "path" and value and all(isinstance(item, str) and item.startswith("!") for item in value):
        yield _takes_back(place)


def _takes_back(place: Place) -> Problem:
    return Problem(place, "path only takes back ('!'), so it names no file", "name files first: '**' is all of them")


def _word_problems(place: Place, name: str, value: str) -> Iterator[Problem]:
    parse: Callable[[str], object] | None = {"command": CommandPattern.parse, "path": PathPattern.parse}.get(name)
    if parse is None:
        return
    try:
        parse(value)
    except ValueError as error:
        yield Problem(place, str(error))


def _effect_problems(place: Place, value: Json) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield Problem(place, f"effect is {shown(value)}, expected a mapping", "effect: {kind: block_tool, reason: ...}")
        return
    kinds = get_args(EffectKind)
    if "kind" not in value:
        yield Problem(place, "effect has no kind", choices(None, kinds))
        return
    kind = value["kind"]
    if kind not in kinds:
        yield Problem((*place, "kind"), f"effect: kind is {shown(kind)}", choices(kind, kinds))
        return
    keys = EFFECT_KEYS[kind]
    for name, item in value.items():
        if name == "kind":
            continue
        if name not in keys:
            way_out = choices(name, tuple(keys)) if keys else f"{kind} has no keys but kind"
            yield Problem((*place, name), f"effect: unknown key {name!r} of {kind}", way_out, on_key=True)
            continue
        for problem in _value_problems((*place, name), keys[name], item):
            yield Problem(problem.place, f"effect: {problem.text}", problem.way_out)
    path = value.get("path")
    if kind == "protect_path" and isinstance(path, str) and is_glob(path):
        way_out = "for a pattern use the hook's own key path: with the effect block_tool"
        yield Problem((*place, "path"), f"effect: path is {shown(path)}, expected one file or folder", way_out)
    for name, key in keys.items():
        if key.required and name not in value:
            yield Problem(place, f"effect: {kind} needs the key {name!r}", key.doc)


def _quoting(value: Json) -> str:
    return "put it in quotes" if isinstance(value, int | float) else ""


def _hook(raw: JsonObject, source: Source) -> UserHook:
    spec = _spec(raw)
    matchers = Matchers(_words(raw.get("command")), _words(raw.get("path")), tuple(raw.get("access", ())))
    tools = None if "tools" not in raw else tuple(raw["tools"])
    mode, on_unknown = raw.get("mode", "enforce"), raw.get("on_unknown", "ask")
    fail_closed = raw.get("fail_closed", False)
    meaning = {
        "on": raw["on"],
        "tools": None if tools is None else list(tools),
        "spec": {
            "kind": raw["kind"],
            **_plain_spec(spec),
            **{name: list(words) for name, words in asdict(matchers).items()},
            "mode": mode,
            "on_unknown": on_unknown,
            "fail_closed": fail_closed,
        },
    }
    digest = canonical_hash(meaning)[:16]
    return UserHook(
        id=raw.get("id", f"{source.origin}.{raw['kind']}.{digest}"),
        source=source,
        hash=digest,
        on=raw["on"],
        spec=spec,
        tools=tools,
        matchers=matchers,
        enabled=raw.get("enabled", True),
        mode=mode,
        on_unknown=on_unknown,
        fail_closed=fail_closed,
        description=raw.get("description", ""),
    )


def _spec(raw: JsonObject) -> Spec:
    if raw["kind"] == "prompt":
        return PromptSpec(raw["message"][:MESSAGE_MAX_CHARS], raw.get("severity", "info"))
    effect = raw["effect"]
    fields = {_FIELD_NAMES.get(name, name): value for name, value in effect.items() if name != "kind"}
    return EffectSpec(_EFFECT_TYPES[effect["kind"]](**fields))


def _plain_spec(spec: Spec) -> dict[str, Json]:
    if isinstance(spec, PromptSpec):
        return {"message": spec.message, "severity": spec.severity}
    return {"effect": {"kind": spec.effect.kind, **asdict(spec.effect)}}


def _words(value: Json) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _contradictions(hook: UserHook, raw: JsonObject) -> Iterator[Problem]:
    """What is right by itself and means nothing together."""
    if hook.on not in TOOL_HOOKS:
        for key in ("tools", "command", "path", "access"):
            if key in raw:
                text = f"{key} asks about a tool, and no tool is used at {hook.on}"
                yield Problem((key,), text, "possible: " + ", ".join(TOOL_HOOKS), on_key=True)
    elif "access" in raw and not hook.matchers.path:
        yield Problem(("access",), "access says what happens to the files of path, and there is no path", on_key=True)
    for key, without in NAMELESS_TOOLS.items():
        if key in raw and hook.tools is not None and set(hook.tools) <= set(without):
            text = f"{key} cannot be asked of {', '.join(hook.tools) or 'no tool at all'}"
            yield Problem((key,), text, "leave tools out, or name tools that have one", on_key=True)
    if "on_unknown" in raw and not hook.is_guard:
        text = f"on_unknown is for hooks that refuse, and {hook.effect.kind} refuses nothing"
        yield Problem(("on_unknown",), text, "it is for " + ", ".join(sorted(GUARD_EFFECTS)), on_key=True)
    if hook.fail_closed and hook.on != "before_tool":
        text = f"fail_closed refuses a call before it runs, and this hook is asked at {hook.on}"
        yield Problem(("fail_closed",), text, "possible at before_tool", on_key=True)
    if hook.effect.kind not in APPLICABILITY[hook.on]:
        said = "a prompt is an inject_reminder, which" if hook.kind == "prompt" else hook.effect.kind
        yield Problem(
            ("on",), f"{said} cannot be used at {hook.on}", "possible at " + ", ".join(events_for(hook.effect.kind))
        )


def _notes(hook: UserHook) -> Iterator[Problem]:
    """What may well be meant as it stands: a tool that nobody knows, whose name is nearly one of ours."""
    for index, name in enumerate(hook.tools or ()):
        if name.endswith("*") or name.startswith(MCP_PREFIX) or name in COMMON or tool_of(None, name) is not None:
            continue
        near = get_close_matches(name.casefold(), CANONICAL_TOOLS, n=1, cutoff=_NEAR)
        if near:
            text = f"no tool that is known is called {shown(name)}"
            yield Problem(("tools", index), text, f"did you mean {near[0]!r}?", level="note")
