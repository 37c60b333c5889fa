"""guards.loop: identical calls, stagnation, lockout, stop, and the turn's budget."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from interpose.contracts.effects import (
    AnnotateToolResult,
    BlockTool,
    Effect,
    HookInput,
    LockTools,
    Registration,
)
from interpose.guards.loop import LoopBlocked, LoopEvent, LoopGuard, ToolBudgetExceeded
from tests.guards.making import HeldClock, call, evaluated, prompted, reason, result

SAME = {"command": "ls"}


class Desk:
    """One guard with its clock, its events, and short ways to ask it."""

    def __init__(self, *, turn_tool_budget: int = 60) -> None:
        self.clock = HeldClock()
        self.events: list[LoopEvent] = []
        self.guard = LoopGuard(clock=self.clock, turn_tool_budget=turn_tool_budget, sink=self.events.append)
        self.registration: Registration = self.guard.registration()
        self.number = 0

    def ask(self, args: dict[str, object] | None = None, **more: str | None) -> tuple[Effect, ...]:
        """What the guard says to a call."""
        return evaluated(self.registration, call("shell", SAME if args is None else args, **more))

    def other(self, **more: str | None) -> tuple[Effect, ...]:
        """What the guard says to a call that was never made before."""
        self.number += 1
        return self.ask({"command": f"echo {self.number}"}, **more)

    def dispositions(self) -> list[str]:
        """How the refusals went, in order."""
        return [event.disposition for event in self.events if isinstance(event, LoopBlocked)]


@pytest.fixture
def desk() -> Desk:
    """A fresh guard."""
    return Desk()


def test_the_third_identical_call_is_refused(desk: Desk) -> None:
    """Two pass, the third is a loop, and the event says so."""
    assert desk.ask() == desk.ask() == ()
    refused = desk.ask()
    assert reason(refused) == (
        "shell was called with the same arguments 3 times. Do something else, or answer with what you have."
    )
    assert len(refused) == 1
    assert desk.events == [LoopBlocked("s1", "t1", "shell", 3, 1, 2, "block", 1_000.0)]
    assert isinstance(desk.events[0], LoopBlocked)
    assert not desk.events[0].interrupted


def test_a_call_that_succeeded_is_pointed_at(desk: Desk) -> None:
    """The reason says that the answer is already there."""
    desk.ask()
    evaluated(desk.registration, result("shell", SAME, "out"))
    desk.ask()
    assert "its result stands above" in reason(desk.ask())


def test_an_empty_stub_is_no_success(desk: Desk) -> None:
    """A result of which nothing was shown is not an answer."""
    stub = {"observation": {"truncated": True, "shownCount": 0}}
    evaluated(desk.registration, result("shell", SAME, "out", details=stub))
    for _ in range(2):
        desk.ask()
    assert "stands above" not in reason(desk.ask())


def test_other_calls_sessions_and_turns_do_not_count(desk: Desk) -> None:
    """A loop is in one turn of one session."""
    for _ in range(2):
        assert desk.ask() == desk.ask(session="s2") == desk.ask(turn="t2") == desk.other() == ()


def test_after_thirty_seconds_and_four_attempts_a_call_is_new(desk: Desk) -> None:
    """Old attempts are forgotten."""
    desk.ask()
    desk.ask()
    for _ in range(3):
        desk.other()
    desk.clock.seconds += 30
    assert desk.ask() == ()


def test_a_changed_file_makes_the_same_test_another_call(desk: Desk) -> None:
    """After a write that went well the tests may be run again, as often as files change; without one they may not."""
    for number in range(5):
        assert desk.ask() == ()
        edit = {"path": "a.py", "content": str(number)}
        assert evaluated(desk.registration, call("write", edit)) == ()
        evaluated(desk.registration, result("write", edit, "written"))
    assert desk.ask() == desk.ask() == ()
    assert "3 times" in reason(desk.ask())


def test_the_same_write_over_and_over_is_a_loop(desk: Desk) -> None:
    """A write lets go of other calls' attempts, not of its own."""
    edit = {"path": "a.py", "content": "x"}
    for _ in range(2):
        assert evaluated(desk.registration, call("write", edit)) == ()
        evaluated(desk.registration, result("write", edit, "written"))
    assert "3 times" in reason(evaluated(desk.registration, call("write", edit)))


def test_who_waits_for_something_is_not_going_round(desk: Desk) -> None:
    """A call whose result changes may be repeated; one whose result stays the same may not."""
    for number in range(6):
        assert desk.ask() == ()
        evaluated(desk.registration, result("shell", SAME, f"{number} of 6 done"))
    assert desk.ask() == desk.ask() == ()
    assert "3 times" in reason(desk.ask())


def test_the_second_refusal_locks_the_tools(desk: Desk) -> None:
    """From then on every call of the turn is refused, also one never made before."""
    for _ in range(3):
        desk.ask()
    locked = desk.ask(round_id="r1")
    assert "tools are off" in reason(locked)
    assert locked[1:] == (LockTools(),)
    assert "tools are off" in reason(desk.other(round_id="r1"))
    assert desk.dispositions() == ["block", "lockout", "lockout"]
    assert desk.other(turn="t2") == ()


def test_calls_after_the_lock_stop_the_turn_on_the_third_round(desk: Desk) -> None:
    """Two further rounds are told to answer; then the turn is stopped. A round counts once."""
    for _ in range(4):
        desk.ask(round_id="r1")
    said = [desk.other(round_id=name) for name in ("r1", "r2", "r2", "r3", "r4", "r5")]
    assert [("being stopped" in reason(one)) for one in said] == [False, False, False, False, True, True]
    assert desk.dispositions()[-2:] == ["stop", "stop"]
    assert isinstance(desk.events[-1], LoopBlocked)
    assert desk.events[-1].interrupted


def test_without_rounds_each_denied_call_counts(desk: Desk) -> None:
    """A mount that knows no rounds counts calls."""
    for _ in range(4):
        desk.ask()
    assert [("being stopped" in reason(desk.other())) for _ in range(4)] == [False, False, True, True]


def test_the_sixtieth_call_of_a_turn_is_refused_and_the_seventy_fifth_stops_it(desk: Desk) -> None:
    """Fifty-nine pass; each event comes once."""
    said = [desk.other() for _ in range(80)]
    assert all(one == () for one in said[:59])
    assert all("sum up" in reason(one) and len(one) == 1 for one in said[59:74])
    assert all("being stopped" in reason(one) and one[1:] == (LockTools(),) for one in said[74:])
    budget = [event for event in desk.events if isinstance(event, ToolBudgetExceeded)]
    assert [(event.calls, event.budget, event.interrupted) for event in budget] == [(60, 60, False), (75, 60, True)]
    assert desk.other(turn="t2") == ()


def test_a_call_refused_as_a_loop_does_not_spend_the_budget() -> None:
    """Only attempts that are no loop count."""
    desk = Desk(turn_tool_budget=4)
    for _ in range(3):
        desk.ask()
    assert desk.other() == ()
    assert "tool call 4" in reason(desk.other())


def test_a_call_without_a_fingerprint_only_spends_the_budget() -> None:
    """What has no identity cannot be a loop."""
    desk = Desk(turn_tool_budget=5)
    said = [evaluated(desk.registration, call("shell", SAME, callFingerprint=None)) for _ in range(5)]
    assert [bool(one) for one in said] == [False, False, False, False, True]


def test_attempts_that_will_not_run_count_too(desk: Desk) -> None:
    """A loop of refused calls is seen."""
    for _ in range(2):
        assert evaluated(desk.registration, call("shell", SAME, decisionKind="deny")) == ()
    assert reason(evaluated(desk.registration, call("shell", SAME, decisionKind="deny")))


def test_two_equal_results_refuse_the_third_part_of_the_same_thing(desk: Desk) -> None:
    """Asking for another part brings nothing, and counts towards the lock."""
    for offset in (0, 10):
        args = {"path": "a", "offset": offset}
        assert evaluated(desk.registration, call("read", args)) == ()
        assert evaluated(desk.registration, result("read", args, "x")) == ()
    stuck = evaluated(desk.registration, call("read", {"path": "a", "offset": 20}))
    assert "same result 2 times" in reason(stuck)
    assert "tools are off" in reason(evaluated(desk.registration, call("read", {"path": "a", "limit": 3})))


@pytest.mark.parametrize(
    "between",
    [
        result("read", {"path": "a"}, "changed"),
        result("read", {"path": "b"}, "x"),
        result("search", {"path": "a"}, "x"),
        result("read", {"path": "a"}, "x", ok=False),
        result("read", {"path": "a"}, "x", resultFingerprint=None),
    ],
)
def test_anything_between_ends_the_standstill(desk: Desk, between: HookInput) -> None:
    """Another result, shape, tool or an error starts anew."""
    for offset in (0, 1):
        evaluated(desk.registration, result("read", {"path": "a", "offset": offset}, "x"))
    evaluated(desk.registration, between)
    assert evaluated(desk.registration, call("read", {"path": "a", "offset": 2})) == ()


def test_three_ways_to_ask_with_one_answer_are_warned_of_once(desk: Desk) -> None:
    """The warning is on the third way, and on no later one of the same run."""
    text = "x" * 64
    said = [evaluated(desk.registration, result("search", {"pattern": pattern}, text)) for pattern in "abcde"]
    assert [len(one) for one in said] == [0, 0, 1, 0, 0]
    assert isinstance(said[2][0], AnnotateToolResult)
    assert said[2][0].severity == "warn"
    evaluated(desk.registration, result("read", {"path": "z"}, text))
    again = [evaluated(desk.registration, result("search", {"pattern": pattern}, text)) for pattern in "fgh"]
    assert [len(one) for one in again] == [0, 0, 1]


def test_the_same_way_twice_is_one_way(desk: Desk) -> None:
    """Only different shapes count."""
    said = [
        evaluated(desk.registration, result("search", {"pattern": pattern}, "x" * 64))
        for pattern in ("a", "a", "b", "b")
    ]
    assert not any(said)


@pytest.mark.parametrize(("tool", "text"), [("search", "x" * 63), ("shell", "x" * 64)])
def test_short_results_and_tools_that_act_are_not_warned_of(desk: Desk, tool: str, text: str) -> None:
    """The result must have 64 bytes, and the tool must only read."""
    assert not any(evaluated(desk.registration, result(tool, {"pattern": pattern}, text)) for pattern in "abcd")


def test_one_call_at_two_mounts_counts_once(desk: Desk) -> None:
    """The second mount gets the first one's answer, a refusal too, and no second event."""
    for number in range(2):
        assert desk.ask(call_id=f"c{number}") == desk.ask(call_id=f"c{number}") == ()
    first = desk.ask(call_id="c2", round_id="r1")
    assert reason(first)
    assert desk.ask(call_id="c2") == first
    assert desk.dispositions() == ["block"]


def test_a_result_at_two_mounts_counts_once(desk: Desk) -> None:
    """The standstill of one result is not seen in its echo."""
    for _ in range(2):
        evaluated(desk.registration, result("read", {"path": "a"}, "x", call_id="c1"))
    assert evaluated(desk.registration, call("read", {"path": "a"}, call_id="c2")) == ()


def test_ids_that_start_anew_each_round_hide_no_loop(desk: Desk) -> None:
    """A call after the result of its id, or in another round, is another call."""
    for _ in range(2):
        assert desk.ask(call_id="call_0") == ()
        evaluated(desk.registration, result("shell", SAME, "out", call_id="call_0"))
    assert reason(desk.ask(call_id="call_0"))
    fresh = Desk()
    said = [fresh.ask(call_id="call_0", round_id=f"r{number}") for number in range(3)]
    assert [bool(one) for one in said] == [False, False, True]


def test_where_no_turn_is_known_only_identical_calls_are_refused(desk: Desk) -> None:
    """No lockout and no budget can last for ever; identical calls are refused all the same."""
    assert not any(desk.other(turn=None) for _ in range(100))
    assert [bool(desk.ask(turn=None)) for _ in range(6)] == [False, False, True, True, True, True]
    assert set(desk.dispositions()) == {"block"}
    assert desk.other(turn=None) == ()


def test_where_no_turn_is_known_an_unchanged_result_is_no_standstill(desk: Desk) -> None:
    """A program that polls now and then is not an agent that stands still."""
    for offset in range(5):
        args = {"path": "a", "offset": offset}
        assert evaluated(desk.registration, call("read", args, turn=None)) == ()
        evaluated(desk.registration, result("read", args, "x", turn=None))


def test_a_prompt_begins_a_turn_that_has_no_id(desk: Desk) -> None:
    """A mount that sees prompts and no turn ids has turns too; a continuation is no prompt."""
    evaluated(desk.registration, prompted(turn=None))
    for _ in range(4):
        desk.ask(turn=None)
    assert "tools are off" in reason(desk.other(turn=None))
    evaluated(desk.registration, prompted(turn=None, again=True))
    assert "tools are off" in reason(desk.other(turn=None))
    evaluated(desk.registration, prompted(turn=None))
    assert desk.other(turn=None) == desk.ask(turn=None) == ()


def test_a_listener_that_fails_changes_nothing() -> None:
    """The refusal stands."""

    def fail(_event: LoopEvent) -> None:
        raise RuntimeError("no")

    registration = LoopGuard(clock=HeldClock(), sink=fail).registration()
    said = [evaluated(registration, call("shell", SAME)) for _ in range(3)]
    assert reason(said[2])


def test_a_listener_may_ask_the_guard() -> None:
    """Events are told when the lock is free."""
    asked: list[tuple[Effect, ...]] = []

    def ask(_event: LoopEvent) -> None:
        asked.append(evaluated(registration, call("shell", {"command": "other"})))

    registration = LoopGuard(clock=HeldClock(), sink=ask).registration()
    for _ in range(3):
        evaluated(registration, call("shell", SAME))
    assert asked == [()]


def test_old_turns_and_sessions_are_forgotten(desk: Desk) -> None:
    """State is bounded: a turn or session that comes back after very many others starts anew."""
    for _ in range(4):
        desk.ask()
    for number in range(40):
        desk.other(turn=f"n{number}")
    assert desk.other() == ()
    for number in range(1_100):
        desk.other(session=f"n{number}")
    assert len(desk.guard._sessions) == 1_024


def test_many_threads_lose_no_count() -> None:
    """Of identical calls from many threads exactly two pass; of others exactly the budget."""
    desk = Desk(turn_tool_budget=200)
    with ThreadPoolExecutor(8) as pool:
        same = list(pool.map(lambda _: desk.ask(turn="same"), range(40)))
        others = list(pool.map(lambda n: desk.ask({"command": f"n{n}"}, turn="others"), range(400)))
    assert sum(one == () for one in same) == 2
    assert sum(one == () for one in others) == 199
    assert sum(isinstance(effect, BlockTool) for one in others for effect in one) == 201


def test_the_guard_fails_closed() -> None:
    """A failure of this guard at a call counts as a refusal."""
    assert Desk().registration.fail_closed
