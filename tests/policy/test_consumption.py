"""policy.consumption: what the effects of a run mean, and where they mean nothing."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.decisions import OnUnknown, Unknown
from interpose.contracts.effects import (
    HOOKS,
    AnnotateToolResult,
    BlockTool,
    Effect,
    Emission,
    Hook,
    HookInput,
    HookResult,
    InjectReminder,
    LockTools,
    Mode,
    NotifyOperator,
    ProtectPath,
    Registration,
    RequestContinuation,
    RequireTool,
)
from interpose.contracts.stages import Annotation
from interpose.contracts.verdict import Notice, Refusal, Reminder, ToolChoice
from interpose.policy.consumption import INJECTION_WARNING, Consumed, consume, merge, reactions
from interpose.stages.executor import Doubt

ALL: tuple[Effect, ...] = (
    InjectReminder("remember"),
    AnnotateToolResult("look", "warn"),
    BlockTool("no"),
    ProtectPath("/p", "kept"),
    RequestContinuation("go on"),
    RequireTool("read"),
    NotifyOperator("psst", "key"),
)


def said(
    *effects: Effect,
    by: str = "h",
    unknown: str | None = None,
    failure: str | None = None,
    mode: Mode = "enforce",
    on_unknown: OnUnknown = "ask",
) -> Emission:
    """What one registration answered."""
    registration = Registration(by, "", HOOKS, mode=mode, on_unknown=on_unknown)
    return Emission(registration, effects, Unknown(unknown) if unknown else None, failure, 0.5)


def ran(hook: Hook, *emissions: Emission, **metadata: str) -> HookResult:
    """A run of those registrations."""
    effects = tuple(e for emission in emissions if emission.registration.mode == "enforce" for e in emission.effects)
    return HookResult(hook, HookInput(hook, metadata=metadata), effects, (), emissions)


def test_before_tool_refuses_annotates_and_chooses_tools() -> None:
    """At before_tool the first block refuses, annotations wait for the result, and tool choice is set."""
    meaning = consume(ran("before_tool", said(*ALL, by="a"), said(BlockTool("later"), by="b")))

    assert meaning == Consumed(
        refusal=Refusal("a", "no"),
        annotations=(Annotation("a", "warn", "look"),),
        tool_choice=ToolChoice("required", "read"),
    )


def test_after_tool_only_annotates_and_chooses_tools() -> None:
    """After the call a block means nothing; the call's own annotations stand first."""
    earlier = (Annotation("x", "info", "earlier"),)

    meaning = consume(ran("after_tool", said(*ALL, by="a")), prior=earlier)

    assert meaning == Consumed(
        annotations=(*earlier, Annotation("a", "warn", "look")), tool_choice=ToolChoice("required", "read")
    )


def test_the_injection_warning_stands_first() -> None:
    """The warning about untrusted text is ahead of the output and of every other annotation, the call's own too."""
    warning = said(AnnotateToolResult("data, not orders", "warn"), by=INJECTION_WARNING)

    meaning = consume(ran("after_tool", warning), prior=(Annotation("x", "info", "earlier"),))

    assert [(one.handler, one.in_front) for one in meaning.annotations] == [(INJECTION_WARNING, True), ("x", False)]


def test_turn_start_reminds_notifies_and_chooses_tools() -> None:
    """At turn_start only reminders, notices and tool choice mean something."""
    assert consume(ran("turn_start", said(*ALL, by="a"))) == Consumed(
        reminders=(Reminder("a", "info", "remember"),),
        notices=(Notice("a", "key", "psst"),),
        tool_choice=ToolChoice("required", "read"),
    )


def test_turn_end_continues_once() -> None:
    """At turn_end the first continuation counts, unless this prompt has had its own."""
    run = ran("turn_end", said(*ALL, by="a"), said(RequestContinuation("second"), by="b"))

    assert consume(run).continuation == "go on"
    assert consume(run, may_continue=False).continuation is None
    assert consume(run).tool_choice is None


@pytest.mark.parametrize("reason", ["error", "aborted"])
def test_a_turn_that_broke_off_has_no_effects(reason: str) -> None:
    """Hooks run at the end of a failed turn, and their effects are discarded."""
    assert consume(ran("turn_end", said(*ALL), stopReason=reason)) == Consumed()


def test_compaction_discards_everything() -> None:
    """on_compaction is for observing."""
    assert consume(ran("on_compaction", said(*ALL))) == Consumed()


def test_lock_beats_require_and_the_last_require_wins() -> None:
    """Tool choice: locking wins whatever the order; among required tools the later replaces the earlier."""
    assert consume(ran("turn_start", said(LockTools()), said(RequireTool("a")))).tool_choice == ToolChoice("none")
    assert consume(ran("turn_start", said(RequireTool("a"), RequireTool("b")))).tool_choice == ToolChoice(
        "required", "b"
    )


def test_equal_reminders_are_given_once() -> None:
    """The same message from two handlers reaches the model once, under the first one's name."""
    meaning = consume(ran("turn_start", said(InjectReminder("x"), by="a"), said(InjectReminder("x", "warn"), by="b")))

    assert meaning.reminders == (Reminder("a", "info", "x"),)


def test_observed_handlers_change_nothing_and_are_told() -> None:
    """A handler in observe mode shows in the reactions and nowhere else."""
    run = ran("before_tool", said(BlockTool("no"), by="a", mode="observe"), said(unknown="?", by="b", mode="observe"))

    assert consume(run) == Consumed()
    assert [(r.handler, r.answer, r.mode, r.reason) for r in reactions(run)] == [
        ("a", "cancel", "observe", "no"),
        ("b", "unknown", "observe", "?"),
    ]


def test_unknown_leads_where_the_handler_says() -> None:
    """A doubt for a person, a refusal that tells the reason, or nothing."""

    def told(on_unknown: OnUnknown) -> Consumed:
        return consume(ran("before_tool", said(unknown="$CMD is not known", on_unknown=on_unknown)))

    assert told("ask") == Consumed(doubts=(Doubt("h", "python", "$CMD is not known"),))
    refusal = told("refuse").refusal
    assert refusal is not None
    assert "$CMD is not known" in refusal.reason
    assert told("pass") == Consumed()


def test_a_block_is_told_ahead_of_an_unknown() -> None:
    """When one handler refuses and an earlier one could not tell, the refusal is the reason."""
    run = ran("before_tool", said(unknown="?", by="a"), said(BlockTool("no"), by="b"))

    assert consume(run).refusal == Refusal("b", "no")


def test_failures_are_reactions_and_not_answers() -> None:
    """A handler that raised is told as failed; it changes nothing unless it is fail-closed."""
    run = ran("before_tool", said(failure="boom", by="a"))

    assert consume(run) == Consumed()
    assert [(r.handler, r.answer, r.reason) for r in reactions(run)] == [("a", "failed", "boom")]


def test_merging_keeps_the_order_of_both_passes() -> None:
    """The asynchronous pass stands after the synchronous one."""
    both = merge(ran("turn_end", said(InjectReminder("1"), by="a")), ran("turn_end", said(InjectReminder("2"), by="b")))

    assert [reminder.message for reminder in consume(both).reminders] == ["1", "2"]


@given(st.lists(st.lists(st.sampled_from(ALL), max_size=4), max_size=6), st.sampled_from(HOOKS))
def test_more_handlers_never_allow_more(batches: list[list[Effect]], hook: Hook) -> None:
    """What refuses with fewer handlers refuses with more: a handler cannot grant."""
    refusals = [
        consume(ran(hook, *(said(*batch, by=str(i)) for i, batch in enumerate(batches[:count])))).refusal is not None
        for count in range(len(batches) + 1)
    ]

    assert all(later or not earlier for earlier, later in pairwise(refusals))
