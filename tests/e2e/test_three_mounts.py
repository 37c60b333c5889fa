"""The demonstration, the gateway and the in-process chain ask the same policy."""

import json
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.protection import load_policy_from, protect
from interpose.assembly.runtime import Runtime
from interpose.contracts.errors import Refused
from interpose.demo.performance import perform
from interpose.demo.story import NOTE
from interpose.gateway.server import ThreadedServer
from interpose.testing.upstream import Reply, ScriptedUpstream, ToolUse
from interpose.userhooks.starter import STARTER

pytestmark = pytest.mark.e2e

NO_RULES = "hooks: []\n"
UNFORESEEN = """
hooks:
  - id: notes-are-private
    on: before_tool
    kind: effect
    tools: [read]
    path: notes/**
    effect: {kind: block_tool, reason: these notes are not for agents, severity: hard-block}
"""
WORDS = "read was refused by notes-are-private: these notes are not for agents"


def in_process(folders: Folders, project: Path, tool: str, **arguments: str) -> str:
    """What a protected function gives, or the words of its refusal."""
    with load_policy_from(folders, project) as policy:
        function = protect(lambda **given: f"ran {given}", policy=policy, tool=tool)
        try:
            return str(function(**arguments))
        except Refused as refused:
            return str(refused)


def on_the_wire(folders: Folders, project: Path, tool: str, **arguments: str) -> str:
    """The reply that an agent gets when its model proposes the call, as JSON."""
    with (
        ScriptedUpstream([Reply(ToolUse(tool, arguments))]) as upstream,
        Runtime.open(folders) as runtime,
        ThreadedServer(runtime.gateway(), host="127.0.0.1", port=0) as server,
    ):
        _, secret = runtime.launches.register(workspace=str(project), upstream=upstream.url)
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
        request = Request(
            f"{server.url}/l/{secret}/v1/messages",
            data=json.dumps(body).encode(),
            headers={"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"},
        )
        with urlopen(request) as answer:
            return str(answer.read().decode())


def project_with(tmp_path: Path, hooks: str) -> Path:
    """A project with these hooks."""
    project = tmp_path / "project"
    (project / ".interpose").mkdir(parents=True, exist_ok=True)
    (project / ".interpose" / "hooks.yaml").write_text(hooks)
    return project


def test_with_the_rule_all_three_refuse(tmp_path: Path, folders: Folders) -> None:
    """The starter's rule against recursive deletes is one rule everywhere."""
    project = project_with(tmp_path, STARTER)

    refusal = in_process(folders, project, "shell", command="rm -rf build")
    reply = on_the_wire(folders, project, "shell", command="rm -rf build")
    performance = perform(hooks=STARTER)

    assert refusal.startswith("shell was refused by no-recursive-delete: ")
    assert refusal in reply
    assert any(refusal in step.text for step in performance.steps)
    assert "build/release.bin" in performance.files_left


def test_without_the_rule_all_three_let_pass(tmp_path: Path, folders: Folders) -> None:
    """Nothing but the rule refuses: without it the call runs everywhere."""
    project = project_with(tmp_path, NO_RULES)

    assert in_process(folders, project, "shell", command="rm -rf build").startswith("ran ")
    assert '"tool_use"' in on_the_wire(folders, project, "shell", command="rm -rf build")
    assert "build/release.bin" not in perform(hooks=NO_RULES).files_left


def test_a_rule_nobody_foresaw_refuses_with_the_same_words(tmp_path: Path, folders: Folders) -> None:
    """A new rule about a path works at all three at once, in the same words."""
    project = project_with(tmp_path, UNFORESEEN)

    assert in_process(folders, project, "read", path=NOTE) == WORDS
    assert WORDS in on_the_wire(folders, project, "read", path=NOTE)
    assert any(WORDS in step.text for step in perform(hooks=UNFORESEEN).steps)
    assert in_process(folders, project, "read", path="README.md").startswith("ran ")
