"""Consent at the terminal of the person who runs the program.

Knows: how a call is shown so that nothing in it hides, and what a typed yes is. Does not know: who else could be asked.
"""

import json
import logging
import os
import sys
import threading
from contextlib import suppress
from typing import Any

from interpose.contracts.settings import a_text

_log = logging.getLogger(__name__)

_YES = frozenset({"y", "yes"})


class ConsoleConsent:
    """A consent handler that shows the call at the terminal and asks. Only `y` or `yes` allows.

    It speaks with the terminal itself and not with stdin and stdout, which may be pipes; without a terminal it denies.
    Everything that runs is shown, whole: whatever does not print (control characters, invisible and reordering ones)
    stands there as its escape. What was typed before the question does not count. Threads wait for each other, one
    question at a time.

    `device` is the terminal's file: the controlling terminal, where the system has one.
    """

    def __init__(self, *, device: str = "/dev/tty") -> None:
        self._device = a_text("ConsoleConsent(device=…)", device, "the file of a terminal")
        self._asking = threading.Lock()

    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> bool:
        """Whether the person typed a yes. Ctrl-C at the question raises KeyboardInterrupt, and nothing runs."""
        with self._asking:
            try:
                descriptor = os.open(self._device, os.O_RDWR | getattr(os, "O_NOCTTY", 0))
            except OSError as error:
                _log.warning("%s was denied: there is no terminal to ask at (%s)", tool_name, error)
                return False
            try:
                return self._answered(descriptor, tool_name, arguments)
            finally:
                os.close(descriptor)

    def _answered(self, descriptor: int, tool_name: str, arguments: dict[str, Any]) -> bool:
        if not os.isatty(descriptor):
            _log.warning("%s was denied: %s is no terminal to ask at", tool_name, self._device)
            return False

        _forget_what_was_typed(descriptor)
        question = f"\n{shown(tool_name, arguments)}\nRun {_visible(tool_name)}? [y/N] "
        _write(descriptor, question.encode("utf-8", "backslashreplace"))
        return _line(descriptor).strip().lower() in _YES


def shown(tool_name: str, arguments: dict[str, Any]) -> str:
    """The call as a person can read it: the name, then the arguments as indented JSON.

    Every character that does not print is written as its escape; only the layout's own line ends are line ends.
    """
    try:
        text = json.dumps(arguments, indent=2, ensure_ascii=False, default=repr)
    except (TypeError, ValueError):  # keys that are no strings, circles
        text = repr(arguments)
    return "\n".join([f"The agent wants to run {_visible(tool_name)} with", *map(_visible, text.split("\n"))])


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def _forget_what_was_typed(descriptor: int) -> None:
    if sys.platform != "win32":
        import termios  # noqa: PLC0415 - not there on Windows

        with suppress(termios.error):
            termios.tcflush(descriptor, termios.TCIFLUSH)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _line(descriptor: int) -> str:
    """One typed line; "" when the terminal is closed."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(descriptor, 1024)
        if not part:
            return ""
        line += part
    return line.decode("utf-8", "replace")
