"""interpose coverage: told from the journal's evidence, for people and machines."""

import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.protection import load_policy_from, protect
from interpose.assembly.runtime import Runtime
from interpose.cli.coverage import Coverage, survey
from interpose.contracts.effects import HOOKS, Registration
from interpose.contracts.journal import Record
from interpose.contracts.stages import Context, TurnEnd
from interpose.gateway.server import ThreadedServer
from interpose.journal.query import JournalReader
from interpose.testing.upstream import RawBody, Reply, ScriptedUpstream, Step, Text
from tests.e2e.processes import interpose

pytestmark = pytest.mark.e2e

COMMANDS = ("python build.py", "python build.py", "sudo make all", "./deploy.sh", "ls -la")


def work_in_process(folders: Folders, project: Path) -> None:
    """A few shell calls of a Python program."""
    with load_policy_from(folders, project, agent="billing-bot") as policy:
        shell = protect(lambda command: f"ran {command}", policy=policy, tool="shell")
        for command in COMMANDS:
            shell(command=command)


def work_on_the_wire(folders: Folders, project: Path) -> None:
    """A turn that is judged, and a request of an API that passes unread."""
    answers: list[Step] = [Reply(Text("hello")), RawBody(b'{"object":"list"}', "application/json")]
    answers.append(RawBody(b'{"object":"response.compaction"}', "application/json"))
    with (
        ScriptedUpstream(answers, strict=False) as upstream,
        Runtime.open(folders) as runtime,
        ThreadedServer(runtime.gateway(), host="127.0.0.1", port=0) as server,
    ):
        _, secret = runtime.launches.register(workspace=str(project), agent="claude-code", upstream=upstream.url)
        for path, body in (
            ("messages", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}),
            ("embeddings", {"model": "m", "input": "go"}),
            ("responses/compact", {"model": "m", "input": "go"}),
        ):
            url = f"{server.url}/l/{secret}/v1/{path}"
            request = Request(url, json.dumps(body).encode(), {"content-type": "application/json", "x-api-key": "k"})
            with urlopen(request) as answer:
                answer.read()


def told(project: Path, environ: dict[str, str]) -> dict[str, Any]:
    """What machines are told."""
    done = interpose("coverage", "--json", cwd=project, env=environ)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


def test_a_new_project_has_seen_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    """The page says so, and says what to do; no handler is blamed yet."""
    done = interpose("coverage", cwd=tmp_path, env=environ)

    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing was judged here so far" in done.stdout
    assert "waiting" not in done.stdout


def test_what_was_seen_is_told_by_mount_and_agent(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """Stages with counts, what passed unjudged, waiting handlers, and programs known by name only."""
    work_in_process(folders, tmp_path)
    work_on_the_wire(folders, tmp_path)

    machines = told(tmp_path, environ)
    people = interpose("coverage", cwd=tmp_path, env=environ).stdout

    seen = {(row["mount"], row["agent"]): row["stages"] for row in machines["seen"]}
    assert seen == {
        ("process", "billing-bot"): {"tool.call": 5, "tool.result": 5},
        ("wire", "claude-code"): {"turn.start": 1, "turn.end": 1},
    }
    assert [(row["api"], row["requests"], row["why"]) for row in machines["unjudged"]] == [
        ("anthropic", 1, "interpose does not know this path"),
        ("responses", 1, "a model runs at /responses/compact, unjudged"),
    ]
    assert machines["opaque"] == {"python": 2, "make": 1, "./deploy.sh": 1}
    waiting = {(row["handler"], row["hook"]) for row in machines["waiting"]}
    assert ("assessor.tool-prose-loop", "turn_end") in waiting
    assert [(row["agent"], row["stages"]) for row in machines["unseen"]] == [
        ("claude-code", ["tool.call", "tool.result", "compaction"])
    ]
    assert all(hook in ("turn_end", "on_compaction") for _, hook in waiting)
    shown = (
        "billing-bot",
        "tool.call 5",
        "turn.start 1",
        "anthropic claude-code",
        "at /responses/compact",
        "never seen",
        "python 2, make 1",
    )
    for part in shown:
        assert part in people

    listed = interpose("journal", cwd=tmp_path, env=environ).stdout
    only_unknown = ("journal", "--outcome", "unjudged", "--workspace", str(tmp_path / "elsewhere"))
    assert "a model runs at /responses/compact, unjudged" in listed
    assert "interpose does not know this path" not in listed
    assert "--all" not in interpose(*only_unknown, cwd=tmp_path, env=environ).stdout
    assert "`--all` shows" in interpose("journal", "--step", "request", cwd=tmp_path, env=environ).stdout


def test_a_hook_that_is_seen_names_the_keys_that_are_missing(tmp_path: Path, folders: Folders) -> None:
    """A turn's end whose start was seen by nobody tells no count: the rules that count wait for it, by name."""
    with Runtime.open(folders) as runtime:
        policy = runtime.workspaces.policy(str(tmp_path))
        policy.judge(TurnEnd(Context("process", "s", str(tmp_path)), "done", "stop"))
        runtime.journal.flush()
        coverage = survey(JournalReader(folders.journal_db), str(tmp_path))
        waiting = {row.handler: row.keys for row in coverage.waiting(policy.engine.registrations()) if row.keys}

    assert waiting["nudge.stalled-turn"] == ("turnToolCalls",)
    assert waiting["nudge.skill-suggestion-wait"] == ("turnToolNames",)
    assert waiting["assessor.tool-prose-loop"] == ("activeToolNames", "runtimeTier", "hasStructuredToolCall")
    assert "assessor.finish-contract" not in waiting


def test_a_key_that_was_filled_once_is_known() -> None:
    """One mount that tells a key is enough, and a key of another hook is not asked for here."""
    reading = Registration("r", "", HOOKS, evaluate=lambda *_: (), reads=("resultKind", "promptChars"))
    coverage = Coverage()
    for stage, facts in (("tool.call", []), ("tool.result", []), ("tool.result", ["resultKind"]), ("turn.start", [])):
        coverage.take(Record(1.0, "a", "verdict", stage=stage, mount="wire", data={"facts": facts}))

    rows = [(row.hook, row.keys) for row in coverage.waiting([reading])]

    assert rows == [("turn_start", ("promptChars",)), ("turn_end", ()), ("on_compaction", ())]


def test_what_passed_while_switched_off_is_no_coverage() -> None:
    """It is counted apart, and commands in it are not read."""
    coverage = Coverage()
    command = {"input": {"command": "python x"}}
    coverage.take(
        Record(1.0, "a", "verdict", stage="tool.call", mount="wire", tool="shell", outcome="off", data=command)
    )

    (row,) = coverage.seen.values()
    assert (row.stages, row.switched_off, coverage.opaque()) == ({}, 1, ({}, 0))


def test_commands_that_cannot_be_read_are_counted() -> None:
    """A command cut by the journal, or with parts nobody knows, says so instead of looking complete."""
    coverage = Coverage()
    for text in ("make; $X", "echo … (99 characters left out) … x", "ls"):
        command = {"input": {"command": text}}
        coverage.take(Record(1.0, "a", "verdict", stage="tool.call", tool="shell", outcome="allowed", data=command))

    names, unread = coverage.opaque()

    assert (dict(names), unread) == ({"make": 1}, 2)


def test_what_nobody_can_look_into_is_counted() -> None:
    """Tools of the provider's own, calls that cannot be read, and WebSockets, each by agent, from the journal."""
    coverage = Coverage()
    offered = "was offered web_search, which runs at the provider and is not judged"
    coverage.take(Record(1.0, "a", "skipped", agent="codex", outcome="unseen", reason=offered))
    coverage.take(Record(2.0, "b", "failed", agent="codex", outcome="failed", data={"status": 426}))
    coverage.take(Record(3.0, "b", "failed", agent="codex", outcome="failed", data={"status": 426}))
    problem = {"problem": "a program that calls tools, which interpose cannot read"}
    coverage.take(Record(4.0, "c", "verdict", stage="tool.call", wire_name="exec", agent="codex", data=problem))

    rows = [(row.what, row.times) for row in coverage.blind.values()]

    assert rows == [
        (offered, 1),
        ("tried a WebSocket, was refused, and went on without", 2),
        ("called exec: a program that calls tools, which interpose cannot read", 1),
    ]
