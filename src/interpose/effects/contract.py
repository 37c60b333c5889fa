"""The engine as the rest of interpose sees it: one Protocol, and the two ways to make one.

Knows: how table, runtime, budget, rules and diagnostics come together. Does not know: who registers what, or why.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

from interpose.contracts.effects import Effect, Hook, HookInput, HookResult, Registration
from interpose.contracts.errors import MisuseError
from interpose.effects.budget import BudgetTracker, settings_from_environment
from interpose.effects.codec import effect_to_json, rule_to_json
from interpose.effects.diagnostics import DiagnosticOutlet, DiagnosticSink, SettingIgnored
from interpose.effects.rules import RuleDefinition, rule_registration
from interpose.effects.runtime import Instruments, run_async_matching, run_matching
from interpose.effects.snapshot import Snapshot, create_snapshot, resolve
from interpose.effects.table import DEFAULT_OWNERS, RegistrationTable, Rejection, Replacement, ReplacementReport
from interpose.effects.validation import validate_effect, validate_rule


@runtime_checkable
class MiddlewareContract(Protocol):
    """An effect engine. Every method may be called from any thread, by many at once.

    Both passes take an optional `captured` list from `candidates`, for a caller who looked at it first; without one
    they capture it themselves, once. A registration published meanwhile is seen by the next run.
    """

    def run_hook(self, hook_input: HookInput, captured: tuple[Registration, ...] | None = None) -> HookResult:
        """The synchronous pass on the caller's stack; never raises for what a registration does.

        Raises MisuseError when the input's hook is not a hook.
        """
        ...

    async def run_async_hook(
        self,
        hook_input: HookInput,
        prior_effects: Sequence[Effect] = (),
        captured: tuple[Registration, ...] | None = None,
    ) -> HookResult:
        """The asynchronous pass, after the synchronous one; its result holds the asynchronous effects alone.

        Raises MisuseError when the input's hook is not a hook.
        """
        ...

    def candidates(self, hook: Hook, tool_name: str | None, aliases: Sequence[str] = ()) -> tuple[Registration, ...]:
        """The registrations that match, in evaluation order. Raises MisuseError when `hook` is not a hook."""
        ...

    def has_blocking(self, hook: Hook, tool_name: str | None, aliases: Sequence[str] = ()) -> bool:
        """Whether the synchronous pass would wait for something outside the process."""
        ...

    def registrations(self) -> tuple[Registration, ...]:
        """Everything registered, in evaluation order."""
        ...

    def snapshot(self) -> Snapshot:
        """The rules that may travel to a worker; never host or owned registrations."""
        ...

    def register_hook(self, registration: Registration) -> None:
        """Appends a host registration; the first of an id wins among rules and hosts, and a host evicts an owned one.

        Raises MisuseError for a registration that cannot be evaluated.
        """
        ...

    def set_diagnostic_sink(self, sink: DiagnosticSink) -> None:
        """From now on diagnostics go to `sink`; what it raises is swallowed."""
        ...

    def prepare_registration_replacement(
        self, owner: str, generation: int, registrations: Iterable[Registration]
    ) -> Replacement | Rejection:
        """The next set of `owner`, ready to publish. Raises MisuseError for one that cannot be evaluated."""
        ...

    def replace_registrations(
        self, owner: str, generation: int, registrations: Iterable[Registration]
    ) -> ReplacementReport:
        """Replaces the set of `owner` as one unit. Raises MisuseError for one that cannot be evaluated."""
        ...

    def owned_generation(self, owner: str) -> int:
        """The active generation of `owner`; 0 when there is none."""
        ...


class TableMiddleware:
    """The `MiddlewareContract` over one registration table."""

    def __init__(
        self,
        definitions: Sequence[RuleDefinition],
        table: RegistrationTable,
        outlet: DiagnosticOutlet,
        instruments: Instruments,
    ) -> None:
        self._rules = tuple(definition.rule for definition in definitions)
        self._table = table
        self._outlet = outlet
        self._instruments = instruments

    def run_hook(self, hook_input: HookInput, captured: tuple[Registration, ...] | None = None) -> HookResult:
        """As the contract says."""
        if captured is None:
            captured = self.candidates(hook_input.hook, hook_input.tool_name, hook_input.tool_aliases)
        return run_matching(hook_input, captured, self._instruments)

    async def run_async_hook(
        self,
        hook_input: HookInput,
        prior_effects: Sequence[Effect] = (),
        captured: tuple[Registration, ...] | None = None,
    ) -> HookResult:
        """As the contract says."""
        if captured is None:
            captured = self.candidates(hook_input.hook, hook_input.tool_name, hook_input.tool_aliases)
        return await run_async_matching(hook_input, captured, tuple(prior_effects), self._instruments)

    def candidates(self, hook: Hook, tool_name: str | None, aliases: Sequence[str] = ()) -> tuple[Registration, ...]:
        """As the contract says."""
        return self._table.candidates(hook, tool_name, aliases).registrations

    def has_blocking(self, hook: Hook, tool_name: str | None, aliases: Sequence[str] = ()) -> bool:
        """As the contract says."""
        return self._table.candidates(hook, tool_name, aliases).blocking

    def registrations(self) -> tuple[Registration, ...]:
        """As the contract says."""
        return self._table.list()

    def snapshot(self) -> Snapshot:
        """As the contract says."""
        return create_snapshot(self._rules)

    def register_hook(self, registration: Registration) -> None:
        """As the contract says."""
        self._table.register_hook(registration)

    def set_diagnostic_sink(self, sink: DiagnosticSink) -> None:
        """As the contract says."""
        self._outlet.sink = sink

    def prepare_registration_replacement(
        self, owner: str, generation: int, registrations: Iterable[Registration]
    ) -> Replacement | Rejection:
        """As the contract says."""
        return self._table.prepare_replacement(owner, generation, registrations)

    def replace_registrations(
        self, owner: str, generation: int, registrations: Iterable[Registration]
    ) -> ReplacementReport:
        """As the contract says."""
        return self._table.replace_registrations(owner, generation, registrations)

    def owned_generation(self, owner: str) -> int:
        """As the contract says."""
        return self._table.owned_generation(owner)


def create_middleware(
    *,
    rules: Iterable[RuleDefinition] = (),
    registrations: Iterable[Registration] = (),
    on_diagnostic: DiagnosticSink | None = None,
    budget: BudgetTracker | None = None,
    owners: Sequence[str] = DEFAULT_OWNERS,
    monotonic: Callable[[], float] = time.perf_counter,
) -> MiddlewareContract:
    """An engine with these rules, then these registrations as its first hosts; of an id the first one wins.

    Args:
        rules: the fixed tier.
        registrations: the first host registrations.
        on_diagnostic: the first sink; None writes to standard error.
        budget: takes the samples; None makes a tracker with the settings of the environment, and tells the sink of
            each value there that cannot be used.
        owners: who may hold an owned set, in the order of their sets at one anchor.
        monotonic: seconds that only grow.

    Raises:
        MisuseError: a rule or registration is wrong; the text holds every issue.
    """
    definitions = _first_of_each_id(rules)
    _refuse_wrong(definitions)
    return _build(definitions, registrations, on_diagnostic, budget, owners, monotonic)


def from_snapshot(
    snapshot: Snapshot,
    builtins: Iterable[RuleDefinition],
    *,
    on_diagnostic: DiagnosticSink | None = None,
    budget: BudgetTracker | None = None,
    owners: Sequence[str] = DEFAULT_OWNERS,
    monotonic: Callable[[], float] = time.perf_counter,
) -> MiddlewareContract:
    """A worker's engine: the snapshot's rules with the effects that `builtins` give them, and the same semantics.

    A rule of the snapshot that is not built in here emits nothing. Arguments and errors are as in `create_middleware`.
    """
    definitions = resolve(snapshot, builtins)
    _refuse_wrong(definitions)
    return _build(definitions, (), on_diagnostic, budget, owners, monotonic)


def _build(
    definitions: Sequence[RuleDefinition],
    registrations: Iterable[Registration],
    on_diagnostic: DiagnosticSink | None,
    budget: BudgetTracker | None,
    owners: Sequence[str],
    monotonic: Callable[[], float],
) -> MiddlewareContract:
    outlet = DiagnosticOutlet(on_diagnostic)
    tracker = budget or _tracker_from_environment(outlet)
    fixed = [rule_registration(definition) for definition in definitions]
    table = RegistrationTable(fixed, registrations, owners=owners, outlet=outlet)
    return TableMiddleware(definitions, table, outlet, Instruments(tracker, outlet.emit, monotonic))


def _tracker_from_environment(outlet: DiagnosticOutlet) -> BudgetTracker:
    settings, bad = settings_from_environment(os.environ)
    for one in bad:
        outlet.emit(SettingIgnored(one.variable, one.value, one.expected))
    return BudgetTracker(settings)


def _first_of_each_id(rules: Iterable[RuleDefinition]) -> tuple[RuleDefinition, ...]:
    first: dict[str, RuleDefinition] = {}
    for definition in rules:
        first.setdefault(definition.rule.id, definition)
    return tuple(first.values())


def _refuse_wrong(definitions: Sequence[RuleDefinition]) -> None:
    issues = [str(issue) for definition in definitions for issue in _issues_of(definition)]
    if issues:
        raise MisuseError("; ".join(issues))


def _issues_of(definition: RuleDefinition) -> list[object]:
    where = f"rule {definition.rule.id}"
    issues: list[object] = list(validate_rule(rule_to_json(definition.rule), where).issues)
    for position, effect in enumerate(definition.effects):
        issues += validate_effect(effect_to_json(effect), f"{where}.effects[{position}]").issues
    return issues
