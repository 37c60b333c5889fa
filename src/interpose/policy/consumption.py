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
from typing import Final, NamedTuple, TypeAlias

from interpose.contracts.decisions import OnUnknown
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
from interpose.contracts.wording import doubt_text
from interpose.stages.executor import Doubt

INJECTION_WARNING = "safety.untrusted-instructions"
"""The handler whose annotation stands ahead of the output, which it is about."""

_Told: TypeAlias = list[tuple[Emission, Effect]]
"""Effects with who emitted each."""


class Consumed(NamedTuple):
    """The meaning of one run; fields as in `Verdict`. `doubts` wait for a person, unless there is a refusal."""

    refusal: Refusal | None = None
    doubts: tuple[Doubt, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    reminders: tuple[Reminder, ...] = ()
    continuation: str | None = None
    tool_choice: ToolChoice | None = None
    notices: tuple[Notice, ...] = ()


NOTHING_MEANT: Final = Consumed()


def consume(result: HookResult, *, prior: tuple[Annotation, ...] = (), may_continue: bool = True) -> Consumed:
    """The meaning of `result`.

    `prior` are the annotations that the call's own verdict gave; `may_continue` says that this prompt has its one
    continuation left.
    """
    told = _told(result.emissions) if result.effects else []
    match result.hook:
        case "before_tool":
            return Consumed(
                refusal=_refusal(result.emissions, told),
                doubts=tuple(_unknowns(result.emissions, "ask")),
                annotations=_annotations(told),
                tool_choice=_tool_choice(told),
            )
        case "after_tool":
            return Consumed(annotations=_warning_first(prior + _annotations(told)), tool_choice=_tool_choice(told))
        case "turn_start" | "turn_end" if not told:
            return NOTHING_MEANT
        case "turn_start":
            return Consumed(reminders=_reminders(told), tool_choice=_tool_choice(told), notices=_notices(told))
        case "turn_end":
            return _turn_end(result, told, may_continue=may_continue)
        case "on_compaction":
            return Consumed()


def merge(sync: HookResult, later: HookResult) -> HookResult:
    """The synchronous pass and the asynchronous one after it, as one run."""
    return sync._replace(
        effects=sync.effects + later.effects,
        rule_ids=tuple(dict.fromkeys(sync.rule_ids + later.rule_ids)),
        emissions=sync.emissions + later.emissions,
    )


def reactions(result: HookResult) -> tuple[Reaction, ...]:
    """Every registration that ran, in order, in the journal's words."""
    said: list[Reaction] = []
    for emission in result.emissions:
        registration, effects, unknown, failure, elapsed_ms = emission
        is_silent = not effects and unknown is None and failure is None
        answer: Answer = "continue" if is_silent else _answer(emission)
        reason = None if is_silent else _reason(emission)
        said.append(
            Reaction(
                registration.id, registration.kind, "check", answer, registration.mode, effects, reason, elapsed_ms
            )
        )
    return tuple(said)


def _told(emissions: tuple[Emission, ...]) -> _Told:
    """What counts, in order; what was only observed does not."""
    return [
        (emission, effect)
        for emission in emissions
        if emission.effects and emission.registration.mode != "observe"
        for effect in emission.effects
    ]


def _turn_end(result: HookResult, told: _Told, *, may_continue: bool) -> Consumed:
    if result.input.metadata.get("stopReason") in ("error", "aborted"):
        return Consumed()
    wanted = next((effect.message for _, effect in told if isinstance(effect, RequestContinuation)), None)
    return Consumed(
        reminders=_reminders(told),
        continuation=wanted if may_continue else None,
        notices=_notices(told),
    )


def _refusal(emissions: tuple[Emission, ...], told: _Told) -> Refusal | None:
    for emission, effect in told:
        if isinstance(effect, BlockTool):
            return Refusal(emission.registration.id, effect.reason)
    unread = next(_unknowns(emissions, "refuse"), None)
    return None if unread is None else Refusal(unread.handler, doubt_text("tool.call", [unread.reason]))


def _unknowns(emissions: tuple[Emission, ...], on_unknown: OnUnknown) -> Iterator[Doubt]:
    for emission in emissions:
        registration = emission.registration
        if emission.unknown is None or registration.mode == "observe" or registration.on_unknown != on_unknown:
            continue
        yield Doubt(registration.id, registration.kind, emission.unknown.reason)


def _annotations(told: _Told) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(
            handler=emission.registration.id,
            severity=effect.severity or "info",
            message=effect.message,
            in_front=emission.registration.id == INJECTION_WARNING,
        )
        for emission, effect in told
        if isinstance(effect, AnnotateToolResult)
    )


def _warning_first(annotations: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
    return tuple(sorted(annotations, key=lambda annotation: not annotation.in_front))


def _reminders(told: _Told) -> tuple[Reminder, ...]:
    unique: dict[str, Reminder] = {}
    for emission, effect in told:
        if isinstance(effect, InjectReminder) and effect.message not in unique:
            unique[effect.message] = Reminder(emission.registration.id, effect.severity or "info", effect.message)
    return tuple(unique.values())


def _notices(told: _Told) -> tuple[Notice, ...]:
    return tuple(
        Notice(emission.registration.id, effect.key, effect.message)
        for emission, effect in told
        if isinstance(effect, NotifyOperator)
    )


def _tool_choice(told: _Told) -> ToolChoice | None:
    required: ToolChoice | None = None
    for _, effect in told:
        if isinstance(effect, LockTools):
            return ToolChoice("none")
        if isinstance(effect, RequireTool):
            required = ToolChoice("required", effect.tool_name)
    return required


def _answer(emission: Emission) -> Answer:
    if emission.failure is not None:
        return "failed"
    if emission.unknown is not None:
        return "unknown"
    return "cancel" if any(isinstance(effect, BlockTool) for effect in emission.effects) else "effects"


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
