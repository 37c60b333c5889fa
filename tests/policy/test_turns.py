"""policy.turns."""

from interpose.policy.turns import Turns


def test_a_prompt_has_one_continuation() -> None:
    """Spending it holds until the next prompt of the same session, and no other session notices."""
    turns = Turns()

    turns.spend_continuation("a")
    spent = (turns.continuation_spent("a"), turns.continuation_spent("b"))
    turns.begin("a")

    assert spent == (True, False)
    assert not turns.continuation_spent("a")


def test_the_sessions_remembered_are_bounded() -> None:
    """Beyond the bound the session least recently used is forgotten."""
    turns = Turns(kept=2)

    for session in ("a", "b", "c"):
        turns.spend_continuation(session)

    assert [turns.continuation_spent(session) for session in "abc"] == [False, True, True]
