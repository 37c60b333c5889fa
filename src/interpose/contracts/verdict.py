"""What all handlers said together about one point."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from interpose.contracts.effects import Effect, HandlerKind, Mode, ReminderSeverity
from interpose.contracts.json import Json, JsonObject
from interpose.contracts.stages import Annotation, Stage

Outcome: TypeAlias = Literal["allowed", "refused", "patched", "off"]
"""`patched`: the action may happen with what the verdict holds in place of what was proposed.
`off`: judging is switched off for a while (`interpose off`), and the point passed unjudged.
A refused `llm.chunk` is dropped by the mount."""

Answer: TypeAlias = Literal["continue", "cancel", "patch", "unknown", "effects", "failed", "silent", "not_reached"]
Failure: TypeAlias = Literal["raised", "too_slow", "invalid_answer", "unreadable"]
"""How a shape handler failed; `unreadable`: the point could not be shown to it."""

Phase: TypeAlias = Literal["shape", "check", "ask"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the action may not happen, and which handler said so first."""

    handler: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reminder:
    """A reminder for the model's context."""

    handler: str
    severity: ReminderSeverity
    message: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for the operator alone; never in model context."""

    handler: str
    key: str
    message: str


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """How the next provider request may use tools: `none` locks them, `required` forces `tool_name`."""

    mode: Literal["required", "none"]
    tool_name: str | None = None


class Reaction(NamedTuple):
    """What one handler said and how long it took. `mode` observe means it was recorded and not applied.

    `failure` says how a shape handler failed; `changes` holds, for each field that its patch changed, `before` and
    `after`.
    """

    handler: str
    kind: HandlerKind
    phase: Phase
    answer: Answer
    mode: Mode = "enforce"
    effects: tuple[Effect, ...] = ()
    reason: str | None = None
    duration_ms: float = 0.0
    failure: Failure | None = None
    changes: JsonObject | None = None


class Verdict(NamedTuple):
    """The fold of all answers, ready to be rendered by a mount.

    Attributes:
        action: the id under which the journal tells this action's whole story.
        stage: where it was judged.
        outcome: allowed, refused, patched or off.
        refusal: set exactly when the outcome is refused.
        arguments: the arguments to run with, in the agent's own form, when a call is patched; else None.
        text: the prompt of a patched turn.start, the output of a patched tool.result; else None.
        body: the body of a patched llm.request or llm.response, the data of a patched llm.chunk; else None.
        annotations: lines for the tool result, in order, those given with the point first.
        reminders: for the model's context, in order.
        continuation: the nudge that carries the turn onward, or None.
        tool_choice: what the next request must do with tools, or None to leave it.
        notices: for the operator.
        reactions: every handler that ran, in order.
        duration_ms: the whole judgement.
    """

    action: str
    stage: Stage
    outcome: Outcome
    refusal: Refusal | None = None
    arguments: JsonObject | None = None
    text: str | None = None
    body: Json = None
    annotations: tuple[Annotation, ...] = ()
    reminders: tuple[Reminder, ...] = ()
    continuation: str | None = None
    tool_choice: ToolChoice | None = None
    notices: tuple[Notice, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    duration_ms: float = 0.0

    @property
    def allowed(self) -> bool:
        """Whether the action may happen, changed or not."""
        return self.outcome != "refused"
