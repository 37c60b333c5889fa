"""The registration table: fixed, host and owned tiers in one id namespace, behind one reference.

Knows: who may publish what, generations, conflicts. Does not know: evaluation, or what a registration does.

Each writer computes a complete next state and publishes it with one swap that succeeds only if the state it started
from is still the live one, so no writer can lose another's work. Readers take the reference once and are done.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from interpose.contracts.effects import Hook, Registration
from interpose.contracts.errors import MisuseError
from interpose.effects.diagnostics import DiagnosticOutlet, RegistrationConflict, Tier
from interpose.effects.index import Found
from interpose.effects.state import Slot, TableState
from interpose.effects.validation import registration_issues

DEFAULT_OWNERS = ("user-hooks",)

RejectionReason: TypeAlias = Literal["unknown-owner", "stale"]


@dataclass(frozen=True, slots=True)
class Dropped:
    """An offered registration that was left out because its id was taken."""

    id: str
    conflicts_with: Tier


@dataclass(frozen=True, slots=True)
class Rejection:
    """A replacement that cannot be prepared; the generation that is active stays."""

    owner: str
    reason: RejectionReason
    active_generation: int


@dataclass(frozen=True, slots=True)
class ReplacementReport:
    """What became of `replace_registrations`. `active_generation` is the one after the call."""

    applied: bool
    owner: str
    active_generation: int
    reason: RejectionReason | None = None
    dropped: tuple[Dropped, ...] = ()
    undo: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    def dispose(self) -> None:
        """Empties the owner's set if it is still exactly this one; else nothing. Any thread, any number of times."""
        if self.undo is not None:
            self.undo()


class Replacement:
    """A prepared next state of one owner's set, not published yet.

    Attributes:
        owner: whose set it is.
        generation: its number.
        dropped: what was left out, in the order offered.
        conflicts: the same as diagnostics.
        size: how many registrations it holds.
    """

    __slots__ = ("_before", "_cell", "_next", "_published", "_settled", "conflicts", "dropped", "generation", "owner",
                 "size")  # fmt: skip

    def __init__(
        self, cell: "_Cell", before: TableState, following: TableState, owner: str, dropped: tuple[Dropped, ...]
    ) -> None:
        slot = following.slots[owner]
        self.owner = owner
        self.generation = slot.generation
        self.size = len(slot.registrations)
        self.dropped = dropped
        self.conflicts = tuple(
            RegistrationConflict(one.id, owner, slot.generation, one.conflicts_with, "dropped") for one in dropped
        )
        self._cell = cell
        self._before = before
        self._next = following
        self._settled = False
        self._published = False

    def current(self) -> bool:
        """Whether nothing at all was published since it was prepared, and it was neither published nor discarded."""
        return not self._settled and self._cell.state is self._before

    def publish(self) -> None:
        """Publishes with one assignment and checks nothing: what was published since it was prepared is lost.

        For a caller who asked `current()` just before, where no other thread publishes; else `publish_if_current`.
        """
        self._settle(published=True)
        self._cell.assign(self._next)

    def publish_if_current(self) -> bool:
        """Publishes if it is still current, in one step no other thread can come between; says whether it did."""
        if self._settled or not self._cell.swap(self._before, self._next):
            return False
        self._settle(published=True)
        return True

    def emit_conflicts(self) -> None:
        """Tells the sink what was dropped. Raises MisuseError before publication: nothing has happened to tell of."""
        if not self._published:
            raise MisuseError(f"generation {self.generation} of {self.owner!r} is not published: publish() it first")
        for conflict in self.conflicts:
            self._cell.outlet.emit(conflict)

    def discard(self) -> None:
        """Gives it up; it is no longer current."""
        self._settle(published=self._published)

    def dispose(self) -> None:
        """Empties the owner's set if this very generation is the active one; else nothing."""
        self._cell.empty(self.owner, self.generation)

    def _settle(self, *, published: bool) -> None:
        self._settled = True
        self._published = published


class RegistrationTable:
    """All registrations of one engine. Every method may be called from any thread, by many at once.

    Raises MisuseError, with every issue, for a registration that cannot be evaluated; nothing changes then.
    """

    def __init__(
        self,
        fixed: Iterable[Registration] = (),
        hosts: Iterable[Registration] = (),
        *,
        owners: Sequence[str] = DEFAULT_OWNERS,
        outlet: DiagnosticOutlet | None = None,
    ) -> None:
        self._owners = tuple(dict.fromkeys(owners))
        rules = _checked(fixed)
        taken = {rule.id for rule in rules}
        first: dict[str, Registration] = {}
        for host in _checked(hosts):
            if host.id not in taken:
                first.setdefault(host.id, host)
        self._cell = _Cell(TableState(rules, tuple(first.values())), self._owners, outlet or DiagnosticOutlet())

    def list(self) -> tuple[Registration, ...]:
        """Every registration in evaluation order, as of now."""
        return self._cell.state.order

    def candidates(self, hook: Hook, tool_name: str | None, aliases: Sequence[str] = ()) -> Found:
        """Those that match, in evaluation order, captured once. Raises MisuseError when `hook` is not a hook."""
        return self._cell.state.index.find(hook, tool_name, aliases)

    def register_hook(self, registration: Registration) -> None:
        """Appends a host registration. An id that is fixed or host already is left as it is, silently.

        An owner that holds the id loses it; the sink hears of that after publication.
        """
        _checked((registration,))
        while True:
            state = self._cell.state
            if registration.id in state.fixed_ids or registration.id in state.host_ids:
                return
            if self._cell.swap(state, state.with_host(registration)):
                break
        for owner in state.owners_of(registration.id):
            generation = state.slots[owner].generation
            self._cell.outlet.emit(RegistrationConflict(registration.id, owner, generation, "host", "evicted"))

    def prepare_replacement(
        self, owner: str, generation: int, registrations: Iterable[Registration]
    ) -> Replacement | Rejection:
        """The complete next state with `owner`'s set replaced as one unit; publishes nothing and tells nobody.

        Rejected when the owner is not one of the table's, or when `generation` is not a whole number above the active
        one. Registrations whose id is taken are dropped.
        """
        offered = _checked(registrations)
        state = self._cell.state
        active = state.slots[owner].generation if owner in state.slots else 0
        if owner not in self._owners:
            return Rejection(owner, "unknown-owner", 0)
        if type(generation) is not int or generation <= active:
            return Rejection(owner, "stale", active)

        accepted, dropped = _admit(state, owner, offered)
        anchor = state.slots[owner].anchor if owner in state.slots else len(state.hosts)
        following = state.with_slot(owner, Slot(generation, anchor, accepted), self._owners)
        return Replacement(self._cell, state, following, owner, dropped)

    def replace_registrations(
        self, owner: str, generation: int, registrations: Iterable[Registration]
    ) -> ReplacementReport:
        """Prepares, publishes, then tells the sink of conflicts. Other writers are waited for, never overwritten."""
        offered = tuple(registrations)
        while True:
            prepared = self.prepare_replacement(owner, generation, offered)
            if isinstance(prepared, Rejection):
                return ReplacementReport(False, owner, prepared.active_generation, prepared.reason)
            if prepared.publish_if_current():
                break
        prepared.emit_conflicts()
        return ReplacementReport(
            True, owner, self.owned_generation(owner), None, prepared.dropped, undo=prepared.dispose
        )

    def owned_generation(self, owner: str) -> int:
        """The active generation of `owner`; 0 when it never applied one or is no owner here."""
        slot = self._cell.state.slots.get(owner)
        return slot.generation if slot is not None else 0


class _Cell:
    """The one reference to the live state, and the lock that makes compare-and-assign one step.

    The lock is held for that step alone: states are built before it and sinks are called after it.
    """

    __slots__ = ("_lock", "outlet", "owners", "state")

    def __init__(self, state: TableState, owners: tuple[str, ...], outlet: DiagnosticOutlet) -> None:
        self.state = state
        self.owners = owners
        self.outlet = outlet
        self._lock = threading.Lock()

    def assign(self, following: TableState) -> None:
        with self._lock:
            self.state = following

    def swap(self, before: TableState, following: TableState) -> bool:
        with self._lock:
            if self.state is not before:
                return False
            self.state = following
            return True

    def empty(self, owner: str, generation: int) -> None:
        while True:
            state = self.state
            slot = state.slots.get(owner)
            if slot is None or slot.generation != generation or not slot.registrations:
                return
            if self.swap(state, state.with_slot(owner, Slot(generation, slot.anchor), self.owners)):
                return


def _checked(registrations: Iterable[Registration]) -> tuple[Registration, ...]:
    offered = tuple(registrations)
    issues = [str(issue) for registration in offered for issue in registration_issues(registration)]
    if issues:
        raise MisuseError("; ".join(issues))
    return offered


def _admit(
    state: TableState, owner: str, offered: tuple[Registration, ...]
) -> tuple[tuple[Registration, ...], tuple[Dropped, ...]]:
    owned = {one.id for other, slot in state.slots.items() if other != owner for one in slot.registrations}
    accepted: list[Registration] = []
    dropped: list[Dropped] = []
    for registration in offered:
        conflict = _conflict(state, owned, registration.id)
        if conflict is not None:
            dropped.append(Dropped(registration.id, conflict))
            continue
        owned.add(registration.id)
        accepted.append(registration)
    return tuple(accepted), tuple(dropped)


def _conflict(state: TableState, owned: set[str], registration_id: str) -> Tier | None:
    if registration_id in state.fixed_ids:
        return "builtin"
    if registration_id in state.host_ids:
        return "host"
    return "owned" if registration_id in owned else None
