"""effects.runtime: order, prior effects, isolation, scope, text cap, time."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import (
    AnnotateToolResult,
    BlockTool,
    Effect,
    EvaluationContext,
    HookInput,
    InjectReminder,
    LockTools,
    ProtectPath,
    Registration,
)
from interpose.effects.budget import BudgetTracker
from interpose.effects.diagnostics import BudgetExceeded, Diagnostic, HookFailed
from interpose.effects.runtime import Instruments, frozen_input, run, run_async
from interpose.kernel.frozen import FrozenDict, freeze
from tests.effects.making import calling, emitting, ids, raising, saying

CALL = HookInput("before_tool", tool_name="write")


def listening(told: list[Diagnostic], *clock: float) -> Instruments:
    """Instruments that append diagnostics to `told` and read times from `clock`, or a clock that stands still."""
    readings: Iterator[float] = iter(clock) if clock else itertools.repeat(0.0)
    return Instruments(BudgetTracker(), told.append, lambda: next(readings))


def seeing(registration_id: str, seen: list[tuple[str, ...]]) -> Registration:
    """A registration that notes the texts of prior effects and says its own id."""

    def evaluate(_hook_input: HookInput, context: EvaluationContext) -> Sequence[Effect]:
        seen.append(tuple(effect.message for effect in context.prior_effects if isinstance(effect, InjectReminder)))
        return [saying(registration_id)]

    return calling(registration_id, evaluate)


def later(registration_id: str, seen: list[tuple[str, ...]]) -> Registration:
    """As `seeing`, in the asynchronous half."""

    async def evaluate(_hook_input: HookInput, context: EvaluationContext) -> Sequence[Effect]:
        await asyncio.sleep(0)
        seen.append(tuple(effect.message for effect in context.prior_effects if isinstance(effect, InjectReminder)))
        return [saying(registration_id)]

    return Registration(registration_id, "Says its id later.", ("before_tool",), evaluate_async=evaluate)


def test_registrations_run_in_order_and_see_prior_effects() -> None:
    """Each sees what those before it emitted, in order; ids are listed once, in order, if anything was emitted."""
    seen: list[tuple[str, ...]] = []
    silent = calling("silent", lambda *_: [])
    result = run(CALL, [seeing("a", seen), silent, emitting("b", saying("b1"), saying("b2")), seeing("c", seen)])
    assert seen == [(), ("a", "b1", "b2")]
    assert result.effects == (saying("a"), saying("b1"), saying("b2"), saying("c"))
    assert result.rule_ids == ("a", "b", "c")
    assert ids([emission.registration for emission in result.emissions]) == ["a", "silent", "b", "c"]


def test_hook_and_tool_scopes_are_exact() -> None:
    """Another hook, another tool, another case and an input without a tool do not match a scoped registration."""
    scoped = emitting("scoped", tool_names=("write",))
    assert run(CALL, [scoped]).rule_ids == ("scoped",)
    for other in (
        HookInput("before_tool", tool_name="read"),
        HookInput("before_tool", tool_name="Write"),
        HookInput("before_tool"),
        HookInput("after_tool", tool_name="write"),
    ):
        assert run(other, [scoped]).emissions == ()


def test_an_alias_matches_and_each_runs_once() -> None:
    """A registration whose scope holds several names of one tool runs once."""
    given = HookInput("before_tool", tool_name="shell", tool_aliases=("Bash", "bash"))
    result = run(given, [emitting("a", tool_names=("bash", "shell", "Bash"))])
    assert result.effects == (saying("a"),)


def test_a_block_does_not_end_the_run() -> None:
    """After a block_tool every other matching registration still runs."""
    result = run(CALL, [emitting("guard", BlockTool("no")), emitting("after")])
    assert result.effects == (BlockTool("no"), saying("after"))


def test_a_raising_registration_is_told_and_skipped() -> None:
    """Its failure is one exact diagnostic; later ones run and do not see it; no sample is taken."""
    told: list[Diagnostic] = []
    seen: list[tuple[str, ...]] = []
    result = run(CALL, [raising("bad", ValueError("boom")), seeing("good", seen)], listening(told))
    assert told == [HookFailed("bad", "before_tool", "ValueError: boom")]
    assert seen == [()]
    assert result.rule_ids == ("good",)
    assert result.emissions[0].failure == "ValueError: boom"
    assert result.emissions[0].effects == ()


@pytest.mark.parametrize(
    ("error", "text"),
    [(ValueError(), "ValueError"), (KeyError("k"), "KeyError: 'k'"), (RuntimeError("x" * 5000), "RuntimeError: xxx")],
)
def test_failures_have_a_short_text(error: Exception, text: str) -> None:
    """The text is the type and what the exception says, of bounded length."""
    failure = run(CALL, [raising("bad", error)], listening([])).emissions[0].failure
    assert failure is not None
    assert failure.startswith(text)
    assert len(failure) <= 2000


def test_an_exception_that_cannot_say_itself_is_still_a_failure() -> None:
    """An exception whose text raises is named by its type."""

    class Mute(Exception):  # noqa: N818 - a stand-in
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert run(CALL, [raising("bad", Mute())], listening([])).emissions[0].failure == "Mute"


def test_fail_closed_blocks_at_before_tool_and_the_rest_still_run() -> None:
    """A failing fail-closed registration blocks by name, counts like any block, and others see it."""
    seen: list[int] = []

    def count(_hook_input: HookInput, context: EvaluationContext) -> Sequence[Effect]:
        seen.append(len(context.prior_effects))
        return []

    result = run(CALL, [raising("guard.x", ValueError("b"), fail_closed=True), calling("c", count)], listening([]))
    (block,) = result.effects
    assert isinstance(block, BlockTool)
    assert "guard.x" in block.reason
    assert result.rule_ids == ("guard.x",)
    assert (result.emissions[0].failure, result.emissions[0].effects) == ("ValueError: b", (block,))
    assert seen == [1]


def test_fail_closed_at_other_hooks_is_a_failure_only() -> None:
    """Where nothing can be blocked, fail_closed adds no effect."""
    result = run(HookInput("turn_end"), [raising("x", ValueError("b"), fail_closed=True)], listening([]))
    assert (result.effects, result.emissions[0].failure) == ((), "ValueError: b")


async def _coroutine() -> Sequence[Effect]:
    return []


def _generator() -> Iterator[Effect]:
    yield saying("x")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "returned None; expected a list or tuple of effects (it may be empty), or Unknown"),
        ("block_tool", "returned a text; expected a list"),
        ({"kind": "block_tool"}, "returned a value of type dict; expected a list"),
        (BlockTool("no"), "returned a value of type BlockTool; expected a list"),
        ([{"kind": "block_tool"}], "returned a value of type dict among its effects; expected one of the eight"),
        ([BlockTool], "returned the class BlockTool among its effects"),
        ([BlockTool(5)], "returned BlockTool.reason as a value of type int; expected text"),  # type: ignore[arg-type]
        ([ProtectPath("p", None)], "returned ProtectPath.reason as None; expected text"),  # type: ignore[arg-type]
        ([AnnotateToolResult("m", "hard-block")], "severity 'hard-block'; expected one of"),  # type: ignore[arg-type]
        (Unknown(3), "returned Unknown with a reason that is a value of type int"),  # type: ignore[arg-type]
        (_generator(), "returned a value of type generator; expected a list"),
    ],
)
def test_what_is_no_answer_is_a_failure_of_its_registration(answer: Any, text: str) -> None:
    """Anything but effects or Unknown fails that registration alone, with a text that says what was expected."""
    told: list[Diagnostic] = []
    result = run(CALL, [calling("bad", lambda *_: answer), emitting("good")], listening(told))
    (failed,) = told
    assert isinstance(failed, HookFailed)
    assert text in failed.message
    assert result.rule_ids == ("good",)


def test_an_async_function_that_is_called_in_the_sync_pass_fails_without_a_warning() -> None:
    """A coroutine is closed, so that nothing warns of it later."""
    mistaken: Any = lambda *_: _coroutine()  # noqa: E731 - hides that it is async
    result = run(CALL, [calling("bad", mistaken)], listening([]))
    assert "coroutine" in (result.emissions[0].failure or "")


def test_a_list_that_raises_while_it_is_read_is_a_failure() -> None:
    """What an answer does while it is read stays with its registration."""

    class Trap(list[Effect]):
        def __iter__(self) -> Iterator[Effect]:
            raise ValueError("trap")

    result = run(CALL, [calling("bad", lambda *_: Trap()), emitting("good")], listening([]))
    assert (result.emissions[0].failure, result.rule_ids) == ("ValueError: trap", ("good",))


def test_unknown_is_kept_in_its_emission() -> None:
    """An `Unknown` is in no effects and no ids, and it is no failure."""
    result = run(CALL, [calling("guard", lambda *_: Unknown("unparsable"))], listening([]))
    assert (result.effects, result.rule_ids) == ((), ())
    assert (result.emissions[0].unknown, result.emissions[0].failure) == (Unknown("unparsable"), None)


def test_an_observing_registration_changes_nothing() -> None:
    """Its effects stay in its emission: not in the result, not in ids, not in what others see; failures too."""
    seen: list[tuple[str, ...]] = []
    broken = Registration("b", "d", ("before_tool",), evaluate=lambda *_: 1 / 0, mode="observe", fail_closed=True)  # type: ignore[arg-type]
    result = run(CALL, [emitting("o", BlockTool("no"), mode="observe"), broken, seeing("a", seen)], listening([]))
    assert (result.effects, result.rule_ids, seen) == ((saying("a"),), ("a",), [()])
    assert result.emissions[0].effects == (BlockTool("no"),)
    assert isinstance(result.emissions[1].effects[0], BlockTool)


def test_what_a_registration_is_given_cannot_be_changed() -> None:
    """Nested values, metadata, the input itself and prior effects refuse to change; the caller's own are untouched."""
    arguments = {"path": "a", "nested": {"list": [1]}}
    attempts = 0

    def tamper(hook_input: HookInput, context: EvaluationContext) -> Sequence[Effect]:
        nonlocal attempts
        given: Any = hook_input
        changes: list[Callable[[], Any]] = [
            lambda: given.tool_args.update(path="b"),
            lambda: given.tool_args["nested"]["list"].append(2),
            lambda: given.metadata.pop("n"),
        ]
        for change in changes:
            with pytest.raises(TypeError, match="frozen"):
                change()
            attempts += 1
        with pytest.raises(FrozenInstanceError):
            given.tool_name = "read"
        with pytest.raises(FrozenInstanceError):
            context.prior_effects[0].reason = "other"  # type: ignore[union-attr,misc]
        return []

    given = HookInput("before_tool", tool_name="write", tool_args=arguments, metadata={"n": 1})
    result = run(given, [emitting("guard", BlockTool("no")), calling("tamper", tamper)], listening([]))
    assert (attempts, [emission.failure for emission in result.emissions]) == (3, [None, None])
    assert arguments == {"path": "a", "nested": {"list": [1]}}
    arguments["path"] = "later"
    assert (result.input.tool_args or {})["path"] == "a"


def test_a_list_that_is_changed_after_it_was_returned_changes_nothing() -> None:
    """The engine takes its own tuple of what was returned."""
    kept: list[Effect] = [saying("a")]
    result = run(CALL, [calling("a", lambda *_: kept), calling("b", lambda *_: kept.clear() or [])])  # type: ignore[func-returns-value]
    assert result.effects == (saying("a"),)


def test_text_is_capped_and_frozen_input_is_not_copied() -> None:
    """The first 16,000 characters pass; an input that is frozen already is the very object registrations see."""
    seen: list[HookInput] = []

    def look(hook_input: HookInput, _context: EvaluationContext) -> Sequence[Effect]:
        seen.append(hook_input)
        return []

    run(HookInput("turn_end", text="é" * 16_001), [calling("a", look, hooks=("turn_end",))])
    assert seen[0].text == "é" * 16_000
    ready = HookInput("turn_end", metadata=freeze({"a": 1}), tool_args=freeze({}), text="é" * 16_000)
    run(ready, [calling("a", look, hooks=("turn_end",))])
    assert seen[1] is ready
    assert type(frozen_input(CALL).metadata) is FrozenDict


def test_the_clock_is_read_exactly_twice_per_evaluation() -> None:
    """Two readings for each that answers and each that fails, none for those that do not match."""
    clock = (1.0, 1.002, 2.0, 2.005)
    other = emitting("other", hooks=("turn_end",))
    result = run(CALL, [emitting("a"), other, raising("bad", ValueError())], listening([], *clock))
    assert [round(emission.elapsed_ms, 6) for emission in result.emissions] == [2.0, 5.0]


def test_overruns_are_told_and_never_drop_effects() -> None:
    """After warm-up each overrun is told, the third as steady; the effects are there every time."""
    told: list[Diagnostic] = []
    tools = listening(told, *itertools.chain.from_iterable((at, at + 0.030) for at in range(4)))
    for _ in range(4):
        assert run(CALL, [emitting("slow")], tools).effects == (saying("slow"),)
    overruns = [one for one in told if isinstance(one, BudgetExceeded)]
    assert [one.steady_state_warn for one in overruns] == [False, False, True]
    assert overruns[-1].stats.over_count == 3
    assert (overruns[0].budget_ms, round(overruns[0].elapsed_ms)) == (25.0, 30)


def test_failures_are_not_sampled() -> None:
    """A failing evaluation leaves warm-up to the first that answers."""
    told: list[Diagnostic] = []
    tools = listening(told, 0, 1, 2, 3)
    run(CALL, [raising("a", ValueError())], tools)
    run(CALL, [emitting("a")], tools)
    assert [type(one) for one in told] == [HookFailed]


def test_without_instruments_a_run_is_on_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A lone run writes diagnostics to standard error."""
    run(CALL, [raising("bad", ValueError("line\nbreak"))])
    assert capsys.readouterr().err == "[interpose:effects] bad failed at before_tool: ValueError: line\\nbreak\n"


def test_the_asynchronous_half_is_serial_and_sees_what_came_before() -> None:
    """One after the other in order; each sees the synchronous effects, then the asynchronous ones so far."""
    seen: list[tuple[str, ...]] = []
    listed = [later("a", seen), emitting("sync only"), later("b", seen)]
    prior = run(CALL, listed, listening([])).effects
    result = asyncio.run(run_async(CALL, listed, prior, listening([])))
    assert seen == [("sync only",), ("sync only", "a")]
    assert (result.effects, result.rule_ids) == ((saying("a"), saying("b")), ("a", "b"))


def test_a_failing_asynchronous_registration_is_isolated() -> None:
    """Its failure is told and counts nowhere; fail_closed holds here as in the synchronous half."""

    async def fail(*_given: object) -> Sequence[Effect]:
        await asyncio.sleep(0)
        raise OSError("down")

    told: list[Diagnostic] = []
    seen: list[tuple[str, ...]] = []
    listed = [Registration("bad", "d", ("before_tool",), evaluate_async=fail), later("b", seen)]
    result = asyncio.run(run_async(CALL, listed, (), listening(told)))
    assert told == [HookFailed("bad", "before_tool", "OSError: down")]
    assert (seen, result.rule_ids) == ([()], ("b",))
    closed = Registration("guard.a", "d", ("before_tool",), evaluate_async=fail, fail_closed=True)
    (block,) = asyncio.run(run_async(CALL, [closed], (), listening([]))).effects
    assert isinstance(block, BlockTool)


def test_what_cannot_be_awaited_is_a_failure() -> None:
    """An evaluate_async that returns its effects outright fails with a text."""
    mistaken: Any = lambda *_: [LockTools()]  # noqa: E731 - hides that it is not async
    listed = [Registration("bad", "d", ("before_tool",), evaluate_async=mistaken)]
    result = asyncio.run(run_async(CALL, listed, (), listening([])))
    assert "await" in (result.emissions[0].failure or "")


def test_the_asynchronous_half_is_measured_with_the_same_tracker() -> None:
    """Asynchronous overruns are told like synchronous ones."""
    told: list[Diagnostic] = []
    tools = listening(told, 0, 1, 2, 3)

    async def twice() -> None:
        for _ in range(2):
            await run_async(CALL, [later("slow", [])], (), tools)

    asyncio.run(twice())
    assert [type(one) for one in told] == [BudgetExceeded]


def test_cancelling_the_caller_cancels_the_run() -> None:
    """A cancellation from outside goes through; the registration is not reported as failed."""
    told: list[Diagnostic] = []

    async def scenario() -> bool:
        entered = asyncio.Event()

        async def wait(*_given: object) -> Sequence[Effect]:
            entered.set()
            await asyncio.Event().wait()
            return []

        listed = [Registration("waits", "d", ("before_tool",), evaluate_async=wait)]
        task = asyncio.create_task(run_async(CALL, listed, (), listening(told)))
        await entered.wait()
        task.cancel()
        await asyncio.wait([task], timeout=5)
        return task.cancelled()

    assert asyncio.run(scenario())
    assert told == []


def test_a_cancellation_of_a_registrations_own_making_is_its_failure() -> None:
    """Awaiting something that was cancelled elsewhere fails that registration alone."""

    async def scenario() -> tuple[str, ...]:
        def cancelled(*_given: object) -> Awaitable[Sequence[Effect]]:
            future: asyncio.Future[Sequence[Effect]] = asyncio.get_running_loop().create_future()
            future.cancel()
            return future

        listed = [Registration("bad", "d", ("before_tool",), evaluate_async=cancelled), later("good", [])]
        return (await run_async(CALL, listed, (), listening([]))).rule_ids

    assert asyncio.run(scenario()) == ("good",)


def test_a_list_that_changes_during_an_await_is_the_captured_one() -> None:
    """The run goes on over the list it started with."""

    async def scenario() -> tuple[str, ...]:
        listed: list[Registration] = []

        async def grow(*_given: object) -> Sequence[Effect]:
            listed.append(later("late", []))
            return [saying("first")]

        listed.append(Registration("first", "d", ("before_tool",), evaluate_async=grow))
        return (await run_async(CALL, listed, (), listening([]))).rule_ids

    assert asyncio.run(scenario()) == ("first",)
