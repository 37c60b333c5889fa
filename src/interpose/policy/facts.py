"""Everything a mount may tell of a point beside its payload: the keys of the hook metadata, and what they mean.

Knows: each key, the hooks it belongs to, its meaning in one line. Does not know: which mount fills it; that is seen
in the journal, whose verdicts name the keys they were judged with.
"""

from dataclasses import dataclass
from typing import Final

from interpose.contracts.effects import Hook

_TOOL: Final[tuple[Hook, ...]] = ("before_tool", "after_tool")
_AFTER: Final[tuple[Hook, ...]] = ("after_tool",)
_START: Final[tuple[Hook, ...]] = ("turn_start",)
_END: Final[tuple[Hook, ...]] = ("turn_end",)
_TURN: Final[tuple[Hook, ...]] = ("turn_start", "turn_end")
_COMPACTION: Final[tuple[Hook, ...]] = ("on_compaction",)


@dataclass(frozen=True, slots=True)
class Fact:
    """One metadata key: where it may be filled, and what it says."""

    key: str
    hooks: tuple[Hook, ...]
    meaning: str


FACTS: Final[tuple[Fact, ...]] = (
    Fact("posture", _TOOL, "`operating`: tools act"),
    Fact("actionClass", _TOOL, "`read`, `write` or `execute`, by the tool's canonical name"),
    Fact(
        "decisionKind",
        _TOOL,
        "what was decided before check: `deny` when a shape handler refused, else `allow` unless the mount says so",
    ),
    Fact("callFingerprint", _TOOL, "the call as the model proposed it, the same for equal calls"),
    Fact("cwd", _TOOL, "the folder that relative paths start from"),
    Fact("requestedToolName", _TOOL, "what the agent calls the tool, when that is not its canonical name"),
    Fact("validationCommand", _TOOL, "the test, linter, build or type check that a shell call runs"),
    Fact("validationExitCode", _AFTER, "0 when that command went well, as far as the mount is told"),
    Fact("resultKind", _AFTER, "`ok` or `error`, as far as the mount is told"),
    Fact("errorMessage", _AFTER, "the first 500 characters of an error"),
    Fact("resultFingerprint", _AFTER, "SHA-256 of the output of a call that went well"),
    Fact("resultBytes", _AFTER, "the length of the output"),
    Fact("untrustedInstructionMarkers", _AFTER, "whether the raw output is worded like instructions to a model"),
    Fact("durationMs", _AFTER, "how long the tool ran"),
    Fact("terminate", _AFTER, "whether this result ends the turn"),
    Fact("promptChars", _START, "the true length of the prompt"),
    Fact("queued", _START, "whether the prompt waited for the turn before it"),
    Fact("requestContinuation", _START, "whether this only carries a turn onward"),
    Fact("conversationMessages", _START, "how many messages of the person and the model stand before the prompt"),
    Fact("pendingSkillRequests", _START, "how many skills the person asked for"),
    Fact("activeToolNames", _TURN, "the canonical names of the tools on offer, joined by commas"),
    Fact("turnMode", _TURN, "what kind of answer the person wants"),
    Fact("assistantTextChars", _END, "the true length of the answer"),
    Fact("stopReason", _END, "why the model stopped"),
    Fact("turnToolCalls", _END, "how many tool calls the turn made"),
    Fact("turnToolNames", _END, "which tools it called, joined by commas"),
    Fact("userTurnId", _END, "the turn that the tool calls belonged to"),
    Fact("hasStructuredToolCall", _END, "whether the answer holds a real tool call"),
    Fact("runtimeId", _END, "which model runtime answered"),
    Fact("runtimeTier", _END, "what sort of runtime it is, such as `local-native`"),
    Fact("sharedWorkerNote", _END, "whether a worker's note is part of the answer"),
    Fact("terminalToolResult", _END, "whether a tool's result ended the turn"),
    Fact("terminalToolCallId", _END, "the call whose result did"),
    Fact("terminalToolName", _END, "its tool"),
    Fact("stage", _COMPACTION, "which step of shortening this is"),
    Fact("trigger", _COMPACTION, "why the history is shortened"),
    Fact("tokensBefore", _COMPACTION, "how long it is, in tokens"),
)


def facts_at(hook: Hook) -> tuple[Fact, ...]:
    """The facts that belong to `hook`, in the order of the table. Pure."""
    return tuple(fact for fact in FACTS if hook in fact.hooks)
