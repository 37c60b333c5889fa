"""Upstreams by model, with keys, certificates and proxies of their own, and how often they are asked."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from interpose.gateway.settings import Target, Upstreams
from interpose.kernel.ids import digest_of_secret
from interpose.testing.upstream import RawBody, Reply, ScriptedUpstream, Text
from tests.e2e.house import House
from tests.e2e.peers import ANSWER, HEAD_END, Peer, read_request

pytestmark = pytest.mark.e2e

CHAT = "/v1/chat/completions"


def body_for(model: str, **more: Any) -> bytes:
    """A small request for `model`."""
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}], **more}).encode()


def test_the_model_chooses_the_upstream() -> None:
    """A named upstream gets the models that its patterns fit, the longest first; the rest goes to the API's own."""
    with ScriptedUpstream([Reply(Text("x"))] * 9) as local, ScriptedUpstream([Reply(Text("x"))] * 9) as special:
        targets = (
            Target("local", "openai", local.url, models=("llama*", "qwen*")),
            Target("special", "openai", f"{special.url}/base", models=("llama-big*",)),
            Target("elsewhere", "anthropic", special.url, models=("llama*",)),
        )
        with House([Reply(Text("x"))] * 9) as house:
            own = Upstreams(house.upstream.url, house.upstream.url, house.upstream.url, targets)
            with House([], upstreams=own) as gateway:
                for model in ("llama-3", "llama-big-3", "gpt-5", "qwen2"):
                    assert gateway.raw("POST", CHAT, body_for(model))[0] == 200
                assert gateway.raw("POST", "/v1/messages", body_for("llama-3"))[0] == 200
                # What nobody judges is read as far as the model, too.
                gateway.raw("POST", "/v1/embeddings", body_for("qwen2"))
                gateway.raw("GET", "/v1/models/llama-big-4")
            asked_own = [request.path for request in house.upstream.requests]

    assert [request.json["model"] for request in local.requests] == ["llama-3", "qwen2", "qwen2"]
    assert local.requests[2].path == "/v1/embeddings"
    assert [request.path for request in special.requests] == [
        f"/base{CHAT}",
        "/v1/messages",
        "/base/v1/models/llama-big-4",
    ]
    assert asked_own == [CHAT]


@pytest.mark.parametrize(
    ("api", "path", "header", "value"),
    [
        ("openai", CHAT, "Authorization", "Bearer sk-own"),
        ("anthropic", "/v1/messages", "x-api-key", "sk-own"),
    ],
)
def test_a_key_of_the_gateways_own_is_for_known_askers(api: Any, path: str, header: str, value: str) -> None:
    """It takes the place of the client's keys, and is used only for a launch or a client with a token."""
    with ScriptedUpstream([Reply(Text("x"))] * 3) as keyed:
        own = Upstreams(targets=(Target("keyed", api, keyed.url, models=("m*",), key="sk-own"),))
        with House([], upstreams=own, clients={"ci": digest_of_secret("token-1")}) as house:
            stranger, _, answer = house.raw("POST", path, body_for("m"), {"Authorization": "Bearer sk-client"})
            prefix = house.prefixed().removeprefix(house.url)
            launched, _, _ = house.raw("POST", prefix + path, body_for("m"), {"x-api-key": "sk-client", "api-key": "k"})
            client, _, _ = house.raw("POST", path, body_for("m"), {"Authorization": "Bearer token-1"})
            named, _, _ = house.raw("POST", path, body_for("m"), {"X-Interpose-Token": "token-1"})

    launches = [record.launch for record in house.journal.of_step("request")]
    assert (stranger, launched, client, named) == (401, 200, 200, 200)
    assert "interpose run" in json.loads(answer)["error"]["message"]
    assert len(keyed.requests) == 3
    for request in keyed.requests:
        assert request.headers[header] == value
        sent = repr(sorted(request.headers.items()))
        assert "sk-client" not in sent
        assert "token-1" not in sent
        assert "api-key" not in {name.lower() for name in request.headers} - {header.lower()}
    assert launches == ["", "l1", "client-ci", "client-ci"]
    assert "sk-own" not in repr(house.journal.records)


def test_a_gemini_key_replaces_the_one_in_the_query() -> None:
    """Where a client puts its key into the address, it does not leave either."""
    with ScriptedUpstream([RawBody(b"{}", "application/json")]) as keyed:
        own = Upstreams(targets=(Target("keyed", "gemini", keyed.url, models=("g*",), key="own"),))
        with House([], upstreams=own) as house:
            prefix = house.prefixed().removeprefix(house.url)
            house.raw("POST", f"{prefix}/v1beta/models/g-1:countTokens?key=mine&alt=json", b"{}")

    assert keyed.requests[0].path == "/v1beta/models/g-1:countTokens?alt=json"
    assert keyed.requests[0].headers["x-goog-api-key"] == "own"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that nobody else trusts, with its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate, and is not here")
    made = tmp_path / "ca.pem"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run(
        [openssl, *words, *names, "-keyout", str(tmp_path / "key.pem"), "-out", str(made)],
        check=True,
        capture_output=True,
        timeout=30,
    )
    return made


def test_a_private_authority_is_trusted_by_one_upstream_alone(certificate: Path) -> None:
    """`ca_file` makes its upstream reachable; without it the certificate is refused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))

    def serve(connection: socket.socket, _number: int) -> None:
        while read_request(connection):
            connection.sendall(ANSWER)

    with Peer(serve, context) as peer:
        targets = (
            Target("trusted", "openai", peer.url, models=("a*",), ca_file=str(certificate)),
            Target("strange", "openai", peer.url, models=("b*",)),
        )
        with House([], upstreams=Upstreams(targets=targets)) as house:
            trusted, _, _ = house.raw("POST", CHAT, body_for("a"))
            strange, _, answer = house.raw("POST", CHAT, body_for("b"))

    assert (trusted, strange) == (200, 502)
    assert "certificate" in json.loads(answer)["error"]["message"].lower()


@pytest.mark.parametrize(("method", "path", "status", "times"), [("POST", CHAT, 502, 1), ("GET", "/v1/models", 200, 2)])
def test_what_may_have_been_read_is_not_sent_again(method: str, path: str, status: int, times: int) -> None:
    """A kept connection that ends right behind a request may have been read: only what is served twice goes again."""
    asked: list[bytes] = []

    def serve(connection: socket.socket, number: int) -> None:
        asked.append(read_request(connection))
        connection.sendall(ANSWER)
        if request := read_request(connection):
            asked.append(request)
        if number > 1:
            connection.sendall(ANSWER)

    with Peer(serve) as peer, House([], upstreams=Upstreams(openai=peer.url)) as house:
        first, _, _ = house.raw("POST", CHAT, body_for("m"))
        second, _, _ = house.raw(method, path, body_for("m") if method == "POST" else None)
        again = [request for request in asked[1:] if request.startswith(method.encode())]

    assert (first, second) == (200, status)
    assert (len(again), peer.connections) == (times, times)


def test_a_fresh_connection_that_dies_is_not_asked_again() -> None:
    """Where the request may have arrived nothing is repeated: a model's answer is paid for."""

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)

    with Peer(serve) as peer, House([], upstreams=Upstreams(openai=peer.url)) as house:
        status, _, answer = house.raw("POST", CHAT, body_for("m"))

    assert status == 502
    assert "got no usable answer" in json.loads(answer)["error"]["message"]
    assert peer.connections == 1


def test_a_refused_connection_is_tried_again() -> None:
    """An upstream that comes up within the retries is reached."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    target = Target("late", "openai", f"http://127.0.0.1:{port}", retries=10)
    with House([], upstreams=Upstreams(targets=(target,))) as house:

        def serve() -> None:
            with socket.create_server(("127.0.0.1", port)) as listener:
                connection, _ = listener.accept()
                with connection:
                    read_request(connection)
                    connection.sendall(ANSWER)

        later = threading.Timer(0.3, serve)
        later.start()
        status, _, _ = house.raw("POST", CHAT, body_for("m"))
        later.join(10)

    assert status == 200


@pytest.mark.parametrize("login", ["", "me:secret@"], ids=["own", "library"])
@pytest.mark.parametrize("answered", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hi\n\n"])
def test_an_upstream_that_falls_silent_is_given_up(answered: bytes, login: str) -> None:
    """Before its answer that is a 504 in the API's shape; in a stream the client is told by an event.

    The words name the setting, whichever client it was that waited.
    """
    done = threading.Event()

    def serve(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(answered)
        done.wait(10)

    with Peer(serve) as peer:
        target = Target("silent", "openai", peer.url.replace("//", f"//{login}"), read_timeout_s=0.2)
        with House([], upstreams=Upstreams(targets=(target,))) as house:
            status, _, answer = house.raw("POST", CHAT, body_for("m", stream=True))
            done.set()
            failed = [record.outcome for record in house.journal.of_step("failed")]

    assert b"it sent nothing for 0.2 s (read_timeout_s)" in answer
    assert b"secret" not in answer
    if not answered:
        assert status == 504
        assert json.loads(answer)["error"]["type"] == "timeout_error"
        assert failed == ["failed"]
        return
    assert status == 200
    assert answer.startswith(b": hi\n\ndata: ")
    assert b"broke off" in answer
    assert failed == ["upstream_died"]


def test_the_proxy_of_the_environment_is_used_but_for_names_it_leaves_out() -> None:
    """A plain request is sent to the proxy whole, a TLS one by CONNECT with the login; NO_PROXY goes direct."""
    seen: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        request = read_request(connection)
        seen.append(request.partition(HEAD_END)[0])
        if request.startswith(b"CONNECT"):
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        connection.sendall(ANSWER)

    targets = (
        Target("plain", "openai", "http://plain.invalid", models=("p*",)),
        Target("secure", "openai", "https://secure.invalid", models=("s*",)),
        Target("direct", "openai", "http://api.direct.invalid", models=("d*",)),
    )
    with Peer(serve) as peer:
        names = {"http_proxy": peer.url, "https_proxy": f"http://me:p%40ss@127.0.0.1:{peer.port}"}
        answers = _asked(targets, "psd", **names, no_proxy="x.invalid, .direct.invalid")

    assert [status for status, _, _ in answers] == [200, 502, 502]
    assert seen[0].startswith(b"POST http://plain.invalid/v1/chat/completions HTTP/1.1")
    assert seen[1].startswith(b"CONNECT secure.invalid:443 HTTP/1.1")
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==" in seen[1]
    assert len(seen) == 2


def test_a_proxy_that_says_nothing_is_not_waited_for() -> None:
    """It took the connection, and the time to connect counts until the upstream is reached."""
    ended = threading.Event()
    targets = (Target("secure", "openai", "https://secure.invalid", models=("s*",), connect_timeout_s=0.5),)

    def serve(_connection: socket.socket, _number: int) -> None:
        ended.wait(60)

    with Peer(serve) as peer:
        ((status, message, took_s),) = _asked(targets, "s", https_proxy=peer.url)
        ended.set()

    assert status == 504
    assert "the proxy did not connect to it within 0.5 s (connect_timeout_s)" in message
    assert took_s < 20  # a proxy's silence had no bound at all


def test_a_proxy_that_speaks_socks_is_told() -> None:
    """Nothing is sent to it; the error says which variable names it."""
    targets = (Target("secure", "openai", "https://secure.invalid", models=("s*",)),)
    with Peer(lambda *_: None) as peer:
        ((status, message, _),) = _asked(targets, "s", all_proxy=f"socks5://127.0.0.1:{peer.port}")
        connections = peer.connections

    assert status == 502
    assert "ALL_PROXY names a SOCKS proxy" in message
    assert connections == 0


def _asked(targets: tuple[Target, ...], models: str, **proxies: str) -> list[tuple[int, str, float]]:
    """The status, the error and the time of a request for each model, in a process with these proxies."""
    script = (
        "import time, json; from tests.e2e.house import House; from interpose.gateway.settings import *\n"
        f"rows = {_plain(targets)!r}\n"
        "targets = tuple(Target(n, 'openai', u, models=(m,), connect_timeout_s=s) for n, u, m, s in rows)\n"
        "with House([], upstreams=Upstreams(targets=targets), proxies_from_environment=True) as house:\n"
        f"    for model in {models!r}:\n"
        "        body = json.dumps({'model': model, 'messages': []}).encode()\n"
        "        began = time.monotonic()\n"
        f"        status, _, answer = house.raw('POST', '{CHAT}', body)\n"
        "        error = json.loads(answer).get('error', {}).get('message', '')\n"
        "        print(json.dumps([status, error, time.monotonic() - began]))\n"
    )
    others = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**others, **proxies},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(status, error, took_s) for status, error, took_s in map(json.loads, done.stdout.splitlines())]


def _plain(targets: tuple[Target, ...]) -> list[tuple[str, str, str, float]]:
    return [(target.name, target.base_url, target.models[0], target.connect_timeout_s) for target in targets]


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/messages/batches", "/anything"])
def test_unjudged_paths_pass_and_are_journalled_or_are_refused(path: str) -> None:
    """`unjudged_paths = "refuse"` lets nothing past that nobody judges, but for what cannot carry a call."""
    with House([RawBody(b"{}", "application/json")] * 2, strict=False) as house:
        passed, _, _ = house.raw("POST", path, b"{}")
        notes = [record.outcome for record in house.journal.of_step("skipped")]
        with House([], unjudged_paths="refuse", upstreams=Upstreams(house.upstream.url, house.upstream.url)) as strict:
            refused, _, answer = strict.raw("POST", path, b"{}")
            models, _, _ = strict.raw("GET", "/v1/models")

    assert (passed, refused, models) == (200, 403, 200)
    assert notes == ["unjudged"]
    assert "gateway.unjudged_paths" in json.loads(answer)["error"]["message"]
