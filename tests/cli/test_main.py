"""cli.main and cli.feed: the verbs, their exit codes, and which lines people see."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from rich.console import Console

from interpose.assembly.folders import Folders
from interpose.assembly.runtime import Runtime
from interpose.cli.feed import HELD_MAX, Feed, worth_showing
from interpose.cli.main import VERBS, exit_code, interpose
from interpose.cli.output import THEME, counted, in_force
from interpose.contracts.errors import ConfigError, MisuseError, StorageError
from interpose.contracts.journal import Record, Step, StoredRecord
from interpose.journal.codec import pack, to_json, to_record


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_a_command_with_help(verb: str) -> None:
    """Each verb loads, and says what it does in a sentence."""
    command = interpose.get_command(click.Context(interpose), verb)

    assert command is not None
    assert (command.help or "").strip()


def test_help_loads_no_verb() -> None:
    """`interpose --help` stays quick: no server, no parser, no client is loaded for it."""
    code = (
        "import sys; from interpose.cli.main import interpose;"
        "interpose.main(['--help'], standalone_mode=False);"
        "print([m for m in ('aiohttp', 'uvicorn', 'tree_sitter', 'yaml', 'rich') if m in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_exit_codes_are_those_of_the_manual() -> None:
    """Storage is 3, everything else that a person can mend is 2."""
    assert exit_code(StorageError("x")) == 3
    assert exit_code(ConfigError("file", "is wrong")) == exit_code(MisuseError("x")) == 2


@pytest.mark.parametrize(
    ("step", "outcome", "shown"),
    [
        ("verdict", "allowed", True),
        ("answer", "", False),
        ("answer", "observed", True),
        ("request", "", False),
        ("request", "client_gone", True),
        ("problem", "", True),
        ("not_judged_yet", "", True),
        ("applied", "refused", False),
    ],
)
def test_people_see_what_matters(step: Step, outcome: str, shown: bool) -> None:
    """Verdicts, faults and notices are lines; what a verdict says again is not."""
    assert worth_showing(Record(0, "a", step, outcome=outcome)) is shown


def test_a_model_that_nobody_judges_is_a_line_and_other_unknown_paths_are_none() -> None:
    """An agent may ask for its telemetry every second; that a model runs unseen is for people."""
    unknown = Record(0, "a", "skipped", outcome="unjudged", reason="interpose does not know this path")

    assert worth_showing(unknown) is False
    assert worth_showing(replace(unknown, reason="a model runs at /batches, unjudged")) is True


def test_nothing_is_printed_before_the_greeting() -> None:
    """Lines wait for the start, so that the addresses come first."""
    out = io.StringIO()
    feed = Feed(Console(file=out, theme=THEME, width=100))

    feed.hear(Record(0, "a1", "verdict", outcome="refused", reason="early"))
    feed.start("http://127.0.0.1:1", "http://127.0.0.1:1", "/w", "http://127.0.0.1:1/l/x")
    feed.hear(Record(0, "a2", "verdict", outcome="refused", reason="late"))

    assert "early" not in out.getvalue()
    assert "late" in out.getvalue()


def test_what_comes_together_is_printed_in_one_go(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """People see a line for each record that matters, machines one of JSON for every record, in their order."""
    records = [Record(0, f"a{number}", "verdict", outcome="refused", reason=f"No. {number}") for number in range(3)]
    lines = [pack(record) for record in (*records, Record(0, "a3", "request", data={"path": "/ä"}))]
    out = io.StringIO()
    people, machines = Feed(Console(file=out, theme=THEME, width=100)), Feed(Console(file=out), as_json=True)

    for feed in (people, machines):
        feed.start("http://127.0.0.1:1", "http://127.0.0.1:1", "/w", "http://127.0.0.1:1/l/x")
        feed.hear_all(lines)

    shown = [line for line in out.getvalue().splitlines() if line.strip()]
    printed = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert ["No. 0" in shown[0], "No. 1" in shown[1], "No. 2" in shown[2], len(shown)] == [True, True, True, 3]
    assert printed[1:] == [to_json(StoredRecord(0, to_record(line))) for line in lines]


def test_lines_wait_while_a_question_stands_at_the_terminal() -> None:
    """Nothing is printed between question and answer; afterwards all of it is, and what was too much is counted."""
    out = io.StringIO()
    feed = Feed(Console(file=out, theme=THEME, width=100), asks=True)
    feed.start("http://127.0.0.1:1", "http://127.0.0.1:1", "/w", "http://127.0.0.1:1/l/x")

    feed.hold()
    for number in range(HELD_MAX + 3):
        feed.hear(Record(0, "a1", "verdict", outcome="refused", reason=f"held {number}"))
    assert out.getvalue() == ""
    feed.release()
    feed.say("now")

    told = out.getvalue().splitlines()
    assert len(told) == HELD_MAX + 2
    assert "held 0" in told[0]
    assert told[-2:] == ["… 3 more lines: `interpose journal`", "now"]


@pytest.mark.parametrize("asks", [True, False])
def test_a_question_that_is_shown_here_needs_no_line(asks: bool) -> None:
    """Where no terminal asks, the line says that a call waits."""
    out = io.StringIO()
    feed = Feed(Console(file=out, theme=THEME, width=100), asks=asks)
    feed.start("http://127.0.0.1:1", "http://127.0.0.1:1", "/w", "http://127.0.0.1:1/l/x")

    feed.hear(Record(0, "a1", "notice", phase="ask", outcome="waiting", reason="a person is asked"))

    assert ("a person is asked" in out.getvalue()) is not asks


def test_counts_agree_with_their_noun() -> None:
    """One hook, two hooks."""
    assert [counted(count, "hook") for count in (0, 1, 2)] == ["0 hooks", "1 hook", "2 hooks"]


def test_handlers_of_the_users_files_are_counted_and_shown(folders: Folders, environ: dict[str, str]) -> None:
    """`status` and `up` say how many judge, `config show` which files they come from."""
    with Runtime.open(folders) as runtime:
        assert in_force(runtime.workspaces.policy(None)).startswith("0 hooks and ")
    folders.config.mkdir()
    folders.config_file.write_text('[handlers]\nfiles = ["mine.py"]\n')
    (folders.config / "mine.py").write_text("from interpose import on\n\n@on('turn.end')\ndef seen(turn): ...\n")
    with Runtime.open(folders) as runtime:
        assert in_force(runtime.workspaces.policy(None)).startswith("0 hooks, 1 handler and ")

    words = [str(Path(sys.executable).with_name("interpose")), "config", "show", "--json"]
    shown = subprocess.run(words, env=environ, capture_output=True, text=True, check=True, timeout=30)
    files = json.loads(shown.stdout)["settings"]["handlers.files"]
    assert files == {"value": ["mine.py"], "origin": str(folders.config_file)}


def test_config_show_words_values_for_people(folders: Folders, environ: dict[str, str]) -> None:
    """What is not set is `none`, a list is its items, and nothing of Python's is seen."""
    folders.config.mkdir()
    folders.config_file.write_text('[upstreams.a]\nbase_url = "http://a"\napi = "openai"\nmodels = ["x*", "[y]"]\n')

    words = [str(Path(sys.executable).with_name("interpose")), "config", "show"]
    shown = subprocess.run(words, env=environ, capture_output=True, text=True, check=True, timeout=30).stdout
    rows = {row[0]: row[1:-1] for line in shown.splitlines() if (row := line.split())}

    assert rows["upstreams.a.models"] == ["x*,", "[y]"]
    assert rows["upstreams.a.key_env"] == ["none"]
    assert rows["upstreams.openai"] == ["https://api.openai.com"]
    assert "None" not in shown
