"""The fields of each effect kind: their JSON names, which are texts, which severities there are.

Knows: the eight kinds, in one table. Does not know: who reads or writes them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from interpose.contracts.effects import (
    ANNOTATION_SEVERITIES,
    REMINDER_SEVERITIES,
    AnnotateToolResult,
    BlockTool,
    Effect,
    InjectReminder,
    LockTools,
    NotifyOperator,
    ProtectPath,
    RequestContinuation,
    RequireTool,
)


@dataclass(frozen=True, slots=True)
class EffectFields:
    """One kind of effect.

    Attributes:
        build: makes the effect from its fields by name.
        texts: its required texts, JSON name to field name.
        severities: what its severity may be; empty where it has none.
        severity_required: whether JSON must name the severity.
    """

    build: Callable[..., Effect]
    texts: Mapping[str, str] = field(default_factory=dict)
    severities: tuple[str, ...] = ()
    severity_required: bool = False


EFFECT_FIELDS: Mapping[str, EffectFields] = MappingProxyType(
    {
        "inject_reminder": EffectFields(InjectReminder, {"message": "message"}, REMINDER_SEVERITIES),
        "annotate_tool_result": EffectFields(AnnotateToolResult, {"message": "message"}, ANNOTATION_SEVERITIES),
        "block_tool": EffectFields(BlockTool, {"reason": "reason"}, ("hard-block",), severity_required=True),
        "protect_path": EffectFields(ProtectPath, {"path": "path", "reason": "reason"}),
        "request_continuation": EffectFields(RequestContinuation, {"message": "message"}),
        "require_tool": EffectFields(RequireTool, {"toolName": "tool_name"}),
        "lock_tools": EffectFields(LockTools),
        "notify_operator": EffectFields(NotifyOperator, {"message": "message", "key": "key"}),
    }
)
