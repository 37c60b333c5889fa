"""A tool's name without its arguments."""

import pytest

from interpose.catalog.reading import canonical_name, read_call


def test_the_name_is_the_one_that_a_call_has() -> None:
    """Known tools, MCP tools and tools that nobody knows, of every agent."""
    names = ("Bash", "shell", "mcp__git__log", "mcp_git_log", "git_log", "Read", "apply_patch", "WhoKnows", "")
    for agent in (None, "claude-code", "codex", "gemini-cli", "opencode", "process"):
        assert [canonical_name(agent, name) for name in names] == [read_call(agent, name, {}).name for name in names]


@pytest.mark.parametrize("name", ["Bash ", " Bash", "\tBash\n", "Bash\u00a0", "\ufeffBash", "Bash\u200b", "Bash\0"])
@pytest.mark.parametrize("agent", [None, "claude-code", "opencode-of-tomorrow"])
def test_white_space_around_a_name_does_not_count(agent: str | None, name: str) -> None:
    """An agent may trim the name and run the shell; what it wrote still matches, and is what it keeps."""
    form = read_call(agent, name, {"command": "ls"})

    assert (form.name, form.input, form.problem) == ("shell", {"command": "ls"}, None)
    assert (form.wire_name, name in form.aliases) == (name, True)
    assert canonical_name(agent, name) == "shell"


def test_white_space_around_other_names() -> None:
    """Tools of MCP servers, tools that nobody knows, and calls that cannot be read are found the same way."""
    assert (
        read_call("claude-code", " mcp__git__log ", {}).name
        == canonical_name("codex", "mcp__git__log ")
        == "mcp:git/log"
    )
    assert read_call(None, "mine ", {}).name == canonical_name(None, "mine ") == "mine"
    assert read_call(None, " unknown:x", {}).problem is not None
    assert read_call(None, "two words", {}).name == "two words"
