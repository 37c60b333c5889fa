"""What `interpose up` and `interpose tail` print: one readable line per thing that happens."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

import click
from rich.console import Console
from rich.text import Text

from interpose.cli.output import print_json
from interpose.contracts.journal import Record
from interpose.journal.codec import pack, to_line, to_record
from interpose.journal.health import Health
from interpose.journal.text import Line, record_line

QUIET_STEPS = frozenset({"enter", "answer", "request", "applied", "skipped", "not_reached"})
"""Steps that stay in the journal: the verdict that follows says the same for people."""

_STYLES = {
    "time": "dim",
    "good": "allowed",
    "bad": "refused",
    "warn": "note",
    "name": "name",
    "dim": "dim",
    "plain": "",
}


HELD_MAX = 1_000
"""So many lines wait while a question stands at the terminal; of more, only their number is told."""


class Feed:
    """A listener of the journal that prints. Any thread may tell it; nothing is printed before `start`."""

    def __init__(self, out: Console, *, as_json: bool = False, asks: bool = False) -> None:
        """`asks` says that questions are shown at this terminal, so that they need no line of their own."""
        self._out = out
        self._as_json = as_json
        self._asks = asks
        self._started = threading.Event()
        self._lock = threading.Lock()
        self._held: list[Text] | None = None
        self._left_out = 0

    def start(self, url: str, listens: str, root: str, base_url: str) -> None:
        """From now on everything is printed; machines are told the addresses first."""
        if self._as_json:
            print_json({"step": "started", "url": url, "listens": listens, "workspace": root, "base_url": base_url})
        self._started.set()

    def hear(self, record: Record) -> None:
        """Prints `record`, which holds no secrets, if people want to see it."""
        self.hear_all([pack(record)])

    def hear_all(self, lines: Sequence[bytes]) -> None:
        """Prints packed records, which hold no secrets, in one go: those that people want to see, machines all."""
        if not self._started.is_set():
            return
        if self._as_json:
            click.echo(b"\n".join(map(to_line, lines)))
            return
        shown = [styled(record) for record in map(to_record, lines) if self._shows(record)]
        if shown:
            self._print(shown)

    def say(self, text: str) -> None:
        """One line of our own."""
        if self._as_json:
            print_json({"step": "said", "reason": text})
            return
        self._print([Text(text, style="dim")])

    def say_health(self, text: str, health: Health) -> None:
        """One line of our own about the journal; machines are told the numbers too."""
        if self._as_json:
            numbers = {"written": health.fault is None, "waiting": health.waiting, "lost": health.lost}
            print_json({"step": "said", "reason": text, "journal": numbers})
            return
        self._print([Text(text, style="problem")])

    def hold(self) -> None:
        """Keeps lines back while a question stands at the terminal."""
        with self._lock:
            self._held = []

    def release(self) -> None:
        """Prints what was kept back, and from now on what comes."""
        with self._lock:
            held, self._held = self._held, None
            if held:
                self._out.print(Text("\n").join(held))
            if self._left_out:
                self._out.print(f"… {self._left_out} more lines: `interpose journal`", style="dim", markup=False)
                self._left_out = 0

    def _shows(self, record: Record) -> bool:
        return worth_showing(record) and not (self._asks and is_question(record))

    def _print(self, lines: Sequence[Text]) -> None:
        with self._lock:
            if self._held is None:
                self._out.print(Text("\n").join(lines))
                return
            room = HELD_MAX - len(self._held)
            self._held += lines[:room]
            self._left_out += len(lines[room:])


def is_question(record: Record) -> bool:
    """Whether the line says that a person is asked."""
    return record.step == "notice" and record.phase == "ask"


def worth_showing(record: Record) -> bool:
    """Whether people want a line for it: verdicts, faults, notices, what was observed, models that nobody judged."""
    return record.step not in QUIET_STEPS or record.outcome in ("observed", "client_gone") or is_unjudged_model(record)


def is_unjudged_model(record: Record) -> bool:
    """Whether a model's words came to a client and nobody judged them; what else passes unjudged is of less weight."""
    return record.outcome == "unjudged" and record.reason.endswith(", unjudged")


def styled(record: Record) -> Text:
    """The record's line in this machine's time, each piece in its colour."""
    return coloured(record_line(record, tz=local_zone()))


def coloured(line: Line) -> Text:
    """A line of the journal, each piece in its colour."""
    return Text.assemble(*((piece.text, _STYLES[piece.role]) for piece in line))


def local_zone() -> tzinfo:
    """The time zone of this machine."""
    return datetime.now().astimezone().tzinfo or UTC
