"""One line of the journal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Step: TypeAlias = Literal[
    "enter",
    "answer",
    "verdict",
    "applied",
    "failed",
    "skipped",
    "not_reached",
    "not_judged_yet",
    "notice",
    "problem",
    "switched",
    "request",
    "started",
    "stopped",
]
"""Where in a judgement, or in a mount's work around it, a line was written."""


@dataclass(slots=True)  # not frozen: several are made for each request, and that would cost three times as much
class Record:
    """What happened, in the design's words. Empty strings mean "does not apply". Nobody changes one.

    Attributes:
        at: seconds since the epoch (UTC).
        action: groups the lines of one action; what `interpose explain` takes.
        step: where in the work this line was written.
        stage: the stage, or "" outside any.
        mount: where the agent was reached.
        workspace: the canonical root.
        session, turn, launch, agent: ids; `launch` is the public one.
        tool: the canonical tool name; `wire_name` is what the agent called it.
        call_id: the provider's id of the call.
        handler, kind, phase: who said it.
        answer: what that handler said.
        outcome: what came of it.
        reason: in words.
        duration_ms: how long it took.
        data: anything else, JSON only; secrets are masked by the writer before they are stored.
    """

    at: float
    action: str
    step: Step
    stage: str = ""
    mount: str = ""
    workspace: str = ""
    session: str = ""
    turn: str = ""
    launch: str = ""
    agent: str = ""
    tool: str = ""
    wire_name: str = ""
    call_id: str = ""
    handler: str = ""
    kind: str = ""
    phase: str = ""
    answer: str = ""
    outcome: str = ""
    reason: str = ""
    duration_ms: float = 0.0
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record with the number the journal gave it; numbers only grow."""

    seq: int
    record: Record
