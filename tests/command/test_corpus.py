"""The corpus: each command line has the reading that stands beside it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from interpose.command import FileUse, SimpleCommand, read_command

ENTRIES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "corpus.yaml").read_text())


def show_command(command: SimpleCommand) -> str:
    """A command as the corpus writes it."""
    return f"{'/'.join(command.wrappers)}> {command.text}" if command.wrappers else command.text


def show_file(use: FileUse) -> str:
    """A file as the corpus writes it."""
    kind = "dynamic" if use.dynamic else "glob" if use.pattern is not None else ""
    depth = "" if use.depth == "file" else use.depth
    path = "." if use.path == "/w" else use.path.removeprefix("/w/")
    return " ".join(part for part in (use.access, kind, depth, path, show_names(use)) if part)


def show_names(use: FileUse) -> str:
    """The names that count as the corpus writes them: `+` taken in, `-` left out, `/` folders passed by."""
    if use.names is None:
        return ""
    rules = [("+" if counts else "-") + glob for counts, glob in use.names.rules]
    return " ".join([*rules, *(f"/{folder}" for folder in use.names.folders)])


def test_the_corpus_is_large_and_says_nothing_twice() -> None:
    """At least 300 lines, each once."""
    lines = [entry["line"] for entry in ENTRIES]
    assert len(lines) >= 300
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["line"][:60])
def test_reading(entry: dict[str, Any]) -> None:
    """Programs, files and what could not be read are as written in the corpus."""
    reading = read_command(entry["line"], cwd="/w", home="/h")
    assert [show_command(command) for command in reading.commands] == entry["commands"]
    assert [show_file(use) for use in reading.files] == entry.get("files", [])
    assert list(reading.unknown)[:1] == ([entry["unknown"]] if "unknown" in entry else [])
