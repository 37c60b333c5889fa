"""The built-in rules, and our coded registrations in their order around the user hooks.

Knows: the order, which is part of what they mean. Does not know: where the parts come from.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from interpose.contracts.effects import Registration
from interpose.contracts.ports import Clock
from interpose.effects.rules import RuleDefinition
from interpose.guards.calls import CallReader
from interpose.guards.dispatch_dedup import DispatchDedup
from interpose.guards.exploration import ExplorationNudge
from interpose.guards.file_mutation import FileMutationObserver, MutationSink
from interpose.guards.finish_contract import FinishContract, FinishDecision
from interpose.guards.loop import LoopGuard, LoopSink
from interpose.guards.protected_artifacts import Health, ProtectedArtifacts
from interpose.guards.protection import ProtectionStore
from interpose.guards.settings import GuardSettings
from interpose.guards.skill_wait import skill_suggestion_wait
from interpose.guards.stalled_turn import stalled_turn
from interpose.guards.tool_prose import tool_prose
from interpose.guards.untrusted_instructions import untrusted_instructions


@dataclass(frozen=True, slots=True)
class GuardSinks:
    """Who is told what, each optional. They are called on the judging thread; what they raise changes nothing."""

    loop: LoopSink | None = None
    mutation: MutationSink | None = None
    finish: Callable[[FinishDecision], None] | None = None
    degraded: Callable[[str, Health], None] | None = None


@dataclass(frozen=True, slots=True)
class GuardParts:
    """What the guards of one workspace are made with.

    Attributes:
        clock: the time.
        reader: reads the calls of this workspace.
        store: keeps what is protected; workspaces may share it.
        settings: the numbers.
        sinks: who is told.
    """

    clock: Clock
    reader: CallReader
    store: ProtectionStore
    settings: GuardSettings = field(default_factory=GuardSettings)
    sinks: GuardSinks = field(default_factory=GuardSinks)


def builtin_rules() -> tuple[RuleDefinition, ...]:
    """The rules that every workspace has, for the fixed tier."""
    return (stalled_turn(), untrusted_instructions(), skill_suggestion_wait())


def before_user_hooks(parts: GuardParts) -> tuple[Registration, ...]:
    """New guards and observers that are evaluated before the user hooks, in order. Call it once for each workspace."""
    loop = LoopGuard(
        clock=parts.clock, turn_tool_budget=parts.settings.turn_tool_budget, sink=parts.sinks.loop
    ).registration()
    dedup = DispatchDedup().registration()
    if parts.sinks.mutation is None:
        return (loop, dedup)
    return (loop, dedup, FileMutationObserver(reader=parts.reader, sink=parts.sinks.mutation).registration())


def after_user_hooks(parts: GuardParts) -> tuple[Registration, ...]:
    """New guards, assessors and nudges that are evaluated after the user hooks, in order. Once for each workspace."""
    protected = ProtectedArtifacts(
        reader=parts.reader, store=parts.store, clock=parts.clock, on_degraded=parts.sinks.degraded
    )
    finish = FinishContract(reader=parts.reader, rigor=parts.settings.rigor, sink=parts.sinks.finish)
    return (
        protected.registration(),
        tool_prose(),
        ExplorationNudge(reader=parts.reader).registration(),
        finish.registration(),
    )
