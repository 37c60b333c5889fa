"""Consent at a real pseudo-terminal."""

import logging
import os
import pty
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.concerns.permission.console import ConsoleConsent, shown


class Terminal:
    """A pseudo-terminal with a person at its other end, who types when the question is there."""

    def __init__(self) -> None:
        self.person, self.program = pty.openpty()
        self.device = os.ttyname(self.program)
        self.screen = b""

    def read_until(self, text: str) -> str:
        """Everything on the screen, once `text` is there."""
        while text.encode() not in self.screen:
            self.screen += os.read(self.person, 4096)
        return self.screen.decode()

    def type(self, text: str) -> None:
        """Types."""
        os.write(self.person, text.encode())

    def ask(self, tool_name: str, arguments: dict[str, Any], typed: str) -> tuple[bool, str]:
        """What the consent answers when `typed` is typed at its question, and what was on the screen."""
        answers: list[bool] = []
        asking = threading.Thread(
            target=lambda: answers.append(ConsoleConsent(device=self.device)(tool_name, arguments))
        )
        asking.start()
        screen = self.read_until("[y/N] ")
        self.type(typed)
        asking.join(10)
        return answers[0], screen


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """One for this test."""
    terminal = Terminal()
    yield terminal
    os.close(terminal.person)
    os.close(terminal.program)


@pytest.mark.parametrize(
    ("typed", "allowed"),
    [
        ("y\n", True),
        ("YES\n", True),
        (" yes \n", True),
        ("\n", False),
        ("n\n", False),
        ("yess\n", False),
        ("\x04", False),
    ],
)
def test_only_a_typed_yes_allows(terminal: Terminal, typed: str, allowed: bool) -> None:
    """`y` and `yes` in any case; anything else, nothing, and the end of input deny."""
    assert terminal.ask("shell", {"command": "ls"}, typed)[0] is allowed


def test_everything_that_runs_is_shown(terminal: Terminal) -> None:
    """The whole call, whatever its length, and the name again at the question."""
    command = "echo " + "x" * 3000 + " && rm -rf build"
    _, screen = terminal.ask("shell", {"command": command, "cwd": "/tmp"}, "n\n")
    assert "The agent wants to run shell with" in screen
    assert f'"command": "{command}"' in screen
    assert '"cwd": "/tmp"' in screen
    assert "Run shell? [y/N] " in screen


def test_what_was_typed_before_the_question_does_not_count(terminal: Terminal) -> None:
    """A yes that waits in the terminal is not a yes to a question that nobody has seen."""
    terminal.type("y\n")
    allowed, _ = terminal.ask("shell", {"command": "ls"}, "n\n")
    assert allowed is False


def test_threads_are_asked_one_after_the_other(terminal: Terminal) -> None:
    """The second question comes when the first is answered, so no answer meets the wrong question."""
    consent = ConsoleConsent(device=terminal.device)
    answers: dict[str, bool] = {}
    threads = [
        threading.Thread(target=lambda name=name: answers.update({name: consent(name, {})})) for name in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    first = re.search(r"Run (\w+)\?", terminal.read_until("[y/N] "))
    assert first is not None
    terminal.screen = b""
    terminal.type("y\n")
    terminal.read_until("[y/N] ")
    terminal.type("n\n")
    for thread in threads:
        thread.join(10)
    assert answers == {"one": first[1] == "one", "two": first[1] == "two"}


def test_without_a_terminal_it_denies(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No device, or a file in its place: denied, and the log says why."""
    file = tmp_path / "answers"
    file.write_text("yes\n")
    with caplog.at_level(logging.WARNING):
        assert ConsoleConsent(device=str(tmp_path / "none"))("shell", {}) is False
        assert ConsoleConsent(device=str(file))("shell", {}) is False
    assert "shell was denied: there is no terminal to ask at" in caplog.text
    assert f"shell was denied: {file} is no terminal to ask at" in caplog.text
    assert file.read_text() == "yes\n"


@pytest.mark.parametrize(
    ("hidden", "visible"),
    [
        ("\x1b[2K", r"\u001b[2K"),
        ("\r", r"\r"),
        ("a\nb", r"a\nb"),
        ("\u202e", r"\u202e"),
        ("\u200b", r"\u200b"),
        ("\x9b", r"\x9b"),
        ("ü", "ü"),
    ],
)
def test_nothing_in_a_call_hides(hidden: str, visible: str) -> None:
    """Control, invisible and reordering characters stand there as escapes; letters of all languages as they are."""
    assert f'"command": "{visible}"' in shown("shell", {"command": hidden})


@given(st.text(), st.dictionaries(st.text(), st.text() | st.lists(st.text())))
def test_no_call_can_control_the_terminal(tool_name: str, arguments: dict[str, Any]) -> None:
    """Whatever is in it, what is shown is printable lines."""
    assert all(line.isprintable() for line in shown(tool_name, arguments).split("\n"))


def test_what_json_cannot_say_is_shown_by_its_repr() -> None:
    """Odd keys, circles and objects do not keep the question away."""
    circle: dict[str, Any] = {}
    circle["self"] = circle
    assert "{...}" in shown("t", circle)
    assert "{1, 2}" in shown("t", {"x": {1, 2}})
