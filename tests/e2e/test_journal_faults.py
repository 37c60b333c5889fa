"""interpose up while the journal cannot be written: no file of the process may grow, as on a full disk."""

import json
import resource
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from interpose.assembly.folders import Folders
from interpose.testing.upstream import Reply, ScriptedUpstream, Text
from tests.e2e.processes import TIMEOUT_S, Up, up

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit(2)")]

FULL, EMPTY = 0, resource.RLIM_INFINITY


@pytest.fixture
def model(environ: dict[str, str]) -> Iterator[ScriptedUpstream]:
    """A model that says little."""
    with ScriptedUpstream([Reply(Text("done"))] * 9) as upstream:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = upstream.url
        yield upstream


def disk(gateway: Up, state: int) -> None:
    """Fills the disk under the gateway and its workers, or empties it."""
    pid = gateway.process.pid
    children = [
        child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    for process in (pid, *map(int, children)):
        hard = resource.prlimit(process, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(process, resource.RLIMIT_FSIZE, (state, hard))


def ask(gateway: Up) -> int:
    """One request of an agent; its status."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    return httpx.post(f"{gateway.base_url}/v1/messages", json=body, timeout=TIMEOUT_S).status_code


def said(gateway: Up, words: str) -> dict[str, Any]:
    """The line of its own that has these words, waited for."""
    while True:
        line = gateway.line()
        if line["step"] == "said" and words in line["reason"]:
            return line


def kept(folders: Folders) -> int:
    """How many prompts the journal has."""
    with sqlite3.connect(folders.journal_db) as database:
        (count,) = database.execute("SELECT count(*) FROM records WHERE stage = 'turn.start' AND step = 'verdict'")
    database.close()
    return int(count[0])


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("words", [(), ("--workers", "2")])
def test_it_is_told_when_it_begins_and_when_it_is_over(
    tmp_path: Path, environ: dict[str, str], folders: Folders, words: tuple[str, ...]
) -> None:
    """The terminal, /readyz and /metrics say so, requests are judged meanwhile, and nothing is lost."""
    with up(tmp_path, environ, *words) as gateway:
        disk(gateway, FULL)
        assert ask(gateway) == 200
        began = said(gateway, "the journal cannot be written: ")
        ready = httpx.get(f"{gateway.url}/readyz")
        metrics = httpx.get(f"{gateway.url}/metrics").text
        disk(gateway, EMPTY)
        over = said(gateway, "the journal is written again: all that waited is in it")
        healthy = httpx.get(f"{gateway.url}/readyz").json()
        gateway.process.terminate()
        gateway.process.communicate(timeout=TIMEOUT_S)

    assert str(folders.journal_db) in began["reason"]
    assert began["journal"]["written"] is False
    assert 0 < began["journal"]["waiting"] <= ready.json()["journal"]["waiting"]
    assert (ready.status_code, ready.json()["ready"], ready.json()["journal"]["written"]) == (200, True, False)
    assert "\ninterpose_journal_writable 0.0\n" in metrics
    assert "\ninterpose_journal_waiting 0.0\n" not in metrics
    assert over["journal"] == healthy["journal"] == {"written": True, "waiting": 0, "lost": 0}
    assert gateway.process.returncode == 0
    assert kept(folders) == 1


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("words", [(), ("--workers", "2")])
def test_what_is_lost_is_told_at_the_end(
    tmp_path: Path, environ: dict[str, str], folders: Folders, words: tuple[str, ...]
) -> None:
    """Stopped while nothing can be written, it says how many lines are gone and why, and ends with code 3."""
    with up(tmp_path, environ, *words) as gateway:
        disk(gateway, FULL)
        assert ask(gateway) == 200
        said(gateway, "the journal cannot be written: ")
        gateway.process.terminate()
        told, errors = gateway.process.communicate(timeout=TIMEOUT_S)

    lines = [json.loads(line) for line in told.splitlines()]
    lost = next(line for line in lines if "of the journal were lost: " in line.get("reason", ""))
    assert lost["journal"]["lost"] > 1
    assert lost["reason"].startswith(
        f"{lost['journal']['lost']} lines of the journal were lost: {folders.journal_db}: "
    )
    assert lines[-1]["reason"] == "stopped"
    assert (gateway.process.returncode, errors) == (3, "")
    assert kept(folders) == 0
