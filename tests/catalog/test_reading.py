"""catalog: the hook form of calls, both ways."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.catalog.names import CANONICAL_TOOLS, mcp_name
from interpose.catalog.reading import canonical_name, read_call, write_call
from interpose.catalog.table import AGENTS, COMMON, REQUIRED, Tool, tool_of
from interpose.contracts.errors import MisuseError
from interpose.kernel.frozen import freeze

PATCH = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-a\n+b\n*** End Patch\n"

CALLS: list[tuple[str | None, str, dict[str, Any], str, dict[str, Any]]] = [
    ("claude-code", "Bash", {"command": "ls", "description": "d"}, "shell", {"command": "ls"}),
    ("claude-code", "Read", {"file_path": "/a", "limit": 3}, "read", {"path": "/a", "limit": 3}),
    ("claude-code", "Write", {"file_path": "/a", "content": "x"}, "write", {"path": "/a", "content": "x"}),
    (
        "claude-code",
        "Edit",
        {"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": False},
        "edit",
        {"path": "/a", "old": "x", "new": "y", "replace_all": False},
    ),
    (
        "claude-code",
        "MultiEdit",
        {"file_path": "/a", "edits": [{"old_string": "x", "new_string": "y", "replace_all": True}]},
        "edit",
        {"path": "/a", "edits": [{"old": "x", "new": "y", "replace_all": True}]},
    ),
    (
        "claude-code",
        "NotebookEdit",
        {"notebook_path": "/n.ipynb", "new_source": "1", "cell_id": "c"},
        "edit",
        {"path": "/n.ipynb", "new": "1"},
    ),
    (None, "move_file", {"source": "a", "destination": "b"}, "write", {"path": "b", "source": "a"}),
    (None, "delete_file", {"path": "a", "recursive": True}, "write", {"path": "a"}),
    ("process", "files__move_file", {"source": "a", "destination": "b"}, "write", {"path": "b", "source": "a"}),
    ("claude-code", "WebFetch", {"url": "http://x", "prompt": "p"}, "fetch", {"url": "http://x", "prompt": "p"}),
    ("claude-code", "WebSearch", {"query": "q"}, "search", {"query": "q"}),
    ("claude-code", "Grep", {"pattern": "p", "path": "src", "-n": True}, "search", {"pattern": "p", "path": "src"}),
    ("claude-code", "Glob", {"pattern": "**/*.py"}, "search", {"pattern": "**/*.py"}),
    (
        "claude-code",
        "Agent",
        {"description": "sub", "prompt": "do", "subagent_type": "general-purpose"},
        "agent",
        {"task": "do", "kind": "general-purpose", "description": "sub"},
    ),
    ("claude-code", "mcp__git__log", {"n": 1}, "mcp:git/log", {"n": 1}),
    ("codex", "exec_command", {"cmd": "ls", "workdir": "src"}, "shell", {"command": "ls", "cwd": "src"}),
    ("codex", "shell", {"command": ["bash", "-lc", "rm -rf build"]}, "shell", {"command": "rm -rf build"}),
    ("codex", "shell", {"command": ["rm", "-r", "my build"]}, "shell", {"command": "rm -r 'my build'"}),
    ("codex", "shell", {"command": "ls"}, "shell", {"command": "ls"}),
    ("codex", "Bash", {"command": "ls"}, "shell", {"command": "ls"}),
    ("codex", "write_stdin", {"session_id": 1, "chars": "rm x\n"}, "shell", {"command": "rm x\n"}),
    ("codex", "apply_patch", {"input": PATCH}, "patch", {"patch": PATCH}),
    ("codex", "apply_patch", {"command": PATCH}, "patch", {"patch": PATCH}),
    ("codex", "mcp__git__log", {}, "mcp:git/log", {}),
    ("gemini-cli", "run_shell_command", {"command": "ls", "dir_path": "src"}, "shell", {"command": "ls", "cwd": "src"}),
    ("gemini-cli", "read_file", {"absolute_path": "/a"}, "read", {"path": "/a"}),
    ("gemini-cli", "read_many_files", {"paths": ["a", "b"]}, "read", {"paths": ["a", "b"]}),
    ("gemini-cli", "write_file", {"file_path": "a", "content": ""}, "write", {"path": "a", "content": ""}),
    (
        "gemini-cli",
        "replace",
        {"file_path": "a", "instruction": "i", "old_string": "x", "new_string": "y"},
        "edit",
        {"path": "a", "old": "x", "new": "y"},
    ),
    ("gemini-cli", "web_fetch", {"prompt": "read http://x"}, "fetch", {"prompt": "read http://x"}),
    ("gemini-cli", "google_web_search", {"query": "q"}, "search", {"query": "q"}),
    (
        "gemini-cli",
        "search_file_content",
        {"pattern": "p", "include": "*.py"},
        "search",
        {"pattern": "p", "glob": "*.py"},
    ),
    ("gemini-cli", "glob", {"pattern": "*.py", "path": "src"}, "search", {"pattern": "*.py", "path": "src"}),
    ("gemini-cli", "mcp_git_log", {"n": 1}, "mcp:git/log", {"n": 1}),
    ("opencode", "bash", {"command": "ls"}, "shell", {"command": "ls"}),
    ("opencode", "read", {"filePath": "a"}, "read", {"path": "a"}),
    ("opencode", "write", {"filePath": "a", "content": "x"}, "write", {"path": "a", "content": "x"}),
    (
        "opencode",
        "edit",
        {"filePath": "a", "oldString": "x", "newString": "y"},
        "edit",
        {"path": "a", "old": "x", "new": "y"},
    ),
    ("opencode", "patch", {"patchText": PATCH}, "patch", {"patch": PATCH}),
    ("opencode", "webfetch", {"url": "http://x"}, "fetch", {"url": "http://x"}),
    ("opencode", "grep", {"pattern": "p", "include": "*.py"}, "search", {"pattern": "p", "glob": "*.py"}),
    ("opencode", "task", {"prompt": "do", "description": "d"}, "agent", {"task": "do", "description": "d"}),
    ("opencode", "git_log", {"n": 1}, "mcp:git/log", {"n": 1}),
    ("process", "shell", {"command": "ls"}, "shell", {"command": "ls"}),
    ("process", "read", {"filename": "a"}, "read", {"path": "a"}),
    ("process", "read_file", {"path": "a"}, "read", {"path": "a"}),
    ("process", "write", {"filePath": "a", "content": "x"}, "write", {"path": "a", "content": "x"}),
    (None, "Bash", {"command": "ls"}, "shell", {"command": "ls"}),
    (None, "exec_command", {"cmd": "ls"}, "shell", {"command": "ls"}),
    (None, "run_command", {"command": "ls"}, "shell", {"command": "ls"}),
    (None, "read", {"filePath": "a"}, "read", {"path": "a"}),
    (None, "read_file", {"absolute_path": "a"}, "read", {"path": "a"}),
    (None, "mcp_git_log", {"n": 1}, "mcp:git/log", {"n": 1}),
    ("some-new-agent", "run_shell_command", {"command": "ls"}, "shell", {"command": "ls"}),
    ("claude-code", "bash", {"command": "ls"}, "shell", {"command": "ls"}),
    (None, "frobnicate", {"command": 5}, "frobnicate", {"command": 5}),
    ("claude-code", "TodoWrite", {"todos": []}, "TodoWrite", {"todos": []}),
]


@pytest.mark.parametrize(("agent", "wire_name", "arguments", "name", "hook_form"), CALLS)
def test_each_agents_call_has_one_hook_form(
    agent: str | None, wire_name: str, arguments: dict[str, Any], name: str, hook_form: dict[str, Any]
) -> None:
    """Name and input are those of the hook form, and the input unchanged writes the very call back."""
    form = read_call(agent, wire_name, arguments)

    assert (form.name, form.input, form.problem) == (name, hook_form, None)
    assert (form.name == wire_name) != (wire_name in form.aliases)
    assert write_call(form, form.input) == arguments


@pytest.mark.parametrize(
    ("agent", "wire_name", "arguments", "problem"),
    [
        ("claude-code", "Bash", {"command": 5}, "Bash: command is 5, expected text"),
        ("claude-code", "Bash", {}, "Bash needs command, found nothing"),
        ("claude-code", "Read", {"path": "a"}, "Read needs file_path, found 'path'"),
        ("codex", "shell", {"command": ["ls", 5]}, "shell: command is ['ls', 5], expected text or a list of words"),
        ("codex", "shell", {"command": []}, "shell: command is [], expected text or a list of words"),
        (
            "codex",
            "apply_patch",
            {"input": PATCH, "command": "else"},
            "apply_patch says its patch in two ways: input is '*** Begin Patch",
        ),
        ("gemini-cli", "read_many_files", {"paths": "a"}, "read_many_files: paths is 'a', expected a list of texts"),
        ("gemini-cli", "read_file", {"path": ["a"]}, "read_file: path is ['a'], expected text"),
    ],
)
def test_what_cannot_be_read_is_a_problem_with_words(
    agent: str, wire_name: str, arguments: dict[str, Any], problem: str
) -> None:
    """A wrong type, a missing field and two different values are named; the input is empty and cannot be rewritten."""
    form = read_call(agent, wire_name, arguments)

    assert form.problem is not None
    assert form.problem.startswith(problem)
    assert form.input == {}
    with pytest.raises(MisuseError, match="cannot be rewritten"):
        write_call(form, {})


def test_an_edit_keeps_the_other_fields_and_their_order() -> None:
    """The command changes; what the hook form has no name for stays where it was."""
    form = read_call(
        "claude-code", "Bash", {"description": "clean", "command": "rm -rf build", "run_in_background": True}
    )

    written = write_call(form, {"command": "ls build"})

    assert list(written.items()) == [("description", "clean"), ("command", "ls build"), ("run_in_background", True)]
    assert form.rest == {"description": "clean", "run_in_background": True}


def test_an_edit_adds_and_removes_fields_under_the_agents_names() -> None:
    """A field that was absent gets the agent's first name for it; a field left out is gone."""
    form = read_call("codex", "exec_command", {"cmd": "ls", "workdir": "/a"})

    assert write_call(form, {"command": "ls"}) == {"cmd": "ls"}
    assert write_call(
        read_call("gemini-cli", "run_shell_command", {"command": "ls"}), {"command": "ls", "cwd": "b"}
    ) == {
        "command": "ls",
        "dir_path": "b",
    }


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (["bash", "-lc", "a"], "b > c", ["bash", "-lc", "b > c"]),
        (["rm", "-r", "x"], "ls x", ["ls", "x"]),
        (["rm", "-r", "x"], "ls > x", ["bash", "-c", "ls > x"]),
        (["rm", "-r", "x"], "bash -c 'ls x'", ["bash", "-c", "bash -c 'ls x'"]),
        (["rm", "-r", "x"], "echo 'open", ["bash", "-c", "echo 'open"]),
    ],
)
def test_an_edited_argument_list_runs_what_was_judged(before: list[str], text: str, after: list[str]) -> None:
    """A list stays a list where its words say the same; text that needs a shell gets one."""
    form = read_call("codex", "shell", {"command": before})

    written = write_call(form, {"command": text})

    assert written == {"command": after}
    assert read_call("codex", "shell", written).input == {"command": text}


@pytest.mark.parametrize(
    "argv",
    [["bash", "-lc", "a", "arg0"], ["zsh", "-c", "a"], ["bash", "script.sh", "x"], ["bash", "-o", "a"]],
)
def test_only_a_plain_sh_or_bash_wrapper_is_taken_off(argv: list[str]) -> None:
    """Whatever else stays in the text, so that whoever reads commands sees the wrapper."""
    command = read_call("codex", "shell", {"command": argv}).input["command"]

    assert command.split()[0] == argv[0]


def test_a_patched_list_of_edits_goes_back_under_the_agents_names() -> None:
    """Each item is renamed both ways."""
    form = read_call("opencode", "multiedit", {"filePath": "a", "edits": [{"oldString": "x", "newString": "y"}]})

    written = write_call(form, {"path": "a", "edits": [{"old": "x", "new": "z"}]})

    assert written == {"filePath": "a", "edits": [{"oldString": "x", "newString": "z"}]}


def test_an_unknown_tool_is_rewritten_as_it_is() -> None:
    """Its input is its arguments; key order survives and new keys come last."""
    form = read_call("claude-code", "mcp__git__log", freeze({"b": 1, "a": {"c": 2}}))

    assert list(write_call(form, {"a": 3, "n": 4, "b": 1}).items()) == [("b", 1), ("a", 3), ("n", 4)]


def test_what_is_written_shares_nothing_with_what_was_read() -> None:
    """The arguments written are plain and new, also from frozen ones."""
    form = read_call("claude-code", "MultiEdit", freeze({"file_path": "a", "edits": [{"old_string": "x"}]}))

    written = write_call(form, form.input)
    written["edits"][0]["old_string"] = "changed"

    assert form.arguments["edits"][0]["old_string"] == "x"


def test_other_names_of_the_same_tool_are_aliases_once() -> None:
    """A rule for Task also means Agent; a rule for Bash means Codex's exec_command; no alias repeats or is the name."""
    assert read_call("claude-code", "Agent", {"prompt": "x"}).aliases == ("Agent", "Task")
    assert read_call("codex", "exec_command", {"cmd": "x"}).aliases == (
        "exec_command",
        "shell_command",
        "local_shell",
        "Bash",
    )
    for agent, table in AGENTS.items():
        for wire_name in table:
            form = read_call(agent, wire_name, {})
            assert len(set(form.aliases)) == len(form.aliases)
            assert form.name not in form.aliases


def test_a_name_two_agents_use_differently_is_nobodys_when_the_agent_is_unknown() -> None:
    """Every name in the tables means one canonical tool today; all of them are found without knowing the agent."""
    for table in AGENTS.values():
        for wire_name, tool in table.items():
            found = tool_of(None, wire_name)
            assert found is not None
            assert found.name == tool.name
            assert set(tool.fields) <= set(found.fields)


@pytest.mark.parametrize(
    ("agent", "wire_name", "name"),
    [
        ("claude-code", "mcp__a__b__c", "mcp:a/b__c"),
        ("claude-code", "mcp__a", None),
        ("claude-code", "mcp_a_b", None),
        ("gemini-cli", "mcp_a_b_c", "mcp:a/b_c"),
        ("gemini-cli", "mcp_a", None),
        ("opencode", "a_b", "mcp:a/b"),
        ("opencode", "_b", None),
        ("opencode", "plain", None),
        (None, "mcp__a__b", "mcp:a/b"),
    ],
)
def test_mcp_tools_are_named_by_server_and_tool(agent: str | None, wire_name: str, name: str | None) -> None:
    """Each agent's spelling is read; what does not fit it is no MCP tool."""
    assert mcp_name(agent, wire_name) == name


def test_every_entry_of_the_table_can_be_filled() -> None:
    """Names are canonical, no wire field stands under two hook fields, and the fields a tool needs exist."""
    for table in (*AGENTS.values(), COMMON):
        for tool in table.values():
            wire_keys = [key for keys in tool.fields.values() for key in keys]
            assert tool.name in CANONICAL_TOOLS
            assert len(wire_keys) == len(set(wire_keys))
            assert not REQUIRED.get(tool.name) or set(REQUIRED[tool.name]) & set(tool.fields)


TEXT = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ENTRIES = [(agent, wire_name, tool) for agent, table in AGENTS.items() for wire_name, tool in table.items()]


def _arguments(tool: Tool) -> st.SearchStrategy[dict[str, Any]]:
    known = st.sampled_from([key for keys in tool.fields.values() for key in keys])
    value = TEXT | st.lists(TEXT, max_size=3) | JSON
    return st.dictionaries(known | TEXT, value, max_size=6)


@settings(deadline=None)
@given(st.data())
def test_reading_and_writing_back_is_the_same_call(data: st.DataObject) -> None:
    """Whatever an agent writes: either a problem, or the very same arguments come back."""
    agent, wire_name, tool = data.draw(st.sampled_from(ENTRIES))
    arguments = data.draw(_arguments(tool))

    form = read_call(data.draw(st.sampled_from([agent, None])), wire_name, arguments)

    assert form.name == tool.name
    if form.problem is None:
        assert write_call(form, form.input) == arguments
        assert list(write_call(form, form.input)) == list(arguments)
    else:
        assert form.input == {}


@settings(deadline=None)
@given(st.data())
def test_an_edit_is_read_back_as_it_was_meant(data: st.DataObject) -> None:
    """What a handler wrote into the hook form is what the next judge of the call sees, and nothing else changed."""
    agent, wire_name, tool = data.draw(st.sampled_from(ENTRIES))
    form = read_call(agent, wire_name, data.draw(_arguments(tool)))
    edits = [name for name in form.input if isinstance(form.input[name], str)]
    if form.problem is not None or not edits:
        return
    edited = {**form.input, **data.draw(st.fixed_dictionaries(dict.fromkeys(edits, TEXT)))}

    again = read_call(agent, wire_name, write_call(form, edited))

    assert again.problem is None
    assert again.input == edited
    assert again.rest == form.rest


def test_a_call_of_an_unknown_kind_may_be_any_tool() -> None:
    """Whoever asks about a tool is asked about it, and nobody can read it; the same goes for code mode's program."""
    form = read_call("codex", "unknown:new_call", {})
    program = read_call("codex", "exec", {})

    assert form.name == "unknown:new_call"
    assert set(form.aliases) == set(CANONICAL_TOOLS)
    assert {"shell", "patch", "read", "write", "edit"} <= {program.name, *program.aliases}
    assert None not in (form.problem, program.problem)


def test_a_known_name_behind_a_label_is_known() -> None:
    """Where programs put labels before names; the whole name and the tool's own still match."""
    for agent in (None, "process", "my-framework"):
        form = read_call(agent, "box__run_command", {"command": "ls"})
        assert (form.name, form.input) == ("shell", {"command": "ls"})
        assert form.aliases == ("box__run_command", "run_command")
        assert canonical_name(agent, "a__b__read_file") == "read"
        assert read_call(agent, "box__deploy", {}).name == "box__deploy"
        assert read_call(agent, "mcp__box__read_file", {}).name == "mcp:box/read_file"
    assert read_call("codex", "box__read_file", {"path": "x"}).name == "box__read_file"


def test_a_given_leaf_is_what_the_call_is_read_by() -> None:
    """Also behind a shortened or misleading name, and where nobody knows the tool."""
    assert read_call("process", "x_1f", {"command": "ls"}, "run_command").name == "shell"
    assert read_call("process", "mcp__read_file", {"path": "x"}, "read_file").name == "read"
    form = read_call("process", "box__deploy", {}, "deploy")
    assert (form.name, form.aliases) == ("box__deploy", ("deploy",))


class PathSaying:
    """A path that is no text, as `os.PathLike` says."""

    def __fspath__(self) -> str:
        """The text."""
        return ".env"


def test_paths_and_tuples_of_a_program_are_read_as_what_they_say() -> None:
    """The hook form has text and lists; what is written back unchanged is the program's own path."""
    path, argv = PathSaying(), ("rm", "-rf", PathSaying())
    calls: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
        ("read_file", {"path": path}, {"path": ".env"}),
        ("shell", {"command": argv}, {"command": "rm -rf .env"}),
        ("unheard_of", {"path": path}, {"path": ".env"}),
    )
    for name, arguments, read in calls:
        form = read_call("process", name, arguments)
        assert (form.problem, form.input) == (None, read)
        assert write_call(form, form.input) == {
            key: [*value] if isinstance(value, tuple) else value for key, value in arguments.items()
        }


def test_a_needed_value_of_none_is_told() -> None:
    """It is there, and says nothing."""
    assert (
        read_call("process", "shell", {"command": None}).problem
        == "shell needs command or cmd, found 'command' of None"
    )
