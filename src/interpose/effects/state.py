"""One state of the registration table: three tiers in one order, complete and unchangeable.

Knows: tiers, slots and their anchors, the one id namespace. Does not know: threads, generations' rules, diagnostics.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from interpose.contracts.effects import Registration
from interpose.effects.index import RegistrationIndex


@dataclass(frozen=True, slots=True)
class Slot:
    """What one owner holds. It stands before the host at position `anchor` (at the end when there is none)."""

    generation: int
    anchor: int
    registrations: tuple[Registration, ...] = ()

    def without(self, registration_id: str) -> "Slot":
        """The slot less one registration; generation and anchor stay."""
        kept = tuple(one for one in self.registrations if one.id != registration_id)
        return replace(self, registrations=kept)


@dataclass(frozen=True, slots=True, eq=False)
class TableState:
    """Everything that is registered. The evaluation order and its index are made with it, never later.

    Attributes:
        fixed: rules, always first.
        hosts: coded registrations in the order they were appended.
        slots: what each owner holds, in the fixed order of owners; an owner that never applied has none.
        fixed_ids, host_ids: the ids of those tiers.
        order: the evaluation order.
        index: finds what matches in `order`.
    """

    fixed: tuple[Registration, ...] = ()
    hosts: tuple[Registration, ...] = ()
    slots: Mapping[str, Slot] = field(default_factory=dict)
    fixed_ids: frozenset[str] = field(init=False)
    host_ids: frozenset[str] = field(init=False)
    order: tuple[Registration, ...] = field(init=False)
    index: RegistrationIndex = field(init=False)

    def __post_init__(self) -> None:
        order = _evaluation_order(self.fixed, self.hosts, self.slots)
        object.__setattr__(self, "fixed_ids", frozenset(one.id for one in self.fixed))
        object.__setattr__(self, "host_ids", frozenset(one.id for one in self.hosts))
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "index", RegistrationIndex(order))

    def owners_of(self, registration_id: str) -> tuple[str, ...]:
        """The owners that hold this id; the table lets at most one."""
        return tuple(
            owner for owner, slot in self.slots.items() if any(one.id == registration_id for one in slot.registrations)
        )

    def with_host(self, registration: Registration) -> "TableState":
        """The next state with one more host, at the end; an owner that holds its id loses that registration."""
        slots = {
            owner: slot.without(registration.id) if owner in self.owners_of(registration.id) else slot
            for owner, slot in self.slots.items()
        }
        return replace(self, hosts=(*self.hosts, registration), slots=slots)

    def with_slot(self, owner: str, slot: Slot, owners: tuple[str, ...]) -> "TableState":
        """The next state in which `owner` holds `slot`; `owners` is the fixed order of owners."""
        slots = {**self.slots, owner: slot}
        return replace(self, slots={one: slots[one] for one in owners if one in slots})


def _evaluation_order(
    fixed: tuple[Registration, ...], hosts: tuple[Registration, ...], slots: Mapping[str, Slot]
) -> tuple[Registration, ...]:
    order = list(fixed)
    before = 0
    for slot in sorted(slots.values(), key=lambda one: one.anchor):  # stable: owners keep their order at one anchor
        order += hosts[before : slot.anchor]
        order += slot.registrations
        before = slot.anchor
    return (*order, *hosts[before:])
