"""From a point to what the effect engine is given: the hook form and the metadata, under the first source's keys."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from interpose.catalog.reading import HookForm
from interpose.contracts.effects import Hook, HookInput, MetadataValue
from interpose.contracts.json import JsonObject
from interpose.contracts.stages import Compaction, HookPoint, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.kernel.canonical import canonical_json
from interpose.kernel.frozen import FrozenDict, freeze
from interpose.policy.markers import has_instruction_markers, is_screened
from interpose.stages.executor import Shaping

DETAILS_CHARS = 64_000
"""A longer output is no object of details."""

_READS = frozenset({"read", "search", "fetch"})
_WRITES = frozenset({"write", "edit", "patch"})


def hook_input(
    point: HookPoint, form: HookForm | None, remembered: Mapping[str, MetadataValue] | None = None
) -> HookInput:
    """What registrations see of `point`; `form` is the hook form of a tool point, None for the others.

    `remembered` is what is known of a turn that ends. What the mount says itself stands above what is found here.
    Everything is frozen here, once per judgement.
    """
    match point:
        case ToolCall():
            return _tool_input("before_tool", point, _require(form), _call_metadata(point, _require(form)))
        case ToolResult():
            return _tool_input("after_tool", point, _require(form), _result_metadata(point, _require(form)))
        case TurnStart():
            metadata = {
                "promptChars": len(point.prompt),
                "queued": False,
                "requestContinuation": False,
                **point.metadata,
            }
            return _turn_input("turn_start", point, point.prompt, metadata)
        case TurnEnd():
            metadata = {
                **(remembered or {}),
                "assistantTextChars": len(point.text),
                "stopReason": point.stop_reason,
                "userTurnId": point.context.turn,
                **point.metadata,
            }
            return _turn_input("turn_end", point, point.text, metadata)
        case Compaction():
            return _turn_input("on_compaction", point, None, dict(point.metadata))


def with_validation(given: HookInput, command: str) -> HookInput:
    """The input of a tool hook whose call runs `command`, a test or another check; its mount may know better."""
    found: dict[str, MetadataValue] = {"validationCommand": command}
    if given.metadata.get("resultKind") == "ok":
        found["validationExitCode"] = 0
    return replace(given, metadata=FrozenDict({**found, **given.metadata}))


def as_proposed(given: HookInput, fingerprint: str) -> HookInput:
    """The input of a result whose call was patched: it belongs to the call that the model proposed."""
    return replace(given, metadata=FrozenDict({**given.metadata, "callFingerprint": fingerprint}))


def as_shaped(given: HookInput, shaping: Shaping) -> HookInput:
    """The input after shape: the facts of what was proposed, the text as it was shaped, and whether it was denied."""
    if shaping.refusal is not None and given.hook in ("before_tool", "after_tool"):
        given = replace(given, metadata=FrozenDict({**given.metadata, "decisionKind": "deny"}))
    point = shaping.point
    return replace(given, text=point.output) if isinstance(point, ToolResult) and shaping.changed else given


def filled_keys(metadata: Mapping[str, MetadataValue]) -> list[str]:
    """The keys that say something, sorted."""
    return sorted(key for key, value in metadata.items() if value is not None)


def call_fingerprint(tool_name: str, arguments: JsonObject) -> str:
    """The identity of a call: its name and its arguments in canonical form, whatever the key order.

    Over what the model proposed, so that a handler that patches cannot hide a loop.
    """
    try:
        return f"{tool_name} {canonical_json(arguments)}"
    except (ValueError, TypeError, RecursionError):
        return f"{tool_name} (unrepresentable)"


def action_class(tool_name: str) -> str:
    """`read`, `write` or `execute`, by canonical name."""
    if tool_name in _READS:
        return "read"
    if tool_name in _WRITES:
        return "write"
    return "execute"


def _require(form: HookForm | None) -> HookForm:
    if form is None:
        raise AssertionError("a tool point always comes with its hook form")
    return form


def _proposed_name(point: ToolCall | ToolResult, form: HookForm) -> str:
    """The same tool of two drivers is two tools to who looks for a loop."""
    return form.name if point.leaf is None else point.tool_name


def _call_metadata(point: ToolCall, form: HookForm) -> dict[str, MetadataValue]:
    metadata: dict[str, MetadataValue] = {
        "posture": "operating",
        "actionClass": action_class(form.name),
        "decisionKind": "allow",
        "callFingerprint": call_fingerprint(_proposed_name(point, form), point.arguments),
        "cwd": point.context.cwd or point.context.workspace,
    }
    if point.tool_name != form.name:
        metadata["requestedToolName"] = point.tool_name
    return metadata | dict(point.metadata)


def _result_metadata(point: ToolResult, form: HookForm) -> dict[str, MetadataValue]:
    raw = point.output.encode("utf-8", "surrogatepass")
    metadata: dict[str, MetadataValue] = {
        "posture": "operating",
        "actionClass": action_class(form.name),
        "decisionKind": "allow",
        "callFingerprint": call_fingerprint(_proposed_name(point, form), point.arguments),
        "cwd": point.context.cwd or point.context.workspace,
        "resultKind": "error" if point.is_error else "ok",
        "resultBytes": len(raw),
    }
    if is_screened(form.name):
        metadata["untrustedInstructionMarkers"] = has_instruction_markers(point.output)
    if point.is_error:
        metadata["errorMessage"] = point.output[:500]
    else:
        metadata["resultFingerprint"] = hashlib.sha256(raw).hexdigest()
    if point.duration_ms is not None:
        metadata["durationMs"] = point.duration_ms
    if point.tool_name != form.name:
        metadata["requestedToolName"] = point.tool_name
    return metadata | dict(point.metadata)


def _tool_input(
    hook: Hook, point: ToolCall | ToolResult, form: HookForm, metadata: dict[str, MetadataValue]
) -> HookInput:
    context = point.context
    arguments, problem = _frozen(form.input)
    details = _details(point) if isinstance(point, ToolResult) else None
    return HookInput(
        hook=hook,
        session_id=context.session,
        turn_id=context.turn,
        tool_call_id=point.call_id,
        correlation_id=point.correlation_id if isinstance(point, ToolCall) else None,
        tool_name=form.name,
        tool_aliases=form.aliases,
        model_id=context.model,
        metadata=FrozenDict(metadata),
        tool_args=arguments,
        tool_result_details=details,
        text=point.output if isinstance(point, ToolResult) else None,
        unreadable=point.problem or form.problem or problem,
    )


def _details(point: ToolResult) -> JsonObject | None:
    """What the mount says, else the output itself when it is a JSON object; None for what nests too deep."""
    if point.details is not None:
        return _shallow(point.details)
    output = point.output
    if len(output) > DETAILS_CHARS or not output.startswith("{") or not output.rstrip().endswith("}"):
        return None
    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        return None
    return _shallow(value) if isinstance(value, dict) else None


def _shallow(value: JsonObject) -> JsonObject | None:
    frozen, problem = _frozen(value)
    return None if problem or not frozen else frozen


def _frozen(value: JsonObject) -> tuple[JsonObject, str | None]:
    """The value, unchangeable; empty, and why, when it nests too deep to be looked at."""
    try:
        return freeze(value), None
    except ValueError as error:
        return FrozenDict(), f"the arguments are {error}"


def _turn_input(
    hook: Hook,
    point: TurnStart | TurnEnd | Compaction,
    text: str | None,
    metadata: dict[str, MetadataValue],
) -> HookInput:
    context = point.context
    return HookInput(
        hook=hook,
        session_id=context.session,
        turn_id=context.turn,
        model_id=context.model,
        metadata=FrozenDict(metadata),
        text=text,
    )
