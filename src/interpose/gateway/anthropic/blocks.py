"""Content blocks of the model: which of them are calls that the client runs, and what such a call proposes.

Knows: the types of blocks. Does not know: events, messages, verdicts.
Source: https://docs.anthropic.com/en/api/messages.
"""

from interpose.contracts.json import Json
from interpose.gateway.api import ProposedCall
from interpose.gateway.proposed import name_in, unknown_call, with_name
from interpose.wire.strictjson import read_arguments, read_object

CALL = "tool_use"
"""The type of a call that the client runs."""

_PASSING = frozenset(
    {
        "text",
        "thinking",
        "redacted_thinking",
        "compaction",
        "container_upload",
        "document",
        "fallback",
        "image",
        "mcp_tool_listing",
        "mcp_tool_use",
        "search_result",
        "server_tool_use",
    }
)
"""What the model says, and what the provider runs by itself. All other blocks are calls, of types not known yet too."""

_RESULT = "tool_result"
"""How the type of a result ends; those in a reply are of tools that the provider ran."""


def is_call(block: Json) -> bool:
    """Whether the client may have to run something for this block, as far as its type tells."""
    kind = block.get("type") if isinstance(block, dict) else None
    return not isinstance(kind, str) or (kind not in _PASSING and not kind.endswith(_RESULT))


def read_call(block: Json, given: str | bytes | None) -> ProposedCall:
    """The call that one complete block proposes; `given` is its input, as it came; None where the block has it."""
    if not isinstance(block, dict):
        return unknown_call("", None, "a content block that is no object")
    call_id, name, kind = text_in(block, "id"), name_in(block.get("name")), block.get("type")
    if kind != CALL:
        return unknown_call(call_id, kind, f"a content block of the type {kind!r}, which interpose cannot read")
    arguments, problem = read_object(block.get("input")) if given is None else read_arguments(given)
    return with_name(ProposedCall(call_id, name, arguments or {}, problem), CALL)


def text_in(block: Json, name: str) -> str:
    """What a member of a block says; "" where that is nothing."""
    value = block.get(name) if isinstance(block, dict) else None
    return "" if value is None else str(value)
