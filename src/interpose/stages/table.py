"""The published shape handlers: which of them are asked about a point, and in which order.

Knows: links, scopes, what was found before. Does not know: what a handler does.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Self, TypeAlias

from interpose.catalog.reading import HookForm
from interpose.chain.order import Entry, Order, OrderProblem, resolve
from interpose.contracts.errors import MisuseError
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.stages import LlmChunk, LlmRequest, LlmResponse, Point, Stage
from interpose.stages.registry import STAGE_RULES
from interpose.stages.validation import checked

MEMO_ENTRIES: Final = 1_024
"""How many lookups one table remembers; when full it starts anew, since names may come from an untrusted peer."""
MEMO_NAME_CHARS: Final = 512
"""Lookups whose names are longer together are answered and not remembered."""

_TRAFFIC: Final = (LlmChunk, LlmRequest, LlmResponse)

Handlers: TypeAlias = tuple[ShapeHandler, ...]
_Key: TypeAlias = tuple[Stage, str | None, tuple[str, ...], str | None, str | None]


class StageTable:
    """One published state of the shape handlers, which never changes; any thread may ask.

    What is published next is a table of its own: whoever judges keeps the one it began with.
    """

    __slots__ = ("_by_stage", "_changing", "_memo", "_order")

    def __init__(self, order: Order, by_stage: Mapping[Stage, Handlers]) -> None:
        """To be made by `publish`."""
        self._order = order
        self._by_stage = by_stage
        self._changing = frozenset(stage for stage in by_stage if _may_change(stage, by_stage[stage]))
        self._memo: dict[_Key, Handlers] = {}

    @classmethod
    def publish(cls, handlers: Iterable[ShapeHandler] = ()) -> Self:
        """The table of these handlers, in the order of their links, then of their ids.

        Links that go in a circle or to nobody are left out of account and stand in `problems`. Raises MisuseError for
        a handler that says something impossible, and for an id that two of them have.
        """
        given = [checked(handler) for handler in handlers]
        by_id = {handler.id: handler for handler in given}
        if len(by_id) != len(given):
            ids = [handler.id for handler in given]
            repeated = sorted({name for name in ids if ids.count(name) > 1})
            raise MisuseError(f"two shape handlers have the id {', '.join(map(repr, repeated))}; give one another id")

        order = resolve([Entry(handler.id, handler.before, handler.after) for handler in given])
        ordered = [by_id[name] for name in order.ids]
        by_stage: dict[Stage, Handlers] = {}
        for stage in STAGE_RULES:
            asked = tuple(handler for handler in ordered if stage in handler.stages)
            if asked:
                by_stage[stage] = asked
        return cls(order, MappingProxyType(by_stage))

    @property
    def order(self) -> Order:
        """All ids in their order, with the links that hold each."""
        return self._order

    @property
    def problems(self) -> tuple[OrderProblem, ...]:
        """Links that were left out of account."""
        return self._order.problems

    def at(self, stage: Stage) -> Handlers:
        """The handlers of a stage in order, whatever they match."""
        return self._by_stage.get(stage, ())

    def changes(self, stage: Stage) -> bool:
        """Whether one of them may cancel or patch there."""
        return stage in self._changing

    def matching(self, point: Point, form: HookForm | None = None) -> Handlers:
        """The handlers that are asked about `point`, in order; `form` is the hook form of a tool point."""
        stage = point.stage
        asked = self._by_stage.get(stage)
        if asked is None:
            return ()

        agent = point.context.agent
        if form is not None:
            key: _Key = (stage, form.name, form.aliases, agent, None)
        elif isinstance(point, _TRAFFIC):
            key = (stage, None, (), agent, point.protocol)
        else:
            key = (stage, None, (), agent, None)
        known = self._memo.get(key)
        if known is None:
            known = tuple(handler for handler in asked if _matches(handler, key))
            self._remember(key, known)
        return known

    def _remember(self, key: _Key, found: Handlers) -> None:
        _, name, aliases, agent, _ = key
        if sum(map(len, aliases), len(name or "") + len(agent or "")) > MEMO_NAME_CHARS:
            return
        if len(self._memo) >= MEMO_ENTRIES:
            self._memo.clear()
        self._memo[key] = found


def _may_change(stage: Stage, handlers: Handlers) -> bool:
    rule = STAGE_RULES[stage]
    if not rule.cancellable and rule.patchable is None:
        return False
    return any(handler.can_change and handler.mode == "enforce" for handler in handlers)


def _matches(handler: ShapeHandler, key: _Key) -> bool:
    _, name, aliases, agent, protocol = key
    if handler.agents is not None and agent not in handler.agents:
        return False
    if handler.protocols is not None and protocol is not None and protocol not in handler.protocols:
        return False
    if handler.tools is None or name is None:
        return True
    return any(_names(member, known) for member in handler.tools for known in (name, *aliases))


def _names(member: str, name: str) -> bool:
    return name.startswith(member[:-1]) if member.endswith("*") else name == member
