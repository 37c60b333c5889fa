"""What a request offers that runs where nobody judges it: tools of the provider's own.

Knows: how each API writes such tools. Does not know: what they do, who is told of them.
"""

from collections.abc import Iterator, Sequence

from interpose.contracts.json import Json
from interpose.gateway.api import ApiName

_RUN_BY_THE_CLIENT = ("bash_", "text_editor_", "computer_", "memory_")
"""Kinds of Anthropic's tools with a date in their name that the agent runs itself."""

_CLIENTS_KINDS = frozenset(
    {"function", "custom", "namespace", "local_shell", "shell", "apply_patch", "computer_use_preview", "tool_search"}
)
"""Kinds of OpenAI's tools whose calls come back to the agent."""

_DECLARED = frozenset({"functionDeclarations", "function_declarations"})


def hosted_tools(api: ApiName, tools: Sequence[Json]) -> tuple[str, ...]:
    """The names of the tools that run at the provider, each once, as far as the request says so."""
    return tuple(dict.fromkeys(name for tool in tools if isinstance(tool, dict) for name in _hosted(api, tool)))


def _hosted(api: ApiName, tool: dict[str, Json]) -> Iterator[str]:
    if api == "gemini":
        yield from (name for name, value in tool.items() if name not in _DECLARED and value is not None)
        return
    kind = tool.get("type")
    if not isinstance(kind, str) or kind in _CLIENTS_KINDS:
        return
    if api == "anthropic" and kind.startswith(_RUN_BY_THE_CLIENT):
        return
    yield kind
