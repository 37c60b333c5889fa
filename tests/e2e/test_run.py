"""interpose run: an agent is pointed, judged, and its exit code is ours."""

import json
import os
import re
from pathlib import Path

import pytest

from interpose.assembly.folders import Folders
from interpose.testing.upstream import Reply, ScriptedUpstream, Text, ToolUse
from tests.e2e.processes import command, interpose, up

pytestmark = pytest.mark.e2e

SHOW = """#!/bin/sh
echo "args: $*"
env | grep -E '^(ANTHROPIC|OPENAI|GOOGLE|GEMINI|OPENCODE|INTERPOSE_LAUNCH)' | sort
exit 7
"""

ASK = """
import json, os, sys, urllib.request
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
    data=json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}).encode(),
    headers={"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"},
)
print(urllib.request.urlopen(request).read().decode())
"""

RULE = """
hooks:
  - id: no-deletes
    on: before_tool
    kind: effect
    command: rm -r|-R|--recursive
    effect: {kind: block_tool, reason: not here, severity: hard-block}
"""


def agent(folder: Path, name: str) -> dict[str, str]:
    """A program called `name` that shows how it was pointed; its PATH."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(SHOW)
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_claude_code_is_pointed_by_its_variable(tmp_path: Path, environ: dict[str, str]) -> None:
    """ANTHROPIC_BASE_URL carries the launch prefix, words stand behind ours, and the exit code is the agent's."""
    environ |= agent(tmp_path / "bin", "claude")

    done = interpose("run", "--", "claude", "-p", "hi there", cwd=tmp_path, env=environ)

    assert done.returncode == 7, done.stderr
    assert re.search(r"^args: --settings \S+/l/\S+ -p hi there$", done.stdout, re.MULTILINE)
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:" in done.stdout
    assert "/l/" in done.stdout


DAMAGE = """
import os, pathlib, sys
journal = pathlib.Path(os.environ["INTERPOSE_STATE_DIR"], "journal.db")
for end in ("-wal", "-shm"):
    journal.with_name(journal.name + end).unlink(missing_ok=True)
damaged = journal.with_name("damaged")
damaged.write_text("no database " * 1_000)
os.replace(damaged, journal)
"""


def test_a_journal_that_is_damaged_meanwhile_takes_no_exit_code(
    tmp_path: Path, environ: dict[str, str], folders: Folders
) -> None:
    """The agent's own code is kept; that nothing can be summed up and what was lost are a line each."""
    with ScriptedUpstream([Reply(Text("done"))]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        done = interpose("run", "--", "python3", "-c", DAMAGE + ASK + "sys.exit(5)", cwd=tmp_path, env=environ)

    assert done.returncode == 5, done.stderr
    assert f"interpose: what was judged cannot be told: {folders.journal_db}: " in done.stderr
    assert re.search(r"^interpose: \d+ lines of the journal were lost: ", done.stderr, re.MULTILINE)
    assert "Traceback" not in done.stderr


def test_codex_is_pointed_by_arguments(tmp_path: Path, environ: dict[str, str]) -> None:
    """Codex gets `-c model_provider…` ahead of its own words, and no file of its owner is written."""
    environ |= agent(tmp_path / "bin", "codex")

    done = interpose("run", "--", "codex", "exec", "hi", cwd=tmp_path, env=environ)

    words = done.stdout.splitlines()[0]
    assert "model_provider=" in words
    assert "/v1" in words
    assert words.endswith("exec hi")
    assert not (Path(environ["HOME"]) / ".codex").exists()


def test_gemini_is_pointed_by_a_settings_file_of_ours(
    tmp_path: Path, environ: dict[str, str], folders: Folders
) -> None:
    """Gemini CLI gets its address and a settings file in a folder that others cannot write."""
    environ |= agent(tmp_path / "bin", "gemini")

    done = interpose("run", "--", "gemini", "-p", "hi", cwd=tmp_path, env=environ)

    variables = dict(line.split("=", 1) for line in done.stdout.splitlines()[1:])
    settings = Path(variables["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"])
    assert "/l/" in variables["GOOGLE_GEMINI_BASE_URL"]
    assert settings.is_relative_to(folders.state)
    assert json.loads(settings.read_text())["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert settings.parent.stat().st_mode & 0o022 == 0


def test_opencode_is_pointed_by_inline_configuration(tmp_path: Path, environ: dict[str, str]) -> None:
    """Opencode gets a base URL for its providers; what the user had in that variable stays."""
    environ |= agent(tmp_path / "bin", "opencode") | {"OPENCODE_CONFIG_CONTENT": '{"theme": "mine"}'}

    done = interpose("run", "--", "opencode", "run", "hi", cwd=tmp_path, env=environ)

    line = next(line for line in done.stdout.splitlines() if line.startswith("OPENCODE_CONFIG_CONTENT="))
    configuration = json.loads(line.split("=", 1)[1])
    assert configuration["theme"] == "mine"
    assert "/l/" in configuration["provider"]["anthropic"]["options"]["baseURL"]


def test_any_program_is_judged_by_the_folder_it_runs_in(tmp_path: Path, environ: dict[str, str]) -> None:
    """A program with the SDK variables is judged by this folder's hooks, without a gateway running before."""
    (tmp_path / ".interpose").mkdir()
    (tmp_path / ".interpose" / "hooks.yaml").write_text(RULE)
    script = [Reply(Text("tidying"), ToolUse("Bash", {"command": "rm -rf build"}))]

    with ScriptedUpstream(script) as upstream:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = upstream.url
        done = interpose("run", "--", "python3", "-c", ASK, cwd=tmp_path, env=environ)

    reply = json.loads(done.stdout)
    assert [block["type"] for block in reply["content"]] == ["text", "text"]
    assert "Bash was refused by no-deletes: not here" in reply["content"][1]["text"]
    assert reply["stop_reason"] == "end_turn"
    assert "1 refused" in done.stderr


def test_a_running_gateway_is_used(tmp_path: Path, environ: dict[str, str]) -> None:
    """With `interpose up` running, an agent started in another folder is judged there by that folder's hooks."""
    other = tmp_path / "other"
    (other / ".interpose").mkdir(parents=True)
    (other / ".interpose" / "hooks.yaml").write_text(RULE)
    with ScriptedUpstream([Reply(ToolUse("Bash", {"command": "rm -r x"}))]) as upstream:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = upstream.url
        with up(tmp_path, environ) as gateway:
            done = interpose("run", "--", "python3", "-c", ASK, cwd=other, env=environ)
            line = gateway.line_with(step="verdict", stage="tool.call")

    assert "was refused by no-deletes" in done.stdout, done.stderr
    assert (line["outcome"], line["workspace"]) == ("refused", str(other))


def test_a_client_that_takes_no_path_gets_a_port_of_its_own(tmp_path: Path, environ: dict[str, str]) -> None:
    """With --own-port the address has no prefix and is still bound to the launch."""
    environ |= agent(tmp_path / "bin", "claude")

    done = interpose("run", "--own-port", "--", "claude", cwd=tmp_path, env=environ)

    line = next(line for line in done.stdout.splitlines() if line.startswith("ANTHROPIC_BASE_URL="))
    assert "/l/" not in line


def test_a_program_that_is_not_there_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    """Exit code 127 and one line, as a shell does."""
    done = interpose("run", "--", "no-such-agent", cwd=tmp_path, env=environ)

    assert done.returncode == 127
    assert "no-such-agent" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_that_is_ended_by_a_signal_gives_its_code(tmp_path: Path, environ: dict[str, str]) -> None:
    """128 plus the signal's number, as a shell does."""
    done = interpose("run", "--", "/bin/sh", "-c", "kill -TERM $$", cwd=tmp_path, env=environ)

    assert done.returncode == 128 + 15


def test_the_words_are_those_of_the_installed_script() -> None:
    """The console script that the tests start is there."""
    assert os.access(command()[0], os.X_OK)
