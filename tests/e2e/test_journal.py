"""interpose tail, journal and explain: what happened, for people and machines, from another process."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.protection import load_policy_from, protect
from interpose.contracts.errors import Refused
from interpose.userhooks.starter import STARTER
from tests.e2e.processes import TIMEOUT_S, command, interpose

pytestmark = pytest.mark.e2e


def refused_action(folders: Folders, project: Path) -> str:
    """Lets a call pass and another be refused; the action of the refused one."""
    (project / ".interpose").mkdir(exist_ok=True)
    (project / ".interpose" / "hooks.yaml").write_text(STARTER)
    with load_policy_from(folders, project) as policy:
        shell = protect(lambda command: f"ran {command}", policy=policy, tool="shell")
        shell(command="ls")
        with pytest.raises(Refused) as refused:
            shell(command="rm -rf build")
    return refused.value.action


def test_explain_tells_the_whole_story(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """Who saw it, what each said, the reason, how long it took and what came of it."""
    action = refused_action(folders, tmp_path)

    people = interpose("explain", action, cwd=tmp_path, env=environ)
    machines = [
        json.loads(line)
        for line in interpose("explain", action, "--json", cwd=tmp_path, env=environ).stdout.splitlines()
    ]

    for part in (
        action,
        "shell",
        "rm -rf build",
        "no-recursive-delete",
        "Recursive deletes are not allowed",
        "process",
    ):
        assert part in people.stdout
    assert re.search(r"\d (ms|µs)", people.stdout)
    assert [(line["step"], line["handler"]) for line in machines] == [
        ("answer", "no-recursive-delete"),
        ("verdict", "no-recursive-delete"),
    ]


def test_the_journal_is_filtered(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """Filters narrow it; --last takes the newest; the order is oldest first."""
    refused_action(folders, tmp_path)

    everything = interpose("journal", cwd=tmp_path, env=environ).stdout.splitlines()
    refused = interpose("journal", "--outcome", "refused", cwd=tmp_path, env=environ).stdout.splitlines()
    newest = interpose("journal", "--last", "1", "--json", cwd=tmp_path, env=environ).stdout.splitlines()
    nothing = interpose("journal", "--tool", "teapot", cwd=tmp_path, env=environ).stdout

    assert len(everything) == 3  # two verdicts for the call that ran, one for the refused one
    assert len(refused) == 1
    assert "rm -rf build" in refused[0]
    assert [json.loads(line)["outcome"] for line in newest] == ["refused"]
    assert "nothing is journalled that matches" in nothing


def test_tail_follows_other_processes(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """What another process journals appears, and nothing from before."""
    refused_action(folders, tmp_path)
    process = subprocess.Popen(
        command("tail", "--json", "--outcome", "refused"), cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["step"] == "started"
        action = refused_action(folders, tmp_path)
        line = json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)

    assert (line["action"], line["outcome"]) == (action, "refused")


def test_an_unknown_action_is_named(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """An id that nobody knows is said to be unknown, with the way to find one."""
    refused_action(folders, tmp_path)

    done = interpose("explain", "anothing", cwd=tmp_path, env=environ)

    assert done.returncode == 2
    assert "interpose journal" in done.stderr


def test_observed_rules_say_what_they_would_have_done(
    tmp_path: Path, environ: dict[str, str], folders: Folders
) -> None:
    """A rule in observe mode lets pass; the journal shows it to people."""
    (tmp_path / ".interpose").mkdir()
    (tmp_path / ".interpose" / "hooks.yaml").write_text(
        STARTER.replace("    command:\n", "    mode: observe\n    command:\n", 1)
    )
    with load_policy_from(folders, tmp_path) as policy:
        shell = protect(lambda command: f"ran {command}", policy=policy, tool="shell")
        assert shell(command="rm -rf build") == "ran rm -rf build"

    shown = interpose("journal", cwd=tmp_path, env=environ).stdout

    assert "observed" in shown
    assert "no-recursive-delete" in shown
