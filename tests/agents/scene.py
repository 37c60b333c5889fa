"""Where a player acts: a folder of its own, a scripted model behind the gateway, and what came of it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interpose.contracts.journal import Record
from interpose.journal.query import EVERYTHING, JournalReader
from interpose.testing.upstream import Failure, RecordedRequest, Reply, ScriptedUpstream, Text
from scripts.agents import AGENTS, program
from tests.agents.players import Player

INTERPOSE = str(Path(sys.executable).parent / "interpose")
"""The program under test."""

RUN_S = 90
"""How long one run of an agent may take."""

_REQUESTS_MAX = 60
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Model:
    """Answers an agent's requests in order; what asks for a title, with no tools, is answered beside the script."""

    def __init__(self, script: Sequence[Reply | Failure]) -> None:
        self._script = list(script)
        self._lock = threading.Lock()
        self._turns: list[RecordedRequest] = []

    def __call__(self, request: RecordedRequest) -> Reply | Failure:
        """The next answer; an agent that asks more often than the script foresees is told so."""
        if not (isinstance(request.json, dict) and request.json.get("tools")):
            return Reply(Text("A title"))
        with self._lock:
            self._turns.append(request)
            return self._script.pop(0) if self._script else Failure(400, "the script is used up")

    @property
    def turns(self) -> tuple[RecordedRequest, ...]:
        """The requests that could have called tools."""
        with self._lock:
            return tuple(self._turns)


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of an agent.

    Attributes:
        code: its exit code.
        out: what it printed, without colours, the errors behind.
        turns: the requests that reached the model and carried tools, in order.
        records: the journal, oldest line first.
    """

    code: int
    out: str
    turns: tuple[RecordedRequest, ...]
    records: tuple[Record, ...]

    def outcomes(self, stage: str) -> list[tuple[str, str]]:
        """Tool and outcome of each verdict at `stage`, in order."""
        return [
            (record.tool, record.outcome)
            for record in self.records
            if record.step == "verdict" and record.stage == stage
        ]


class Scene:
    """A home, a temporary folder and a project that belong to one test."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.folder = folder
        for made in (self.home, folder / "tmp", self.work / ".interpose", self.work / "build"):
            made.mkdir(parents=True)
        (self.work / "notes.txt").write_text("the notes of the test\n")
        (self.work / ".env").write_text("PASSWORD=sesame\n")

    def rules(self, text: str) -> None:
        """Writes the project's hooks."""
        (self.work / ".interpose" / "hooks.yaml").write_text(text)

    def handlers(self, text: str) -> None:
        """Writes a person's own handlers, and the setting that names them."""
        config = self.folder / "config"
        config.mkdir(mode=0o700, exist_ok=True)
        (config / "handlers.py").write_text(text)
        (config / "config.toml").write_text(f"[handlers]\nfiles = [{json.dumps(str(config / 'handlers.py'))}]\n")

    def run(self, player: Player, prompt: str, script: Sequence[Reply | Failure]) -> Ran:
        """Runs the player through `interpose run` to its end, with `script` as its model."""
        for name, text in player.files.items():
            (self.work / name).write_text(text)
        model = Model(script)
        with ScriptedUpstream([model] * _REQUESTS_MAX) as upstream:
            code, out = self.ended([INTERPOSE, "run", "--", *player.command(prompt)], player, upstream.url)
        return Ran(code, out, model.turns, self._records())

    def ended(self, command: Sequence[str], player: Player, upstream: str) -> tuple[int, str]:
        """Exit code and output of a command in the player's environment; its whole group ends with it."""
        process = subprocess.Popen(
            command,
            cwd=self.work,
            env=self.environ(player, upstream),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, errors = process.communicate(timeout=RUN_S)
        finally:
            # Agents leave children behind; the group is ours alone.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return process.returncode, _COLOURS.sub("", f"{out}\n{errors}")

    def environ(self, player: Player, upstream: str) -> dict[str, str]:
        """A bare environment in which the player is found, with `upstream` as every provider."""
        programs = (_installed(player), Path(INTERPOSE), Path(shutil.which("node") or "/usr/bin/node"))
        return {
            "PATH": os.pathsep.join([*(str(path.parent) for path in programs), "/usr/bin", "/bin"]),
            "HOME": str(self.home),
            "TMPDIR": str(self.folder / "tmp"),
            "INTERPOSE_CONFIG_DIR": str(self.folder / "config"),
            "INTERPOSE_STATE_DIR": str(self.folder / "state"),
            "INTERPOSE_UPSTREAM_ANTHROPIC": upstream,
            "INTERPOSE_UPSTREAM_OPENAI": upstream,
            "INTERPOSE_UPSTREAM_GEMINI": upstream,
            **player.environ,
        }

    def kept(self, text: str) -> bool:
        """Whether the agent has this text in what it keeps of the conversation, which its screen shows whole."""
        return any(text in path.read_text(errors="replace") for path in self.home.rglob("*.jsonl") if path.is_file())

    def _records(self) -> tuple[Record, ...]:
        with closing(JournalReader(self.folder / "state" / "journal.db")) as reader:
            return tuple(stored.record for stored in reader.find(EVERYTHING, limit=-1, order="oldest"))


def messages(request: RecordedRequest) -> list[Any]:
    """The messages in one form: content as blocks, without the marks that a client moves from one to another.

    Of the Responses API the items, of Gemini the contents.
    """
    body = json.loads(request.body)
    listed: list[Any] = body.get("messages") or body.get("input") or body["contents"]
    if "messages" not in body:
        return listed
    for message in listed:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        message["content"] = [
            {name: value for name, value in block.items() if name != "cache_control"} for block in blocks
        ]
    return listed


def _installed(player: Player) -> Path:
    agent = AGENTS[player.agent]
    found = program(agent)
    if found is None:
        pytest.skip(f"{agent.name} {agent.version} is not installed (scripts/agents.py says why)")
    return found
