"""Real `interpose` processes for end-to-end tests."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TIMEOUT_S = 30


def interpose(
    *words: str, cwd: Path, env: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Runs `interpose WORDS` to its end."""
    return subprocess.run(
        command(*words), cwd=cwd, env=dict(env), capture_output=True, text=True, timeout=timeout_s, check=False
    )


def command(*words: str) -> list[str]:
    """The words that start `interpose`."""
    return [str(Path(sys.executable).parent / "interpose"), *words]


class Up:
    """`interpose up --port 0 --json` as a process; lines are read as they come."""

    def __init__(self, process: subprocess.Popen[str], first: dict[str, Any], started_s: float) -> None:
        self.process = process
        self.url: str = first["url"]
        self.listens: str = first["listens"]
        self.base_url: str = first["base_url"]
        self.started_s = started_s
        """Seconds from the start of the process to its first line."""

    def line(self) -> dict[str, Any]:
        """The next line, waited for."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        assert text, "interpose up ended"
        return dict(json.loads(text))

    def line_with(self, **fields: object) -> dict[str, Any]:
        """The next line that has these fields; those before it are passed over."""
        while True:
            line = self.line()
            if all(line.get(name) == value for name, value in fields.items()):
                return line


@contextmanager
def up(cwd: Path, env: Mapping[str, str], *words: str) -> Iterator[Up]:
    """A gateway for `cwd`, ended with SIGTERM."""
    began = time.monotonic()
    process = subprocess.Popen(
        command("up", "--port", "0", "--json", *words),
        cwd=cwd,
        env={**os.environ, **env} if env.get("INHERIT") else dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        text = process.stdout.readline()
        took = time.monotonic() - began
        assert text, process.stderr.read() if process.stderr else ""
        yield Up(process, json.loads(text), took)
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=TIMEOUT_S)
