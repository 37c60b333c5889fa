"""The canonical tool names, and how each agent spells the tools of MCP servers.

Knows: the closed list of names, the spellings. Does not know: arguments.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

CanonicalTool: TypeAlias = Literal["shell", "read", "write", "edit", "patch", "fetch", "search", "agent"]
"""The tools that rules name; an MCP tool is `mcp:SERVER/TOOL`, any other tool is itself."""

CANONICAL_TOOLS: Final[tuple[CanonicalTool, ...]] = get_args(CanonicalTool)

MCP_PREFIX: Final = "mcp:"

UNKNOWN_PREFIX: Final = "unknown:"
"""Begins the name of a call whose very kind is not known: it may be any tool, so whoever asks about one is asked."""

_BLANKS: Final = "\0\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200E))
)
"""What is not seen around a name: white space in Python's eyes and in JavaScript's, and what has no width."""

_COMMON_SPELLING: Final = ("mcp__", "__")
_OTHER_SPELLINGS: Final[Mapping[str, tuple[str, str] | None]] = {
    "claude-code": None,
    "codex": None,
    "process": None,
    "gemini-cli": ("mcp_", "_"),
    "opencode": ("", "_"),
}
"""Prefix and separator, beside the common one. Where the separator is one underscore the server's name ends at the
first: the wire does not say more, and the wire name still matches as written."""
_UNKNOWN_AGENT: Final = ("mcp_", "_")


def trimmed(wire_name: str) -> str:
    """The name without what is not seen around it: an agent that trims names runs the tool that is left."""
    return wire_name.strip(_BLANKS)


def mcp_name(agent: str | None, wire_name: str) -> str | None:
    """`mcp:SERVER/TOOL` for an MCP tool as `agent` spells it, else None."""
    other = _OTHER_SPELLINGS.get(agent or "", _UNKNOWN_AGENT)
    for prefix, separator in (_COMMON_SPELLING, other) if other else (_COMMON_SPELLING,):
        if not wire_name.startswith(prefix):
            continue
        server, found, tool = wire_name.removeprefix(prefix).partition(separator)
        if found and server and tool:
            return f"{MCP_PREFIX}{server}/{tool}"
    return None
