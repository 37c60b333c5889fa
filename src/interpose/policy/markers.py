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


_NEEDED: Final[tuple[tuple[tuple[str, ...], ...], ...]] = (
    (("instruction", "prompt", "rule"), ("ignore", "disregard", "override")),
    (("system", "developer"), ("message", "prompt")),
    (("<|im_start|>", "<|system|>", "<|developer|>"),),
    (("assistant", "agent"), ("now",), ("you",), ("are",)),
    (("credentials", "secrets", "api"), ("reveal", "print", "send", "exfiltrate")),
)
"""For each marker, in the order above: of each group it holds one, in lower case. Looking for these takes a tenth."""

_LETTERS_IN_DISGUISE: Final = "\u017f\u212a\u0130\u0131"
"""A pattern that ignores case takes these for s, k and i, and lower case leaves them."""


def is_screened(tool_name: str | None) -> bool:
    """Whether results of the tool with this canonical name are looked at."""
    if tool_name is None:
        return False
    return any(tool_name.startswith(name[:-1]) if name.endswith("*") else tool_name == name for name in SCREENED_TOOLS)


def has_instruction_markers(text: str) -> bool:
    """Whether `text` holds at least one marker, whatever its case and its spaces. Pure; any thread may call it.

    The time it takes grows with the length of the text alone.
    """
    return _may_hold_markers(text) and _ANY_MARKER.search(text) is not None


def _may_hold_markers(text: str) -> bool:
    """Whether it is worth a search; False is certain."""
    if not text.isascii() and any(letter in text for letter in _LETTERS_IN_DISGUISE):
        return True
    lowered = text.lower()
    return any(all(any(word in lowered for word in words) for words in marker) for marker in _NEEDED)
