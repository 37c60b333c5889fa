"""What the shape phase comes to in a verdict. Pure.

Knows: which field of a verdict holds what a patch changed. Does not know: check, ask.
"""

from interpose.contracts.json import JsonObject
from interpose.contracts.stages import HookPoint, LlmPoint, Point, ToolCall, ToolResult, TurnStart
from interpose.contracts.verdict import Outcome, Verdict
from interpose.kernel.frozen import thaw
from interpose.stages.executor import Shaping
from interpose.stages.payloads import patched_value

_QUIET = frozenset({"continue", "silent", "not_reached"})


def final_of(point: HookPoint, shaping: Shaping | None) -> Point:
    """The point as it may happen, in the agent's words."""
    return shaping.point if shaping is not None and shaping.changed else point


def shaped_fields(point: Point) -> tuple[str | None, JsonObject | None]:
    """`text` and `arguments` of the verdict on a point that was patched to this."""
    match point:
        case ToolCall():
            return None, point.arguments
        case ToolResult():
            return point.output, None
        case TurnStart():
            return point.prompt, None
        case _:
            return None, None


def llm_verdict(point: LlmPoint, shaping: Shaping, action: str, duration_ms: float) -> Verdict:
    """The verdict on the model's traffic; a changed body is a plain, changeable copy."""
    is_patched = shaping.changed and shaping.refusal is None
    outcome: Outcome = "refused" if shaping.refusal else "patched" if is_patched else "allowed"
    return Verdict(
        action=action,
        stage=point.stage,
        outcome=outcome,
        refusal=shaping.refusal,
        body=thaw(patched_value(shaping.point)) if is_patched else None,
        notices=shaping.notices,
        reactions=shaping.reactions,
        duration_ms=duration_ms,
    )


def says_nothing(shaping: Shaping) -> bool:
    """Whether every handler let the point pass without a word."""
    return not shaping.notices and all(reaction.answer in _QUIET for reaction in shaping.reactions)
