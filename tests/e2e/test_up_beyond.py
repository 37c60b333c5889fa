"""interpose up at an address that others reach: everybody needs a token, and the start says so."""

import http.client
import json
import signal
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interpose.assembly.folders import Folders
from interpose.kernel.ids import digest_of_secret
from interpose.testing.upstream import Reply, ScriptedUpstream, Text
from tests.e2e.processes import TIMEOUT_S, command, interpose, up

pytestmark = pytest.mark.e2e

BODY = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}).encode()


def status_of(url: str, path: str, headers: dict[str, str]) -> int:
    """What one request is answered."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
    try:
        connection.request("POST", path, BODY, {"Host": "gateway.example:80", **headers})
        return connection.getresponse().status
    finally:
        connection.close()


def test_beyond_this_machine(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """A stranger is turned away, a client with a token and a launch are served, and the first lines tell."""
    folders.config.mkdir()
    clients = f'[gateway.clients]\nci = "sha256:{digest_of_secret("a-token")}"\n'
    with ScriptedUpstream([Reply(Text("x"))] * 3) as upstream:
        own = f'[upstreams]\nanthropic = "{upstream.url}"\n'
        folders.config_file.write_text(f'[gateway]\nhost = "0.0.0.0"\n{clients}{own}')
        with up(tmp_path, environ) as gateway:
            told = gateway.line_with(step="said")["reason"]
            path = urlsplit(gateway.base_url).path
            statuses = [
                status_of(gateway.url, "/v1/messages", {}),
                status_of(gateway.url, "/v1/messages", {"x-api-key": "a-token"}),
                status_of(gateway.url, f"{path}/v1/messages", {"x-api-key": "sk-own"}),
            ]

    assert "0.0.0.0" in told
    assert "token" in told
    assert statuses == [401, 200, 200]
    port = urlsplit(gateway.url).port
    assert gateway.url == f"http://127.0.0.1:{port}"
    assert gateway.listens == f"http://0.0.0.0:{port}"
    assert f"others reach it as http://{socket.gethostname()}:{port}" in told


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_first_line_names_what_it_is_bound_to(
    tmp_path: Path, environ: dict[str, str], folders: Folders, workers: str
) -> None:
    """And not only where this machine reaches it."""
    folders.config.mkdir()
    clients = f'[gateway.clients]\nci = "sha256:{digest_of_secret("a-token")}"\n'
    folders.config_file.write_text(f'[gateway]\nhost = "0.0.0.0"\n{clients}')
    process = subprocess.Popen(
        command("up", "--port", "0", "--workers", workers), cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)

    assert "http://0.0.0.0:" in first


def test_nobody_has_a_token(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """Such an address without any client is refused, with the setting to write."""
    folders.config.mkdir()
    folders.config_file.write_text('[gateway]\nhost = "0.0.0.0"\n')

    done = interpose("up", "--port", "0", cwd=tmp_path, env=environ)

    assert done.returncode == 2
    assert "gateway.host" in done.stderr
    assert "[gateway.clients]" in done.stderr
