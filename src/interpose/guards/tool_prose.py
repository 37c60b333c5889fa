"""The assessor `assessor.tool-prose-loop`: a small local model that narrates tool calls instead of making them.

Knows: how such prose reads. Does not know: the model. It keeps no state.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from interpose.contracts.effects import EvaluationContext, HookInput, InjectReminder, Registration
from interpose.guards.given import ended_normally, names_in, text_of

TOOL_PROSE_ID: Final = "assessor.tool-prose-loop"
LOCAL_TIER: Final = "local-native"
SHORTEST_CHARS: Final = 1_200
NARRATIONS: Final = 4

_SPACES: Final = re.compile(r"\s+")
_FIRST_PERSON: Final = re.compile(
    r"\bi(?: will|['\u2019]ll|['\u2019]m going to)(?: now)? (?:execute|call|make|use) the [\w-]+(?: tool)? call\b"
)
_MESSAGE: Final = (
    "You are describing tool calls in words, and nothing runs that way. Make one real tool call now, or answer without "
    "tools."
)


def tool_prose() -> Registration:
    """The assessor's entry in the table."""
    return Registration(
        id=TOOL_PROSE_ID,
        description="stops a local model that narrates tool calls instead of making them",
        hooks=("turn_end",),
        evaluate=_assess,
        reads=("activeToolNames", "runtimeTier", "hasStructuredToolCall"),
    )


def narrates_tools(text: str, tools: Iterable[str]) -> bool:
    """Whether `text` names calls of one of `tools` at least four times without making any. Pure.

    A mount that sees a stream may ask it of what has come so far.
    """
    if len(text) < SHORTEST_CHARS:
        return False
    plain = _SPACES.sub(" ", text.lower())
    most = max((_narrations(plain, tool) for tool in tools), default=0)
    return max(most, len(_FIRST_PERSON.findall(plain))) >= NARRATIONS


def _assess(given: HookInput, _context: EvaluationContext) -> tuple[InjectReminder, ...]:
    if text_of(given, "runtimeTier") != LOCAL_TIER or given.metadata.get("hasStructuredToolCall") is not False:
        return ()
    tools = names_in(given, "activeToolNames")
    if not tools or not ended_normally(given) or not narrates_tools(given.text or "", tools):
        return ()
    return (InjectReminder(_MESSAGE, "hard-block"),)


def _narrations(plain: str, tool: str) -> int:
    name = re.sub(r"[_-]", "[ _-]", re.escape(tool.lower()).replace(r"\-", "-"))
    phrases = (
        rf"\b(?:execute|call|make|use) the {name} tool call\b",
        rf"\b(?:execute|call|use) the {name} tool\b",
        rf"\b{name} tool call\b",
    )
    counts = Counter({phrase: len(re.findall(phrase, plain)) for phrase in phrases})
    return counts.total()
