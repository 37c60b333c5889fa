"""What a verdict and its lines in the journal cost, point by point, with what `interpose init` writes in force.

The policy is the one that `interpose up` judges by, its journal is on disk; everything is CPU time, of the judging
thread and of the whole process, so that the writer of the journal counts, and the feed where there is one. The bare
peer is a plain program that does the least that could be called the same: it looks for a few words in the text and
appends a line of JSON for each line of ours to a file, without masking, isolation, order or a way to look lines up.

The cases run in turns, in another order each round, and the best of all rounds counts. `python benchmarks/judging.py`
prints the table of docs/performance.md; `make bench` takes a few rounds.
"""

import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from rich.console import Console

from interpose.assembly.folders import PROJECT_FOLDER, Folders
from interpose.assembly.runtime import Runtime
from interpose.cli.feed import Feed
from interpose.contracts.effects import MetadataValue
from interpose.contracts.journal import Record
from interpose.contracts.stages import Context, Point, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.journal.query import JournalReader
from interpose.kernel.ids import random_id
from interpose.userhooks.starter import STARTER

POINTS = 400
"""So many points are judged in one round of a case."""

SESSIONS = 50
WORDS = ("rm -r", "-delete", "rimraf", ".env", ".pem", ".key", "id_rsa", ".ssh", "credentials")
PROMPT = "Please have a look at the failing test in tests/test_app.py, and mend what is broken there. "
OUTPUT = "42 passed in 1.31s\n" * 10


@dataclass(frozen=True, slots=True)
class Case:
    """A sort of point: how the one with this number is made, and whether a request's line follows it."""

    name: str
    make: Callable[[Context, str, int], Point]
    is_request: bool = False


@dataclass(slots=True)
class Cost:
    """Microseconds of CPU for one point: the judging thread, and all of the process."""

    own: float = float("inf")
    whole: float = float("inf")


def cases() -> list[Case]:
    """What is measured, in the order of the table."""
    return [
        Case("a new prompt, and its request's line", _turn, is_request=True),
        Case(
            "a file is read", lambda context, tag, number: _call(context, tag, number, "Read", file_path="src/app.py")
        ),
        Case("a shell command, never seen before", lambda context, tag, number: _shell(context, tag, number, number)),
        Case("a shell command, seen before", lambda context, tag, number: _shell(context, tag, number, number % 20)),
        Case("a result of 190 characters", _result),
        Case("the end of a turn", _end),
    ]


def measured(*, rounds: int) -> dict[str, dict[str, Cost]]:
    """All cases for all peers, by case and peer."""
    found: dict[str, dict[str, Cost]] = {}
    with _peers() as peers:
        for number in range(rounds + 1):
            turns = [(case, peer) for case in cases() for peer in peers]
            for case, peer in random.sample(turns, len(turns)):
                own, whole = peers[peer](case, f"{number}")
                best = found.setdefault(case.name, {}).setdefault(peer, Cost())
                if number:  # the first one warms up
                    best.own, best.whole = min(best.own, own), min(best.whole, whole)
    return found


def print_report(found: dict[str, dict[str, Cost]]) -> None:
    """The table of docs/performance.md."""
    print("| CPU of one point | bare | judging thread | all threads | with a feed of JSON | with one for people |")
    print("|---|---:|---:|---:|---:|---:|")
    for case in cases():
        row = found[case.name]
        own, ratio = row["journal"].own, row["journal"].whole / row["bare"].whole
        wholes = (row["journal"].whole, row["feed"].whole, row["people"].whole)
        cells = " | ".join(f"{cost:.0f} µs" for cost in (row["bare"].whole, own, *wholes))
        print(f"| {case.name} ({ratio:.0f}x) | {cells} |")


@contextmanager
def _peers() -> Iterator[dict[str, Callable[[Case, str], tuple[float, float]]]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="judging-bench-")))
        nowhere = stack.enter_context(Path(os.devnull).open("w"))
        stack.enter_context(redirect_stdout(nowhere))
        lines = stack.enter_context((folder / "lines").open("a"))
        plain = stack.enter_context(_opened(folder / "plain"))
        machines = stack.enter_context(_opened(folder / "machines", Feed(Console(file=nowhere), as_json=True)))
        people = stack.enter_context(_opened(folder / "people", Feed(Console(file=nowhere))))
        counts = {case.name: _lines_of(case, plain) for case in cases()}
        yield {
            "bare": lambda case, tag: _timed(lambda: _bare(case, tag, lines, counts[case.name])),
            "journal": lambda case, tag: _timed(lambda: _judged(case, tag, plain)),
            "feed": lambda case, tag: _timed(lambda: _judged(case, tag, machines)),
            "people": lambda case, tag: _timed(lambda: _judged(case, tag, people)),
        }


@contextmanager
def _opened(folder: Path, feed: Feed | None = None) -> Iterator[Runtime]:
    hooks = folder / "work" / PROJECT_FOLDER / "hooks.yaml"
    hooks.parent.mkdir(parents=True)
    hooks.write_text(STARTER)
    folders = Folders(config=folder / "config", state=folder / "state", home=folder)
    if feed is not None:
        feed.start("", "", "")
    with Runtime.open(folders, listener=feed.hear_all if feed else None) as runtime:
        yield runtime


def _timed(run: Callable[[], None]) -> tuple[float, float]:
    own, whole = time.thread_time_ns(), time.process_time_ns()
    run()
    spent = time.thread_time_ns() - own, time.process_time_ns() - whole
    return spent[0] / POINTS / 1000, spent[1] / POINTS / 1000


def _judged(case: Case, tag: str, runtime: Runtime) -> None:
    root = str(runtime.folders.home / "work")
    policy = runtime.workspaces.policy(root)

    async def judge_all() -> None:
        for number in range(POINTS):
            context = _context(case, tag, number, root)
            verdict = await policy.judge_async(case.make(context, tag, number))
            assert verdict.allowed, verdict.refusal
            if case.is_request:
                runtime.journal.write(_request(context))

    asyncio.run(judge_all())
    assert runtime.journal.flush(30)


def _bare(case: Case, tag: str, lines: TextIO, count: int) -> None:
    for number in range(POINTS):
        point = case.make(_context(case, tag, number, "/work"), tag, number)
        match point:
            case TurnStart():
                text = point.prompt
            case ToolCall():
                text = json.dumps(dict(point.arguments))
            case ToolResult():
                text = point.output
            case TurnEnd():
                text = point.text
            case _:
                raise AssertionError(point)
        found = [word for word in WORDS if word in text]
        for _ in range(count):
            line = {"at": time.time(), "session": point.context.session, "stage": point.stage, "text": text[:2000]}
            lines.write(json.dumps(line | {"found": found}) + "\n")
        lines.flush()


def _lines_of(case: Case, runtime: Runtime) -> int:
    """How many lines of the journal one point of the case makes."""
    reader = JournalReader(runtime.folders.journal_db)
    before = reader.last_seq()
    _judged(case, "count", runtime)
    made = reader.last_seq() - before
    reader.close()
    return round(made / POINTS)


def _context(case: Case, tag: str, number: int, root: str) -> Context:
    session = f"s-{case.name[:9]}-{tag}-{number % SESSIONS}"
    turn = f"t-{tag}-{number}"
    return Context("wire", session, workspace=root, cwd=root, agent="claude-code", launch="l1", turn=turn, model="m")


def _turn(context: Context, _tag: str, number: int) -> TurnStart:
    facts: dict[str, MetadataValue] = {"conversationMessages": 3, "activeToolNames": "shell,read,edit,search"}
    return TurnStart(context, f"{PROMPT * 2}No. {number}.", facts)


def _call(context: Context, tag: str, number: int, name: str, **arguments: str) -> ToolCall:
    return ToolCall(context, f"call-{tag}-{number}", name, arguments)


def _shell(context: Context, tag: str, number: int, which: int) -> ToolCall:
    seen = tag if which == number else "again"
    command = f"cd src && python -m pytest -q tests/test_{seen}_{which}.py 2>&1 | tail -n 20"
    return _call(context, tag, number, "Bash", command=command, description="Runs the tests")


def _result(context: Context, tag: str, number: int) -> ToolResult:
    return ToolResult(context, f"call-{tag}-{number}", "Read", {"file_path": "src/app.py"}, OUTPUT)


def _end(context: Context, _tag: str, number: int) -> TurnEnd:
    return TurnEnd(context, f"I have mended what was broken there, and all tests pass now. {number}" * 3, "end_turn")


def _request(context: Context) -> Record:
    data = {"api": "anthropic", "method": "POST", "path": "/v1/messages", "status": 200, "ms": 812.3}
    return Record(
        at=time.time(),
        action=random_id("r", 10),
        step="request",
        mount="wire",
        workspace=context.workspace,
        session=context.session,
        launch="l1",
        agent="claude-code",
        duration_ms=812.3,
        data=data,
    )


@pytest.mark.benchmark(group="judging: verdicts and their lines in the journal")
def test_judging(benchmark: BenchmarkFixture) -> None:
    """A few rounds of everything; the CPU of a point is in the extra information."""
    found = benchmark.pedantic(measured, kwargs={"rounds": 2}, rounds=1, iterations=1)
    for case, row in found.items():
        for peer, best in row.items():
            benchmark.extra_info[f"{case}, {peer}, CPU in us"] = round(best.whole)
    print_report(found)


if __name__ == "__main__":
    print_report(measured(rounds=8))
