"""interpose off and on: by a person at a terminal, on record, and everything passes meanwhile."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import command, interpose
from tests.e2e.terminal import on_terminal

pytestmark = pytest.mark.e2e

PROTECTED = """
import interpose, sys
with interpose.load_policy() as policy:
    delete = interpose.protect(lambda command: "ran", policy=policy, tool="shell")
    try:
        print(delete(command="rm -rf build"))
    except interpose.Refused as refused:
        print("refused", refused.handler)
"""


def test_off_lets_pass_and_on_refuses_again(tmp_path: Path, environ: dict[str, str]) -> None:
    """While judging is off the call passes; both switches and the passed call are in the journal."""
    interpose("init", cwd=tmp_path, env=environ)

    def judged() -> str:

        done = subprocess.run(
            [sys.executable, "-c", PROTECTED], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )
        return (done.stdout + done.stderr).strip()

    before = judged()
    off = on_terminal(command("off", "--for", "10m"), cwd=tmp_path, env=environ)
    meanwhile = judged()
    status = interpose("status", "--json", cwd=tmp_path, env=environ)
    on = on_terminal(command("on"), cwd=tmp_path, env=environ)
    after = judged()

    assert (before, meanwhile, after) == ("refused no-recursive-delete", "ran", "refused no-recursive-delete")
    assert (off[0], on[0]) == (0, 0), (off, on)
    assert json.loads(status.stdout)["judging"] == "off"
    journal = interpose("journal", "--json", cwd=tmp_path, env=environ).stdout.splitlines()
    told = [(line["step"], line["outcome"]) for line in map(json.loads, journal) if line["step"] != "answer"]
    assert ("switched", "off") in told
    assert ("verdict", "off") in told
    assert ("switched", "on") in told


@pytest.mark.parametrize("words", [("off", "--for", "10m"), ("on",)])
def test_without_a_terminal_nothing_is_switched(
    tmp_path: Path, environ: dict[str, str], words: tuple[str, ...]
) -> None:
    """A process without a terminal, such as an agent's tool, cannot switch."""
    done = interpose(*words, cwd=tmp_path, env=environ)

    assert done.returncode == 2
    assert "terminal" in done.stderr


def test_a_launched_agent_cannot_switch_even_on_a_terminal(tmp_path: Path, environ: dict[str, str]) -> None:
    """What descends from a launch is not the person."""
    code, shown = on_terminal(command("off", "--for", "1m"), cwd=tmp_path, env={**environ, "INTERPOSE_LAUNCH": "lx"})

    assert code == 2
    assert "not for agents" in shown


@pytest.mark.parametrize("time", ["10", "0m", "25h", "soon", "-5m"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, environ: dict[str, str], time: str) -> None:
    """The message says what a time looks like."""
    code, shown = on_terminal(command("off", "--for", time), cwd=tmp_path, env=environ)

    assert code == 2
    assert "10m" in shown
