"""What the gateway costs on the wire, with judging on, against its peers; all in one run.

The peers: the upstream itself (direct), a bare streaming proxy on uvicorn and aiohttp, the same proxy on interpose's
own server and client, nginx's `proxy_pass`, and LiteLLM's proxy with a callback that sees every event. Those that are
not there are left out with a line. The cases are run in turns, in another order each round; CPU is that of the whole
process tree, and of all rounds the best one counts, so that what else the machine does shows least.

`python benchmarks/gateway.py` prints the tables of docs/performance.md (`LITELLM_VENV` names the environment that has
`litellm[proxy]`); `--quick` takes one short round, `--json FILE` keeps the numbers. `make bench` takes a quick round of
the bare proxy and interpose.
"""

import argparse
import asyncio
import compileall
import json
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvloop
from peers.load import Load, Seen, asked
from peers.processes import Peer, all_peers, bare, bare_own, cpu_ns, interposed, rss_mb, upstream
from peers.upstream import PACED_EVENTS, burst, events, texts_of
from pytest_benchmark.fixture import BenchmarkFixture

from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import Codec
from interpose.gateway.chat import CHAT

SOURCE = Path(__file__).resolve().parent.parent / "src"
PATHS = {"anthropic": "/v1/messages", "chat": "/v1/chat/completions"}
ENDS = {"anthropic": b"message_stop", "chat": b"[DONE]"}
TOOLS = ("Bash", "Read", "Edit", "Grep")
BIG_BODY_BYTES = 80_000
READ_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is measured: what is asked, on how many connections, for how long."""

    name: str
    load: Load
    connections: int
    for_s: float
    spread_s: float = 0.0


@dataclass(slots=True)
class Measured:
    """One peer in one case, the best of all rounds."""

    per_s: float = 0.0
    cpu_us: float = float("inf")
    first_byte_us: list[float] = field(default_factory=lambda: [float("inf")] * 2)
    event_us: list[float] = field(default_factory=lambda: [float("inf")] * 2)
    rss_mb: float = 0.0

    def add(self, seen: Seen, elapsed_s: float, spent_ns: int, rss: float) -> None:
        """One round more."""
        self.per_s = max(self.per_s, seen.replies / elapsed_s)
        self.cpu_us = min(self.cpu_us, spent_ns / seen.replies / 1000)
        self.first_byte_us = _better(self.first_byte_us, seen.first_byte_ns)
        self.event_us = _better(self.event_us, seen.event_ns)
        self.rss_mb = max(self.rss_mb, rss)


Table = dict[str, dict[str, Measured]]
"""By case, then by peer."""


def cases(*, quick: bool) -> list[Case]:
    """What is measured, in the order of the tables."""
    span = 0.6 if quick else 2.0
    made = [Case(f"burst {api}", load(api, "burst"), 50, span) for api in ("anthropic", "chat")]
    made.append(Case("call anthropic", load("anthropic", "call"), 50, span))
    made.append(Case("small", load("chat", "whole"), 50, span))
    made.append(Case("large", load("anthropic", "whole", body_bytes=BIG_BODY_BYTES), 50, span))
    paced = load("anthropic", "paced")
    streams = (1, 50) if quick else (1, 50, 200)
    made += [Case(f"paced {number}", paced, number, span, spread_s=1.0) for number in streams]
    return made


def load(api: str, kind: str, *, body_bytes: int = 0) -> Load:
    """A request of an agent: a prompt that is new each time, a few tools, and padding of so many bytes."""
    prompt = "Question %d: what is left to be done in this folder?"
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    if body_bytes:
        said = [{"role": role, "content": "x" * (body_bytes // 20)} for role in ("user", "assistant") * 10]
        messages = [*said, *messages]
    schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    tools: list[dict[str, Any]] = [{"name": name, "description": "Does it.", "input_schema": schema} for name in TOOLS]
    if api == "chat":
        tools = [{"type": "function", "function": {"name": name, "parameters": schema}} for name in TOOLS]
    model = f"bench-{kind}" + ("-chat" if api == "chat" else "")
    body = {"model": model, "max_tokens": 1024, "stream": kind != "whole", "messages": messages, "tools": tools}
    exact = burst(api, kind) if kind in ("burst", "call") else None
    end = b"}" if kind == "whole" else ENDS[api]
    return Load(api, kind, PATHS[api], json.dumps(body).encode(), end, exact)


async def measured(peers: list[Peer], wanted: list[Case], *, rounds: int) -> Table:
    """All cases against all peers, in turns."""
    table: Table = defaultdict(lambda: defaultdict(Measured))
    for peer in peers:
        for case in wanted:
            await _once(peer, case, Measured(), for_s=0.3)
    for _ in range(rounds):
        for case in wanted:
            for peer in random.sample(peers, len(peers)):
                await _once(peer, case, table[case.name][peer.name])
    return table


async def _once(peer: Peer, case: Case, into: Measured, *, for_s: float | None = None) -> None:
    exact = case.load.exact if peer.name != "LiteLLM" else None  # which writes every event anew
    wanted = Load(case.load.api, case.load.kind, case.load.path, case.load.body, case.load.end, exact)
    started, spent = time.monotonic(), cpu_ns(peer.pid)
    asking = asyncio.ensure_future(
        asked(peer.url, wanted, connections=case.connections, for_s=for_s or case.for_s, spread_s=case.spread_s)
    )
    rss = 0.0
    while not asking.done():
        await asyncio.wait((asking,), timeout=0.5)
        rss = max(rss, rss_mb(peer.pid))
    into.add(asking.result(), time.monotonic() - started, cpu_ns(peer.pid) - spent, rss)


def _better(known: list[float], seen_ns: list[int]) -> list[float]:
    """The median and the 99th percentile in microseconds, of the round whose median is the lowest."""
    if len(seen_ns) < 1:
        return known
    ordered = sorted(seen_ns)
    fresh = [statistics.median(ordered) / 1000, ordered[int(len(ordered) * 0.99)] / 1000]
    return min(known, fresh)


def pipeline_ns(*, quick: bool) -> dict[str, dict[str, float]]:
    """Nanoseconds for an untouched event, bytes in and bytes out: of a bare splitter, and of each codec's stream."""
    found: dict[str, dict[str, float]] = {}
    codecs: dict[str, Codec] = {"anthropic": ANTHROPIC, "chat": CHAT}
    for api, codec in codecs.items():
        texts = list(events(api, texts_of(2000)))[10:2000]
        whole = b"".join(texts)
        cuts = {
            "one event a read": texts,
            f"reads of {READ_BYTES // 1024} KB": [
                whole[at : at + READ_BYTES] for at in range(0, len(whole), READ_BYTES)
            ],
        }
        for cut, chunks in cuts.items():
            runs: dict[str, Callable[[], int]] = {
                "splitter": lambda chunks=chunks: _split(chunks),
                "interpose": lambda chunks=chunks, codec=codec: _piped(codec, chunks),
            }
            best = dict.fromkeys(runs, float("inf"))
            for _ in range(20 if quick else 200):
                for name, run in runs.items():
                    started = time.perf_counter_ns()
                    written = run()
                    best[name] = min(best[name], (time.perf_counter_ns() - started) / len(texts))
                    assert written == len(whole), (written, len(whole))
            found[f"{api}, {cut}"] = best
    return found


class _Splitter:
    """The peer of the pipeline: tells whole events apart, and they leave in one write for each read."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The events that `data` completes."""
        *whole, self.rest = (self.rest + data).split(b"\n\n")
        yield b"".join([event + b"\n\n" for event in whole])


def _split(chunks: list[bytes]) -> int:
    splitter = _Splitter()
    written = 0
    for chunk in chunks:
        for piece in splitter.feed(chunk):
            written += len(piece)
    return written + len(splitter.rest)


def _piped(codec: Codec, chunks: list[bytes]) -> int:
    stream = codec.stream()
    written = 0
    for chunk in chunks:
        fed = stream.feed(chunk)
        for step in (fed,) if isinstance(fed, bytes) else fed:
            written += len(step) if isinstance(step, bytes) else 0
    return written + sum(len(step) for step in stream.finish() if isinstance(step, bytes))


def print_report(table: Table, peers: list[Peer], piped: dict[str, dict[str, float]]) -> None:
    """The tables of docs/performance.md."""
    names = [peer.name for peer in peers]
    _print_cost(table, names)
    _print_paced(table, names)
    _print_first_byte(table, names)
    print("| | ready, s | RSS after all, MB | RSS at most, MB |")
    print("|---|---:|---:|---:|")
    for peer in peers:
        most = max(row[peer.name].rss_mb for row in table.values())
        print(f"| {peer.name} | {peer.ready_s:.2f} | {rss_mb(peer.pid):.0f} | {most:.0f} |")
    print()
    print("| an untouched event, bytes in, bytes out | splitter | interpose | ratio |")
    print("|---|---:|---:|---:|")
    for name, best in piped.items():
        ratio = best["interpose"] / best["splitter"]
        print(f"| {name} | {best['splitter']:.0f} ns | {best['interpose']:.0f} ns | {ratio:.2f}x |")
    print()
    _print_goals(table, names)


def _print_cost(table: Table, names: list[str]) -> None:
    shown = [name for name in table if not name.startswith("paced")]
    print("| CPU, and how many a second | " + " | ".join(shown) + " |")
    print("|---|" + "---:|" * len(shown))
    for peer in names:
        cells = (f"{_time(table[case][peer].cpu_us)}, {table[case][peer].per_s:,.0f}/s" for case in shown)
        print(f"| {peer} | " + " | ".join(cells) + " |")
    print()


def _print_paced(table: Table, names: list[str]) -> None:
    shown = [name for name in table if name.startswith("paced")]
    print("| CPU for an event, one each 20 ms | " + " | ".join(f"{case.split()[1]} streams" for case in shown) + " |")
    print("|---|" + "---:|" * len(shown))
    for peer in names:
        cells = (f"{table[case][peer].cpu_us / PACED_EVENTS:.0f} µs" for case in shown)
        print(f"| {peer} | " + " | ".join(cells) + " |")
    print()


def _print_first_byte(table: Table, names: list[str]) -> None:
    """What a peer adds: its median and 99th percentile less those of the upstream itself."""
    shown = [name for name in table if name.startswith("paced")]
    print("| added to the first byte, p50 / p99 | " + " | ".join(f"{case.split()[1]} streams" for case in shown) + " |")
    print("|---|" + "---:|" * len(shown))
    for peer in names[1:]:
        cells = []
        for case in shown:
            middle, late = table[case][peer].first_byte_us
            own_middle, own_late = table[case]["direct"].first_byte_us
            cells.append(f"{_time(middle - own_middle)} / {_time(late - own_late)}")
        print(f"| {peer} | " + " | ".join(cells) + " |")
    print()


def _print_goals(table: Table, names: list[str]) -> None:
    def ratio(case: str, peer: str) -> str:
        ours, theirs = table[case]["interpose"], table[case][peer]
        return f"{theirs.cpu_us / ours.cpu_us:.2f}x by CPU, {ours.per_s / theirs.per_s:.2f}x by the clock"

    for peer in names:
        if peer in ("direct", "interpose"):
            continue
        for case in table:
            if not case.startswith("paced"):
                print(f"{case}, interpose against {peer}: {ratio(case, peer)}")


def _time(microseconds: float) -> str:
    return f"{microseconds:.0f} µs" if abs(microseconds) < 1000 else f"{microseconds / 1000:.1f} ms"


@contextmanager
def _scratch() -> Iterator[Path]:
    compileall.compile_dir(SOURCE, quiet=2)
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as folder:
        yield Path(folder)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="What the gateway costs, against its peers.")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the numbers there")
    parser.add_argument("--rounds", type=int, default=3)
    words = parser.parse_args()
    piped = pipeline_ns(quick=words.quick)
    with _scratch() as folder, all_peers(folder) as (peers, missing):
        for line in missing:
            print(f"left out: {line}", file=sys.stderr)
        table = uvloop.run(measured(peers, cases(quick=words.quick), rounds=1 if words.quick else words.rounds))
        print_report(table, peers, piped)
    if words.json:
        rows = {case: {peer: asdict(best) for peer, best in row.items()} for case, row in table.items()}
        ready = {peer.name: peer.ready_s for peer in peers}
        words.json.write_text(json.dumps({"cases": rows, "ready_s": ready, "pipeline_ns": piped}, indent=1))


@pytest.mark.benchmark(group="gateway: a stream of 300 events, judging on")
def test_gateway(benchmark: BenchmarkFixture) -> None:
    """One quick round of the bare proxies and interpose; the CPU of a stream is in the extra information."""
    with _scratch() as folder, upstream() as provider, ExitStack() as stack:
        peers = [
            stack.enter_context(made) for made in (bare(provider), bare_own(provider), interposed(provider, folder))
        ]
        wanted = [case for case in cases(quick=True) if case.name.startswith("burst")]
        table = benchmark.pedantic(lambda: uvloop.run(measured(peers, wanted, rounds=1)), rounds=1, iterations=1)
        for case, row in table.items():
            for peer, best in row.items():
                benchmark.extra_info[f"{case}, {peer}, CPU in us"] = round(best.cpu_us)
        print_report(table, peers, pipeline_ns(quick=True))


if __name__ == "__main__":
    main()
