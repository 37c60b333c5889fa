"""command.opaque: which programs are known by name only."""

import pytest

from interpose.command.opaque import opaque_name
from interpose.command.reader import read_command


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("python -c 'import os'", ["python"]),
        ("sudo make all", ["make"]),
        ("./x.sh && ../tools/y", ["./x.sh", "../tools/y"]),
        ("bash build.sh --fast", ["bash build.sh"]),
        ("source env.sh; . ./more; perl -pe s/a/b/ f", ["source env.sh", ". ./more", "perl"]),
        ("bash -lc 'npm test'", ["npm"]),
        ("time cargo test | tail -5", ["cargo"]),
        ("/usr/bin/python3 a.py; /usr/bin/grep x y", ["python3"]),
        ("cd x; ls -la; cat a | grep b > c; rm d; git status; echo done; [ -f x ]", []),
        ("uv run pytest; docker exec c make all; ssh h ls; npx tsc", ["pytest", "make", "tsc"]),
        ("uv sync; docker build .; tmux attach", ["uv", "docker"]),
        ("$TOOL --fast", []),
        ("bash < script", []),
    ],
)
def test_programs_nobody_reads_are_named(text: str, names: list[str]) -> None:
    """Interpreters, build tools and scripts are named; what is understood, and what has no name yet, is not."""
    reading = read_command(text, cwd="/w")

    assert [name for command in reading.commands if (name := opaque_name(command))] == names
