"""guards.lineup: the order, and the whole of it in one engine."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from interpose.contracts.effects import BlockTool, ProtectPath, Registration
from interpose.effects.contract import MiddlewareContract, create_middleware
from interpose.guards.file_mutation import FileMutation
from interpose.guards.finish_contract import FinishDecision
from interpose.guards.lineup import GuardParts, GuardSinks, after_user_hooks, before_user_hooks, builtin_rules
from interpose.guards.loop import LoopEvent
from interpose.guards.protection import MemoryProtectionStore
from interpose.guards.settings import GuardSettings
from tests.guards.making import HeldClock, call, ended, prompted, reader, reason, result


def engine(parts: GuardParts, *users: Registration) -> MiddlewareContract:
    """An engine as a workspace has it: rules, guards, user hooks in their slot, guards."""
    made = create_middleware(rules=builtin_rules(), registrations=before_user_hooks(parts))
    made.replace_registrations("user-hooks", 1, users)
    for registration in after_user_hooks(parts):
        made.register_hook(registration)
    return made


def parts(sinks: GuardSinks | None = None, **settings: int) -> GuardParts:
    """Parts with a held clock."""
    return GuardParts(
        clock=HeldClock(),
        reader=reader(),
        store=MemoryProtectionStore(),
        settings=GuardSettings(**settings),  # type: ignore[arg-type]
        sinks=sinks or GuardSinks(),
    )


def protecting(path: str) -> Registration:
    """A user hook that protects a path whenever something is written."""
    return Registration(
        "user.protect", "protects", ("before_tool",), ("write",), evaluate=lambda *_: (ProtectPath(path, "mine"),)
    )


def test_the_order_is_the_product() -> None:
    """Rules first, then guards, the user's hooks, and what must see their effects."""
    listening = parts(GuardSinks(mutation=lambda _: None))
    assert [one.id for one in engine(listening, protecting("a")).registrations()] == [
        "nudge.stalled-turn",
        "safety.untrusted-instructions",
        "nudge.skill-suggestion-wait",
        "guard.loop",
        "guard.dispatch-dedup",
        "observer.file-mutation",
        "user.protect",
        "guard.protected-artifacts",
        "assessor.tool-prose-loop",
        "nudge.read-only-exploration",
        "assessor.finish-contract",
    ]


def test_without_a_listener_there_is_no_observer() -> None:
    """Nobody pays for what nobody hears."""
    assert [one.id for one in before_user_hooks(parts())] == ["guard.loop", "guard.dispatch-dedup"]


def test_our_own_guards_fail_closed_and_nothing_else_does() -> None:
    """Loop and protected artifacts refuse when they break; nudges never do."""
    everything = (*before_user_hooks(parts()), *after_user_hooks(parts()))
    assert [one.id for one in everything if one.fail_closed] == ["guard.loop", "guard.protected-artifacts"]
    assert not any(one.blocking or one.evaluate_async or one.mode == "observe" for one in everything)


def test_a_users_protection_refuses_the_very_call() -> None:
    """The user's hook is evaluated before the guard that takes it up."""
    made = engine(parts(), protecting("a.txt"))
    assert "mine" in reason(made.run_hook(call("write", {"path": "a.txt"})).effects)
    assert reason(made.run_hook(call("read", {"path": "a.txt"})).effects)
    assert not reason(made.run_hook(call("read", {"path": "b.txt"})).effects)


def test_the_settings_reach_the_guards() -> None:
    """A budget of three refuses the third call of a turn."""
    made = engine(parts(turn_tool_budget=3))
    said = [bool(reason(made.run_hook(call("read", {"path": name})).effects)) for name in "abc"]
    assert said == [False, False, True]


def test_every_sink_is_told() -> None:
    """Loops, changes and decisions reach who listens."""
    loops, changes, decisions = list[LoopEvent](), list[FileMutation](), list[FinishDecision]()
    made = engine(parts(GuardSinks(loop=loops.append, mutation=changes.append, finish=decisions.append)))
    for _ in range(3):
        made.run_hook(call("write", {"path": "a"}))
    made.run_hook(result("write", {"path": "a"}))
    made.run_hook(ended("done"))
    assert (len(loops), len(changes), len(decisions)) == (1, 1, 1)


def test_ordinary_work_is_never_disturbed() -> None:
    """A turn that reads, edits, tests and answers gets no effect at all."""
    made = engine(parts())
    work = [
        prompted("fix it"),
        call("read", {"path": "a.py"}),
        result("read", {"path": "a.py"}, "text"),
        call("search", {"pattern": "x"}),
        result("search", {"pattern": "x"}, "a.py:1"),
        call("edit", {"path": "a.py", "old": "x", "new": "y"}),
        result("edit", {"path": "a.py", "old": "x", "new": "y"}, "ok"),
        call("shell", {"command": "python -m pytest -q > /tmp/out 2>&1; tail /tmp/out"}),
        result("shell", {"command": "python -m pytest -q > /tmp/out 2>&1; tail /tmp/out"}, "3 passed"),
        call("shell", {"command": 'cat $UNKNOWN; eval "$CODE"'}),
        call("fetch", {"url": "https://example.com"}),
        ended("I fixed it and the tests pass.", turnToolCalls=6, stopReason="end_turn"),
        prompted("thanks", turn="t2"),
        ended("You are welcome.", turn="t2", turnToolCalls=0, stopReason="end_turn"),
    ]
    assert [effect for given in work for effect in made.run_hook(given).effects] == []


def test_rules_travel_and_guards_do_not() -> None:
    """A worker gets the rules alone."""
    assert [rule.id for rule in engine(parts()).snapshot().rules] == [
        "nudge.stalled-turn",
        "safety.untrusted-instructions",
        "nudge.skill-suggestion-wait",
    ]


@pytest.mark.parametrize("make", [before_user_hooks, after_user_hooks])
def test_each_workspace_has_guards_of_its_own(make: Callable[[GuardParts], tuple[Registration, ...]]) -> None:
    """State is never shared by accident."""
    shared = parts()
    for one, other in zip(make(shared), make(shared), strict=True):
        assert one.evaluate != other.evaluate or one.id == "assessor.tool-prose-loop"


def test_many_sessions_at_once_do_not_disturb_each_other() -> None:
    """In each of many sessions on many threads exactly the third identical call is refused."""
    made = engine(parts())

    def work(number: int) -> list[bool]:
        given = call("shell", {"command": "ls"}, session=f"s{number}")
        return [any(isinstance(effect, BlockTool) for effect in made.run_hook(given).effects) for _ in range(3)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(50))) == [[False, False, True]] * 50
