"""docs/mounts.md says what each mount tells, and says it truly: the table is made from what a probe reads.

A probing registration stands in a real workspace. The process mount is used through `protect()` and
`PolicyMiddleware`, the wire through a real gateway with a scripted upstream, in the four APIs that are judged.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.protection import load_policy_from, protect
from interpose.assembly.runtime import Runtime
from interpose.assembly.workspaces import WorkspacePolicy
from interpose.chain.chain import Chain
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.effects import EFFECT_KINDS, HOOKS, EvaluationContext, Hook, HookInput, Registration
from interpose.contracts.stages import Context
from interpose.gateway.server import ThreadedServer
from interpose.policy.facts import FACTS, facts_at
from interpose.policy.inputs import filled_keys
from interpose.testing.upstream import Reply, ScriptedUpstream, Step, Text, ToolUse

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mounts.md"
BEGIN, END = "<!-- facts: begin -->", "<!-- facts: end -->"
MOUNTS = ("process", "wire: messages", "wire: chat", "wire: responses", "wire: gemini")
VALIDATION = {"command": "pytest -q"}
AGENT = "claude-code"


class Probe:
    """A handler that only notes which keys it was told, in each of its evaluations."""

    def __init__(self) -> None:
        self.told: dict[Hook, list[set[str]]] = {hook: [] for hook in HOOKS}

    def registration(self) -> Registration:
        """Its entry in the table."""
        return Registration("probe", "notes what it is told", HOOKS, evaluate=self._note)

    def _note(self, given: HookInput, _context: EvaluationContext) -> tuple[()]:
        self.told[given.hook].append(set(filled_keys(given.metadata)))
        return ()

    def cell(self, hook: Hook, key: str) -> str:
        """Whether the key was always told, at times, or never."""
        told = [key in keys for keys in self.told[hook]]
        if not any(told):
            return "-"
        return "yes" if all(told) else "at times"


def shell(command: str) -> str:
    """A tool; it fails on demand."""
    if command == "false":
        raise RuntimeError("exit code 1")
    return "3 passed"


def in_process(folders: Folders, project: Path) -> Probe:
    """What the probe is told through `protect()` and through a chain with `PolicyMiddleware`."""
    probe = Probe()
    with load_policy_from(folders, project) as loaded:
        assert isinstance(loaded.policy, WorkspacePolicy)
        loaded.policy.engine.register_hook(probe.registration())
        run = protect(shell, policy=loaded)
        run("pytest -q")
        with pytest.raises(RuntimeError):
            run("false")

        context = Context("process", "s1", str(project), agent=AGENT, turn="t1", model="m")
        chain = Chain([PolicyMiddleware(loaded.policy, context=context)])
        chain.call("Bash", VALIDATION, lambda _name, arguments: shell(**arguments))
        chain.call("Write", {"file_path": "a", "content": "b"}, lambda *_: "written")
    return probe


@contextmanager
def gateway(folders: Folders, project: Path, script: Sequence[Step], probe: Probe) -> Iterator[str]:
    """A gateway over a workspace that holds the probe; the base URL of a launch."""
    with (
        ScriptedUpstream(script, strict=False) as upstream,
        Runtime.open(folders) as runtime,
        ThreadedServer(runtime.gateway(), host="127.0.0.1", port=0) as server,
    ):
        runtime.workspaces.policy(str(project)).engine.register_hook(probe.registration())
        _, secret = runtime.launches.register(workspace=str(project), agent=AGENT, upstream=upstream.url)
        yield f"{server.url}/l/{secret}"


def ask(url: str, body: Mapping[str, Any]) -> None:
    """One request, answered whole."""
    headers = {"content-type": "application/json", "x-api-key": "k", "authorization": "Bearer k"}
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as answer:
        answer.read()


CALLS = (("c1", "Bash", "pytest -q"), ("c2", "Bash", "false"), ("c3", "shell", "ls"))
PROMPT: list[Any] = [{"role": "user", "content": "go"}]
SCRIPT: tuple[Step, ...] = (
    Reply(*(ToolUse(name, {"command": command}, id=call_id) for call_id, name, command in CALLS)),
    Reply(Text("done")),
)


def over_messages(folders: Folders, project: Path) -> Probe:
    """What the probe is told of a turn in the messages API: three calls, of which one fails."""
    probe = Probe()
    uses = [
        {"type": "tool_use", "id": call_id, "name": name, "input": {"command": command}}
        for call_id, name, command in CALLS
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "3 passed"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "exit code 1", "is_error": True},
        {"type": "tool_result", "tool_use_id": "c3", "content": "a b"},
    ]
    back: list[Any] = [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    with gateway(folders, project, SCRIPT, probe) as base:
        for said in (PROMPT, [*PROMPT, *back]):
            tools = [{"name": "Bash", "input_schema": {"type": "object"}}]
            ask(f"{base}/v1/messages", {"model": "m", "max_tokens": 9, "tools": tools, "messages": said})
    return probe


def over_chat(folders: Folders, project: Path) -> Probe:
    """The same turn in the chat completions API."""
    probe = Probe()
    calls = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps({"command": command})}}
        for call_id, name, command in CALLS
    ]
    results = [
        {"role": "tool", "tool_call_id": call_id, "content": text}
        for call_id, text in (("c1", "3 passed"), ("c2", "exit code 1"), ("c3", "a b"))
    ]
    back: list[Any] = [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
    with gateway(folders, project, SCRIPT, probe) as base:
        for said in (PROMPT, [*PROMPT, *back]):
            tools = [{"type": "function", "function": {"name": "Bash", "parameters": {"type": "object"}}}]
            ask(f"{base}/v1/chat/completions", {"model": "m", "tools": tools, "messages": said})
    return probe


def over_responses(folders: Folders, project: Path) -> Probe:
    """The same turn in the Responses API."""
    probe = Probe()
    calls = [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": json.dumps({"command": command})}
        for call_id, name, command in CALLS
    ]
    results = [
        {"type": "function_call_output", "call_id": call_id, "output": text}
        for call_id, text in (("c1", "3 passed"), ("c2", "exit code 1"), ("c3", "a b"))
    ]
    with gateway(folders, project, SCRIPT, probe) as base:
        for said in (PROMPT, [*PROMPT, *calls, *results]):
            tools = [{"type": "function", "name": "Bash", "parameters": {"type": "object"}}]
            ask(f"{base}/v1/responses", {"model": "m", "tools": tools, "input": said})
    return probe


def over_gemini(folders: Folders, project: Path) -> Probe:
    """The same turn in the Gemini API; a tool that failed says so."""
    probe = Probe()
    calls = [
        {"functionCall": {"id": call_id, "name": name, "args": {"command": command}}}
        for call_id, name, command in CALLS
    ]
    answers = [
        {"functionResponse": {"id": call_id, "name": name, "response": response}}
        for (call_id, name, _), response in zip(
            CALLS, ({"output": "3 passed"}, {"error": "exit code 1"}, {"output": "a b"}), strict=True
        )
    ]
    prompt = {"role": "user", "parts": [{"text": "go"}]}
    back = [{"role": "model", "parts": calls}, {"role": "user", "parts": answers}]
    with gateway(folders, project, SCRIPT, probe) as base:
        for said in ([prompt], [prompt, *back]):
            tools = [{"functionDeclarations": [{"name": "Bash"}]}]
            ask(f"{base}/v1beta/models/m:generateContent", {"tools": tools, "contents": said})
    return probe


def table(probes: Sequence[Probe]) -> str:
    """The section of the page: for each hook a row per key."""
    lines: list[str] = []
    for hook in HOOKS:
        seen = [mount for mount, probe in zip(MOUNTS, probes, strict=True) if probe.told[hook]]
        lines += [f"### {hook}", "", f"Seen at: {', '.join(seen) or 'no mount so far'}.", ""]
        lines += [f"| key | {' | '.join(MOUNTS)} | what it says |", f"|---|{'---|' * len(MOUNTS)}---|"]
        for fact in facts_at(hook):
            cells = " | ".join(probe.cell(hook, fact.key) for probe in probes)
            lines.append(f"| `{fact.key}` | {cells} | {fact.meaning} |")
        lines.append("")
    return "\n".join(lines)


def test_the_page_says_what_each_mount_tells(
    tmp_path: Path, folders: Folders, golden: Callable[[str, Path], None]
) -> None:
    """The table in the page is the one that the probes make, key by key."""
    project = tmp_path / "project"
    project.mkdir()
    probes = [made(folders, project) for made in (in_process, over_messages, over_chat, over_responses, over_gemini)]
    page = PAGE.read_text(encoding="utf-8")

    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    assert found, f"{PAGE.name} has lost its marks {BEGIN} and {END}"
    golden(f"{before}{BEGIN}\n\n{table(probes)}\n{END}{after}", PAGE)

    told = {key for probe in probes for hook in HOOKS for keys in probe.told[hook] for key in keys}
    assert told <= {fact.key for fact in FACTS}


def test_the_page_says_how_every_effect_is_rendered() -> None:
    """Each effect has a row with a cell for each mount."""
    prose = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", prose, re.MULTILINE))

    assert set(rows) == set(EFFECT_KINDS)
    assert all(row.count(" | ") == 1 for row in rows.values())
