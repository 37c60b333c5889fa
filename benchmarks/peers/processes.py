"""The peers as processes: how each is started, what it takes of the machine, how it is ended.

Knows: command lines, /proc. Does not know: what is measured.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

HERE = Path(__file__).resolve().parent
START_S = 60.0

_NGINX = """\
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder}; keepalive_requests 1000000;
  upstream provider {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=1024; client_max_body_size 32m; client_body_buffer_size 1m;
    location /healthz {{ return 200 "ok"; }}
    location / {{
      proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }}
  }}
}}
"""
_LITELLM = """\
model_list:
{models}
litellm_settings:
  callbacks: litellm_callback.passing
  telemetry: false
"""
_LITELLM_MODEL = """\
  - model_name: bench-{kind}{suffix}
    litellm_params:
      model: {provider}/bench-{kind}
      api_base: http://127.0.0.1:{upstream}{base}
      api_key: sk-bench
      input_cost_per_token: 0.000001
      output_cost_per_token: 0.000002
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A running gateway: its process, what stands before the API's path, and how long it took to be ready."""

    name: str
    pid: int
    url: str
    ready_s: float


def cpu_ns(pid: int) -> int:
    """The CPU time of a process and its children so far, over all their threads, also those that have ended.

    The clock of another process has the number that Linux's clock_getcpuclockid(3) makes of its id; /proc counts in
    ticks of 10 ms, which is too coarse here.
    """
    return sum(time.clock_gettime_ns((~one << 3) | 2) for one in _tree(pid))


def rss_mb(pid: int) -> float:
    """The memory that a process and its children hold now."""
    pages = sum(int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in _tree(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def upstream() -> Iterator[Peer]:
    """The stand-in for a provider."""
    with _printing_its_port("direct", [sys.executable, str(HERE / "upstream.py")]) as peer:
        yield peer


@contextmanager
def bare(provider: Peer) -> Iterator[Peer]:
    """The bare proxy on uvicorn and aiohttp."""
    with _printing_its_port("bare", [sys.executable, str(HERE / "bare.py"), provider.url]) as peer:
        yield peer


@contextmanager
def bare_own(provider: Peer) -> Iterator[Peer]:
    """The bare proxy on the gateway's own server and client."""
    command = [sys.executable, str(HERE / "bare_own.py"), provider.url]
    with _printing_its_port("bare, own transport", command) as peer:
        yield peer


@contextmanager
def interposed(provider: Peer, folder: Path) -> Iterator[Peer]:
    """`interpose up` for a workspace with the hooks that `interpose init` writes; its lines go to a file."""
    workspace, config, state = folder / "work", folder / "config", folder / "state"
    for one in (workspace, config):
        one.mkdir(parents=True)
    environ = {
        "INTERPOSE_CONFIG_DIR": str(config),
        "INTERPOSE_STATE_DIR": str(state),
        "INTERPOSE_UPSTREAM_ANTHROPIC": provider.url,
        "INTERPOSE_UPSTREAM_OPENAI": provider.url,
    }
    command = [str(Path(sys.executable).parent / "interpose")]
    subprocess.run([*command, "init"], cwd=workspace, env=_environ(environ), check=True, capture_output=True)
    port = free_port()
    lines = folder / "lines"
    with _running([*command, "up", "--json", "--port", str(port)], environ, cwd=workspace, log=lines) as (pid, started):
        ready_s = _wait_until_ready(port, started)
        while "\n" not in (said := lines.read_text()):
            time.sleep(0.01)
        yield Peer("interpose", pid, json.loads(said.partition("\n")[0])["base_url"], ready_s)


@contextmanager
def nginx(provider: Peer, folder: Path) -> Iterator[Peer | str]:
    """Nginx's proxy_pass, or why there is none."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        yield "nginx is not on PATH"
        return
    port = free_port()
    folder.mkdir(parents=True)
    file = folder / "nginx.conf"
    file.write_text(_NGINX.format(folder=folder, upstream=provider.url.rpartition(":")[2], port=port))
    with _running([program, "-c", str(file), "-p", str(folder)], {}, log=folder / "log") as (pid, started):
        yield Peer("nginx", pid, f"http://127.0.0.1:{port}", _wait_until_ready(port, started))


@contextmanager
def litellm(provider: Peer, folder: Path) -> Iterator[Peer | str]:
    """LiteLLM's proxy with a callback on every event, from the environment that LITELLM_VENV names, or why not."""
    program = Path(os.environ.get("LITELLM_VENV", "/nowhere")) / "bin" / "litellm"
    if not program.exists():
        yield "LITELLM_VENV names no environment with litellm[proxy] in it"
        return
    port, upstream_port = free_port(), provider.url.rpartition(":")[2]
    folder.mkdir(parents=True)
    shutil.copy(HERE / "litellm_callback.py", folder)
    models = "".join(
        _LITELLM_MODEL.format(kind=kind, suffix=suffix, provider=name, upstream=upstream_port, base=base)
        for kind in ("whole", "burst", "call", "paced")
        for name, suffix, base in (("anthropic", "", ""), ("openai", "-chat", "/v1"))
    )
    file = folder / "config.yaml"
    file.write_text(_LITELLM.format(models=models))
    words = [str(program), "--config", str(file), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    environ = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "DISABLE_ADMIN_UI": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    with _running(words, environ, cwd=folder, log=folder / "log") as (pid, started):
        ready_s = _wait_until_ready(port, started, "/health/liveliness")
        yield Peer("LiteLLM", pid, f"http://127.0.0.1:{port}", ready_s)


@contextmanager
def all_peers(folder: Path) -> Iterator[tuple[list[Peer], list[str]]]:
    """Every peer that this machine has, and a line for each that it has not."""
    with ExitStack() as stack:
        provider = stack.enter_context(upstream())
        found: list[Peer | str] = [
            provider,
            stack.enter_context(bare(provider)),
            stack.enter_context(bare_own(provider)),
            stack.enter_context(interposed(provider, folder / "interpose")),
            stack.enter_context(nginx(provider, folder / "nginx")),
            stack.enter_context(litellm(provider, folder / "litellm")),
        ]
        yield [one for one in found if isinstance(one, Peer)], [one for one in found if isinstance(one, str)]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _printing_its_port(name: str, command: list[str]) -> Iterator[Peer]:
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=_environ({}))
    try:
        line = process.stdout.readline() if process.stdout else b""
        if not line:
            raise RuntimeError(f"{name} did not start")
        yield Peer(name, process.pid, f"http://127.0.0.1:{int(line)}", time.monotonic() - started)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def _running(
    command: list[str], environ: Mapping[str, str], *, log: Path, cwd: Path | None = None
) -> Iterator[tuple[int, float]]:
    """A process of the command, and when it was started; its words go to `log`."""
    with log.open("wb") as file:
        started = time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, env=_environ(environ), stdout=file, stderr=file)
        try:
            yield process.pid, started
        except RuntimeError as error:
            raise RuntimeError(f"{error}; {command[0]} said: …{log.read_text(errors='replace')[-600:]}") from error
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _environ(more: Mapping[str, str]) -> dict[str, str]:
    """Ours, without what keeps Python from keeping compiled files, which slows a start down several times."""
    left = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**left, **more}


def _wait_until_ready(port: int, started: float, path: str = "/healthz") -> float:
    while time.monotonic() - started < START_S:
        if _answers(port, path):
            return time.monotonic() - started
        time.sleep(0.005)
    raise RuntimeError(f"nothing answers at port {port} within {START_S:g} s")


def _answers(port: int, path: str) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _tree(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    tree = [pid]
    for one in tree:
        tree += [child for child, parent in parents.items() if parent == one]
    return tree
