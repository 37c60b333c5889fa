"""Order by `before` and `after` links.

Knows: links between ids, positions in a list, what is broken. Does not know: what the ids stand for, or what to do
about a broken order: that is reported as data and the caller decides.
"""

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that has a place in an order.

    Attributes:
        id: unique among the entries.
        before: ids that come later.
        after: ids that come earlier.
        position: where it stands when no link says otherwise; equal positions are ordered by id.
        enabled: a disabled entry is left out of the order, and its links still hold between the others.
    """

    id: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    position: int = 0
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class DanglingLink:
    """A link to an id that was never known."""

    id: str
    link: Literal["before", "after"]
    target: str

    def __str__(self) -> str:
        return f"{self.id!r} is to come {self.link} {self.target!r}, which is not known"


@dataclass(frozen=True, slots=True)
class Cycle:
    """Entries whose links contradict each other: each must come before the next one, and the last before the first."""

    ids: tuple[str, ...]

    def __str__(self) -> str:
        return "links go in a circle: " + " before ".join(repr(name) for name in (*self.ids, self.ids[0]))


OrderProblem: TypeAlias = DanglingLink | Cycle


@dataclass(frozen=True, slots=True)
class Order:
    """Ids in order, why each stands where it stands, and what is broken.

    Attributes:
        ids: the enabled entries, first to last. Links that are part of a problem were left out of account.
        reasons: for each of `ids` the links that hold it, such as `after 'a'`; empty when its position decided.
        problems: dangling links in the order of the entries, then cycles. Empty when the order is sound.
    """

    ids: tuple[str, ...]
    reasons: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: tuple[OrderProblem, ...] = ()


def resolve(entries: Sequence[Entry], known: Collection[str] = ()) -> Order:
    """The order of `entries`: links first, then position, then id; the same for the same entries in any sequence.

    A link to an id in `known` that is no entry says nothing and is no problem. Raises ValueError for a repeated id.
    """
    by_id = {entry.id: entry for entry in entries}
    if len(by_id) != len(entries):
        ids = [entry.id for entry in entries]
        repeated = sorted({name for name in ids if ids.count(name) > 1})
        raise ValueError(f"ids must be unique, repeated: {', '.join(map(repr, repeated))}")

    dangling = [
        link for entry in entries for link in _links(entry) if link.target not in by_id and link.target not in known
    ]
    pairs = {pair for entry in entries for pair in _pairs(entry) if pair[0] in by_id and pair[1] in by_id}
    cycles, pairs = _without_cycles(by_id, pairs)
    order = tuple(name for name in _sorted(by_id, pairs) if by_id[name].enabled)
    return Order(order, {name: _reasons(name, pairs) for name in order}, (*dangling, *cycles))


def _links(entry: Entry) -> Iterable[DanglingLink]:
    yield from (DanglingLink(entry.id, "before", target) for target in entry.before)
    yield from (DanglingLink(entry.id, "after", target) for target in entry.after)


def _pairs(entry: Entry) -> Iterable[tuple[str, str]]:
    """(earlier, later) for each link."""
    yield from ((entry.id, target) for target in entry.before)
    yield from ((target, entry.id) for target in entry.after)


def _sorter(by_id: dict[str, Entry], pairs: set[tuple[str, str]]) -> TopologicalSorter[str]:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name in sorted(by_id):
        sorter.add(name)
    for earlier, later in sorted(pairs):
        sorter.add(later, earlier)
    return sorter


def _without_cycles(by_id: dict[str, Entry], pairs: set[tuple[str, str]]) -> tuple[list[Cycle], set[tuple[str, str]]]:
    cycles: list[Cycle] = []
    while True:
        try:
            _sorter(by_id, pairs).prepare()
        except CycleError as error:
            # The second argument is the cycle, each before the next one, the first repeated at the end.
            ids: list[str] = error.args[1][:-1]
            start = ids.index(min(ids))
            cycles.append(Cycle((*ids[start:], *ids[:start])))
            pairs = {pair for pair in pairs if pair[0] not in ids or pair[1] not in ids}
            continue
        return cycles, pairs


def _sorted(by_id: dict[str, Entry], pairs: set[tuple[str, str]]) -> Iterable[str]:
    sorter = _sorter(by_id, pairs)
    sorter.prepare()
    ready: list[tuple[int, str]] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, (by_id[name].position, name))
        _, name = heapq.heappop(ready)
        yield name
        sorter.done(name)


def _reasons(name: str, pairs: set[tuple[str, str]]) -> tuple[str, ...]:
    after = sorted(earlier for earlier, later in pairs if later == name)
    before = sorted(later for earlier, later in pairs if earlier == name)
    return (*(f"after {other!r}" for other in after), *(f"before {other!r}" for other in before))
