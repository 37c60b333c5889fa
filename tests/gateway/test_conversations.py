"""gateway.conversations and gateway.recent."""

from interpose.gateway.conversations import AGAIN_S, Begun, Conversations, Place
from interpose.gateway.recent import Recent

START, ONWARD, LATER = Place(0, went_on=False), Place(0, went_on=True), Place(2, went_on=False)


def test_a_request_that_is_sent_again_begins_nothing() -> None:
    """The first one does; retries of it and what follows belong to it."""
    conversations = Conversations()

    assert conversations.request("go", START, 0.0) == Begun(0, is_anew=True)
    assert conversations.request("go", START, 1.0) == Begun(0)
    assert conversations.request("go", ONWARD, 2.0) == Begun(0)
    assert conversations.request("go", ONWARD, 3.0) == Begun(0)
    assert conversations.request("go", LATER, 4.0) == Begun(0)
    assert conversations.request("other", START, 5.0) == Begun(0, is_anew=True)


def test_the_same_words_begin_anew_once_others_went_on() -> None:
    """Also behind a later turn; what went on before is then counted with the new one."""
    conversations = Conversations()
    for place in (START, ONWARD):
        conversations.request("go", place, 0.0)

    assert conversations.request("go", START, 1.0) == Begun(1, is_anew=True)
    assert conversations.request("go", LATER, 2.0) == Begun(1)
    assert conversations.request("go", START, 3.0) == Begun(2, is_anew=True)
    assert conversations.request("go", ONWARD, 4.0) == Begun(2)


def test_nobody_tries_again_so_late_or_under_another_policy() -> None:
    """A prompt is then asked for anew; a turn under way stays the same."""
    conversations = Conversations()
    conversations.request("go", START, 0.0)

    conversations.replied("go", 2 * AGAIN_S)
    conversations.replied("unknown", 2 * AGAIN_S)
    assert conversations.request("go", START, 3 * AGAIN_S).number == 0
    assert conversations.request("go", START, 5 * AGAIN_S) == Begun(1, is_anew=True)
    assert conversations.request("go", Place(0, went_on=False, generation=1), 5 * AGAIN_S) == Begun(2, is_anew=True)
    assert conversations.request("go", Place(0, went_on=True, generation=2), 9 * AGAIN_S) == Begun(2)


def test_a_bounded_map_forgets_what_was_not_used_for_longest() -> None:
    """Reading counts as using; what is forgotten or replaced is handed back."""
    recent: Recent[str, int] = Recent(2)
    assert [recent.put("a", 1), recent.put("b", 2), recent.put("a", 3)] == [[], [], [1]]
    assert recent.get("b") == 2
    assert recent.put("c", 4) == [3]
    assert (recent.get("a"), list(recent.keys())) == (None, ["b", "c"])
