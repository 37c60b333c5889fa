"""Our own rules and guards, in their places around the user hooks of one workspace."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from interpose.assembly.folders import Folders
from interpose.command.reader import CommandReader
from interpose.contracts.effects import Registration
from interpose.contracts.errors import ConfigError
from interpose.contracts.journal import Record
from interpose.contracts.ports import Clock, Journal
from interpose.effects.rules import RuleDefinition
from interpose.guards.calls import CallReader
from interpose.guards.canary import CANARY_ID, canary
from interpose.guards.lineup import GuardParts, GuardSinks, after_user_hooks, before_user_hooks, builtin_rules
from interpose.guards.loop import LOOP_ID, LoopBlocked, LoopEvent
from interpose.guards.protected_artifacts import Health
from interpose.guards.protection import ProtectionStore
from interpose.guards.settings import TURN_BUDGET_VARIABLE, GuardSettings, guard_settings
from interpose.guards.validation import Validations
from interpose.policy.judgement import ValidationOf


@dataclass(frozen=True, slots=True)
class Lineup:
    """What judges in one workspace beside its user hooks, in order: rules, `before`, the user hooks, `after`.

    `validation` tells which command of a call proves something; `reader` reads the commands for all of them.
    """

    rules: tuple[RuleDefinition, ...]
    before: tuple[Registration, ...]
    after: tuple[Registration, ...]
    validation: ValidationOf
    reader: CommandReader

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of everything of ours, in order."""
        guards = (registration.id for registration in (*self.before, *self.after))
        return (*(definition.rule.id for definition in self.rules), *guards)


MakeLineup: TypeAlias = Callable[[str], Lineup]
"""A new line-up for the workspace at this root ("" for none); guards keep state, so each workspace has its own."""


def agents_lineup(
    folders: Folders,
    store: ProtectionStore,
    journal: Journal,
    clock: Clock,
    *,
    off: frozenset[str] = frozenset(),
    environ: Mapping[str, str] = os.environ,
) -> MakeLineup:
    """Everything of ours that judges, but for the ids in `off`; the canary stays.

    The bound on the calls of one turn is set by INTERPOSE_TURN_TOOL_CALL_BUDGET alone, since coding agents make long
    turns. Raises ConfigError when `off` names what is not there.
    """
    settings, bad = guard_settings(environ)
    if not environ.get(TURN_BUDGET_VARIABLE, "").strip() or bad:
        settings = replace(settings, turn_tool_budget=None)
    teller = _Teller(journal, clock)
    for setting in bad:
        teller.problem("settings", f"{setting.variable}={setting.value!r} is ignored: expected {setting.expected}")

    def make(root: str) -> Lineup:
        return _lineup(root, folders, store, clock, settings, teller)

    known = frozenset(make("").ids) - {CANARY_ID}
    if not off <= known:
        unknown = ", ".join(sorted(off - known))
        raise ConfigError("guards.off", f"there is no rule or guard {unknown}", f"possible: {', '.join(sorted(known))}")
    return lambda root: _without(make(root), off)


def _without(lineup: Lineup, off: frozenset[str]) -> Lineup:
    return replace(
        lineup,
        rules=tuple(definition for definition in lineup.rules if definition.rule.id not in off),
        before=tuple(registration for registration in lineup.before if registration.id not in off),
        after=tuple(registration for registration in lineup.after if registration.id not in off),
    )


def _lineup(
    root: str,
    folders: Folders,
    store: ProtectionStore,
    clock: Clock,
    settings: GuardSettings,
    teller: "_Teller",
) -> Lineup:
    parts = GuardParts(
        clock=clock,
        reader=CallReader(CommandReader(), root, str(folders.home)),
        store=store,
        settings=settings,
        sinks=GuardSinks(loop=teller.loop, degraded=teller.degraded),
    )
    guards = before_user_hooks(parts)
    return Lineup(
        rules=builtin_rules(),
        before=(canary(), *guards),
        after=after_user_hooks(parts),
        validation=Validations(parts.reader),
        reader=parts.reader.commands,
    )


class _Teller:
    """Writes what guards tell of themselves into the journal."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock

    def loop(self, event: LoopEvent) -> None:
        """A loop that was refused, or a budget that is used up."""
        if isinstance(event, LoopBlocked):
            reason = f"{event.tool} was called {event.repeat_count} times alike ({event.disposition})"
        else:
            reason = f"{event.calls} tool calls in one turn, of {event.budget}"
        self._journal.write(
            Record(
                at=self._clock.now(),
                action="guards",
                step="notice",
                session=event.session,
                turn=event.turn or "",
                tool=event.tool,
                handler=LOOP_ID,
                reason=reason,
            )
        )

    def degraded(self, session: str, health: Health) -> None:
        """Protected paths cannot be kept on disk."""
        self.problem("guards", f"protected paths of session {session} cannot be kept: {health.reason}")

    def problem(self, action: str, reason: str) -> None:
        """Something waits for a person."""
        self._journal.write(Record(at=self._clock.now(), action=action, step="problem", reason=reason))
