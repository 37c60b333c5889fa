"""effects.contract: the engine as a whole."""

import asyncio
from collections.abc import Sequence

import pytest

from interpose.contracts.effects import BlockTool, Effect, EvaluationContext, Hook, HookInput, Registration
from interpose.contracts.errors import MisuseError
from interpose.effects.contract import MiddlewareContract, create_middleware
from interpose.effects.diagnostics import Diagnostic, HookFailed, RegistrationConflict, SettingIgnored
from tests.effects.making import calling, emitting, engine, ids, raising, rule, saying

CALL = HookInput("before_tool", tool_name="shell", tool_aliases=("Bash",))


def test_rules_come_before_coded_registrations() -> None:
    """Rules are first, a coded one that collides with a rule is dropped, of rules with one id the first holds."""
    one = engine(
        emitting("coded"),
        emitting("a"),
        rules=[rule("a", hooks=("before_tool",)), rule("a", saying("second"), hooks=("before_tool",))],
    )
    assert ids(one.registrations()) == ["a", "coded"]
    assert one.run_hook(CALL).effects == (saying("a"), saying("coded"))
    assert isinstance(one, MiddlewareContract)


def test_diagnostics_reach_the_sink_of_the_moment() -> None:
    """A sink set later hears what comes later; one that raises disturbs nothing."""
    first: list[Diagnostic] = []
    second: list[Diagnostic] = []
    one = engine(raising("bad", ValueError("v")), emitting("good"), told=first)
    one.run_hook(CALL)
    one.set_diagnostic_sink(second.append)
    one.replace_registrations("user-hooks", 1, [emitting("good")])
    assert first == [HookFailed("bad", "before_tool", "ValueError: v")]
    assert second == [RegistrationConflict("good", "user-hooks", 1, "host", "dropped")]

    def fail(_diagnostic: Diagnostic) -> None:
        raise RuntimeError("sink")

    one.set_diagnostic_sink(fail)
    assert one.run_hook(CALL).rule_ids == ("good",)


def test_candidates_and_blocking() -> None:
    """Both answer by any name of the tool; blocking only where a blocking one matches."""
    one = engine(emitting("a", tool_names=("Bash",), blocking=True), emitting("b", tool_names=("read",)))
    assert ids(one.candidates("before_tool", "shell", ("Bash",))) == ["a"]
    assert one.has_blocking("before_tool", "shell", ("Bash",))
    assert not one.has_blocking("before_tool", "read")
    assert ids(one.candidates("after_tool", "read")) == []


def test_a_captured_list_is_the_one_that_runs() -> None:
    """A caller who looked at the candidates first has exactly those evaluated, whatever was published since."""
    one = engine(emitting("a"))
    captured = one.candidates("before_tool", "shell", ("Bash",))
    one.register_hook(emitting("waits", blocking=True))
    assert one.run_hook(CALL, captured).rule_ids == ("a",)
    assert one.run_hook(CALL).rule_ids == ("a", "waits")


def test_both_halves_together() -> None:
    """The asynchronous half sees the synchronous effects and returns its own alone; neither calls the other."""
    seen: list[int] = []

    async def later(_given: HookInput, context: EvaluationContext) -> Sequence[Effect]:
        seen.append(len(context.prior_effects))
        return [saying("later")]

    both = Registration("both", "d", ("before_tool",), evaluate=lambda *_: [saying("now")], evaluate_async=later)
    one = engine(both)
    now = one.run_hook(CALL)
    after = asyncio.run(one.run_async_hook(CALL, list(now.effects)))
    assert (now.effects, after.effects, seen) == ((saying("now"),), (saying("later"),), [1])


def test_an_evaluation_in_flight_finishes_on_its_own_list() -> None:
    """What is published during an await is seen by the next evaluation, not by this one."""

    async def scenario() -> tuple[tuple[str, ...], tuple[str, ...]]:
        entered, gate = asyncio.Event(), asyncio.Event()

        async def wait(*_given: object) -> Sequence[Effect]:
            entered.set()
            await gate.wait()
            return [saying("waited")]

        async def at_once(*_given: object) -> Sequence[Effect]:
            return [saying("x")]

        def owned(registration_id: str) -> Registration:
            return Registration(registration_id, "d", ("before_tool",), evaluate_async=at_once)

        one = engine(Registration("waits", "d", ("before_tool",), evaluate_async=wait))
        one.replace_registrations("user-hooks", 1, [owned("old")])
        flight = asyncio.create_task(one.run_async_hook(CALL))
        await entered.wait()
        one.replace_registrations("user-hooks", 2, [owned("new")])
        gate.set()
        return (await flight).rule_ids, (await one.run_async_hook(CALL)).rule_ids

    assert asyncio.run(scenario()) == (("waits", "old"), ("waits", "new"))


def test_a_registration_may_register_while_it_is_evaluated() -> None:
    """A synchronous run finishes on its list when one of its registrations publishes."""
    one = engine()

    def grow(*_given: object) -> Sequence[Effect]:
        one.register_hook(emitting("late"))
        return []

    one.register_hook(calling("grows", grow))
    assert ids([emission.registration for emission in one.run_hook(CALL).emissions]) == ["grows"]
    assert one.run_hook(CALL).rule_ids == ("late",)


def test_a_stateful_registration_blocks_at_its_own_threshold() -> None:
    """State that a registration keeps lives from run to run; others are not affected."""
    calls: list[str] = []

    def count(*_given: object) -> Sequence[Effect]:
        calls.append("call")
        return [BlockTool("too often")] if len(calls) >= 3 else []

    one = engine(calling("guard.loop", count), emitting("other"))
    assert [one.run_hook(CALL).rule_ids for _ in range(3)] == [("other",), ("other",), ("guard.loop", "other")]


def test_a_hook_that_does_not_exist_is_misuse() -> None:
    """An input at an unknown hook raises, in both halves, instead of passing unjudged."""
    unknown: list[Hook] = ["before_model"]  # type: ignore[list-item]
    with pytest.raises(MisuseError, match="before_model"):
        engine(emitting("a")).run_hook(HookInput(unknown[0]))
    with pytest.raises(MisuseError, match="before_model"):
        asyncio.run(engine(emitting("a")).run_async_hook(HookInput(unknown[0])))


def test_a_bad_environment_value_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that makes its own tracker reads the environment, and tells of each value it cannot use."""
    told: list[Diagnostic] = []
    monkeypatch.setenv("INTERPOSE_HOOK_BUDGET_WINDOW", "five")
    one = create_middleware(registrations=[emitting("a")], on_diagnostic=told.append)
    for _ in range(3):
        one.run_hook(CALL)
    assert told == [SettingIgnored("INTERPOSE_HOOK_BUDGET_WINDOW", "five", "a number")]
