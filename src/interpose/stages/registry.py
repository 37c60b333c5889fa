"""What each stage permits.

Knows: the table of stages. Does not know: points, handlers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from interpose.contracts.stages import Stage


@dataclass(frozen=True, slots=True)
class StageRule:
    """One stage.

    Attributes:
        patchable: the field of its point that a patch may change, or None.
        cancellable: whether a cancel means something there; where not, a fail-closed handler's failure stops nothing.
        asks: whether a person can be asked about it; where not, an unknown that would be asked is refused.
        timeout_s: how long a handler may take unless it says itself.
    """

    patchable: str | None
    cancellable: bool
    asks: bool = False
    timeout_s: float = 5.0


STAGE_RULES: Final[Mapping[Stage, StageRule]] = MappingProxyType(
    {
        "turn.start": StageRule("prompt", cancellable=True),
        "tool.call": StageRule("arguments", cancellable=True, asks=True),
        "tool.result": StageRule("output", cancellable=True),
        "turn.end": StageRule(None, cancellable=False),
        "compaction": StageRule(None, cancellable=False),
        "llm.request": StageRule("body", cancellable=True),
        "llm.chunk": StageRule("data", cancellable=True, timeout_s=0.05),
        "llm.response": StageRule("body", cancellable=True),
    }
)
"""The stages that have a point; a handler for any other is never asked, so it cannot be published."""
