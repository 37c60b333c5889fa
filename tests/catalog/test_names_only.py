"""A tool's name without its arguments."""

from interpose.catalog.reading import canonical_name, read_call


def test_the_name_is_the_one_that_a_call_has() -> None:
    """Known tools, MCP tools and tools that nobody knows, of every agent."""
    names = ("Bash", "shell", "mcp__git__log", "mcp_git_log", "git_log", "Read", "apply_patch", "WhoKnows", "")
    for agent in (None, "claude-code", "codex", "gemini-cli", "opencode", "process"):
        assert [canonical_name(agent, name) for name in names] == [read_call(agent, name, {}).name for name in names]
