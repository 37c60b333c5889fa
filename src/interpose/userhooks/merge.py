"""Many files' hooks to one list: precedence, overriding in place, and the guard that a project cannot take away.

Knows: ids and origins. Does not know: what hooks do, apart from whether one is a guard.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from interpose.userhooks.hooks import ORIGINS, UserHook


@dataclass(frozen=True, slots=True)
class Override:
    """`loser` does not run because `winner` has its id."""

    winner: UserHook
    loser: UserHook


@dataclass(frozen=True, slots=True)
class Collision:
    """`hook` has the id of `guard`, which stays: both run, `hook` under the id `ID@ORIGIN`."""

    guard: UserHook
    hook: UserHook


@dataclass(frozen=True, slots=True)
class Merged:
    """The hooks in the order they are asked, the losers, and the collisions."""

    hooks: tuple[UserHook, ...]
    overridden: tuple[Override, ...]
    collisions: tuple[Collision, ...]


def merge(hooks: Iterable[UserHook]) -> Merged:
    """Lowest precedence first, then as written; a later hook with the same id stands where the earlier one stood.

    A user's guard that is enabled is only replaced by another of the user's own. A pure function.
    """
    ordered = sorted(hooks, key=lambda hook: ORIGINS.index(hook.source.origin))
    slots: dict[tuple[str, bool], UserHook] = {}
    overridden: list[Override] = []
    collisions: list[Collision] = []
    for hook in ordered:
        slot = (hook.id, False)
        standing = slots.get(slot)
        if standing is not None and _is_kept(standing, hook):
            collisions.append(Collision(standing, hook))
            slot = (hook.id, True)
            hook = hook.renamed(f"{hook.id}@{hook.source.origin}")  # noqa: PLW2901 - the same hook under its new id
        if slot in slots:
            overridden.append(Override(winner=hook, loser=slots[slot]))
        slots[slot] = hook
    return Merged(tuple(slots.values()), tuple(overridden), tuple(collisions))


def _is_kept(standing: UserHook, hook: UserHook) -> bool:
    own = standing.source.origin == "user" and standing.is_guard and standing.enabled
    return own and hook.source.origin != "user"
