"""The agents as the tests start them: their words, their variables, and what they call their tools."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from interpose.testing.upstream import ToolUse


@dataclass(frozen=True, slots=True)
class Player:
    """One agent, speaking one API.

    Attributes:
        name: of this player.
        agent: which agent it is, as interpose calls it.
        words: the command before the prompt.
        runs: the model's call that runs a command.
        reads: the model's call that reads a file.
        environ: what it needs beside a home and a PATH.
        files: what lies in its project.
        after: the words behind the prompt.
        go_on: the words behind the prompt that make it go on with the last conversation.
    """

    name: str
    agent: str
    words: tuple[str, ...]
    runs: Callable[[str], ToolUse]
    reads: Callable[[Path], ToolUse]
    environ: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    go_on: tuple[str, ...] = ()

    def command(self, prompt: str) -> list[str]:
        """The words that start it with this prompt."""
        return [*self.words, prompt, *self.after]

    def again(self) -> "Player":
        """The same player, going on with its last conversation."""
        return replace(self, after=(*self.after, *self.go_on))


_OPENCODE_ENVIRON = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    # It looks for its plugin package at every start; a run needs no network.
    "npm_config_offline": "true",
}
_OWN_PROVIDER = {
    "npm": "@ai-sdk/openai-compatible",
    "models": {"scripted": {}},
    "options": {"baseURL": "{env:INTERPOSE_BASE_URL}/v1", "apiKey": "dummy"},
}


def _opencode_shell(command: str) -> ToolUse:
    return ToolUse("bash", {"command": command, "description": "Runs it"})


def _opencode_read(path: Path) -> ToolUse:
    return ToolUse("read", {"filePath": str(path)})


CLAUDE_CODE = Player(
    name="claude-code",
    agent="claude-code",
    words=("claude", "-p"),
    after=("--allowedTools", "Bash", "Read", "Edit", "Write"),
    go_on=("--continue",),
    runs=lambda command: ToolUse("Bash", {"command": command, "description": "Runs it"}),
    reads=lambda path: ToolUse("Read", {"file_path": str(path)}),
    environ={
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    },
)
OPENCODE = Player(
    name="opencode",
    agent="opencode",
    words=("opencode", "run", "--model", "anthropic/claude-sonnet-4-5"),
    go_on=("--continue",),
    runs=_opencode_shell,
    reads=_opencode_read,
    environ=_OPENCODE_ENVIRON | {"ANTHROPIC_API_KEY": "dummy"},
)
OPENCODE_CHAT = Player(
    name="opencode-chat",
    agent="opencode",
    words=("opencode", "run", "--model", "own/scripted"),
    go_on=("--continue",),
    runs=_opencode_shell,
    reads=_opencode_read,
    environ=_OPENCODE_ENVIRON,
    files={"opencode.json": json.dumps({"provider": {"own": _OWN_PROVIDER}})},
)
CODEX = Player(
    name="codex",
    agent="codex",
    words=("codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "-m", "gpt-5.5"),
    runs=lambda command: ToolUse("exec_command", {"cmd": command}),
    reads=lambda path: ToolUse("view_image", {"path": str(path)}),
    environ={"OPENAI_API_KEY": "dummy"},
)
GEMINI_CLI = Player(
    name="gemini-cli",
    agent="gemini-cli",
    words=("gemini", "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-p"),
    runs=lambda command: ToolUse("run_shell_command", {"command": command}),
    reads=lambda path: ToolUse("read_file", {"file_path": str(path)}),
    environ={"GEMINI_API_KEY": "dummy", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
)

JUDGED = (CLAUDE_CODE, OPENCODE, OPENCODE_CHAT, CODEX, GEMINI_CLI)
"""All players."""

GOING_ON = (CLAUDE_CODE, OPENCODE, OPENCODE_CHAT)
"""Players that go on with an earlier conversation by a word behind the prompt, and show a 403 at once."""

OWN_SHAPE = (CODEX, GEMINI_CLI)
"""Players of the Responses API and of Gemini."""
