"""Runs an agent as a child that has the terminal, as if interpose were not there.

Knows: standard streams, signals, exit codes.
Does not know: which agent it is, or how it was pointed.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT) if hasattr(signal, "SIGQUIT") else (signal.SIGINT,)
_TO_US_ALONE = (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)

NOT_FOUND = 127
NOT_RUNNABLE = 126


@dataclass(frozen=True, slots=True)
class Ended:
    """How the child ended: the shell's exit code, and a line for the person when it never ran."""

    code: int
    message: str | None = None


def run_agent(argv: Sequence[str], environ: Mapping[str, str], *, cwd: Path | None = None) -> Ended:
    """Runs the command with this whole environment and the caller's own streams, and waits for its end.

    Ctrl-C reaches the child from the terminal, so the caller only stays alive; SIGTERM and SIGHUP are passed on. A
    child that a signal ended gives 128 and its number; 127 is a command that is not there, 126 one that cannot run.
    Signals are only looked after when this is called from the main thread, and are given back at the end.
    """
    early: list[int] = []
    child: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if child:
            child[0].send_signal(number)
        else:
            early.append(number)

    with _signals_handled(pass_on):
        try:
            child.append(subprocess.Popen(list(argv), env=dict(environ), cwd=cwd))  # noqa: S603 - what the person asked for
        except OSError as error:
            return _never_ran(argv[0], cwd, error)
        for number in early:
            child[0].send_signal(number)
        code = child[0].wait()
    return Ended(128 - code if code < 0 else code)


def _never_ran(program: str, cwd: Path | None, error: OSError) -> Ended:
    if cwd is not None and not cwd.is_dir():
        return Ended(NOT_RUNNABLE, f"{cwd}: this folder is not there, so {program} cannot start in it")
    if isinstance(error, FileNotFoundError) and not (os.sep in program and Path(program).exists()):
        return Ended(NOT_FOUND, f"{program}: command not found (install it, or give its whole path)")
    reason = (error.strerror or str(error)).lower()
    return Ended(NOT_RUNNABLE, f"{program}: cannot be run ({reason})")


@contextmanager
def _signals_handled(pass_on: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    # A handler that does nothing, not SIG_IGN, which the child would inherit; what is ignored already (nohup) stays so.
    handlers = dict.fromkeys(_FROM_THE_TERMINAL, _stay) | dict.fromkeys(_TO_US_ALONE, pass_on)
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stay(_number: int, _frame: FrameType | None) -> None:
    """The child shares the terminal's group and was told already."""
