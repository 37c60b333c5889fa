"""userhooks.matching: which calls a hook speaks about."""

from pathlib import Path
from typing import Any

import pytest

from interpose.catalog.reading import read_call
from interpose.command.reader import CommandReader
from interpose.command.reading import Found, NotFound
from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import HookInput
from interpose.userhooks.hooks import Matchers
from interpose.userhooks.matching import Matcher, Workspace

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** Delete File: .env\n*** End Patch\n"


def ask(
    matchers: Matchers,
    tool: str,
    arguments: dict[str, Any],
    *,
    root: str = "/house",
    cwd: str | None = None,
    agent: str | None = "process",
) -> str:
    """`found`, `not found` or `unknown` for one call in the words of an agent."""
    form = read_call(agent, tool, arguments)
    given = HookInput(
        "before_tool",
        tool_name=form.name,
        tool_aliases=form.aliases,
        tool_args=form.input,
        unreadable=form.problem,
        metadata={} if cwd is None else {"cwd": cwd},
    )
    match Matcher(matchers, Workspace(root, "/home/ann"), CommandReader()).ask(given):
        case Found():
            return "found"
        case NotFound():
            return "not found"
        case Unknown():
            return "unknown"


@pytest.mark.parametrize(
    ("agent", "tool", "arguments"),
    [
        ("claude-code", "Bash", {"command": "rm -rf build"}),
        ("codex", "exec_command", {"cmd": "cd src && sudo rm -r build"}),
        ("codex", "shell", {"command": ["bash", "-lc", "rm --recursive build"]}),
        ("codex", "shell", {"command": ["rm", "-R", "build"]}),
        ("gemini-cli", "run_shell_command", {"command": "rm -rf build"}),
        ("opencode", "bash", {"command": "rm -fr build"}),
        ("process", "shell", {"command": "rm -r build"}),
        (None, "run_command", {"command": "rm -r build"}),
    ],
)
def test_one_command_rule_means_the_same_in_every_agent(
    agent: str | None, tool: str, arguments: dict[str, Any]
) -> None:
    """Whatever the tool is called and however the command is given."""
    assert ask(Matchers(command=("rm -r|-R|--recursive",)), tool, arguments, agent=agent) == "found"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("rm build/a.o", "not found"),
        ("grep 'rm -r' notes.txt", "not found"),
        ("git push --force origin main", "found"),
        ("$TOOL -r build", "unknown"),
        ("echo 'open", "unknown"),
    ],
)
def test_commands_are_judged_by_their_words(command: str, answer: str) -> None:
    """Any of several patterns is enough; what cannot be read is unknown."""
    assert ask(Matchers(command=("rm -r", "git push --force")), "shell", {"command": command}) == answer


@pytest.mark.parametrize(
    ("agent", "tool", "arguments"),
    [
        ("claude-code", "Read", {"file_path": "/house/.env"}),
        ("claude-code", "Write", {"file_path": "/house/sub/../.env", "content": ""}),
        ("claude-code", "Edit", {"file_path": ".env", "old_string": "a", "new_string": "b"}),
        ("claude-code", "MultiEdit", {"file_path": ".env", "edits": []}),
        ("claude-code", "Grep", {"pattern": "KEY", "path": ".env"}),
        ("claude-code", "Grep", {"pattern": "KEY", "glob": ".env"}),
        ("claude-code", "Bash", {"command": "cat .env"}),
        ("codex", "exec_command", {"cmd": "cat .env", "workdir": "/house/sub"}),
        ("codex", "apply_patch", {"input": PATCH}),
        ("gemini-cli", "read_file", {"absolute_path": "/house/.env"}),
        ("gemini-cli", "read_many_files", {"paths": ["src/a.py", ".env"]}),
        ("gemini-cli", "read_many_files", {"include": ["**/.env"]}),
        ("opencode", "read", {"filePath": ".env"}),
        ("process", "read", {"filename": "file:///house/.env"}),
    ],
)
def test_one_path_rule_means_the_same_in_every_tool(agent: str, tool: str, arguments: dict[str, Any]) -> None:
    """By tool, command, patch or search: the file is the file."""
    assert ask(Matchers(path=(".env", "!.env.example")), tool, arguments, agent=agent) == "found"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": ".env.example"}),
        ("read", {"path": "environment"}),
        ("shell", {"command": "cat .env.example"}),
        ("search", {"pattern": "KEY", "path": "src"}),
        ("search", {"query": "what is .env"}),
        ("patch", {"patch": PATCH.replace(".env", "src/b.py")}),
    ],
)
def test_other_files_are_left_alone(tool: str, arguments: dict[str, Any]) -> None:
    """An exempted file, a similar name, and searches that do not point at it."""
    assert ask(Matchers(path=(".env", ".env.*", "!.env.example")), tool, arguments) == "not found"


@pytest.mark.parametrize(
    ("access", "tool", "arguments", "answer"),
    [
        ("write", "read", {"path": ".env"}, "not found"),
        ("write", "search", {"pattern": "x", "path": ".env"}, "not found"),
        ("write", "write", {"path": ".env", "content": ""}, "found"),
        ("write", "shell", {"command": "cat .env"}, "not found"),
        ("write", "shell", {"command": "echo x > .env"}, "found"),
        ("remove", "patch", {"patch": PATCH}, "found"),
        ("write", "patch", {"patch": PATCH}, "not found"),
        ("remove", "shell", {"command": "rm .env"}, "found"),
        ("remove", "write", {"path": ".env", "content": ""}, "not found"),
    ],
)
def test_access_says_what_must_happen_to_the_file(
    access: str, tool: str, arguments: dict[str, Any], answer: str
) -> None:
    """Reading, writing and removing are told apart in every tool."""
    assert ask(Matchers(path=(".env",), access=(access,)), tool, arguments) == answer


@pytest.mark.parametrize("tool", ["search", "Grep"])
@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({"glob": "*.py"}, "not found"),
        ({"glob": "*.py", "path": "."}, "not found"),
        ({"glob": "*.{py,toml}", "path": "src"}, "not found"),
        ({"include": "*.py"}, "not found"),
        ({"glob": "*"}, "not found"),
        ({"glob": "**/*"}, "not found"),
        ({"glob": "src/**"}, "not found"),
        ({"glob": "!.env"}, "not found"),
        ({"path": "."}, "not found"),
        ({"glob": "*.lock"}, "not found"),
        ({"glob": "*.pem", "path": "node_modules"}, "not found"),
        ({"glob": "*.cnf"}, "found"),
        ({"glob": "*.e*"}, "found"),
        ({"glob": ".env*"}, "found"),
        ({"glob": "*.py .env"}, "found"),
        ({"glob": "{*.py,.env}"}, "found"),
        ({"glob": "*.py,.env"}, "found"),
        ({"glob": "*.pem"}, "found"),
        ({"glob": "**/.env"}, "found"),
        ({"path": ".env"}, "found"),
        ({"path": "secrets", "glob": "*.txt"}, "found"),
    ],
)
def test_a_search_is_held_against_the_names_its_glob_means(
    tmp_path: Path, tool: str, arguments: dict[str, Any], answer: str
) -> None:
    """By the text of the glob and by names that are there; what a folder holds besides does not count."""
    for name in (".env", "src/a.py", "etc/x.cnf", "secrets/a.txt", "node_modules/ca.pem", "x.lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    rule = Matchers(path=(".env", ".env.*", "*.pem", "etc/", "secrets", "!**/node_modules/**"))

    assert ask(rule, tool, {"pattern": "x", **arguments}, root=str(tmp_path)) == answer


def test_a_search_may_start_at_home() -> None:
    """`~` is the folder that it is everywhere."""
    rule = Matchers(path=("~/.netrc",))

    assert ask(rule, "search", {"pattern": "x", "path": "~", "glob": ".netrc"}) == "found"
    assert ask(rule, "search", {"pattern": "x", "path": "~", "glob": ".n*"}) == "found"
    assert ask(rule, "search", {"pattern": "x", "path": ".", "glob": ".netrc"}) == "not found"


def test_globs_of_a_reading_tool_are_what_they_find(tmp_path: Path) -> None:
    """A list of globs reads every file it finds."""
    (tmp_path / "src").mkdir()
    (tmp_path / ".env").touch()
    rule = Matchers(path=(".env",))

    def answer(*include: str) -> str:
        return ask(rule, "read_many_files", {"include": list(include)}, root=str(tmp_path), agent="gemini-cli")

    assert [answer("**/*.py"), answer("src/**"), answer("src/**/*")] == ["not found"] * 3
    assert [answer("**/*"), answer("src/a", "*"), answer("{a,.env}"), answer(".e*")] == ["found"] * 4


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("fetch", {"url": "file:///house/.env"}, "found"),
        ("fetch", {"url": "FILE:///house/sub/../.env"}, "found"),
        ("web_fetch", {"prompt": "what is in file:///house/.env ?"}, "found"),
        ("fetch", {"url": "file:///house/README.md"}, "not found"),
        ("fetch", {"url": "https://example.org/.env"}, "not found"),
    ],
)
def test_a_file_url_is_a_read_of_the_file(tool: str, arguments: dict[str, Any], answer: str) -> None:
    """Whatever the tool is for."""
    agent = "gemini-cli" if tool == "web_fetch" else "process"
    assert ask(Matchers(path=(".env",)), tool, arguments, agent=agent) == answer
    assert ask(Matchers(path=(".env",), access=("write",)), tool, arguments, agent=agent) == "not found"


def test_both_matchers_must_hold() -> None:
    """A command about another file and another command about the file are no match."""
    both = Matchers(command=("cp",), path=(".env",))

    assert ask(both, "shell", {"command": "cp .env backup"}) == "found"
    assert ask(both, "shell", {"command": "cp a b"}) == "not found"
    assert ask(both, "shell", {"command": "cat .env"}) == "not found"


def test_a_no_outweighs_not_knowing() -> None:
    """One matcher cannot tell, the other says no: no."""
    assert ask(Matchers(command=("cp",), path=(".env",)), "shell", {"command": "cat $FILE"}) == "not found"


def test_relative_paths_start_where_the_agent_is() -> None:
    """The agent's folder, then the call's own below it; patterns start at the root of the project."""
    rule = Matchers(path=("sub/secret.txt",))

    assert ask(rule, "read", {"path": "secret.txt"}) == "not found"
    assert ask(rule, "read", {"path": "secret.txt"}, cwd="/house/sub") == "found"
    assert ask(rule, "shell", {"command": "cat secret.txt", "cwd": "sub"}, cwd="/house") == "found"
    assert ask(rule, "shell", {"command": "cat secret.txt", "cwd": "/house/sub"}) == "found"


def test_a_link_is_the_file_it_points_to(tmp_path: Path) -> None:
    """The name of the link does not matter, the file does."""
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "notes.txt").symlink_to(tmp_path / ".env")

    assert ask(Matchers(path=(".env",)), "read", {"path": "notes.txt"}, root=str(tmp_path)) == "found"


def test_home_is_known() -> None:
    """`~` in a pattern and in a call mean the same folder."""
    assert ask(Matchers(path=("~/.ssh",)), "read", {"path": "/home/ann/.ssh/id_rsa"}) == "found"
    assert ask(Matchers(path=("~/.ssh",)), "read", {"path": "~/.ssh/config"}) == "found"


def test_tools_nobody_knows_are_asked_for_the_files_they_name() -> None:
    """MCP tools name files in the common fields; one that names none is no match."""
    rule = Matchers(path=(".env",))

    assert ask(rule, "mcp__files__read", {"path": "/house/.env"}, agent="codex") == "found"
    assert ask(rule, "mcp__files__move", {"source": "/house/.env", "destination": "x"}, agent="codex") == "found"
    assert ask(rule, "mcp__files__list", {"depth": 3}, agent="codex") == "not found"
    assert ask(rule, "mcp__files__read", {"path": {"uri": "x"}}, agent="codex") == "unknown"


def test_a_tool_nobody_knows_may_run_commands() -> None:
    """When it has a command that is text; one that is something else is unknown, none is no match."""
    rule = Matchers(command=("rm -r",))

    assert ask(rule, "my_runner", {"command": "rm -r x"}) == "found"
    assert ask(rule, "my_runner", {"command": 5}) == "unknown"
    assert ask(rule, "my_runner", {"job": 5}) == "not found"


def test_another_shells_language_is_unknown() -> None:
    """Only sh and bash are read."""
    rule = Matchers(command=("rm -r",))

    assert ask(rule, "exec_command", {"cmd": "rm -r x", "shell": "/usr/bin/fish"}, agent="codex") == "unknown"
    assert ask(rule, "exec_command", {"cmd": "rm -r x", "shell": "/bin/bash"}, agent="codex") == "found"


def test_what_cannot_be_read_is_unknown() -> None:
    """Arguments of a wrong type, a dynamic file, and a patch that is none."""
    rule = Matchers(path=(".env",))

    assert ask(rule, "shell", {"command": 5}) == "unknown"
    assert ask(rule, "shell", {"command": "cat $FILE"}) == "unknown"
    assert ask(rule, "patch", {"patch": "not a patch"}) == "unknown"
    assert ask(Matchers(), "shell", {"command": 5}) == "found"
