"""policy.turns."""

from interpose.policy.turns import CALLS_KEPT, Turns


def test_a_prompt_has_one_continuation() -> None:
    """Spending it holds until the next prompt of the same session, and no other session notices."""
    turns = Turns()

    turns.spend_continuation("a")
    left = (turns.may_continue("a", None), turns.may_continue("b", None))
    turns.begin("a")

    assert left == (False, True)
    assert turns.may_continue("a", None)


def test_what_is_asked_without_tools_takes_no_continuation() -> None:
    """An agent asks for a title beside the prompt: it has none itself, and leaves the prompt's as it is."""
    turns = Turns()
    turns.begin("s", "prompt", active_tools="shell")
    turns.begin("s", "title", active_tools="")
    before = (turns.may_continue("s", "title"), turns.may_continue("s", "prompt"))

    turns.spend_continuation("s")
    turns.begin("s", "another title", active_tools="")

    assert before == (False, True)
    assert not turns.may_continue("s", "prompt")


def test_the_sessions_remembered_are_bounded() -> None:
    """Beyond the bound the session least recently used is forgotten."""
    turns = Turns(kept=2)

    for session in ("a", "b", "c"):
        turns.spend_continuation(session)

    assert [turns.may_continue(session, None) for session in "abc"] == [True, False, False]


def test_the_calls_told_apart_are_bounded() -> None:
    """Beyond the bound each call counts, and no more is remembered of it."""
    turns = Turns()
    turns.begin("s", "t", active_tools="shell")

    for number in range(CALLS_KEPT):
        turns.called("s", "t", f"c{number}", "shell")
    for _ in range(2):
        turns.called("s", "t", "late", "read")

    assert turns.facts("s", "t") == {
        "turnToolCalls": CALLS_KEPT + 2,
        "turnToolNames": "shell",
        "activeToolNames": "shell",
    }


def test_the_turns_remembered_are_bounded() -> None:
    """Beyond the bound the oldest turn is forgotten and has no facts."""
    turns = Turns(kept=2)

    for turn in ("a", "b", "c"):
        turns.begin("s", turn)

    assert [bool(turns.facts("s", turn)) for turn in "abc"] == [False, True, True]


def test_a_yes_holds_for_its_turn() -> None:
    """For every call with that digest where the turn was seen to start, else for the one call."""
    turns = Turns()
    turns.begin("s", "t")
    turns.consent("s", "t", "c1", "digest")
    turns.consent("s", "unseen", "c1", "digest")

    assert turns.consented("s", "t", "c2", "digest")
    assert not turns.consented("s", "t", "c1", "other")
    assert turns.consented("s", "unseen", "c1", "digest")
    assert not turns.consented("s", "unseen", "c2", "digest")
    assert not turns.consented("x", "t", "c1", "digest")

    turns.begin("s", "t")
    assert not turns.consented("s", "t", "c1", "digest")


def test_what_is_said_yes_to_is_bounded() -> None:
    """Beyond the bound a person is asked again."""
    turns = Turns()
    turns.begin("s", "t")

    for number in range(CALLS_KEPT + 1):
        turns.consent("s", "t", "", f"d{number}")

    assert [turns.consented("s", "t", "", f"d{number}") for number in (0, CALLS_KEPT - 1, CALLS_KEPT)] == [
        True,
        True,
        False,
    ]


def test_what_was_proposed_is_remembered_within_bounds() -> None:
    """For calls that run as something else, by session and call."""
    turns = Turns(kept=2)
    assert turns.proposed("s", "c1") is None

    for number in range(3):
        turns.propose("s", f"c{number}", f"f{number}")

    assert [turns.proposed("s", f"c{number}") for number in range(3)] == [None, "f1", "f2"]
    assert turns.proposed("other", "c2") is None
