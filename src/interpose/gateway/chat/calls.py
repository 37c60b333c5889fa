"""A call as chat completions write it: function, custom (free text), and the older `function_call`.

Knows: the members of a call. Does not know: streams, messages.
"""

from typing import Any

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import ProposedCall
from interpose.gateway.proposed import name_in, unknown_call, with_name
from interpose.wire.jsonbytes import write_json
from interpose.wire.strictjson import read_arguments, read_object

LEGACY = "function_call"

THOUGHTS = ("reasoning_content", "reasoning")
"""Members of a message in which servers show what the model thought, as text."""


def legacy_id(name: str) -> str:
    """The id under which a call without an id is known; its result names the function only."""
    return f"{LEGACY}:{name}"


def entries_of(calls: Json) -> list[JsonObject]:
    """The items of `tool_calls`, whatever its shape: what is no object is a call that cannot be read."""
    items = calls if isinstance(calls, list) else [calls] if calls else []
    return [item if isinstance(item, dict) else {} for item in items]


def read_call(entry: JsonObject) -> ProposedCall:
    """The call that one complete item of `tool_calls` proposes."""
    call_id = str(entry.get("id") or "")
    function, custom = entry.get("function"), entry.get("custom")
    if isinstance(function, dict) and isinstance(custom, dict):
        return unknown_call(call_id, entry.get("type"), "the call is of two kinds at once")
    if isinstance(function, dict):
        return _named(call_id, function)
    if isinstance(custom, dict):
        given: JsonObject | None = {"input": custom.get("input")}
        given, problem = (given, None) if isinstance(custom.get("input"), str) else read_object(given)
        return with_name(ProposedCall(call_id, name_in(custom.get("name")), given or {}, problem), "custom")
    kind = entry.get("type")
    return unknown_call(call_id, kind, f"a call of the kind {kind!r}, which interpose cannot read")


def read_legacy_call(function: JsonObject) -> ProposedCall:
    """The call that a complete `function_call` proposes."""
    return _named(legacy_id(name_in(function.get("name"))), function)


def history_entry(entry: JsonObject, call: ProposedCall, place: int) -> Json:
    """The item of `tool_calls` as a history has it, and in `index` its place among those of its message.

    None for one that cannot be read, or has no id under which it could be answered.
    """
    if call.problem is not None or not call.call_id:
        return None
    kind = "function" if isinstance(entry.get("function"), dict) else "custom"
    return {"type": kind, **entry, "id": call.call_id, "index": place}


def with_arguments(entry: JsonObject, arguments: JsonObject) -> dict[str, Any]:
    """The item of `tool_calls` with other arguments; all its other members stay."""
    custom = entry.get("custom")
    if isinstance(custom, dict) and not isinstance(entry.get("function"), dict):
        return {**entry, "custom": {**custom, "input": arguments.get("input")}}
    return {**entry, "function": legacy_with_arguments(entry.get("function"), arguments)}


def legacy_with_arguments(function: Json, arguments: JsonObject) -> dict[str, Any]:
    """The `function` or `function_call` with other arguments."""
    return {**(function if isinstance(function, dict) else {}), "arguments": write_json(arguments).decode()}


def _named(call_id: str, function: JsonObject) -> ProposedCall:
    name = name_in(function.get("name"))
    given = function.get("arguments")
    if given is None:
        given = ""
    # some servers send the object itself
    arguments, problem = read_arguments(given) if isinstance(given, str) else read_object(given)
    return with_name(ProposedCall(call_id, name, arguments or {}, problem), "function")
