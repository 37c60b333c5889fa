"""The one table: (agent, wire name) to canonical name and fields.

Knows: names and fields as the agents declare them (Claude Code 2.1, Codex 0.171, Gemini CLI 0.61, opencode 1.18).
Does not know: values of arguments.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from interpose.catalog.names import CanonicalTool

Fields: TypeAlias = Mapping[str, tuple[str, ...]]
"""Hook field to the wire fields that may carry it, the one to write first."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of one agent.

    Attributes:
        name: the canonical name.
        fields: hook field to wire fields.
        items: the same for the objects in the list `edits`.
        also: other names of the tool in the same agent.
    """

    name: CanonicalTool
    fields: Fields
    items: Fields = field(default_factory=dict)
    also: tuple[str, ...] = ()


REQUIRED: Final[Mapping[CanonicalTool, tuple[str, ...]]] = {
    "shell": ("command",),
    "read": ("path", "paths", "include"),
    "write": ("path",),
    "edit": ("path",),
    "patch": ("patch",),
    "fetch": ("url", "prompt"),
}
"""Hook fields of which a readable call has at least one."""

TEXTS: Final = frozenset(
    {"command", "cwd", "shell", "path", "source", "patch", "url", "pattern", "query", "glob", "prompt"}
)
"""Hook fields that are text, when present."""

TEXT_LISTS: Final = frozenset({"paths", "include"})
"""Hook fields that are a list of text, when present."""

_CLAUDE_AGENT: Final[Fields] = {"task": ("prompt",), "kind": ("subagent_type",), "description": ("description",)}
_SHELL_LIST: Final[Fields] = {"command": ("command",), "cwd": ("workdir",), "timeout": ("timeout_ms", "timeout")}
_CODEX_SHELLS: Final = ("exec_command", "shell", "shell_command", "local_shell", "Bash")
_CODEX_ALL: Final = (*_CODEX_SHELLS, "apply_patch", "patch", "read", "write", "edit", "fetch", "search")
"""What a program of code mode may call: whoever asks about one of these is asked about the program."""


CLAUDE_CODE: Final[Mapping[str, Tool]] = {
    "Bash": Tool("shell", {"command": ("command",), "timeout": ("timeout",)}),
    "Read": Tool("read", {"path": ("file_path",), "offset": ("offset",), "limit": ("limit",)}),
    "NotebookRead": Tool("read", {"path": ("notebook_path",)}),
    "Write": Tool("write", {"path": ("file_path",), "content": ("content",)}),
    "Edit": Tool(
        "edit",
        {"path": ("file_path",), "old": ("old_string",), "new": ("new_string",), "replace_all": ("replace_all",)},
    ),
    "MultiEdit": Tool(
        "edit",
        {"path": ("file_path",), "edits": ("edits",)},
        items={"old": ("old_string",), "new": ("new_string",)},
    ),
    "NotebookEdit": Tool("edit", {"path": ("notebook_path",), "new": ("new_source",)}),
    "WebFetch": Tool("fetch", {"url": ("url",), "prompt": ("prompt",)}),
    "WebSearch": Tool("search", {"query": ("query",)}),
    "Grep": Tool("search", {"pattern": ("pattern",), "path": ("path",), "glob": ("glob",)}),
    "Glob": Tool("search", {"pattern": ("pattern",), "path": ("path",)}),
    "LS": Tool("search", {"path": ("path",)}),
    "Task": Tool("agent", _CLAUDE_AGENT, also=("Agent",)),
    "Agent": Tool("agent", _CLAUDE_AGENT, also=("Task",)),
}

CODEX: Final[Mapping[str, Tool]] = {
    "exec_command": Tool("shell", {"command": ("cmd",), "cwd": ("workdir",), "shell": ("shell",)}, also=_CODEX_SHELLS),
    "shell": Tool("shell", _SHELL_LIST, also=_CODEX_SHELLS),
    "shell_command": Tool("shell", _SHELL_LIST, also=_CODEX_SHELLS),
    "local_shell": Tool(
        "shell",
        {"command": ("command",), "cwd": ("working_directory", "workdir"), "timeout": ("timeout_ms",)},
        also=_CODEX_SHELLS,
    ),
    "Bash": Tool("shell", {"command": ("command",)}, also=_CODEX_SHELLS),
    "exec": Tool("shell", {"command": ("input", "command", "cmd")}, also=_CODEX_ALL),
    "write_stdin": Tool("shell", {"command": ("chars",)}),
    "apply_patch": Tool("patch", {"patch": ("input", "command", "patch")}),
    "web_search": Tool("search", {"query": ("query",)}),
    "view_image": Tool("read", {"path": ("path",)}),
}

_GEMINI_FOLDER: Final = ("dir_path", "path", "directory")
_GEMINI_GREP: Final[Fields] = {"pattern": ("pattern",), "path": ("dir_path", "path"), "glob": ("include", "glob")}

GEMINI_CLI: Final[Mapping[str, Tool]] = {
    "run_shell_command": Tool("shell", {"command": ("command",), "cwd": ("dir_path", "directory")}),
    "read_file": Tool(
        "read",
        {"path": ("file_path", "absolute_path", "path"), "offset": ("offset",), "limit": ("limit",)},
    ),
    "read_many_files": Tool("read", {"paths": ("paths",), "include": ("include",)}),
    "write_file": Tool("write", {"path": ("file_path", "absolute_path", "path"), "content": ("content",)}),
    "replace": Tool(
        "edit",
        {"path": ("file_path", "absolute_path", "path"), "old": ("old_string",), "new": ("new_string",)},
    ),
    "web_fetch": Tool("fetch", {"url": ("url",), "prompt": ("prompt",)}),
    "google_web_search": Tool("search", {"query": ("query",)}),
    "search_file_content": Tool("search", _GEMINI_GREP, also=("grep_search",)),
    "grep_search": Tool("search", _GEMINI_GREP, also=("search_file_content",)),
    "glob": Tool("search", {"pattern": ("pattern",), "path": ("dir_path", "path")}),
    "list_directory": Tool("search", {"path": _GEMINI_FOLDER}),
}

_OPENCODE_PATCH: Final[Fields] = {"patch": ("patchText", "patch")}

OPENCODE: Final[Mapping[str, Tool]] = {
    "bash": Tool("shell", {"command": ("command",), "cwd": ("workdir",), "timeout": ("timeout",)}),
    "read": Tool("read", {"path": ("filePath",), "offset": ("offset",), "limit": ("limit",)}),
    "write": Tool("write", {"path": ("filePath",), "content": ("content",)}),
    "edit": Tool(
        "edit",
        {"path": ("filePath",), "old": ("oldString",), "new": ("newString",), "replace_all": ("replaceAll",)},
    ),
    "multiedit": Tool(
        "edit",
        {"path": ("filePath",), "edits": ("edits",)},
        items={"old": ("oldString",), "new": ("newString",), "replace_all": ("replaceAll",)},
    ),
    "patch": Tool("patch", _OPENCODE_PATCH, also=("apply_patch",)),
    "apply_patch": Tool("patch", _OPENCODE_PATCH),
    "webfetch": Tool("fetch", {"url": ("url",)}),
    "websearch": Tool("search", {"query": ("query",)}),
    "codesearch": Tool("search", {"query": ("query",)}),
    "grep": Tool("search", {"pattern": ("pattern",), "path": ("path",), "glob": ("include",)}),
    "glob": Tool("search", {"pattern": ("pattern",), "path": ("path",)}),
    "list": Tool("search", {"path": ("path",)}),
    "task": Tool("agent", {"task": ("prompt",), "kind": ("subagent_type",), "description": ("description",)}),
}

_PATH: Final = ("path", "file_path", "filePath", "filename", "absolute_path")
_SHELL: Final = Tool(
    "shell",
    {
        "command": ("command", "cmd"),
        "cwd": ("cwd", "workdir", "working_directory"),
        "timeout": ("timeout", "timeout_s", "timeout_ms"),
    },
)
_READ: Final = Tool("read", {"path": _PATH, "offset": ("offset",), "limit": ("limit",)})
_WRITE: Final = Tool("write", {"path": _PATH, "content": ("content", "contents", "file_text", "text")})
_MOVE: Final = Tool("write", {"path": ("destination",), "source": ("source",)})
_DELETE: Final = Tool("write", {"path": _PATH})
_EDIT: Final = Tool(
    "edit",
    {
        "path": _PATH,
        "old": ("old", "old_string", "oldString", "old_str"),
        "new": ("new", "new_string", "newString", "new_str"),
        "replace_all": ("replace_all", "replaceAll"),
    },
)
_PATCH: Final = Tool("patch", {"patch": ("patch", "input", "patchText", "diff")})
_FETCH: Final = Tool("fetch", {"url": ("url", "uri"), "prompt": ("prompt",)})
_SEARCH: Final = Tool(
    "search",
    {"pattern": ("pattern",), "query": ("query",), "path": (*_PATH, "directory"), "glob": ("glob", "include")},
)
_WHO_AND_HOW: Final[Fields] = {
    "kind": ("subagent_type", "agent", "agent_id", "agentId"),
    "model": ("model",),
    "cwd": ("cwd",),
    "target": ("target",),
    "profile": ("profile",),
    "runtime": ("runtime",),
    "toolProfile": ("toolProfile", "tool_profile"),
    "thinkingLevel": ("thinkingLevel", "thinking_level"),
    "memorySection": ("memorySection", "memory_section"),
    "requiredCapabilities": ("requiredCapabilities", "required_capabilities"),
}
"""What makes the same task another one: who does it, and with what."""
_AGENT: Final = Tool("agent", {"task": ("task", "prompt"), "description": ("description",), **_WHO_AND_HOW})

PROCESS: Final[Mapping[str, Tool]] = {
    "shell": _SHELL,
    "read": _READ,
    "write": _WRITE,
    "edit": _EDIT,
    "patch": _PATCH,
    "fetch": _FETCH,
    "search": _SEARCH,
    "agent": _AGENT,
}

AGENTS: Final[Mapping[str, Mapping[str, Tool]]] = {
    "claude-code": CLAUDE_CODE,
    "codex": CODEX,
    "gemini-cli": GEMINI_CLI,
    "opencode": OPENCODE,
    "process": PROCESS,
}

COMMON: Final[Mapping[str, Tool]] = {
    **PROCESS,
    "bash": _SHELL,
    "Bash": _SHELL,
    "sh": _SHELL,
    "run_command": _SHELL,
    "run_shell": _SHELL,
    "execute_command": _SHELL,
    "execute_shell": _SHELL,
    "terminal": _SHELL,
    "local_shell": _SHELL,
    "read_file": _READ,
    "view_file": _READ,
    "write_file": _WRITE,
    "create_file": _WRITE,
    "edit_file": _EDIT,
    "move_file": _MOVE,
    "delete_file": _DELETE,
    "apply_patch": _PATCH,
    "web_fetch": _FETCH,
    "fetch_url": _FETCH,
    "web_search": _SEARCH,
    "grep": _SEARCH,
    "glob": _SEARCH,
    "list_directory": _SEARCH,
    "Read": _READ,
    "Write": _WRITE,
    "Edit": _EDIT,
    "MultiEdit": CLAUDE_CODE["MultiEdit"],
    "Grep": _SEARCH,
    "Glob": _SEARCH,
    "WebFetch": _FETCH,
    "WebSearch": _SEARCH,
}
"""Names that mean the same wherever nobody says otherwise: for agents we do not know, and for tools an agent got
since we looked."""


def tool_of(agent: str | None, wire_name: str) -> Tool | None:
    """What `wire_name` is in `agent`'s own table; None when that table does not name it.

    For an agent that has no table, all tables are asked, and a name that two of them use differently is nobody's.
    """
    own = AGENTS.get(agent) if agent is not None else None
    if own is not None:
        return own.get(wire_name)
    found = [table[wire_name] for table in AGENTS.values() if wire_name in table]
    if not found or len({tool.name for tool in found}) > 1:
        return None
    return _merged(found)


def _merged(tools: list[Tool]) -> Tool:
    first, *others = tools
    for other in others:
        first = Tool(
            first.name,
            _merged_fields(first.fields, other.fields),
            _merged_fields(first.items, other.items),
            tuple(dict.fromkeys(first.also + other.also)),
        )
    return first


def _merged_fields(one: Fields, other: Fields) -> Fields:
    return {
        name: tuple(dict.fromkeys(one.get(name, ()) + other.get(name, ()))) for name in dict.fromkeys([*one, *other])
    }
