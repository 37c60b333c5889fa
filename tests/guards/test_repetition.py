"""guards.repetition: attempts in time."""

from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.guards.repetition import ATTEMPTS_MOST, Attempts, is_empty_stub, shape_of
from tests.guards.making import call


def test_three_in_thirty_seconds_are_counted() -> None:
    """Attempts count while they are younger than thirty seconds."""
    attempts = Attempts()
    assert [attempts.count("a", 0), attempts.count("b", 1), attempts.count("c", 2), attempts.count("d", 3)] == [1] * 4
    assert attempts.count("a", 29.9) == 2
    assert attempts.count("a", 30.1) == 2


def test_old_attempts_count_while_they_are_among_the_last_four() -> None:
    """A slow loop is a loop; one with enough between is none."""
    slow = Attempts()
    assert [slow.count("a", at) for at in (0, 100, 200, 300, 400)] == [1, 2, 3, 4, 4]
    mixed = Attempts()
    assert [mixed.count(key, at * 100) for at, key in enumerate("ababab")] == [1, 1, 2, 2, 2, 2]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 20)), max_size=60))
def test_counts_are_those_of_the_plain_definition(steps: list[tuple[str, float]]) -> None:
    """Counting as it goes equals counting all entries that are young or among the last four."""
    attempts, made, now = Attempts(), [], 0.0
    for key, pause in steps:
        now += pause
        made.append((now, key))
        kept = [one for index, one in enumerate(made) if now - one[0] < 30 or index >= len(made) - 4]
        assert attempts.count(key, now) == sum(1 for _, other in kept if other == key)


def test_a_flood_is_bounded() -> None:
    """However fast the attempts come, only so many are held."""
    attempts = Attempts()
    for number in range(ATTEMPTS_MOST * 3):
        attempts.count(str(number), 0.0)
    assert attempts.count("0", 0.0) == 1
    assert len(attempts._held) == len(attempts._counts) == ATTEMPTS_MOST


def test_the_shape_of_a_call_leaves_out_which_part_was_asked_for() -> None:
    """Paging is no difference; anything else is."""
    shape = shape_of(call("read", {"path": "a", "limit": 5}))
    assert shape == shape_of(call("read", {"offset": 9, "path": "a", "max_bytes": 1, "context": 3}))
    assert shape != shape_of(call("read", {"path": "b", "limit": 5}))
    assert shape != shape_of(call("search", {"path": "a", "limit": 5}))
    assert shape_of(call("read", {"x": float("nan")})) == shape_of(call("read", {"x": float("inf")}))


def test_unreadable_calls_are_told_apart_by_their_fingerprint() -> None:
    """Their arguments are empty, and they are not all one."""
    first = call("shell", {"command": 1})
    assert shape_of(call("shell", {}, unreadable="no", callFingerprint="x")) != shape_of(
        call("shell", {}, unreadable="no", callFingerprint="y")
    )
    assert shape_of(first) == shape_of(first)


def test_a_stub_shows_nothing() -> None:
    """Truncated and empty, both must be said."""
    assert is_empty_stub({"observation": {"truncated": True, "shownCount": 0}})
    assert not is_empty_stub({"observation": {"truncated": True, "shownCount": 1}})
    assert not is_empty_stub({"observation": {"shownCount": 0}})
    assert not is_empty_stub({"observation": "none"})
    assert not is_empty_stub(None)
