"""Tools in a server's listing that can be used, and why others cannot.

Knows: what the protocol says of a tool. Does not know: connections. Pure functions.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import mcp_types as types
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

Unusable: TypeAlias = tuple[str, str]
"""The tool by its name, else by what the entry says, and in words why it cannot be used."""


def sorted_out(result: Mapping[str, Any], version: str) -> tuple[list[Any], list[Unusable]]:
    """The entries of `tools` that the protocol's `version` allows, and the others.

    One entry that is wrong would make the whole listing unreadable. A listing that is wrong without any entry is left
    as it is, for whoever reads it to say so.
    """
    entries = result["tools"]
    if _problem(result, [], version) is not None:
        return entries, []

    usable: list[Any] = []
    unusable: list[Unusable] = []
    for entry in entries:
        name = entry.get("name") if isinstance(entry, Mapping) else None
        problem = "it has no name" if not isinstance(name, str) or not name else _problem(result, [entry], version)
        if problem is None:
            usable.append(entry)
        else:
            unusable.append((repr(name if isinstance(name, str) and name else entry)[:80], problem))
    return usable, unusable


def _problem(result: Mapping[str, Any], entries: list[Any], version: str) -> str | None:
    try:
        validate_server_result("tools/list", version, {**result, "tools": entries})
        for entry in entries:
            types.Tool.model_validate(entry, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"] if not isinstance(step, int)).removeprefix("tools.")
        return f"{place}: {first['msg']}"
    except (KeyError, ValueError):
        return None  # a version that has no listing, or is not known: nothing to hold it against
    return None
