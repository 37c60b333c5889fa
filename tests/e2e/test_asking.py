"""A call that nobody can judge waits for a person: at the terminal of `interpose up`, or at another one."""

import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

import interpose as package
from interpose.assembly.folders import Folders
from interpose.assembly.protection import load_policy_from
from interpose.assembly.runtime import Runtime, gateway_settings
from interpose.gateway.app import Gateway
from interpose.gateway.server import ThreadedServer
from interpose.kernel.clock import SystemClock
from interpose.testing.upstream import Reply, ScriptedUpstream, Text, ToolUse
from interpose.trust.approvals import SqliteApprovals
from tests.e2e.processes import command, interpose, up
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.e2e

WAIT_S = 60.0
RULE = """
hooks:
  - id: no-deletes
    on: before_tool
    kind: effect
    command: rm -r|-R|--recursive
    effect: {kind: block_tool, reason: not here, severity: hard-block}
"""
HIDDEN = '"$TOOL" build'
CALL = Reply(ToolUse("Bash", {"command": HIDDEN}))
FINE = Reply(Text("then not"))
"""What the model says to a refusal."""

BODY: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
PROMPT = r"Let it run\? \[y/n\] "


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one rule."""
    folder = tmp_path / "project"
    (folder / ".interpose").mkdir(parents=True)
    (folder / ".interpose" / "hooks.yaml").write_text(RULE)
    return folder


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads for clients."""
    with ThreadPoolExecutor(8) as threads:
        yield threads


def ask(base_url: str, *, stream: bool = False) -> bytes:
    """One request of an agent, and the whole reply."""
    body = {**BODY, "stream": stream}
    headers = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
    with urlopen(Request(f"{base_url}/v1/messages", json.dumps(body).encode(), headers), timeout=60) as answer:
        return bytes(answer.read())


def told(reply: bytes) -> str:
    """The text of a reply that was not streamed."""
    return "\n".join(block["text"] for block in json.loads(reply)["content"] if block["type"] == "text")


def is_released(reply: bytes) -> bool:
    """Whether a call stands in the reply."""
    return any(block["type"] == "tool_use" for block in json.loads(reply)["content"])


def started(terminal: Terminal) -> str:
    """The base URL that `interpose up` tells."""
    found = terminal.until(r"ANTHROPIC_BASE_URL=(http://\S+/l/[\w-]+)")
    terminal.until(r"Gemini.*\n\n")
    return found[1]


@pytest.mark.parametrize("stream", [True, False])
def test_a_yes_at_the_terminal_releases_the_call(
    project: Path, environ: dict[str, str], pool: ThreadPoolExecutor, stream: bool
) -> None:
    """The person sees what would run and why; y lets it through within a second; the journal tells who said so."""
    with ScriptedUpstream([CALL, FINE]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        with Terminal(command("up", "--port", "0"), cwd=project, env=environ) as terminal:
            base_url = started(terminal)
            reply = pool.submit(ask, base_url, stream=stream)
            block = terminal.until(rf"── a call waits for your yes ──\n(.*){PROMPT}")[1]
            assert f"workspace  {project}" in block
            assert f"command    {HIDDEN}" in block
            assert "asked by   no-deletes" in block
            assert not reply.done()

            terminal.type("y\n")
            began = time.monotonic()
            text = reply.result(10)
            assert time.monotonic() - began < 1.0 * 3
            terminal.until("it runs")
            terminal.until("allowed")
            terminal.type("\x03")
            assert terminal.ended() == 0
    assert b"tool_use" in text
    assert b"refused" not in text

    action = story_of(project, environ)
    said = interpose("explain", action, cwd=project, env=environ).stdout
    assert "waits for a person's yes" in said
    assert "by terminal of up" in said


def story_of(project: Path, environ: dict[str, str]) -> str:
    """The action of the call that was asked about."""
    lines = interpose("journal", "--json", "--step", "notice", cwd=project, env=environ).stdout.splitlines()
    return str(json.loads(lines[-1])["action"])


def test_a_no_at_the_terminal_refuses_in_words(
    project: Path, environ: dict[str, str], pool: ThreadPoolExecutor
) -> None:
    """The model is told that a person said no."""
    with ScriptedUpstream([CALL, FINE]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        with Terminal(command("up", "--port", "0"), cwd=project, env=environ) as terminal:
            reply = pool.submit(ask, started(terminal))
            terminal.until(PROMPT)
            terminal.type("n\n")
            answered = reply.result(10)

    assert not is_released(answered)
    assert "a person was asked and said no" in told(answered)


def test_several_questions_come_one_after_the_other(
    project: Path, environ: dict[str, str], pool: ThreadPoolExecutor
) -> None:
    """With their number; the lines of the feed wait until the answer is given."""
    calls = [Reply(ToolUse("Bash", {"command": f'"$TOOL" {number}'})) for number in range(2)]
    with ScriptedUpstream([calls[0], calls[1], Reply(Text("hello")), FINE]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        with Terminal(command("up", "--port", "0"), cwd=project, env=environ) as terminal:
            base_url = started(terminal)
            first = pool.submit(ask, base_url)
            terminal.until(PROMPT)
            second = pool.submit(ask, base_url)
            until_waiting(environ, 2)
            assert told(ask(base_url)) == "hello"  # meanwhile something else is judged
            terminal.type("y\n")
            between = terminal.until("(.*)it runs\n")[1]
            terminal.until(PROMPT)
            terminal.type("n\n")
            released = [is_released(reply.result(10)) for reply in (first, second)]
            terminal.until("refused +tool.call")

    assert re.search("allowed +tool.call", terminal.shown)
    assert between.strip() in ("", "y")  # the echo
    assert released == [True, False]


def until_waiting(environ: dict[str, str], count: int) -> None:
    """Waits until so many questions wait."""
    approvals = SqliteApprovals(Path(environ["INTERPOSE_STATE_DIR"]) / "state.db", clock=SystemClock())
    until(lambda: len(approvals.waiting()) >= count)
    approvals.close()


def until(holds: Callable[[], bool]) -> None:
    """Waits, bounded, for what happens elsewhere."""
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        threading.Event().wait(0.02)


def test_silence_refuses_after_the_time_that_is_set(
    project: Path, environ: dict[str, str], pool: ThreadPoolExecutor
) -> None:
    """The terminal says that it is over, and the model is told that nobody answered."""
    environ["INTERPOSE_ASK_TIMEOUT_S"] = "1"
    with ScriptedUpstream([CALL, FINE]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        with Terminal(command("up", "--port", "0"), cwd=project, env=environ) as terminal:
            reply = pool.submit(ask, started(terminal))
            terminal.until(PROMPT)
            answered = reply.result(10)
            terminal.until("nobody answered in time")
            terminal.until("refused")

    assert "nobody answered within 1 s" in told(answered)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_stops_while_a_question_stands_there(
    project: Path, environ: dict[str, str], pool: ThreadPoolExecutor, workers: str
) -> None:
    """The question is taken back, the call refused, and the gateway ends without waiting two minutes."""
    with ScriptedUpstream([CALL, FINE]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        words = command("up", "--port", "0", "--workers", workers)
        with Terminal(words, cwd=project, env=environ) as terminal:
            reply = pool.submit(ask, started(terminal))
            terminal.until(PROMPT)
            terminal.type("\x03")
            began = time.monotonic()
            assert terminal.ended() == 0
            assert time.monotonic() - began < 10
            assert not is_released(reply.result(10))


def test_one_watcher_answers_for_two_gateways(project: Path, environ: dict[str, str], pool: ThreadPoolExecutor) -> None:
    """Gateways without a terminal ask at `interpose approvals watch`; each gets its own answer."""
    with ScriptedUpstream([CALL, CALL, FINE]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        with (
            Terminal(command("approvals", "watch"), cwd=project, env=environ) as terminal,
            up(project, environ) as first,
            up(project, environ) as second,
        ):
            until(lambda: can_ask(environ))
            one = pool.submit(ask, first.base_url)
            terminal.until(PROMPT)
            terminal.type("y\n")
            assert is_released(one.result(10))
            other = pool.submit(ask, second.base_url)
            terminal.until(PROMPT)
            terminal.type("n\n")
            assert not is_released(other.result(10))


def test_the_agent_of_interpose_run_is_asked_about_at_another_terminal(
    project: Path, environ: dict[str, str], pool: ThreadPoolExecutor
) -> None:
    """The agent has its terminal to itself; the person is told which verb answers, unless it runs already."""
    agent = (sys.executable, "-c", AGENT)
    with ScriptedUpstream([CALL, FINE, CALL]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        alone = interpose("run", "--", *agent, cwd=project, env=environ)
        with Terminal(command("approvals", "watch"), cwd=project, env=environ) as terminal:
            until(lambda: can_ask(environ))
            run = pool.submit(interpose, "run", "--", *agent, cwd=project, env=environ)
            terminal.until(PROMPT)
            terminal.type("y\n")
            watched = run.result(WAIT_S)

    assert "interpose approvals watch" in alone.stderr
    assert "nobody could be asked" in alone.stdout
    assert "interpose approvals watch" not in watched.stderr
    assert "tool_use" in watched.stdout


AGENT = """
import json, os, urllib.request
body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
headers = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
print(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).read().decode())
"""


def can_ask(environ: dict[str, str]) -> bool:
    """Whether a terminal shows questions."""
    approvals = SqliteApprovals(Path(environ["INTERPOSE_STATE_DIR"]) / "state.db", clock=SystemClock())
    try:
        return approvals.can_ask()
    finally:
        approvals.close()


def test_where_no_terminal_asks_the_call_is_refused_at_once(project: Path, environ: dict[str, str]) -> None:
    """A gateway in the background does not keep an agent waiting for nobody."""
    with ScriptedUpstream([CALL, FINE]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        with up(project, environ) as gateway:
            answered = ask(gateway.base_url)

    assert "nobody could be asked" in told(answered)


def test_a_gateway_that_is_killed_leaves_its_question_as_gone(
    project: Path, environ: dict[str, str], pool: ThreadPoolExecutor
) -> None:
    """The list says so, and an answer that comes later is refused with the reason."""
    with ScriptedUpstream([CALL, FINE]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        with Terminal(command("up", "--port", "0"), cwd=project, env=environ) as terminal:
            reply = pool.submit(ask, started(terminal))
            terminal.until(PROMPT)
            terminal.process.kill()
            terminal.process.wait(10)
            assert reply.exception(10) is not None
        (line,) = interpose("approvals", "list", "--all", "--json", cwd=project, env=environ).stdout.splitlines()
        question = json.loads(line)
        with Terminal(command("approvals", "approve", question["id"]), cwd=project, env=environ) as late:
            assert late.ended() == 1

    assert question["state"] == "gone"
    assert "the process that asked has ended" in " ".join(late.shown.split())


def test_a_client_sees_signs_of_life_while_a_person_thinks(
    project: Path, folders: Folders, pool: ThreadPoolExecutor
) -> None:
    """A stream stays alive as long as the question waits; a client that goes away takes the question back."""
    with (
        ScriptedUpstream([CALL, Reply(ToolUse("Bash", {"command": '"$OTHER"'}))]) as model,
        Runtime.open(folders) as runtime,
        runtime.approvals.watching("t") as watch,
    ):
        watch.beat()
        settings = replace(gateway_settings(runtime.settings, host="127.0.0.1", environ={}), keep_alive_s=0.05)
        gateway = Gateway(
            settings,
            workspaces=runtime.workspaces,
            launches=runtime.launches,
            journal=runtime.journal,
            clock=runtime.clock,
            metrics=runtime.metrics,
        )
        _, secret = runtime.launches.register(workspace=str(project), upstream=model.url)
        with ThreadedServer(gateway, host="127.0.0.1", port=0) as server:
            base_url = f"{server.url}/l/{secret}"
            reply = pool.submit(ask, base_url, stream=True)
            until(lambda: bool(runtime.approvals.waiting()))
            threading.Event().wait(0.3)
            watch.beat()
            (question,) = runtime.approvals.waiting()
            runtime.approvals.answer(question.id, question.digest, yes=True, who="t")
            text = reply.result(10)
            assert text.count(b"event: ping") >= 2
            assert text.index(b"event: ping") < text.index(b"tool_use")

            address = urlsplit(base_url)
            body = json.dumps({**BODY, "stream": True, "messages": [{"role": "user", "content": "again"}]}).encode()
            head = f"POST {address.path}/v1/messages HTTP/1.1\r\nhost: {address.netloc}\r\nx-api-key: k\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            with socket.create_connection(("127.0.0.1", address.port or 0), timeout=10) as client:
                client.sendall(head.encode() + body)
                watch.beat()
                until(lambda: bool(runtime.approvals.waiting()))
                (left,) = runtime.approvals.waiting()
            until(lambda: runtime.approvals.find(left.id).state == "withdrawn")


@pytest.mark.parametrize("yes", [True, False])
def test_a_program_asks_when_it_says_whom(project: Path, folders: Folders, pool: ThreadPoolExecutor, yes: bool) -> None:
    """`load_policy` refuses what nobody can tell, unless it is given approvals; then the call waits."""
    ran: list[str] = []

    def run(command: str) -> str:
        ran.append(command)
        return "ran"

    with load_policy_from(folders, project) as silent, pytest.raises(package.Refused, match="nobody could be asked"):
        package.protect(run, policy=silent, tool="shell")(HIDDEN)

    approvals = SqliteApprovals(folders.state_db, clock=SystemClock())
    with approvals.watching("t") as watch, load_policy_from(folders, project, approvals=approvals) as asking:
        watch.beat()
        result: Future[str] = pool.submit(package.protect(run, policy=asking, tool="shell"), HIDDEN)
        until(lambda: bool(approvals.waiting()))
        (question,) = approvals.waiting()
        assert (question.tool_name, question.agent, question.workspace) == ("shell", "process", str(project))
        approvals.answer(question.id, question.digest, yes=yes, who="t")
        if yes:
            assert result.result(10) == "ran"
        else:
            assert isinstance(result.exception(10), package.Refused)
    approvals.close()

    assert ran == ([HIDDEN] if yes else [])
