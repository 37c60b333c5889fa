"""Runs a command on a terminal of its own."""

import os
import pty
import subprocess
from collections.abc import Mapping
from pathlib import Path


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
