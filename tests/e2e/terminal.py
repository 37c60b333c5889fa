"""Runs a command on a terminal of its own."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.e2e.processes import TIMEOUT_S


def on_terminal(words: list[str], *, cwd: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """Exit code and everything that was shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(words, cwd=cwd, env=dict(env), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says EIO when the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return process.wait(timeout=30), shown.decode()


class Terminal:
    """A command on a terminal of its own that controls it, with a person who reads and types."""

    def __init__(self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        command = [sys.executable, "-c", _WITH_TERMINAL, *words]
        self.process = subprocess.Popen(
            command, cwd=cwd, env=dict(env), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self._raw = ""
        self._read = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exit_info: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=TIMEOUT_S)
        os.close(self._ours)

    @property
    def shown(self) -> str:
        """Everything that was shown, without colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self._raw)

    def type(self, text: str) -> None:
        """What the person types; a line is taken once its end is typed, and a control character as its key."""
        os.write(self._ours, text.encode())

    def until(self, pattern: str, *, timeout_s: float = TIMEOUT_S) -> re.Match[str]:
        """The next place, behind the last one, where `pattern` is shown; waited for."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = re.search(pattern, self.shown[self._read :], re.MULTILINE | re.DOTALL)
            if found is not None:
                self._read += found.end()
                return found
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"{pattern!r} was not shown:\n{self.shown}"
            if select.select([self._ours], [], [], left_s)[0]:
                assert self._take(), f"the command ended; {pattern!r} was not shown:\n{self.shown}"

    def ended(self, *, timeout_s: float = TIMEOUT_S) -> int:
        """The exit code, waited for; everything that was shown is in `shown`."""
        deadline = time.monotonic() + timeout_s
        while self._take(max(0.0, deadline - time.monotonic())):
            assert time.monotonic() < deadline, f"it did not end:\n{self.shown}"
        return self.process.wait(timeout=timeout_s)

    def _take(self, timeout_s: float = TIMEOUT_S) -> bool:
        if not select.select([self._ours], [], [], timeout_s)[0]:
            return True
        try:
            piece = os.read(self._ours, 65536)
        except OSError:  # Linux says EIO when the other side is closed
            return False
        self._raw += piece.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(piece)


_WITH_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
