"""A call in the agent's words to its hook form, and an edited hook form back into the agent's words.

Knows: how fields move between the two. Does not know: which agents exist (the table does), policy, I/O.
Everything here is a pure function; any thread may call it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from interpose.catalog.argv import argv_of, text_of
from interpose.catalog.names import CANONICAL_TOOLS, UNKNOWN_PREFIX, mcp_name, trimmed
from interpose.catalog.table import AGENTS, COMMON, REQUIRED, TEXT_LISTS, TEXTS, Fields, Tool, tool_of
from interpose.contracts.errors import MisuseError
from interpose.contracts.json import Json, JsonObject
from interpose.contracts.tools import without_label
from interpose.kernel.frozen import thaw


@dataclass(frozen=True, slots=True)
class HookForm:
    """One call as rules see it.

    Attributes:
        name: the canonical name; `mcp:SERVER/TOOL`; or the wire name, trimmed, of a tool that nobody knows.
        aliases: other names of the same tool that also match, the wire name first; never `name` itself.
        input: the arguments under the names of the hook form; empty when there is a problem.
        rest: the fields that have no place in the hook form, as they came.
        problem: why the arguments cannot be read, for people, or None.
        wire_name: what the agent called the tool.
        arguments: the arguments as they came.
        tool: the entry of the table that was used, or None.
    """

    name: str
    aliases: tuple[str, ...]
    input: JsonObject
    rest: JsonObject
    problem: str | None
    wire_name: str
    arguments: JsonObject
    tool: Tool | None = field(default=None, repr=False)


def read_call(agent: str | None, wire_name: str, arguments: JsonObject, leaf: str | None = None) -> HookForm:
    """The hook form of a call; never raises for what an agent writes.

    The agent's own names come first, then names that mean the same everywhere, then MCP tools; an unknown tool is
    itself, with its own arguments. White space around a name does not count. `leaf` is the name by which the tool is
    known where labels stand before it in `wire_name`; programs put such labels there too without saying so, so a known
    name behind a `__` counts.
    """
    seen = trimmed(wire_name)
    if seen.startswith(UNKNOWN_PREFIX):
        unread = "a call of a kind that interpose cannot read"
        return HookForm(wire_name, CANONICAL_TOOLS, arguments, {}, unread, wire_name, arguments)

    own = _unlabelled(agent, trimmed(leaf) if leaf else seen)
    tool = _tool(agent, own)
    if tool is None:
        name = mcp_name(agent, own) or seen
        said = {key: _said(value) for key, value in arguments.items()}
        return HookForm(name, _aliases(name, wire_name, own), said, {}, None, wire_name, arguments)

    values, problem = _values(tool, wire_name, arguments)
    mapped = {key for keys in tool.fields.values() for key in keys}
    rest = {key: value for key, value in arguments.items() if key not in mapped}
    aliases = _aliases(tool.name, wire_name, own, *tool.also)
    return HookForm(tool.name, aliases, values, rest, problem, wire_name, arguments, tool)


@lru_cache(maxsize=4_096)
def canonical_name(agent: str | None, wire_name: str) -> str:
    """The name of a tool as rules see it, whatever it is called with; remembered, since agents offer the same ones."""
    seen = trimmed(wire_name)
    tool = _tool(agent, _unlabelled(agent, seen))
    return tool.name if tool is not None else mcp_name(agent, seen) or seen


def write_call(form: HookForm, edited_input: JsonObject) -> dict[str, Json]:
    """The arguments for the agent's own tool with `edited_input` in place of `form.input`; all other fields stay.

    With `form.input` itself the result equals the arguments that were read. A new, plain dict each time.
    Raises MisuseError for a form that could not be read.
    """
    if form.problem is not None:
        raise MisuseError(f"{form.wire_name}: arguments that could not be read cannot be rewritten: {form.problem}")

    arguments: dict[str, Json] = thaw(form.arguments)
    if form.tool is None:
        return _replaced(arguments, {key: _unchanged(form, key, value) for key, value in edited_input.items()})

    for name in dict.fromkeys([*form.input, *edited_input]):
        if name in form.input and name in edited_input and form.input[name] == edited_input[name]:
            continue
        keys = form.tool.fields.get(name, (name,))
        present = [key for key in keys if key in arguments]
        if name not in edited_input:
            for key in present:
                del arguments[key]
            continue
        for key in present or keys[:1]:
            arguments[key] = _wire_value(form, name, thaw(edited_input[name]), arguments.get(key))
    return arguments


def _unlabelled(agent: str | None, wire_name: str) -> str:
    """The known name behind a label; the whole name when there is none, or the agent puts none before its tools."""
    if agent in AGENTS and agent != "process":
        return wire_name
    if wire_name.startswith("mcp__") or _tool(agent, wire_name) is not None:
        return wire_name

    own = without_label(wire_name)
    return own if _tool(agent, own) is not None else wire_name


@lru_cache(maxsize=4_096)
def _tool(agent: str | None, wire_name: str) -> Tool | None:
    tool = tool_of(agent, wire_name)
    if tool is not None or wire_name.startswith("mcp__"):
        return tool
    return COMMON.get(wire_name)


def _aliases(name: str, *others: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(other for other in others if other != name))


def _values(tool: Tool, wire_name: str, arguments: JsonObject) -> tuple[JsonObject, str | None]:
    values: dict[str, Json] = {}
    for name, keys in tool.fields.items():
        given = {key: _said(arguments[key]) for key in keys if arguments.get(key) is not None}
        if not given:
            continue
        key, value = next(iter(given.items()))
        if any(other != value for other in given.values()):
            said = ", ".join(f"{other} is {given[other]!r:.80}" for other in given)
            return {}, f"{wire_name} says its {name} in two ways: {said}"
        read, problem = _hook_value(tool, name, value)
        if problem is not None:
            return {}, f"{wire_name}: {key} is {value!r:.80}, expected {problem}"
        values[name] = read

    needed = REQUIRED.get(tool.name, ())
    if needed and not any(name in values for name in needed):
        wire_keys = [key for name in needed for key in tool.fields.get(name, ())]
        return {}, f"{wire_name} needs {' or '.join(wire_keys)}, found {_found(arguments)}"
    return values, None


def _unchanged(form: HookForm, key: str, edited: Json) -> Json:
    """The program's own object where the edited value is what it says."""
    own = form.arguments.get(key)
    said = isinstance(own, os.PathLike) and form.input.get(key) == edited
    return own if said else edited


def _found(arguments: JsonObject) -> str:
    return ", ".join(f"{key!r}" + " of None" * (value is None) for key, value in arguments.items()) or "nothing"


def _said(value: Json) -> Json:
    """What a Python value says in JSON: a path its text, a tuple a list; any other is itself."""
    if isinstance(value, os.PathLike):
        return _path_text(value)
    if isinstance(value, list | tuple) and any(isinstance(item, os.PathLike | tuple) for item in (*value, value)):
        return [_said(item) for item in value]
    return value


def _path_text(path: "os.PathLike[Any]") -> Any:
    try:
        return os.fsdecode(path)
    except Exception:  # noqa: BLE001 - the object's own code; what does not say its path is not read
        return path


def _hook_value(tool: Tool, name: str, value: Json) -> tuple[Json, str | None]:
    """The value under the hook form's name, or what was expected instead."""
    if name == "command" and isinstance(value, list):
        if value and all(isinstance(word, str) for word in value):
            return text_of(value), None
        return None, "text or a list of words"
    if name in TEXTS and not isinstance(value, str):
        return None, "text"
    if name in TEXT_LISTS and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return None, "a list of texts"
    if name == "edits":
        return _renamed_items(value, {key: hook for hook, keys in tool.items.items() for key in keys}), None
    return value, None


def _wire_value(form: HookForm, name: str, value: Json, before: Json) -> Json:
    if name == "command" and isinstance(before, list) and isinstance(value, str):
        return argv_of(value, before)
    if name == "edits" and form.tool is not None:
        return _renamed_items(value, _first_keys(form.tool.items))
    return value


def _first_keys(fields: Fields) -> Mapping[str, str]:
    return {hook: keys[0] for hook, keys in fields.items()}


def _renamed_items(value: Json, names: Mapping[str, str]) -> Json:
    if not isinstance(value, list):
        return value
    return [
        {names.get(key, key): content for key, content in item.items()} if isinstance(item, dict) else item
        for item in value
    ]


def _replaced(arguments: dict[str, Json], edited: JsonObject) -> dict[str, Json]:
    """`edited` in the key order of `arguments`, new keys last."""
    kept: dict[str, Json] = {key: thaw(edited[key]) for key in arguments if key in edited}
    added: dict[str, Json] = {key: thaw(edited[key]) for key in edited if key not in arguments}
    return kept | added
