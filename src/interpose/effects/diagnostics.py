"""What the engine tells whoever runs it: a closed union of values, one outlet, and a writer to standard error.

Knows: the sorts of diagnostics and how to say each in one line. Does not know: who listens.
"""

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from interpose.contracts.effects import Hook
from interpose.effects.budget import ENVIRONMENT_PREFIX, BudgetStats

Tier: TypeAlias = Literal["builtin", "host", "owned"]


@dataclass(frozen=True, slots=True)
class HookFailed:
    """A registration raised, or answered with something that is no answer; the others ran."""

    registration_id: str
    hook: Hook
    message: str


@dataclass(frozen=True, slots=True)
class BudgetExceeded:
    """An evaluation after warm-up took longer than its budget; its effects count all the same."""

    registration_id: str
    hook: Hook
    elapsed_ms: float
    budget_ms: float
    steady_state_warn: bool
    stats: BudgetStats


@dataclass(frozen=True, slots=True)
class RegistrationConflict:
    """Two registrations wanted one id: the offered one was dropped, or the owned one was evicted by a host."""

    registration_id: str
    owner: str
    generation: int
    conflicts_with: Tier
    action: Literal["dropped", "evicted"]


@dataclass(frozen=True, slots=True)
class SettingIgnored:
    """An environment variable has a value that cannot be used; the next layer holds in its place."""

    variable: str
    value: str
    expected: str


Diagnostic: TypeAlias = HookFailed | BudgetExceeded | RegistrationConflict | SettingIgnored
DiagnosticSink: TypeAlias = Callable[[Diagnostic], None]

STDERR_PREFIX = "[interpose:effects]"
DEBUG_VARIABLE = ENVIRONMENT_PREFIX + "DEBUG"
"""Set to 1 it makes the writer to standard error tell lone overruns too."""

NOTICES_KEPT = 4_096
"""Slow registrations remembered as told; beyond it they are told once more."""


class DiagnosticOutlet:
    """Holds the present sink; asked anew for each diagnostic. Any thread may emit or change the sink."""

    def __init__(self, sink: DiagnosticSink | None = None) -> None:
        self.sink: DiagnosticSink = sink or write_to_stderr

    def emit(self, diagnostic: Diagnostic) -> None:
        """Hands one diagnostic to the sink; what the sink raises changes nothing."""
        try:
            self.sink(diagnostic)
        except Exception:  # noqa: BLE001 - diagnostic sink; open: telling must never affect what is judged
            return


class Notices:
    """What people are told, without repeats: slowness when it is steady, and then once for a registration at a hook.

    Any thread may ask.
    """

    def __init__(self) -> None:
        self._told: set[tuple[str, Hook]] = set()
        self._lock = threading.Lock()

    def of(self, diagnostic: Diagnostic) -> str | None:
        """One line, or None for a lone overrun and for slowness that was told before."""
        if not isinstance(diagnostic, BudgetExceeded):
            return describe(diagnostic)
        if not diagnostic.steady_state_warn or not self._is_new((diagnostic.registration_id, diagnostic.hook)):
            return None
        return f"{describe(diagnostic)}; this is told once"

    def _is_new(self, key: tuple[str, Hook]) -> bool:
        with self._lock:
            if key in self._told:
                return False
            if len(self._told) >= NOTICES_KEPT:
                self._told.clear()
            self._told.add(key)
            return True


def write_to_stderr(diagnostic: Diagnostic) -> None:
    """The default sink: one line, except for overruns that are not steady, unless INTERPOSE_HOOK_BUDGET_DEBUG is 1."""
    lone = isinstance(diagnostic, BudgetExceeded) and not diagnostic.steady_state_warn
    if lone and os.environ.get(DEBUG_VARIABLE) != "1":
        return
    sys.stderr.write(f"{STDERR_PREFIX} {describe(diagnostic)}\n")


def describe(diagnostic: Diagnostic) -> str:
    """One line for people, without control characters."""
    return _one_line(_sentence(diagnostic))


def _sentence(diagnostic: Diagnostic) -> str:
    match diagnostic:
        case HookFailed(registration_id, hook, message):
            return f"{registration_id} failed at {hook}: {message}"
        case BudgetExceeded():
            return _budget_sentence(diagnostic)
        case RegistrationConflict(registration_id, owner, generation, conflicts_with, "dropped"):
            offered = f"{registration_id} of {owner} (generation {generation})"
            return f"{offered} was dropped: the id is taken ({conflicts_with})"
        case RegistrationConflict(registration_id, owner, generation, conflicts_with, _):
            held = f"{registration_id} of {owner} (generation {generation})"
            return f"{held} was evicted by a {conflicts_with} registration with the same id"
        case SettingIgnored(variable, value, expected):
            return f"{variable}={value!r} is ignored: expected {expected}"
        case _:
            assert_never(diagnostic)


def _budget_sentence(overrun: BudgetExceeded) -> str:
    taken = f"{overrun.registration_id} took {overrun.elapsed_ms:.1f} ms at {overrun.hook}"
    text = f"{taken} (budget {overrun.budget_ms:g} ms)"
    stats = overrun.stats
    if stats.window == 0:
        return text
    return f"{text}; {stats.over_count} of the last {stats.window} over budget, p95 {stats.p95_ms:.1f} ms"


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
