"""effects.table against a model that is too simple to be wrong, with evaluations in flight."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interpose.contracts.effects import Effect, HookInput, HookResult, InjectReminder, Registration
from interpose.effects.contract import MiddlewareContract, create_middleware, from_snapshot
from interpose.effects.rules import RuleDefinition
from interpose.effects.snapshot import Snapshot
from interpose.effects.table import Replacement, ReplacementReport
from tests.effects.making import ids, saying, unheard
from tests.effects.making import rule as rule_definition

OWNER = "user-hooks"
FIXED = ("fixed",)
STEPS = ("replace-2", "replace-3", "dispose-2", "host", "evaluate")


class Model:
    """The table as plain lists: what it must come to, without tiers sharing anything."""

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.owned: list[str] = []
        self.generation = 0
        self.anchor: int | None = None

    def list(self) -> list[str]:
        """The evaluation order."""
        at = len(self.hosts) if self.anchor is None else self.anchor
        return [*FIXED, *self.hosts[:at], *self.owned, *self.hosts[at:]]

    def replace(self, generation: int, offered: Sequence[str]) -> bool:
        """Applies a newer generation."""
        if generation <= self.generation:
            return False
        free = [one for one in dict.fromkeys(offered) if one not in FIXED and one not in self.hosts]
        self.owned, self.generation = free, generation
        self.anchor = len(self.hosts) if self.anchor is None else self.anchor
        return True

    def dispose(self, generation: int) -> None:
        """Empties the set of exactly this generation."""
        if self.generation == generation:
            self.owned = []

    def host(self, one: str) -> None:
        """Appends a host, which takes the id from the owner."""
        if one not in FIXED and one not in self.hosts:
            self.hosts.append(one)
            self.owned = [other for other in self.owned if other != one]


def gated(registration_id: str, gate: asyncio.Event | None = None) -> Registration:
    """Says its id in both halves; the asynchronous one waits for `gate` first."""

    def evaluate(*_given: object) -> Sequence[Effect]:
        return [saying(registration_id)]

    async def evaluate_async(*_given: object) -> Sequence[Effect]:
        if gate is not None:
            await gate.wait()
        return [saying(registration_id)]

    return Registration(registration_id, "Says its id.", ("turn_end",), None, evaluate, evaluate_async)


def said(result: HookResult) -> list[str]:
    """The texts of a result."""
    return [effect.message for effect in result.effects if isinstance(effect, InjectReminder)]


def rules() -> list[RuleDefinition]:
    """The fixed tier."""
    return [rule_definition(one) for one in FIXED]


def engines() -> list[MiddlewareContract]:
    """An engine made directly and a worker's, made from a snapshot."""
    whole = create_middleware(rules=rules(), on_diagnostic=unheard)
    worker = from_snapshot(Snapshot(tuple(one.rule for one in rules())), rules(), on_diagnostic=unheard)
    return [whole, worker]


@pytest.mark.parametrize("steps", list(itertools.permutations(STEPS)), ids="→".join)
def test_every_ordering_matches_the_model(steps: tuple[str, ...]) -> None:
    """In all 120 orderings the order is the model's, no id is there twice, rules are first, and an asynchronous
    evaluation that was in flight over all later steps finishes on the list it captured.
    """
    for engine in engines():
        asyncio.run(_play(engine, steps))


async def _play(engine: MiddlewareContract, steps: tuple[str, ...]) -> None:
    model, gate = Model(), asyncio.Event()
    report: ReplacementReport | None = None
    flights: list[tuple[list[str], asyncio.Task[HookResult]]] = []
    engine.register_hook(gated("start", gate))
    model.host("start")
    for step in steps:
        flights.append((model.list()[len(FIXED) :], asyncio.create_task(engine.run_async_hook(HookInput("turn_end")))))
        await asyncio.sleep(0)  # the evaluation captures its list and waits at the gate
        match step:
            case "replace-2":
                report = engine.replace_registrations(OWNER, 2, [gated("x"), gated("fixed"), gated("y")])
                assert report.applied is model.replace(2, ["x", "fixed", "y"])
            case "replace-3":
                assert engine.replace_registrations(OWNER, 3, [gated("y"), gated("z")]).applied
                model.replace(3, ["y", "z"])
            case "dispose-2":
                if report is not None:
                    report.dispose()
                    model.dispose(2)
            case "host":
                engine.register_hook(gated("y"))
                model.host("y")
            case "evaluate":
                assert said(engine.run_hook(HookInput("turn_end"))) == model.list()
        listed = ids(engine.registrations())
        assert listed == model.list()
        assert len(set(listed)) == len(listed)
        assert engine.owned_generation(OWNER) == model.generation
    gate.set()
    for expected, flight in flights:
        assert said(await asyncio.wait_for(flight, 5)) == expected
    assert said(await engine.run_async_hook(HookInput("turn_end"))) == model.list()[len(FIXED) :]


IDS = st.sampled_from(["fixed", "a", "b", "c", "d"])


class TableMachine(RuleBasedStateMachine):
    """Random walks through every way to publish, prepared replacements that wait among them."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = create_middleware(rules=rules(), on_diagnostic=unheard)
        self.model = Model()
        self.reports: list[tuple[int, ReplacementReport]] = []
        self.waiting: list[tuple[Replacement, list[str], int]] = []
        self.changes = 0

    @rule(one=IDS)
    def host(self, one: str) -> None:
        """A host is appended."""
        before = (list(self.model.hosts), list(self.model.owned))  # a host in an owned one's place is a change too
        self.engine.register_hook(gated(one))
        self.model.host(one)
        self.changes += (self.model.hosts, self.model.owned) != before

    @rule(generation=st.integers(0, 12), offered=st.lists(IDS, max_size=4))
    def replace(self, generation: int, offered: list[str]) -> None:
        """A set is replaced, or refused as stale."""
        report = self.engine.replace_registrations(OWNER, generation, [gated(one) for one in offered])
        assert report.applied is self.model.replace(generation, offered)
        if report.applied:
            self.reports.append((generation, report))
            self.changes += 1

    @rule(generation=st.integers(1, 12), offered=st.lists(IDS, max_size=4))
    def prepare(self, generation: int, offered: list[str]) -> None:
        """A replacement is prepared and waits."""
        outcome = self.engine.prepare_registration_replacement(OWNER, generation, [gated(one) for one in offered])
        assert isinstance(outcome, Replacement) is (generation > self.model.generation)
        if isinstance(outcome, Replacement):
            self.waiting.append((outcome, offered, self.changes))

    @rule()
    def publish(self) -> None:
        """The oldest waiting replacement is published exactly when nothing changed since."""
        if not self.waiting:
            return
        replacement, offered, at = self.waiting.pop(0)
        assert replacement.current() is (at == self.changes)
        published = replacement.publish_if_current()
        assert published is (at == self.changes)
        if published:
            self.model.replace(replacement.generation, offered)
            self.changes += 1

    @rule()
    def dispose(self) -> None:
        """The oldest report is disposed of."""
        if not self.reports:
            return
        generation, report = self.reports.pop(0)
        effective = self.model.generation == generation and bool(self.model.owned)
        report.dispose()
        self.model.dispose(generation)
        self.changes += effective

    @invariant()
    def matches(self) -> None:
        """Order, evaluation and generation are the model's."""
        assert ids(self.engine.registrations()) == self.model.list()
        assert said(self.engine.run_hook(HookInput("turn_end"))) == self.model.list()
        assert self.engine.owned_generation(OWNER) == self.model.generation


TableMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
TestTableMachine = TableMachine.TestCase
