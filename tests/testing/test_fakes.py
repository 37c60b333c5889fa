"""The fakes play their ports."""

import asyncio
from collections.abc import Callable

import pytest

from interpose.contracts.ports import ApprovalRequest, Approvals, Clock, Launches, Pause, Policy, Workspaces
from interpose.contracts.stages import LLM_STAGES, STAGES, Annotation, Context, Point, ToolResult, TurnStart
from interpose.contracts.verdict import Refusal, Verdict
from interpose.testing.fakes import (
    FakeApprovals,
    FakeClock,
    FakeLaunches,
    FakePause,
    FakePolicy,
    FakeWorkspaces,
    allow,
    refuse,
)

CONTEXT = Context("process", "s")
POINT = TurnStart(CONTEXT, "hi")


def test_every_fake_fits_its_port() -> None:
    """Checked by the type checker: each can stand where the port is asked for."""
    clock: Clock = FakeClock()
    launches: Launches = FakeLaunches()
    workspaces: Workspaces = FakeWorkspaces()
    pause: Pause = FakePause()
    policy: Policy = FakePolicy()
    assert all([clock, launches, workspaces, pause])
    assert isinstance(policy, Policy)
    assert isinstance(FakeApprovals(), Approvals)


def test_a_policy_answers_and_records() -> None:
    """Sync and async alike; it allows without a function."""
    policy = FakePolicy()
    assert policy.judge(POINT).allowed
    assert asyncio.run(policy.judge_async(POINT)).stage == "turn.start"
    assert policy.points == (POINT, POINT)
    refusing = FakePolicy(lambda point: refuse(point, "why", "who"))
    assert refusing.judge(POINT).refusal == Refusal("who", "why")


def test_a_policy_wants_and_changes_what_it_is_told_to() -> None:
    """Everything but the model's traffic, and changes nothing, without a word."""
    plain = FakePolicy()
    assert {stage for stage in STAGES if plain.wants(stage)} == set(STAGES) - set(LLM_STAGES)
    assert not any(plain.changes(stage) for stage in STAGES)
    told = FakePolicy(wants=["llm.chunk"], changes=["llm.response"])
    assert [stage for stage in STAGES if told.wants(stage)] == ["llm.chunk"]
    assert [stage for stage in STAGES if told.changes(stage)] == ["llm.response"]


def test_approvals_say_whether_somebody_is_there() -> None:
    """And answer all the same."""
    request = ApprovalRequest("shell", {}, "d")
    assert FakeApprovals().can_ask()
    absent = FakeApprovals(lambda _request: True, present=False)
    assert (absent.can_ask(), absent.ask(request, timeout_s=1)) == (False, True)
    assert absent.requests == (request,)


@pytest.mark.parametrize("answer", [allow, refuse])
def test_a_result_keeps_its_annotations(answer: Callable[[Point], Verdict]) -> None:
    """As the real policy lists those of the call first."""
    notes = (Annotation("h", "info", "m"),)
    point: Point = ToolResult(CONTEXT, "c", "t", {}, "out", annotations=notes)
    assert FakePolicy(answer).judge(point).annotations == notes


def test_a_clock_moves_when_it_is_moved() -> None:
    """Both readings together, and never back."""
    clock = FakeClock(100.0)
    clock.advance(2.5)
    assert (clock.now(), clock.monotonic()) == (102.5, 2.5)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


def test_launches_are_found_by_their_secret() -> None:
    """Ids and secrets are counted up; a wrong secret finds nobody."""
    launches = FakeLaunches()
    launch, secret = launches.register(workspace="/w", agent="codex")
    other, _ = launches.register(workspace="/w", cwd="/w/sub", upstream="http://u")
    assert (launch.id, secret, launch.cwd, launch.agent) == ("l1", "secret-1", "/w", "codex")
    assert (other.id, other.cwd, other.upstream) == ("l2", "/w/sub", "http://u")
    assert launches.find(secret) is launch
    assert launches.find("secret-9") is None
    assert len(launches.launches) == 2


def test_workspaces_and_pause_answer_by_root() -> None:
    """Named roots get their own policy, every other one the default."""
    mine, default = FakePolicy(), FakePolicy()
    workspaces = FakeWorkspaces({"/w": mine}, default=default)
    assert workspaces.policy("/w") is mine
    assert workspaces.policy(None) is workspaces.policy("/x") is default
    pause = FakePause()
    pause.off.add("/w")
    assert (pause.is_off("/w"), pause.is_off("/x")) == (True, False)
