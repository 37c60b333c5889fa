"""gateway.blind."""

import pytest

from interpose.contracts.json import Json
from interpose.gateway.api import ApiName
from interpose.gateway.blind import hosted_tools


@pytest.mark.parametrize(
    ("api", "tools", "expected"),
    [
        ("anthropic", [{"name": "Bash"}, {"type": "custom", "name": "x"}, {"type": "bash_20250124"}], ()),
        ("anthropic", [{"type": "web_search_20250305", "name": "web_search"}] * 2, ("web_search_20250305",)),
        ("responses", [{"type": "function"}, {"type": "custom"}, {"type": "namespace"}, {"type": "shell"}], ()),
        ("responses", [{"type": "web_search"}, {"type": "mcp"}], ("web_search", "mcp")),
        ("chat", [{"type": "function"}, {"type": "custom"}], ()),
        ("gemini", [{"functionDeclarations": []}, {"googleSearch": {}, "codeExecution": None}], ("googleSearch",)),
        ("chat", [5, None, {"type": 7}], ()),
    ],
)
def test_what_runs_at_the_provider(api: ApiName, tools: list[Json], expected: tuple[str, ...]) -> None:
    """Tools whose calls come back to the agent are judged, and are not named."""
    assert hosted_tools(api, tools) == expected
