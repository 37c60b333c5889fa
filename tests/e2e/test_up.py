"""interpose up: the gateway in the foreground, as a person starts it."""

import json
import signal
import socket
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from interpose.assembly.folders import Folders
from interpose.testing.upstream import Reply, ScriptedUpstream, Slow, Text
from tests.e2e.processes import TIMEOUT_S, command, interpose, up

pytestmark = pytest.mark.e2e

FIRST_LINE_S = 2.0
PROMISE_FACTOR = 3


def test_the_first_line_comes_within_two_seconds(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """It starts quickly, answers /healthz, and its files are the user's alone."""
    with up(tmp_path, environ) as gateway:
        assert gateway.started_s < FIRST_LINE_S * PROMISE_FACTOR
        assert gateway.base_url.startswith(f"{gateway.url}/l/")

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folders.journal_db, folders.state_db)}
    assert modes == {"journal.db": 0o600, "state.db": 0o600}
    assert stat.S_IMODE(folders.state.stat().st_mode) == 0o700


def test_people_are_told_how_to_point_each_agent(tmp_path: Path, environ: dict[str, str]) -> None:
    """The start-up text names each agent and SDK with an address bound to the folder, and says what is not judged."""
    process = subprocess.Popen(
        command("up", "--port", "0"),
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: list[str] = []
    try:
        assert process.stdout is not None
        while not (lines and lines[-1].strip() == "" and any("/l/" in line for line in lines)):
            lines.append(process.stdout.readline())
            assert lines[-1], lines
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=TIMEOUT_S)
    text = "".join(lines)

    for name in ("Claude Code", "Codex", "Gemini CLI", "opencode", "OpenAI SDK", "Anthropic SDK"):
        assert name in text
    assert "OpenAI chat completions and responses, and Gemini are judged" in text
    assert "hooks run without approval" in text
    assert process.returncode == 0
    assert "stopped" in rest


def test_ctrl_c_lets_a_running_reply_end(tmp_path: Path, environ: dict[str, str]) -> None:
    """SIGINT stops it with exit code 0, and its address is free again."""
    with up(tmp_path, environ) as gateway:
        gateway.process.send_signal(signal.SIGINT)
        gateway.process.wait(timeout=TIMEOUT_S)

        assert gateway.process.returncode == 0


def test_the_last_line_says_stopped(tmp_path: Path, environ: dict[str, str]) -> None:
    """What a reply that ran to its end did is told before, however soon the process ends."""
    gate = threading.Event()
    with ScriptedUpstream([Slow(Reply(Text("done")), gate)]) as model:
        environ["INTERPOSE_UPSTREAM_ANTHROPIC"] = model.url
        with up(tmp_path, environ) as gateway, ThreadPoolExecutor(1) as pool:
            body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
            asked = pool.submit(httpx.post, f"{gateway.base_url}/v1/messages", json=body, timeout=TIMEOUT_S)
            assert gateway.process.stdout is not None
            assert any("turn.start" in line for line in gateway.process.stdout)
            gateway.process.send_signal(signal.SIGINT)
            assert any("stopping" in line for line in gateway.process.stdout)
            gate.set()
            told = gateway.process.stdout.read().splitlines()

    assert asked.result().status_code == 200
    assert ["turn.end" in line for line in told if "stopped" not in line].count(True) == 1
    assert json.loads(told[-1])["reason"] == "stopped"


def test_a_taken_port_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    """A port that somebody else has is refused in one line with the way out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = interpose("up", "--port", str(port), cwd=tmp_path, env=environ)

    assert done.returncode == 2
    assert str(port) in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unusable_state_folder_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    """A state folder that cannot be made is refused in one line that names it."""
    (tmp_path / "file").write_text("not a folder")

    done = interpose("up", cwd=tmp_path, env={**environ, "INTERPOSE_STATE_DIR": str(tmp_path / "file" / "state")})

    assert done.returncode == 3
    assert str(tmp_path / "file") in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_setting_is_named(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """A mistake in config.toml is refused with the file and the key."""
    folders.config.mkdir()
    folders.config_file.write_text('[upstreams]\nmystery = "http://x"\n')

    done = interpose("up", cwd=tmp_path, env=environ)

    assert done.returncode == 2
    assert "mystery" in done.stderr
    assert str(folders.config_file) in done.stderr


def test_broken_hooks_are_told_and_the_gateway_starts(tmp_path: Path, environ: dict[str, str]) -> None:
    """A hook file that is not YAML is a problem line; the gateway is there."""
    (tmp_path / ".interpose").mkdir()
    (tmp_path / ".interpose" / "hooks.yaml").write_text("hooks: [\n")

    with up(tmp_path, environ):
        status = interpose("status", "--json", cwd=tmp_path, env=environ)

    assert "hooks.yaml" in status.stdout
    assert '"problems": ["' in status.stdout


def test_a_proxy_that_speaks_socks_is_told_and_the_gateway_starts(tmp_path: Path, environ: dict[str, str]) -> None:
    """One line for the variable, whichever upstreams it is for."""
    proxied = {name: value for name, value in environ.items() if not name.lower().endswith("_proxy")}
    with up(tmp_path, {**proxied, "ALL_PROXY": "socks5://127.0.0.1:1080"}) as gateway:
        told = gateway.line_with(step="said")["reason"]

    assert told.startswith("problem ALL_PROXY names a SOCKS proxy")
