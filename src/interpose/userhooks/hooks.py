"""A user hook, checked and complete.

Knows: values. Does not know: where they were read from in detail, how they are evaluated.
"""

from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from interpose.contracts.decisions import OnUnknown
from interpose.contracts.effects import Effect, Hook, InjectReminder, Mode, ReminderSeverity
from interpose.userhooks.issues import Position
from interpose.userhooks.vocabulary import GUARD_EFFECTS, PATH_TOOLS, HookKind

Origin: TypeAlias = Literal["extension", "user", "project", "project.local"]
ORIGINS: Final[tuple[Origin, ...]] = ("extension", "user", "project", "project.local")
"""Where user hooks come from, lowest precedence first."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a hook was written: origin, file, its index in that file, and its first line."""

    origin: Origin
    path: str
    index: int = 0
    position: Position = field(default_factory=Position)

    def __str__(self) -> str:
        """`FILE:LINE`."""
        return f"{self.path}:{self.position.line}"


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """Tells the model something."""

    message: str
    severity: ReminderSeverity = "info"


@dataclass(frozen=True, slots=True)
class EffectSpec:
    """Does one thing."""

    effect: Effect


Spec: TypeAlias = PromptSpec | EffectSpec


@dataclass(frozen=True, slots=True)
class Matchers:
    """What a call must be for the hook to speak; all that are given must hold. Empty means no question."""

    command: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    access: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UserHook:
    """One entry of a hook file.

    `tools` is as written, None when absent; `tool_names` says what that means. `hash` is 16 hex characters over
    what the hook does: not its id, its description, nor whether it is enabled.
    """

    id: str
    source: Source
    hash: str
    on: Hook
    spec: Spec
    tools: tuple[str, ...] | None = None
    matchers: Matchers = field(default_factory=Matchers)
    enabled: bool = True
    mode: Mode = "enforce"
    on_unknown: OnUnknown = "ask"
    fail_closed: bool = False
    description: str = ""

    @property
    def kind(self) -> HookKind:
        """Which sort of entry it is."""
        return "prompt" if isinstance(self.spec, PromptSpec) else "effect"

    @property
    def effect(self) -> Effect:
        """What it does when it matches; an info prompt is a reminder without a severity."""
        if isinstance(self.spec, EffectSpec):
            return self.spec.effect
        severity = None if self.spec.severity == "info" else self.spec.severity
        return InjectReminder(self.spec.message, severity)

    @property
    def is_guard(self) -> bool:
        """Whether it can refuse something."""
        return self.effect.kind in GUARD_EFFECTS

    @property
    def tool_names(self) -> tuple[str, ...] | None:
        """The tools it is asked for: as written, else what its matchers imply, else None for all."""
        if self.tools is not None:
            return self.tools
        if self.matchers.command:
            return ("shell",)
        if self.matchers.path:
            return PATH_TOOLS
        return None

    def renamed(self, new_id: str) -> "UserHook":
        """The same hook under another id."""
        return replace(self, id=new_id)
