"""gateway.ledger."""

import asyncio

import pytest

from interpose.contracts.stages import Annotation
from interpose.contracts.verdict import Reminder, ToolChoice, Verdict
from interpose.gateway.api import NewResult, NewTurn, ProposedCall, ResultEdit, TurnEdit
from interpose.gateway.ledger import CALL_AGAIN_S, Ledger, SessionLedger

RESULT = NewResult("t1", "digest", "Bash", {}, "out")
TURN = NewTurn(3, "digest", "hi")


async def once(ledger: SessionLedger, edit: ResultEdit | None, asked: list[str]) -> ResultEdit:
    """Asks once for the result's edit and notes that it was asked."""

    async def judge() -> ResultEdit | None:
        asked.append("asked")
        await asyncio.sleep(0)
        return edit

    return await ledger.result_once(RESULT, judge)


def test_a_part_is_judged_once_also_by_two_requests_at_once() -> None:
    """Retries and requests at the same time get the same edit; the policy is asked once."""
    ledger = SessionLedger()
    asked: list[str] = []

    async def both() -> list[ResultEdit]:
        return await asyncio.gather(*(once(ledger, ResultEdit("note"), asked) for _ in range(3)))

    assert asyncio.run(both()) == [ResultEdit("note")] * 3
    assert asyncio.run(once(ledger, ResultEdit("other"), asked)) == ResultEdit("note")
    assert asked == ["asked"]
    assert list(ledger.edited_calls) == ["t1"]
    assert ledger.result_edit("t1", "digest") == ResultEdit("note")
    assert ledger.result_edit("t1", "another text") is None


def test_what_decided_nothing_is_asked_again() -> None:
    """While judging is switched off nothing is remembered."""
    ledger = SessionLedger()
    asked: list[str] = []

    assert asyncio.run(once(ledger, None, asked)) == ResultEdit()
    assert asyncio.run(once(ledger, ResultEdit("note"), asked)) == ResultEdit("note")
    assert len(asked) == 2


def test_a_numbered_result_of_a_session_that_was_begun_elsewhere() -> None:
    """One before it that left no edit does not take its edit, also where nobody remembers that one."""
    ledger = SessionLedger()
    asked: list[str] = []

    async def judge() -> ResultEdit | None:
        asked.append("asked")
        return ResultEdit("note")

    for _ in range(2):
        assert asyncio.run(ledger.result_once(RESULT, judge, lambda: 1)) == ResultEdit("note")

    assert asked == ["asked"]
    assert [ledger.result_edit("t1", "digest", nth) for nth in range(3)] == [ResultEdit(), ResultEdit("note"), None]
    ledger.add_to_result(RESULT, "reminder", 1)
    assert ledger.result_edit("t1", "digest", 1) == ResultEdit("note\n\nreminder")


def test_turns_are_kept_by_place_and_words() -> None:
    """A prompt that says nothing new is remembered and edits nothing."""
    ledger = SessionLedger()

    async def judge() -> TurnEdit | None:
        return TurnEdit()

    assert asyncio.run(ledger.turn_once(TURN, judge)) == TurnEdit()
    assert ledger.turn_edit(3, "digest") == TurnEdit()
    assert list(ledger.edited_positions) == []


def test_memory_is_bounded() -> None:
    """The longest unused parts and sessions are forgotten, with all that was counted for them."""
    ledger = SessionLedger(parts=2)

    async def judge() -> TurnEdit | None:
        return TurnEdit("reminder")

    async def fill() -> None:
        for position in range(4):
            await ledger.turn_once(NewTurn(position, "d", "hi"), judge)

    asyncio.run(fill())
    assert sorted(ledger.edited_positions) == [2, 3]
    assert ledger.turn_edit(0, "d") is None

    async def sessions() -> None:
        ledger = Ledger(sessions=2)
        first = await ledger.session("l1", "s1")
        assert await ledger.session("l1", "s1") is first
        assert await ledger.session("l2", "s1") is not first
        assert await ledger.session("", "s1") is not first
        assert await ledger.session("l1", "s1") is not first

    asyncio.run(sessions())


def test_calls_without_an_id_are_not_remembered() -> None:
    """Nothing can be found again under no name."""
    ledger = SessionLedger()
    verdict = Verdict("a-1", "tool.call", "allowed")
    call = ProposedCall("t1", "Bash", {})
    ledger.remember_call(ProposedCall("", "Bash", {}), verdict)
    ledger.remember_call(call, verdict)

    assert ledger.released_call("") is None
    assert ledger.released_call("t1") == (call, verdict)


def test_a_call_under_another_id_has_the_same_verdict_for_a_while() -> None:
    """A retry comes soon; much later only the very same call is known."""
    ledger = SessionLedger()
    asked: list[str] = []

    async def judge() -> Verdict:
        asked.append("asked")
        return Verdict("a", "tool.call", "allowed")

    def call(call_id: str, now_s: float) -> int:
        asyncio.run(ledger.call_once("key", judge, call_id=call_id, now_s=now_s))
        return len(asked)

    assert [call("c1", 0.0), call("c2", 1.0), call("c1", 10 * CALL_AGAIN_S)] == [1, 1, 1]
    assert call("c2", 10 * CALL_AGAIN_S) == 2


def test_a_refused_prompt_that_is_asked_for_anew_is_judged_again() -> None:
    """What it is told then is kept, for the next process too, in the place of what it was told before."""
    kept: dict[tuple[str, str], bytes] = {}

    def keep(kind: str, key: str, value: bytes) -> None:
        kept[kind, key] = value

    ledger = SessionLedger(keep=keep)
    answers = [TurnEdit(replacement="withheld", refusal="no"), TurnEdit()]

    async def judge() -> TurnEdit | None:
        return answers.pop(0)

    async def all_of_it() -> list[str | None]:
        first = await ledger.turn_once(TURN, judge)
        again = await ledger.turn_once(TURN, judge)
        anew = await ledger.turn_once(TURN, judge, is_anew=True)
        return [edit.refusal for edit in (first, again, anew)]

    assert asyncio.run(all_of_it()) == ["no", "no", None]
    later = SessionLedger()
    for (kind, key), value in kept.items():
        later.restore(kind, key, value)
    assert later.turn_edit(TURN.position, TURN.digest) == TurnEdit()


def test_whose_a_reply_is_outlives_the_process() -> None:
    """The client goes on from it by its id alone."""
    later = SessionLedger()
    ledger = SessionLedger(keep=later.restore)
    ledger.keep_followed("resp_1", "s")

    assert (later.followed("resp_1"), later.followed("resp_2")) == ("s", None)


CALL = ProposedCall("t1", "Bash", {"command": "ls"})
PLAIN = Verdict("a-1", "tool.call", "allowed")


def kept_and_later() -> tuple[SessionLedger, SessionLedger, list[str]]:
    """A ledger, that of the process after it, and the kinds of what was kept, in order."""
    later = SessionLedger()
    kinds: list[str] = []

    def keep(kind: str, key: str, value: bytes) -> None:
        kinds.append(kind)
        later.restore(kind, key, value)

    return SessionLedger(keep=keep), later, kinds


@pytest.mark.parametrize(
    "verdict",
    [
        PLAIN._replace(outcome="patched", arguments={"command": "ls -a", "n": 1}),
        PLAIN._replace(annotations=(Annotation("h", "warn", "seen", in_front=True), Annotation("h", "info", "too"))),
        PLAIN._replace(reminders=(Reminder("h", "info", "be brief"),)),
        PLAIN._replace(tool_choice=ToolChoice("required", "Read")),
        PLAIN._replace(tool_choice=ToolChoice("none")),
    ],
)
def test_a_call_whose_verdict_is_to_be_heard_outlives_the_process(verdict: Verdict) -> None:
    """With all that its result is told."""
    ledger, later, _ = kept_and_later()
    ledger.remember_call(CALL, verdict)

    assert later.released_call("t1") == ledger.released_call("t1") == (CALL, verdict)


def test_a_plain_call_is_kept_only_where_the_provider_has_the_history() -> None:
    """A client that has it tells the name and the arguments with the result."""
    ledger, later, kinds = kept_and_later()
    ledger.remember_call(CALL, PLAIN)
    assert (kinds, later.released_call("t1")) == ([], None)

    problem = ProposedCall("t2", "Bash", {}, "arguments that are no object")
    ledger.remember_call(problem, PLAIN, is_stored=True)
    ledger.remember_call(ProposedCall("", "Bash", {}), PLAIN, is_stored=True)
    assert (kinds, later.released_call("t2")) == (["call"], (problem, PLAIN))


def test_a_call_under_the_id_of_an_earlier_one_takes_its_place() -> None:
    """Some providers count ids anew: what the earlier one had to say is not said of this one."""
    ledger, later, kinds = kept_and_later()
    ledger.remember_call(CALL, PLAIN._replace(annotations=(Annotation("h", "warn", "seen"),)))
    for _ in range(3):
        ledger.remember_call(CALL, PLAIN)

    assert kinds == ["call", "call"]
    assert later.released_call("t1") == (CALL, PLAIN)


def test_odd_arguments_are_kept_or_do_no_harm() -> None:
    """Half a surrogate pair comes back as it was; what is nested too deep to be written is not kept."""
    ledger, later, kinds = kept_and_later()
    odd = ProposedCall("t\ud800", "Bash", {"command": "\ud83d", "n": 10**30})
    deep: dict[str, object] = {}
    for _ in range(20_000):
        deep = {"a": deep}
    ledger.remember_call(odd, PLAIN, is_stored=True)
    ledger.remember_call(ProposedCall("deep", "Bash", deep), PLAIN, is_stored=True)

    assert kinds == ["call"]
    assert later.released_call("t\ud800") == (odd, PLAIN)
    assert ledger.released_call("deep") is not None


def test_reminders_wait_also_in_the_next_process() -> None:
    """Until they are given out; those that waited already are among them."""
    first, second = Reminder("h", "info", "one"), Reminder("h", "warn", "two")
    ledger, later, kinds = kept_and_later()
    ledger.wait_for_turn(())
    assert ledger.waiting() == ()
    ledger.wait_for_turn([first])
    ledger.wait_for_turn([second])
    assert later.waiting() == (first, second)

    ledger.wait_for_turn(())
    assert ledger.waiting() == (first, second)
    assert (later.waiting(), ledger.waiting()) == ((), ())
    assert kinds == ["waiting"] * 4
