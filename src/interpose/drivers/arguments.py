"""Arguments of a call held against the tool's own schema, so that a model reads what was wrong with them.

Knows: names, required, JSON types, enum and minimum of the first level. Does not know: nested schemas; a server or
the tool checks those.
"""

from collections.abc import Mapping
from typing import Any

from interpose.contracts.drivers import Tool
from interpose.contracts.errors import ToolError

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raises ToolError naming the tool, the argument and what was expected; returns None when all is well.

    An argument that the schema does not name is an error too: it was meant to do something. Keeps no state.
    """
    schema = tool.input_schema()
    properties: Mapping[str, Any] = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        raise ToolError(f"{tool.name}: the argument {missing[0]!r} is missing ({_known(properties)})")

    for name, value in arguments.items():
        if name not in properties:
            raise ToolError(f"{tool.name}: there is no argument {name!r} ({_known(properties)})")
        problem = _problem(properties[name], value)
        if problem:
            raise ToolError(f"{tool.name}: the argument {name!r} {problem}")


def _known(properties: Mapping[str, Any]) -> str:
    return "it takes " + ", ".join(properties) if properties else "it takes none"


def _problem(schema: Any, value: Any) -> str | None:
    if not isinstance(schema, Mapping):
        return None

    named = schema.get("type")
    allowed = [named] if isinstance(named, str) else named
    if isinstance(allowed, list) and not any(_is(value, name) for name in allowed):
        return f"must be {' or '.join(map(str, allowed))}, got {type(value).__name__}"
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return f"must be one of {', '.join(map(repr, choices))}, got {value!r:.80}"
    least = schema.get("minimum")
    if isinstance(least, int | float) and isinstance(value, int | float) and value < least:
        return f"must be at least {least}, got {value}"
    return None


def _is(value: Any, name: Any) -> bool:
    types = _TYPES.get(name) if isinstance(name, str) else None
    if types is None:
        return True
    if isinstance(value, bool) and name in ("integer", "number"):
        return False
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, types)
