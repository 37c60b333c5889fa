"""Whether a tool result talks like an instruction to the model.

Knows: a few phrases that ordinary results do not hold. Does not know: what is done about it. It runs over the raw
result, before anything shortens or changes it.
"""

import re
from typing import Final

SCREENED_TOOLS: Final[tuple[str, ...]] = ("fetch", "read", "shell", "agent", "monitor", "mcp:*")
"""The tools whose results may hold what strangers wrote; `*` at the end means every name that starts so."""

_ANY_MARKER: Final = re.compile(
    r"""
      \b(?:ignore|disregard|override) \s+ (?:(?:all|any|the|your) \s+)?
        (?:previous|prior|system|developer|above) \s+ (?:instruction|prompt|rule)s? \b
    | \b(?:system|developer) \s+ (?:message|prompt) \s* :
    | <\|(?:im_start|system|developer)\|>
    | \byou \s+ are \s+ now \s+ (?:an? \s+)? (?:assistant|agent) \b
    | \b(?:reveal|print|send|exfiltrate) \s+ (?:(?:the|your|all) \s+)?
        (?:api \s+ keys?|credentials|secrets) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def is_screened(tool_name: str | None) -> bool:
    """Whether results of the tool with this canonical name are looked at."""
    if tool_name is None:
        return False
    return any(tool_name.startswith(name[:-1]) if name.endswith("*") else tool_name == name for name in SCREENED_TOOLS)


def has_instruction_markers(text: str) -> bool:
    """Whether `text` holds at least one marker, whatever its case and its spaces. Pure; any thread may call it.

    The time it takes grows with the length of the text alone.
    """
    return _ANY_MARKER.search(text) is not None
