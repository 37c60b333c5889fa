"""policy.asking: what a person is asked, and what each answer means."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from interpose.contracts.decisions import OnUnknown, Unknown
from interpose.contracts.digest import call_digest
from interpose.contracts.effects import BlockTool, Effect, EvaluationContext, HookInput, Registration
from interpose.contracts.ports import ApprovalRequest
from interpose.contracts.stages import Context, ToolCall, TurnStart
from interpose.contracts.verdict import Verdict
from interpose.effects.contract import create_middleware
from interpose.kernel.clock import SystemClock
from interpose.policy.judgement import EffectPolicy
from interpose.testing.fakes import FakeApprovals, FakePause
from interpose.testing.journal import MemoryJournal

HERE = Context(mount="wire", session="s1", workspace="/w", agent="claude-code", turn="t1")
CALL = ToolCall(HERE, "c1", "Bash", {"command": "$CMD"})


def guard(name: str, reason: str = "what is $CMD?", on_unknown: OnUnknown = "ask") -> Registration:
    """A check handler that cannot tell."""

    def evaluate(_given: HookInput, _context: EvaluationContext) -> Unknown:
        return Unknown(reason)

    return Registration(name, "", ("before_tool",), None, evaluate, on_unknown=on_unknown)


def blocker(_given: HookInput, _context: EvaluationContext) -> Sequence[Effect]:
    """Refuses."""
    return (BlockTool("no"),)


class House:
    """A policy with a person behind it."""

    def __init__(
        self, answer: Callable[[ApprovalRequest], bool | None], *checks: Registration, present: bool = True
    ) -> None:
        self.journal = MemoryJournal()
        self.approvals = FakeApprovals(answer, present=present)
        self.policy = EffectPolicy(
            create_middleware(registrations=checks or [guard("g")]),
            journal=self.journal,
            clock=SystemClock(),
            pause=FakePause(),
            approvals=self.approvals,
            ask_timeout_s=7.0,
        )

    def judge(self, call: ToolCall = CALL, *, on_loop: bool = False) -> Verdict:
        """The verdict, from a thread or from an event loop."""
        return asyncio.run(self.policy.judge_async(call)) if on_loop else self.policy.judge(call)


def reason(verdict: Verdict) -> str:
    """Why it was refused."""
    assert verdict.refusal is not None
    return verdict.refusal.reason


@pytest.mark.parametrize("on_loop", [True, False])
def test_a_yes_lets_the_call_run(*, on_loop: bool) -> None:
    """The question holds exactly what will run, and who wants it asked."""
    house = House(lambda _request: True)
    verdict = house.judge(on_loop=on_loop)
    assert verdict.outcome == "allowed"
    assert house.approvals.requests == (
        ApprovalRequest(
            "Bash",
            {"command": "$CMD"},
            call_digest("Bash", {"command": "$CMD"}),
            "what is $CMD?",
            handler="g",
            session="s1",
            workspace="/w",
            agent="claude-code",
            call_id="c1",
        ),
    )
    asked = verdict.reactions[-1]
    assert (asked.handler, asked.phase, asked.answer, asked.reason) == ("g", "ask", "continue", "a person said yes")


@pytest.mark.parametrize("on_loop", [True, False])
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (False, "a person was asked and said no: what is $CMD?"),
        (None, "it cannot be told what this call would do and nobody answered within 7 s: what is $CMD?."),
        ("yes", "a person was asked and said no"),
        (1, "a person was asked and said no"),
    ],
)
def test_only_true_allows(answer: bool | None, told: str, *, on_loop: bool) -> None:
    """Everything else refuses, in words that say which."""
    verdict = House(lambda _request: answer).judge(on_loop=on_loop)
    assert verdict.outcome == "refused"
    assert told in reason(verdict)
    assert (verdict.reactions[-1].phase, verdict.reactions[-1].answer) == ("ask", "cancel")


def test_a_question_that_was_cut_off_is_told_so() -> None:
    """Whoever asks has stopped, or the last terminal is gone: it did not wait for as long as it would have."""

    def leave(_request: ApprovalRequest) -> None:
        house.approvals.leave()

    house = House(leave)

    assert "and nobody answered, and nobody can be asked any more: what is $CMD?." in reason(house.judge())


def test_where_nobody_is_there_nobody_is_asked() -> None:
    """It is refused at once, as without approvals at all."""
    absent = House(lambda _request: True, present=False)
    assert "and nobody could be asked: what is $CMD?." in reason(absent.judge())
    assert absent.approvals.requests == ()
    assert all(reaction.phase == "check" for reaction in absent.judge().reactions)


def test_approvals_that_fail_refuse() -> None:
    """Whichever of its two methods it is."""

    def broken(_request: ApprovalRequest) -> bool:
        raise OSError("the disk is full")

    assert "asking a person failed (OSError: the disk is full)" in reason(House(broken).judge())

    class Broken(FakeApprovals):
        def can_ask(self) -> bool:
            raise OSError("no")

    house = House(lambda _request: True)
    house.policy = EffectPolicy(
        create_middleware(registrations=[guard("g")]),
        journal=house.journal,
        clock=SystemClock(),
        pause=FakePause(),
        approvals=Broken(),
    )
    assert "nobody could be asked" in reason(house.judge())


def test_a_yes_holds_for_the_turn() -> None:
    """The same call is not asked twice in one turn; another call, turn or session is asked."""
    house = House(lambda _request: True)
    house.policy.judge(TurnStart(HERE, "go"))
    assert house.judge().allowed
    again = house.judge(replace(CALL, call_id="c2"))
    assert again.allowed
    assert again.reactions[-1].reason == "a person said yes to this before, in the same turn"
    assert len(house.approvals.requests) == 1
    house.judge(replace(CALL, arguments={"command": "$OTHER"}))
    house.judge(replace(CALL, context=replace(HERE, session="s2")))
    house.policy.judge(TurnStart(HERE, "more"))
    house.judge()
    assert len(house.approvals.requests) == 4


def test_where_no_turn_is_seen_a_yes_holds_for_one_call() -> None:
    """Seen at two mounts it is asked once; the same words again are another call."""
    house = House(lambda _request: True)
    assert house.judge().allowed
    assert house.judge().allowed
    assert len(house.approvals.requests) == 1
    house.judge(replace(CALL, call_id="c2"))
    assert len(house.approvals.requests) == 2


def test_a_no_is_not_kept() -> None:
    """The person may think otherwise of the next one."""
    answers = iter([False, True])
    house = House(lambda _request: next(answers))
    assert [house.judge().outcome, house.judge().outcome] == ["refused", "allowed"]


def test_several_doubts_are_one_question() -> None:
    """It names every reason once; the first handler is who asks."""
    house = House(lambda _request: True, guard("a", "one"), guard("b", "two"), guard("c", "one"))
    assert house.judge().allowed
    (request,) = house.approvals.requests
    assert (request.handler, request.reason) == ("a", "one; two")


def test_what_is_refused_anyway_is_not_asked() -> None:
    """Neither after a block, nor where another doubt refuses."""
    for refusing in (Registration("block", "", ("before_tool",), None, blocker), guard("strict", on_unknown="refuse")):
        house = House(lambda _request: True, guard("a"), refusing)
        verdict = house.judge()
        assert verdict.refusal is not None
        assert verdict.refusal.handler == refusing.id
        assert house.approvals.requests == ()


def test_what_cannot_be_shown_cannot_be_asked() -> None:
    """A yes to arguments that nobody could read would be a yes to anything."""
    house = House(lambda _request: True)
    verdict = house.judge(ToolCall(HERE, "c1", "Bash", {}, problem="a key stands twice"))
    assert "nor can anybody be shown it and asked" in reason(verdict)
    assert house.approvals.requests == ()


def test_many_wait_at_once_without_the_loops_threads() -> None:
    """A hundred open questions leave the event loop and its pool free."""
    gate = threading.Event()
    house = House(lambda _request: gate.wait(10))

    async def main() -> list[Verdict]:
        calls = [replace(CALL, call_id=f"c{number}") for number in range(100)]
        tasks = [asyncio.create_task(house.policy.judge_async(call)) for call in calls]
        while len(house.approvals.requests) < len(calls):
            await asyncio.to_thread(lambda: None)
        gate.set()
        return await asyncio.gather(*tasks)

    assert all(verdict.allowed for verdict in asyncio.run(main()))


def test_giving_up_takes_the_question_back() -> None:
    """A call that nobody waits for any more waits for no answer."""
    asking, withdrawn = threading.Event(), threading.Event()

    class Patient(FakeApprovals):
        def ask(
            self, request: ApprovalRequest, *, timeout_s: float, given_up: threading.Event | None = None
        ) -> bool | None:
            asking.set()
            if given_up is not None and given_up.wait(timeout_s):
                withdrawn.set()
            return None

    policy = EffectPolicy(
        create_middleware(registrations=[guard("g")]),
        journal=MemoryJournal(),
        clock=SystemClock(),
        pause=FakePause(),
        approvals=Patient(),
    )

    async def main() -> None:
        task = asyncio.create_task(policy.judge_async(CALL))
        assert await asyncio.to_thread(asking.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(withdrawn.wait, 10)

    asyncio.run(main())


def test_the_journal_tells_the_question_and_its_answer() -> None:
    """One story: it is asked, what was said and by whom, what came of it."""
    house = House(lambda _request: False)
    verdict = house.judge()
    told = [(r.step, r.phase, r.answer, r.handler) for r in house.journal.story(verdict.action)]
    assert told == [
        ("enter", "ask", "", "g"),
        ("answer", "check", "unknown", "g"),
        ("answer", "ask", "cancel", "g"),
        ("verdict", "", "", "g"),
    ]
