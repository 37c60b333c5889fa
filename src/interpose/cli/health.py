"""Tells people when the journal cannot be written, when it can be again, and what was lost.

Knows: how it stands with the journal of each process, and the words for it. Does not know: how it is written.
"""

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import TypeAlias

from interpose.journal.health import Health
from interpose.kernel.boundary import guarded

Say: TypeAlias = Callable[[str, Health], None]

_FAULT_CHARS = 1_000
"""A report is written to a pipe whole or not at all, which POSIX promises of 512 bytes and Linux of 4,096."""


class JournalWatch:
    """One line when a journal cannot be written, one when lines begin to be lost, one when all is well again.

    Any thread may call `hear`, `gone` and `written`, which never wait: what is said, is said on a thread of its own.
    """

    def __init__(self, say: Say) -> None:
        self._say = say
        self._changed = threading.Condition()
        self._standing: dict[int, Health] = {}
        self._faults_since_written: dict[int, str] = {}  # stays when a worker ends: that mends nothing
        self._lost_before = 0
        self._last_fault: str | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="interpose-health", daemon=True)

    def start(self) -> None:
        """From now on it is told, also what was heard before."""
        self._thread.start()

    def hear(self, health: Health, worker: int = -1) -> None:
        """How it stands now with the journal of a worker, or of this process."""
        with self._changed:
            before = self._standing.get(worker, Health())
            self._standing[worker] = health
            if health.fault:
                self._faults_since_written[worker] = health.fault
            elif before.fault:
                self._faults_since_written.clear()
            self._last_fault = health.fault or self._last_fault
            self._changed.notify_all()

    def gone(self, worker: int) -> None:
        """A worker has ended: what waited in it is lost."""
        with self._changed:
            self._lost_before += self._standing.pop(worker, Health()).missing
            self._changed.notify_all()

    def written(self) -> None:
        """Something came into the file, so a worker that has ended keeps nobody from writing any more."""
        with self._changed:
            self._faults_since_written.clear()
            self._changed.notify_all()

    def close(self) -> None:
        """Says no more. May be called twice, and before it was started."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(1)

    def loss(self) -> tuple[str, Health] | None:
        """What was lost from beginning to end, in words and numbers; None when nothing was."""
        health = self._health
        return (lost_lines(health.missing, self._last_fault), health) if health.missing else None

    @property
    def _health(self) -> Health:
        all_of_them = list(self._standing.values())
        faults = [*(health.fault for health in all_of_them if health.fault), *self._faults_since_written.values()]
        return Health(
            faults[0] if faults else None,
            sum(health.waiting for health in all_of_them),
            self._lost_before + sum(health.lost for health in all_of_them),
        )

    def _run(self) -> None:
        began = told = Health()
        while True:
            with self._changed:
                while self._health == told and not self._closing:
                    self._changed.wait()
                if self._closing:
                    return
                now = self._health
            text = _news(began, told, now)
            if text is not None:
                guarded(partial(self._say, text, now), failure=_unheard)
            began, told = now if not told.fault else began, now


def lost_lines(count: int, fault: str | None) -> str:
    """How many lines were lost and why, for people."""
    lines = _lines(count, "of the journal was lost", "of the journal were lost")
    return f"{lines}: {fault or 'they came faster than they could be written'}"


def report(descriptor: int, health: Health) -> None:
    """Tells the parent how it stands with a worker's journal. Never waits, and never raises.

    A pipe that nobody reads keeps what it has: the next report says all that matters.
    """
    told = Health((health.fault or "")[:_FAULT_CHARS] or None, health.waiting, health.lost)
    with suppress(OSError):
        os.write(descriptor, json.dumps(asdict(told)).encode() + b"\n")


def reported(descriptor: int, worker: int, watch: JournalWatch) -> None:
    """Passes on what a worker reports, until it ends."""
    with os.fdopen(descriptor, "rb") as reports:
        for line in reports:
            with suppress(ValueError, TypeError):  # a worker that dies may leave half a line
                watch.hear(Health(**json.loads(line)), worker)
    watch.gone(worker)


def _news(began: Health, told: Health, now: Health) -> str | None:
    """What has changed since it was `told`, as a line for people; `began` is how the present stretch of it began."""
    match (told.fault, now.fault):
        case (None, str(fault)):
            waiting = f"; {_lines(now.waiting, 'waits', 'wait')}" if now.waiting else ""
            return f"the journal cannot be written: {fault}{waiting}"
        case (str(), None):
            lost = _lines(now.lost - began.lost, "was lost", "were lost")
            return "the journal is written again: " + (lost if now.lost > began.lost else "all that waited is in it")
        case (str(), str()) if began.lost == told.lost < now.lost:
            if not now.waiting:
                return f"the journal still cannot be written, {_lines(now.lost - began.lost, 'was lost', 'were lost')}"
            return f"the journal still cannot be written, {_lines(now.waiting, 'waits', 'wait')}, and more are lost"
        case _:
            return None


def _unheard(_error: Exception) -> None:
    """A terminal that takes no more lines, such as a file on the same full disk: the next change is said again."""


def _lines(count: int, one: str, many: str) -> str:
    return f"1 line {one}" if count == 1 else f"{count} lines {many}"
