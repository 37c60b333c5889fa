"""The effect engine's vocabulary: five hooks, eight effects, a registration and what it is given.

An effect is data, not code: it cannot rewrite and cannot grant. The names and fields are those of the first
source document; `interpose.effects` validates and serialises them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from interpose.contracts.decisions import OnUnknown, Unknown
from interpose.contracts.json import JsonObject

Hook: TypeAlias = Literal["before_tool", "after_tool", "turn_start", "turn_end", "on_compaction"]
HOOKS: tuple[Hook, ...] = ("before_tool", "after_tool", "turn_start", "turn_end", "on_compaction")

EffectKind: TypeAlias = Literal[
    "inject_reminder",
    "annotate_tool_result",
    "block_tool",
    "protect_path",
    "request_continuation",
    "require_tool",
    "lock_tools",
    "notify_operator",
]
EFFECT_KINDS: tuple[EffectKind, ...] = (
    "inject_reminder",
    "annotate_tool_result",
    "block_tool",
    "protect_path",
    "request_continuation",
    "require_tool",
    "lock_tools",
    "notify_operator",
)

ReminderSeverity: TypeAlias = Literal["info", "advisory", "warn", "hard-block"]
REMINDER_SEVERITIES: tuple[ReminderSeverity, ...] = ("info", "advisory", "warn", "hard-block")
AnnotationSeverity: TypeAlias = Literal["info", "warn"]
ANNOTATION_SEVERITIES: tuple[AnnotationSeverity, ...] = ("info", "warn")

HOOK_TEXT_MAX_CHARS = 16_000
"""`HookInput.text` is cut to its first 16,000 characters; the producer gives the true length in metadata."""


@dataclass(frozen=True, slots=True)
class InjectReminder:
    """Adds a reminder to the model's context; an absent severity means info."""

    kind: ClassVar[EffectKind] = "inject_reminder"
    message: str
    severity: ReminderSeverity | None = None


@dataclass(frozen=True, slots=True)
class AnnotateToolResult:
    """Adds a message to the tool result that the model sees; an absent severity means info."""

    kind: ClassVar[EffectKind] = "annotate_tool_result"
    message: str
    severity: AnnotationSeverity | None = None


@dataclass(frozen=True, slots=True)
class BlockTool:
    """Refuses a tool call; the first one in order is the verdict."""

    kind: ClassVar[EffectKind] = "block_tool"
    reason: str
    severity: Literal["hard-block"] = "hard-block"


@dataclass(frozen=True, slots=True)
class ProtectPath:
    """Adds a path to the protected artifacts."""

    kind: ClassVar[EffectKind] = "protect_path"
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class RequestContinuation:
    """Carries a turn onward with a nudge; one per user prompt takes effect."""

    kind: ClassVar[EffectKind] = "request_continuation"
    message: str


@dataclass(frozen=True, slots=True)
class RequireTool:
    """Forces one tool in the next round."""

    kind: ClassVar[EffectKind] = "require_tool"
    tool_name: str


@dataclass(frozen=True, slots=True)
class LockTools:
    """Locks all tools until the next submitted turn."""

    kind: ClassVar[EffectKind] = "lock_tools"


@dataclass(frozen=True, slots=True)
class NotifyOperator:
    """A message for the operator alone; `key` names its source, so that repeats can replace each other."""

    kind: ClassVar[EffectKind] = "notify_operator"
    message: str
    key: str


Effect: TypeAlias = (
    InjectReminder
    | AnnotateToolResult
    | BlockTool
    | ProtectPath
    | RequestContinuation
    | RequireTool
    | LockTools
    | NotifyOperator
)

MetadataValue: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ToolResultDigest:
    """A short, code-made description of a result, with secrets already redacted (at most 240 bytes)."""

    text: str
    provenance: str


@dataclass(frozen=True, slots=True)
class HookInput:
    """What a registration is given. Nested values are frozen; nobody can change what another one sees.

    `tool_name` is the canonical name; `tool_aliases` are other names of the same tool that also match (the name
    on the wire among them).
    """

    hook: Hook
    run_id: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None
    correlation_id: str | None = None
    tool_name: str | None = None
    tool_aliases: tuple[str, ...] = ()
    model_id: str | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    tool_args: JsonObject | None = None
    tool_result_details: JsonObject | None = None
    tool_result_digest: ToolResultDigest | None = None
    text: str | None = None
    unreadable: str | None = None
    """Why `tool_args` could not be read (then it is empty), else None. A guard that needs them says unknown."""


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """What earlier registrations of the same run emitted, in order."""

    prior_effects: tuple[Effect, ...] = ()


Evaluated: TypeAlias = Sequence[Effect] | Unknown
Evaluate: TypeAlias = Callable[[HookInput, EvaluationContext], Evaluated]
EvaluateAsync: TypeAlias = Callable[[HookInput, EvaluationContext], Awaitable[Evaluated]]

HandlerKind: TypeAlias = Literal["python", "rule", "user_hook", "module", "stored", "model", "plugin"]
Mode: TypeAlias = Literal["enforce", "observe"]


@dataclass(frozen=True, slots=True)
class Registration:
    """A handler's entry in the effect engine's table.

    Attributes:
        id: unique in the table, whatever the tier.
        description: one line for people.
        hooks: the hooks it is evaluated at.
        tool_names: None matches every input; else only inputs whose tool name or one of its aliases is a member.
            A member that ends in `*` matches by prefix; an empty tuple matches nothing.
        evaluate: the synchronous evaluation, or None.
        evaluate_async: the asynchronous evaluation, a phase of its own after the synchronous one, or None.
        kind: what sort of handler it is, for the journal.
        fail_closed: a failure at before_tool counts as `block_tool` naming this registration.
        blocking: evaluation waits for something outside the process; async mounts run the pass in a thread.
        mode: `observe` records what it would have done and does nothing.
        on_unknown: what its `Unknown` leads to.
        reads: the metadata keys that its evaluation needs, of all its hooks together. Where no mount fills one it
            knows less or stays silent, and `interpose coverage` says so.
    """

    id: str
    description: str
    hooks: tuple[Hook, ...]
    tool_names: tuple[str, ...] | None = None
    evaluate: Evaluate | None = None
    evaluate_async: EvaluateAsync | None = None
    kind: HandlerKind = "python"
    fail_closed: bool = False
    blocking: bool = False
    mode: Mode = "enforce"
    on_unknown: OnUnknown = "ask"
    reads: tuple[str, ...] = ()


class Emission(NamedTuple):
    """What one registration said in one run.

    `effects` are as emitted (for `mode: observe` too); `unknown` and `failure` are None unless it could not tell or
    raised. A fail-closed failure at before_tool has both a failure and one BlockTool.
    """

    registration: Registration
    effects: tuple[Effect, ...]
    unknown: Unknown | None
    failure: str | None
    elapsed_ms: float


class HookResult(NamedTuple):
    """What a run of all matching registrations came to.

    `effects` are those that count, in order (observed registrations left out); `rule_ids` are the ids that emitted at
    least one of them; `emissions` holds every registration that ran.
    """

    hook: Hook
    input: HookInput
    effects: tuple[Effect, ...]
    rule_ids: tuple[str, ...]
    emissions: tuple[Emission, ...] = ()
