"""What the effects of one run mean. Pure, and the only place that knows; a mount only renders the verdict.

| effect | before_tool | after_tool | turn_start | turn_end | on_compaction |
|---|---|---|---|---|---|
| block_tool | the first one refuses | - | - | - | - |
| annotate_tool_result | kept for the result | added | - | - | - |
| inject_reminder | - | - | this request | the next one | - |
| request_continuation | - | - | - | one per prompt | - |
| require_tool, lock_tools | the next request | the next request | this request | - | - |
| notify_operator | - | - | shown | shown | - |
| protect_path | for the guard that keeps the protected paths | likewise | - | - | - |

A dash means that the effect has no meaning there and is ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from interpose.contracts.effects import (
    AnnotateToolResult,
    BlockTool,
    Effect,
    Emission,
    HookResult,
    InjectReminder,
    LockTools,
    NotifyOperator,
    RequestContinuation,
    RequireTool,
)
from interpose.contracts.stages import Annotation
from interpose.contracts.verdict import Answer, Notice, Reaction, Refusal, Reminder, ToolChoice

INJECTION_WARNING = "safety.untrusted-instructions"
"""The handler whose annotation stands ahead of the output, which it is about."""

_E = TypeVar("_E", bound=Effect)


@dataclass(frozen=True, slots=True)
class Consumed:
    """The meaning of one run; fields as in `Verdict`."""

    refusal: Refusal | None = None
    annotations: tuple[Annotation, ...] = ()
    reminders: tuple[Reminder, ...] = ()
    continuation: str | None = None
    tool_choice: ToolChoice | None = None
    notices: tuple[Notice, ...] = ()


def consume(result: HookResult, *, prior: tuple[Annotation, ...] = (), continuation_spent: bool = False) -> Consumed:
    """The meaning of `result`.

    `prior` are the annotations that the call's own verdict gave; `continuation_spent` says that this prompt has had
    its one continuation.
    """
    match result.hook:
        case "before_tool":
            return Consumed(
                refusal=_refusal(result.emissions),
                annotations=_annotations(result.emissions),
                tool_choice=_tool_choice(result.emissions),
            )
        case "after_tool":
            return Consumed(
                annotations=_warning_first(prior + _annotations(result.emissions)),
                tool_choice=_tool_choice(result.emissions),
            )
        case "turn_start":
            return Consumed(
                reminders=_reminders(result.emissions),
                tool_choice=_tool_choice(result.emissions),
                notices=_notices(result.emissions),
            )
        case "turn_end":
            return _turn_end(result, continuation_spent=continuation_spent)
        case "on_compaction":
            return Consumed()


def merge(sync: HookResult, later: HookResult) -> HookResult:
    """The synchronous pass and the asynchronous one after it, as one run."""
    return replace(
        sync,
        effects=sync.effects + later.effects,
        rule_ids=tuple(dict.fromkeys(sync.rule_ids + later.rule_ids)),
        emissions=sync.emissions + later.emissions,
    )


def reactions(result: HookResult) -> tuple[Reaction, ...]:
    """Every registration that ran, in order, in the journal's words."""
    return tuple(
        Reaction(
            handler=emission.registration.id,
            kind=emission.registration.kind,
            phase="check",
            answer=_answer(emission),
            mode=emission.registration.mode,
            effects=emission.effects,
            reason=_reason(emission),
            duration_ms=emission.elapsed_ms,
        )
        for emission in result.emissions
    )


def _turn_end(result: HookResult, *, continuation_spent: bool) -> Consumed:
    if result.input.metadata.get("stopReason") in ("error", "aborted"):
        return Consumed()
    wanted = next((effect.message for _, effect in _effects(result.emissions, RequestContinuation)), None)
    return Consumed(
        reminders=_reminders(result.emissions),
        continuation=None if continuation_spent else wanted,
        notices=_notices(result.emissions),
    )


def _refusal(emissions: tuple[Emission, ...]) -> Refusal | None:
    blocked = next(_effects(emissions, BlockTool), None)
    if blocked is not None:
        return Refusal(blocked[0].registration.id, blocked[1].reason)
    for emission in emissions:
        registration = emission.registration
        if emission.unknown is None or registration.mode == "observe" or registration.on_unknown == "pass":
            continue
        asked = " and nobody could be asked" if registration.on_unknown == "ask" else ""
        return Refusal(
            registration.id,
            f"it cannot be told what this call would do{asked}: {emission.unknown.reason}. "
            "Write it so that its program and files can be read before it runs.",
        )
    return None


def _annotations(emissions: tuple[Emission, ...]) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(
            handler=emission.registration.id,
            severity=effect.severity or "info",
            message=effect.message,
            in_front=emission.registration.id == INJECTION_WARNING,
        )
        for emission, effect in _effects(emissions, AnnotateToolResult)
    )


def _warning_first(annotations: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
    return tuple(sorted(annotations, key=lambda annotation: not annotation.in_front))


def _reminders(emissions: tuple[Emission, ...]) -> tuple[Reminder, ...]:
    unique: dict[str, Reminder] = {}
    for emission, effect in _effects(emissions, InjectReminder):
        reminder = Reminder(emission.registration.id, effect.severity or "info", effect.message)
        unique.setdefault(effect.message, reminder)
    return tuple(unique.values())


def _notices(emissions: tuple[Emission, ...]) -> tuple[Notice, ...]:
    return tuple(
        Notice(emission.registration.id, effect.key, effect.message)
        for emission, effect in _effects(emissions, NotifyOperator)
    )


def _tool_choice(emissions: tuple[Emission, ...]) -> ToolChoice | None:
    if next(_effects(emissions, LockTools), None) is not None:
        return ToolChoice("none")
    required = [effect.tool_name for _, effect in _effects(emissions, RequireTool)]
    return ToolChoice("required", required[-1]) if required else None


def _effects(emissions: tuple[Emission, ...], kind: type[_E]) -> Iterator[tuple[Emission, _E]]:
    for emission in emissions:
        if emission.registration.mode == "observe":
            continue
        for effect in emission.effects:
            if isinstance(effect, kind):
                yield emission, effect


def _answer(emission: Emission) -> Answer:
    if emission.failure is not None:
        return "failed"
    if emission.unknown is not None:
        return "unknown"
    if any(isinstance(effect, BlockTool) for effect in emission.effects):
        return "cancel"
    return "effects" if emission.effects else "continue"


def _reason(emission: Emission) -> str | None:
    if emission.failure is not None:
        return emission.failure
    if emission.unknown is not None:
        return emission.unknown.reason
    for effect in emission.effects:
        match effect:
            case BlockTool(reason=text) | AnnotateToolResult(message=text) | InjectReminder(message=text):
                return text
            case RequestContinuation(message=text) | NotifyOperator(message=text):
                return text
            case _:
                continue
    return None
