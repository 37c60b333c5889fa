"""The registrations that match, found without asking each of them.

Knows: an evaluation order and where in it each hook and tool name stands. Does not know: tiers or who publishes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interpose.contracts.effects import HOOKS, Hook, Registration
from interpose.contracts.errors import MisuseError
from interpose.effects.scope import WILDCARD, names_of

MEMO_ENTRIES = 1024
"""How many lookups one index remembers; when full it starts anew, since names may come from an untrusted peer."""
MEMO_NAME_CHARS = 512
"""Lookups whose names are longer together are answered and not remembered."""


@dataclass(frozen=True, slots=True)
class Found:
    """The matching registrations in evaluation order; `blocking` when a synchronous one of them waits outside."""

    registrations: tuple[Registration, ...]
    blocking: bool


class RegistrationIndex:
    """An index over one evaluation order that never changes; any thread may ask.

    The cost of a lookup grows with what matches and with the number of different prefix lengths in use, not with
    how many registrations exist.
    """

    __slots__ = ("_by_hook", "_memo", "_order")

    def __init__(self, order: tuple[Registration, ...]) -> None:
        self._order = order
        self._by_hook: dict[str, _HookTable] = {}
        self._memo: dict[tuple[str, str | None, tuple[str, ...]], Found] = {}
        for position, registration in enumerate(order):
            for hook in registration.hooks:
                self._by_hook.setdefault(hook, _HookTable()).add(position, registration.tool_names)

    def find(self, hook: Hook, tool_name: str | None, aliases: Sequence[str] = ()) -> Found:
        """What matches an input at `hook` with these names. Raises MisuseError when `hook` is not a hook."""
        key = (hook, tool_name, tuple(aliases))
        known = self._memo.get(key)
        if known is not None:
            return known

        found = self._look_up(hook, names_of(tool_name, aliases))
        self._remember(key, found)
        return found

    def _look_up(self, hook: Hook, names: tuple[str, ...]) -> Found:
        if hook not in HOOKS:
            raise MisuseError(f"{hook!r} is not a hook; the hooks are {', '.join(HOOKS)}")

        table = self._by_hook.get(hook)
        if table is None:
            return Found((), blocking=False)

        matching = tuple(self._order[position] for position in table.positions(names))
        return Found(matching, any(one.blocking and one.evaluate is not None for one in matching))

    def _remember(self, key: tuple[str, str | None, tuple[str, ...]], found: Found) -> None:
        if sum(map(len, key[2]), len(key[1] or "")) > MEMO_NAME_CHARS:
            return
        if len(self._memo) >= MEMO_ENTRIES:
            self._memo.clear()
        self._memo[key] = found


class _HookTable:
    """For one hook: the positions of registrations by what their scope says."""

    __slots__ = ("_by_name", "_by_prefix", "_everything", "_prefix_lengths")

    def __init__(self) -> None:
        self._everything: list[int] = []
        self._by_name: dict[str, list[int]] = {}
        self._by_prefix: dict[str, list[int]] = {}
        self._prefix_lengths: set[int] = set()

    def add(self, position: int, tool_names: tuple[str, ...] | None) -> None:
        if tool_names is None:
            self._everything.append(position)
            return
        for member in tool_names:
            if not member.endswith(WILDCARD):
                self._by_name.setdefault(member, []).append(position)
                continue
            prefix = member[:-1]
            self._prefix_lengths.add(len(prefix))
            self._by_prefix.setdefault(prefix, []).append(position)

    def positions(self, names: tuple[str, ...]) -> list[int]:
        found = set(self._everything)
        for name in names:
            found.update(self._by_name.get(name, ()))
            for prefix in self._prefixes(name):
                found.update(self._by_prefix.get(prefix, ()))
        return sorted(found)

    def _prefixes(self, name: str) -> Iterator[str]:
        return (name[:length] for length in self._prefix_lengths if length <= len(name))
