"""A handler of the phase *shape*: code that may look at a point, cancel it or change it.

Knows: what such a handler is made of. Does not know: who runs it, or in which order.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from interpose.contracts.decisions import Decision, OnUnknown
from interpose.contracts.effects import HandlerKind, Mode
from interpose.contracts.stages import LlmProtocol, Stage

Shaped: TypeAlias = Decision | None
"""What a shape handler answers; None is silence, which lets the point pass."""

Shape: TypeAlias = Callable[[Any], Shaped | Awaitable[Shaped]]
"""The handler's function. It is given one point, of a stage that it was made for, which it cannot change."""


@dataclass(frozen=True, slots=True)
class ShapeHandler:
    """One shape handler, as it is published.

    Attributes:
        id: unique among the shape handlers; what the journal, refusals and links call it.
        stages: where it is asked.
        run: the function, plain or async.
        tools: at tool.call and tool.result, the canonical tools it is asked about: a name or an alias of the tool, a
            name that ends in `*` matches by prefix. None means every tool, an empty tuple none.
        agents: the agents it is asked about; None means all, known or not.
        protocols: at the llm.* stages, the APIs it is asked about; None means all.
        fail_closed: a failure of it cancels; else the point passes as if it had not been asked.
        timeout_s: how long one answer may take; None means the stage's own limit.
        before: ids of handlers that come later.
        after: ids of handlers that come earlier.
        on_unknown: what its `Unknown` leads to.
        mode: `observe` records what it would have done and does nothing.
        can_change: False says that it only looks: its cancel or patch is a failure, and no reply is held for it.
        kind: what sort of handler it is, for the journal.
        description: one line for people.
    """

    id: str
    stages: tuple[Stage, ...]
    run: Shape
    tools: tuple[str, ...] | None = None
    agents: tuple[str, ...] | None = None
    protocols: tuple[LlmProtocol, ...] | None = None
    fail_closed: bool = False
    timeout_s: float | None = None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    on_unknown: OnUnknown = "ask"
    mode: Mode = "enforce"
    can_change: bool = True
    kind: HandlerKind = "python"
    description: str = ""
