"""Every kind of call that the Responses API and Gemini know, held against a project's own rules."""

import json
from pathlib import Path
from typing import Any

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.protection import load_policy_from
from interpose.contracts.stages import Context, ToolCall
from interpose.contracts.verdict import Verdict
from interpose.gateway.api import Codec, ProposedCall
from interpose.gateway.driving import drive_reply
from interpose.gateway.gemini import GEMINI
from interpose.gateway.responses import RESPONSES

RULES = """
hooks:
  - id: no-deletes
    on: before_tool
    kind: effect
    tools: [shell]
    command: rm -r|-R|--recursive
    effect: {kind: block_tool, reason: deletes are for people}
  - id: no-secrets
    on: before_tool
    kind: effect
    path: .env
    effect: {kind: block_tool, reason: secrets stay here}
  - id: no-push
    on: before_tool
    kind: effect
    tools: ["mcp:git/*"]
    effect: {kind: block_tool, reason: people push}
"""
PATCH = "*** Begin Patch\n*** Update File: .env\n@@\n-x\n+y\n*** End Patch"


def responses(**item: Any) -> tuple[Codec, Any]:
    """A response with one item."""
    return RESPONSES, {"output": [{"id": "x_1", "call_id": "c1", **item}]}


def gemini(part: Any) -> tuple[Codec, Any]:
    """A Gemini reply with one part."""
    return GEMINI, {"candidates": [{"content": {"parts": [part]}}]}


def custom(name: str, text: str) -> tuple[Codec, Any]:
    """A response with one freeform call."""
    return responses(type="custom_tool_call", name=name, input=text)


@pytest.mark.parametrize(
    ("reply", "refused_by"),
    [
        (custom("apply_patch", PATCH), "no-secrets"),
        (custom("apply_patch", PATCH.replace(".env", "a.txt")), None),
        (custom("exec", 'await tools.exec_command({cmd: "ls"})'), "no-deletes"),
        (responses(type="local_shell_call", action={"type": "exec", "command": ["rm", "-r", "b"]}), "no-deletes"),
        (responses(type="local_shell_call", action={"type": "exec", "command": ["ls"]}), None),
        (responses(type="shell_call", action={"commands": ["cat <<E", "rm -r b"]}), "no-deletes"),
        (responses(type="shell_call", action={"commands": ["ls", "pwd"]}), None),
        (responses(type="apply_patch_call", operation={"type": "delete_file", "path": "./.env"}), "no-secrets"),
        (responses(type="function_call", namespace="mcp__git", name="push", arguments="{}"), "no-push"),
        (responses(type="function_call", namespace="mcp__fs", name="read", arguments='{"path": ".env"}'), None),
        (responses(type="function_call", name="exec_command", arguments='{"cmd": "ls", "cmd": "ls"}'), "no-deletes"),
        (responses(type="unheard_of"), "no-deletes"),
        (responses(type="message", role="assistant", content=[]), None),
        (gemini({"functionCall": {"name": "run_shell_command", "args": {"command": "rm -r b"}}}), "no-deletes"),
        (gemini({"function_call": {"name": "read_file", "args": {"file_path": ".env"}}}), "no-secrets"),
        (gemini({"functionCall": {"name": "read_file", "willContinue": True}}), "no-secrets"),
        (gemini({"unheardOf": {}}), "no-deletes"),
        (gemini({"functionCall": "rm"}), "no-deletes"),
    ],
)
def test_a_rule_means_the_same_whatever_kind_of_call_it_is(
    reply: tuple[Codec, Any], refused_by: str | None, folders: Folders, tmp_path: Path
) -> None:
    """What a rule cannot read it refuses; what is harmless passes byte for byte."""
    project = tmp_path / "project"
    (project / ".interpose").mkdir(parents=True)
    (project / ".interpose" / "hooks.yaml").write_text(RULES)
    codec, body = reply
    agent = "codex" if codec.api == "responses" else "gemini-cli"
    verdicts: list[Verdict] = []
    with load_policy_from(folders, project) as loaded:
        context = Context("wire", "s1", str(project), cwd=str(project), agent=agent)

        def judge(call: ProposedCall) -> Verdict:
            point = ToolCall(context, call.call_id, call.name, call.arguments, problem=call.problem)
            verdicts.append(loaded.policy.judge(point))
            return verdicts[-1]

        raw = json.dumps(body).encode()
        driven = drive_reply(codec, raw, judge)

    refusals = [verdict.refusal.handler for verdict in verdicts if verdict.refusal is not None]
    assert refusals == ([refused_by] if refused_by else [])
    assert (driven.body == raw) is (refused_by is None)
