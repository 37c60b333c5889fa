"""Asks questions at a terminal, one after the other, and takes the answers that a person types.

Knows: reading lines without getting stuck, and what is a yes. Does not know: what is asked about.
"""

import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from rich.console import Console
from rich.text import Text

from interpose.cli.asking import question_block
from interpose.cli.feed import Feed
from interpose.contracts.errors import InterposeError, StorageError
from interpose.contracts.ports import Clock
from interpose.trust.approvals import SqliteApprovals, Watch
from interpose.trust.questions import Question

POLL_S: Final = 0.1
LOOK_S: Final = 1.0
"""How often the questions are looked at when nothing says that they changed: whoever asked may have died."""

PAUSE_S: Final = 1.0
"""How long nothing is asked after a question went away, so that an answer to it is not taken for the next one's."""

_YES, _NO = frozenset({"y", "yes"}), frozenset({"n", "no"})


class Typed:
    """The lines that are typed at a terminal. One thread reads; it never waits longer than it is told."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._begun = b""
        self.is_closed = False

    @property
    def is_ours(self) -> bool:
        """Whether this process may read: one in the background would be stopped for it."""
        if self.is_closed:
            return False
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:  # a terminal, but not the one that controls us
            return os.isatty(self._descriptor)

    def forget(self) -> None:
        """Throws away what was typed before: it was no answer to what is asked next."""
        self._begun = b""
        with suppress(ImportError, OSError):
            import termios

            with suppress(termios.error):
                termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def line(self, timeout_s: float) -> str | None:
        """The next typed line without its end, or None when there is none in that time."""
        if not select.select([self._descriptor], [], [], timeout_s)[0]:
            return None
        try:
            piece = os.read(self._descriptor, 4096)
        except OSError:  # the terminal is gone
            piece = b""
        if not piece:
            self.is_closed = True
            return None
        line, end, rest = (self._begun + piece).partition(b"\n")
        self._begun = rest if end else line
        return line.decode("utf-8", "replace").strip() if end else None


class Prompt:
    """Shows what waits and takes the answers. `run` belongs to one thread; `stop` may be called by any."""

    def __init__(
        self,
        approvals: SqliteApprovals,
        clock: Clock,
        out: Console,
        typed: Typed,
        watch: Watch,
        *,
        feed: Feed | None = None,
    ) -> None:
        """`watch` is told that somebody is there; `feed` is kept quiet while a question stands there."""
        self._approvals = approvals
        self._clock = clock
        self._out = out
        self._typed = typed
        self._watch = watch
        self._feed = feed
        self._stopped = threading.Event()
        self._unreadable: str | None = None

    def run(self) -> None:
        """Asks until it is stopped or the terminal is closed."""
        while not self._stopped.is_set() and not self._typed.is_closed:
            try:
                self._look()
                self._unreadable = None
            except StorageError as error:
                self._complain(str(error))
            self._stopped.wait(POLL_S)
        with suppress(StorageError):
            self._watch.leave()
        if self._typed.is_closed:
            self._out.print("no more input here, so no more questions", style="note")

    def stop(self) -> None:
        """Ends `run` within a tenth of a second; a question that stands there goes on waiting."""
        self._stopped.set()

    def _look(self) -> None:
        seen: tuple[int, int] | None = None
        looked = 0.0
        while not self._stopped.is_set() and not self._typed.is_closed:
            if not self._typed.is_ours:
                self._watch.leave()
                return
            self._watch.beat()
            version, now = self._approvals.version(), self._clock.monotonic()
            if version != seen or now - looked >= LOOK_S:
                seen, looked = version, now
                if waiting := self._approvals.waiting():
                    self._ask(waiting[0], len(waiting))
                    seen = None
                    continue
            self._typed.line(POLL_S)  # whatever it is, it answers nothing

    def _ask(self, question: Question, count: int) -> None:
        if self._feed is not None:
            self._feed.hold()
        try:
            self._typed.forget()
            block = question_block(question, now=self._clock.now(), width=self._out.width, place=(1, count))
            self._out.print(block, end="")
            self._say_what_to_type("")
            self._await(question)
        finally:
            if self._feed is not None:
                self._feed.release()

    def _await(self, question: Question) -> None:
        seen: tuple[int, int] | None = None
        looked = 0.0
        while not self._stopped.is_set() and not self._typed.is_closed and self._typed.is_ours:
            self._watch.beat()
            version, now = self._approvals.version(), self._clock.monotonic()
            if version != seen or now - looked >= LOOK_S:
                seen, looked = version, now
                question = self._approvals.find(question.id)
                if question.state != "waiting":
                    self._out.print(Text(f"\n{question.id} {question.ending}", style="note"))
                    self._stopped.wait(PAUSE_S)
                    return
            line = self._typed.line(POLL_S)
            if line is None:
                continue
            if line.lower() in _YES | _NO:
                self._answer(question, yes=line.lower() in _YES)
                return
            left_s = max(0.0, question.expires_at - self._clock.now())
            self._say_what_to_type(f"Please type y or n, there are {left_s:.0f} s left. ")
        self._out.print()

    def _say_what_to_type(self, told: str) -> None:
        self._out.print(Text(f"{told}Let it run? [y/n] ", style="bold"), end="")

    def _answer(self, question: Question, *, yes: bool) -> None:
        try:
            self._approvals.answer(question.id, question.digest, yes=yes, who=self._watch.place)
        except StorageError:
            raise
        except InterposeError as error:  # somebody else was quicker
            self._out.print(Text(str(error), style="note"))
            return
        self._out.print(Text("it runs", style="allowed") if yes else Text("refused", style="refused"))

    def _complain(self, problem: str) -> None:
        if problem != self._unreadable:
            self._unreadable = problem
            self._out.print(Text(f"no question can be shown: {problem}", style="problem"))


def may_prompt() -> bool:
    """Whether this process has a terminal for questions and answers."""
    return sys.platform != "win32" and sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def prompting(prompt: Prompt) -> Iterator[None]:
    """The prompt in a thread of its own, for as long as the `with` lasts."""
    thread = threading.Thread(target=prompt.run, name="interpose-prompt", daemon=True)
    thread.start()
    try:
        yield
    finally:
        prompt.stop()
        thread.join(5)
