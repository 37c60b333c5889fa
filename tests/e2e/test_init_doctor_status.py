"""interpose init, doctor, status, hooks, config: the first minutes of a newcomer."""

import json
from pathlib import Path

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.runtime import Runtime
from interpose.contracts.journal import Record
from tests.e2e.processes import interpose, up

pytestmark = pytest.mark.e2e


def test_init_writes_working_hooks_and_says_what_is_next(tmp_path: Path, environ: dict[str, str]) -> None:
    """The file has no mistakes, three hooks are in force, and a second init does not overwrite it."""
    first = interpose("init", cwd=tmp_path, env=environ)
    check = interpose("hooks", "check", cwd=tmp_path, env=environ)
    listed = interpose("hooks", "list", "--json", cwd=tmp_path, env=environ)
    second = interpose("init", cwd=tmp_path, env=environ)

    assert first.returncode == 0, first.stderr
    assert "interpose run -- claude" in first.stdout
    assert check.returncode == 0, check.stdout
    hooks = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [hook["id"] for hook in hooks if "built_in" not in hook] == [
        "no-recursive-delete",
        "protect-secrets",
        "remind-tests",
    ]
    assert "guard.loop" in [hook["id"] for hook in hooks if "built_in" in hook]
    assert second.returncode == 2
    assert "--force" in second.stderr


def test_doctor_proves_a_refusal_with_and_without_a_gateway(tmp_path: Path, environ: dict[str, str]) -> None:
    """The canary is refused through a gateway of the doctor's own, and through the one that runs."""
    alone = interpose("doctor", cwd=tmp_path, env=environ)
    with up(tmp_path, environ) as gateway:
        running = interpose("doctor", "--json", cwd=tmp_path, env=environ)
        told = interpose("journal", "--all", "--json", cwd=tmp_path, env=environ).stdout.splitlines()

    assert {json.loads(line)["step"] for line in told}.isdisjoint({"failed", "problem"}), told
    assert alone.returncode == 0, alone.stdout + alone.stderr
    assert "refused by a gateway started for this" in alone.stdout
    canary = json.loads(running.stdout.splitlines()[-1])
    assert (canary["name"], canary["well"]) == ("canary", True)
    assert gateway.url in canary["text"]


def test_doctor_names_what_is_wrong(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """A hook file with a mistake is exit code 1 and the way out."""
    (tmp_path / ".interpose").mkdir()
    (tmp_path / ".interpose" / "hooks.yaml").write_text("- on: never\n")

    done = interpose("doctor", cwd=tmp_path, env=environ)

    assert done.returncode == 1
    assert "interpose hooks check" in done.stdout


def test_status_tells_what_judges_here(tmp_path: Path, environ: dict[str, str]) -> None:
    """Hooks, gateway, approval and the last day, for people and machines."""
    interpose("init", cwd=tmp_path, env=environ)

    people = interpose("status", cwd=tmp_path, env=environ)
    machines = json.loads(interpose("status", "--json", cwd=tmp_path, env=environ).stdout)

    assert "3 hooks and 9 built-in guards in force, without approval" in people.stdout
    assert machines["gateway"] is None
    assert machines["judging"] == "on"
    assert machines["workspace"] == str(tmp_path)


def test_status_tells_what_was_judged_here_elsewhere_and_in_no_project(
    tmp_path: Path, environ: dict[str, str], folders: Folders
) -> None:
    """What `interpose journal` lists is counted in one of the three; what the doctor tried, in none."""
    with Runtime.open(folders) as runtime:
        now = runtime.clock.now()
        for workspace, outcome, reason in (
            (str(tmp_path), "allowed", ""),
            (str(tmp_path), "refused", "not here"),
            ("", "refused", "not without a launch"),
            ("/elsewhere", "refused", "not elsewhere"),
        ):
            runtime.journal.write(
                Record(now, "a", "verdict", stage="tool.call", workspace=workspace, outcome=outcome, reason=reason)
            )
        runtime.journal.write(Record(now, "d", "verdict", workspace=str(tmp_path), agent="doctor", outcome="refused"))
        runtime.journal.write(Record(now - 90_000, "o", "verdict", workspace=str(tmp_path), outcome="refused"))

    people = interpose("status", cwd=tmp_path, env=environ).stdout
    machines = json.loads(interpose("status", "--json", cwd=tmp_path, env=environ).stdout)

    assert "2 judged, 1 refused here\n" in people
    assert "1 judged, 1 refused in no project" in people
    assert "1 judged, 1 refused in other projects" in people
    assert [reason in people for reason in ("not here", "not without a launch", "not elsewhere")] == [True, True, False]
    assert machines["last_day"] == {"judged": 2, "refused": 1}
    assert machines["last_day_in_no_project"] == machines["last_day_elsewhere"] == {"judged": 1, "refused": 1}
    assert [line["reason"] for line in machines["refused"]] == ["not here", "not without a launch"]


def test_status_names_each_gateway(tmp_path: Path, environ: dict[str, str]) -> None:
    """Two that share a state folder are both told, the one that was started last first."""
    with up(tmp_path, environ) as first, up(tmp_path, environ) as second:
        people = interpose("status", cwd=tmp_path, env=environ).stdout
        machines = json.loads(interpose("status", "--json", cwd=tmp_path, env=environ).stdout)

    assert [gateway["url"] for gateway in machines["gateways"]] == [second.url, first.url]
    assert machines["gateway"] == machines["gateways"][0]
    assert people.index(second.url) < people.index(first.url)


def test_config_show_names_origins(tmp_path: Path, environ: dict[str, str]) -> None:
    """Each value and where it came from; what a project may not say is a problem."""
    (tmp_path / ".interpose").mkdir()
    project = tmp_path / ".interpose" / "config.toml"
    project.write_text("[gateway]\nask_timeout_s = 30\nport = 1\n")
    done = interpose("config", "show", "--json", cwd=tmp_path, env={**environ, "INTERPOSE_PORT": "5151"})

    told = json.loads(done.stdout)
    assert told["settings"]["gateway.port"] == {"value": 5151, "origin": "INTERPOSE_PORT"}
    assert told["settings"]["gateway.ask_timeout_s"] == {"value": 30.0, "origin": str(project)}
    assert ["gateway.port" in problem for problem in told["problems"]] == [True]


@pytest.mark.parametrize("words", [("--help",), ("up", "--help"), ("run", "--help"), ("journal", "--help")])
def test_help_is_there_for_every_verb(tmp_path: Path, environ: dict[str, str], words: tuple[str, ...]) -> None:
    """Help ends with code 0 and says what the verb does."""
    done = interpose(*words, cwd=tmp_path, env=environ)

    assert done.returncode == 0
    assert "Usage: interpose" in done.stdout


@pytest.mark.parametrize("words", [("fly",), ("journal", "--last", "0"), ("explain",), ("run",)])
def test_wrong_usage_is_exit_code_two(tmp_path: Path, environ: dict[str, str], words: tuple[str, ...]) -> None:
    """An unknown verb, a bad value, a missing word: one message, no traceback."""
    done = interpose(*words, cwd=tmp_path, env=environ)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_journal_of_nobody_says_so(tmp_path: Path, environ: dict[str, str]) -> None:
    """Before anything has happened, journal and explain say what to do."""
    for words in (("journal",), ("explain", "a1")):
        done = interpose(*words, cwd=tmp_path, env=environ)

        assert done.returncode == 2
        assert "interpose demo" in done.stderr


def test_doctor_names_variables_that_count_for_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    """A variable whose value cannot be used is told, with what is possible; judging goes on with the next layer."""
    odd = {"INTERPOSE_HOOK_BUDGET_WINDOW": "99999999999999999999", "INTERPOSE_RIGOR": "zz"}

    done = interpose("doctor", cwd=tmp_path, env=environ | odd)

    assert done.returncode == 1
    assert "INTERPOSE_HOOK_BUDGET_WINDOW" in done.stdout
    assert "INTERPOSE_RIGOR" in done.stdout
