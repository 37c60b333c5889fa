"""Small makers for the inputs that these tests talk about, and a clock that tests hold."""

import hashlib
from collections.abc import Mapping
from typing import Any

from interpose.command.reader import CommandReader
from interpose.contracts.effects import (
    BlockTool,
    Effect,
    EvaluationContext,
    Hook,
    HookInput,
    MetadataValue,
    Registration,
)
from interpose.guards.calls import CallReader
from interpose.policy.inputs import action_class, call_fingerprint

NOTHING = EvaluationContext()


class HeldClock:
    """The port `Clock` at a time that the test sets."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.seconds

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return self.seconds


def reader(root: str = "/house", home: str | None = "/home/somebody") -> CallReader:
    """Reads calls of a workspace."""
    return CallReader(CommandReader(), root, home)


def call(
    tool: str = "shell",
    args: Mapping[str, Any] | None = None,
    *,
    turn: str | None = "t1",
    session: str | None = "s1",
    call_id: str | None = None,
    round_id: str | None = None,
    unreadable: str | None = None,
    **metadata: MetadataValue,
) -> HookInput:
    """A before_tool input as the policy makes it."""
    args = {} if args is None else args
    filled: dict[str, MetadataValue] = {
        "actionClass": action_class(tool),
        "callFingerprint": call_fingerprint(tool, args),
    }
    return HookInput(
        hook="before_tool",
        session_id=session,
        turn_id=turn,
        tool_call_id=call_id,
        correlation_id=round_id,
        tool_name=tool,
        metadata=filled | metadata,
        tool_args=args,
        unreadable=unreadable,
    )


def result(
    tool: str = "shell",
    args: Mapping[str, Any] | None = None,
    output: str = "",
    *,
    turn: str | None = "t1",
    session: str | None = "s1",
    call_id: str | None = None,
    ok: bool = True,
    details: Mapping[str, Any] | None = None,
    **metadata: MetadataValue,
) -> HookInput:
    """An after_tool input as the policy makes it."""
    args = {} if args is None else args
    filled: dict[str, MetadataValue] = {
        "actionClass": action_class(tool),
        "callFingerprint": call_fingerprint(tool, args),
        "resultKind": "ok" if ok else "error",
        "resultBytes": len(output.encode()),
    }
    if ok:
        filled["resultFingerprint"] = hashlib.sha256(output.encode()).hexdigest()
    return HookInput(
        hook="after_tool",
        session_id=session,
        turn_id=turn,
        tool_call_id=call_id,
        tool_name=tool,
        metadata=filled | metadata,
        tool_args=args,
        tool_result_details=details,
        text=output,
    )


def turn_hook(
    hook: Hook,
    text: str | None = None,
    *,
    turn: str | None = "t1",
    session: str | None = "s1",
    **metadata: MetadataValue,
) -> HookInput:
    """A turn_start, turn_end or on_compaction input."""
    return HookInput(hook=hook, session_id=session, turn_id=turn, text=text, metadata=metadata)


def ended(text: str, *, turn: str | None = "t1", session: str | None = "s1", **metadata: MetadataValue) -> HookInput:
    """A turn_end input."""
    return turn_hook("turn_end", text, turn=turn, session=session, **metadata)


def prompted(
    text: str = "do it", *, turn: str | None = "t1", session: str | None = "s1", again: bool = False
) -> HookInput:
    """A turn_start input; `again` for one that only carries a turn onward."""
    return turn_hook("turn_start", text, turn=turn, session=session, requestContinuation=again)


def evaluated(registration: Registration, given: HookInput, *prior: Effect) -> tuple[Effect, ...]:
    """What a registration emits, its hooks and tools being right for the input; fails when it says unknown."""
    assert given.hook in registration.hooks
    assert registration.evaluate is not None
    answer = registration.evaluate(given, EvaluationContext(prior))
    assert isinstance(answer, tuple)
    return answer


def reason(effects: tuple[Effect, ...]) -> str:
    """The reason of the one refusal among the effects; "" when there is none."""
    return next((effect.reason for effect in effects if isinstance(effect, BlockTool)), "")
