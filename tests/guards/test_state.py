"""guards.state: maps that forget."""

from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.guards.state import CALLS_KEPT, Recent, SeenCalls, TurnStates


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), max_size=60), st.integers(1, 6), st.booleans())
def test_a_map_never_holds_more_than_it_may(keys: list[int], kept: int, touch: bool) -> None:
    """Whatever is put, the newest keys are there and no more than allowed."""
    recent: Recent[int, int] = Recent(kept, touch=touch)
    for key in keys:
        recent.put(key, key * 2)
        assert len(recent) <= kept
        assert recent.get(key) == key * 2 or not touch


def test_use_keeps_an_entry_alive_unless_the_map_forgets_by_age() -> None:
    """With touch the one least recently used goes, without it the one made first."""
    by_use: Recent[str, int] = Recent(2)
    by_age: Recent[str, int] = Recent(2, touch=False)
    for recent in (by_use, by_age):
        recent.put("a", 1)
        recent.put("b", 2)
        assert recent.get("a") == 1
        recent.put("c", 3)
    assert ("a" in by_use, "b" in by_use) == (True, False)
    assert ("a" in by_age, "b" in by_age) == (False, True)


def test_entries_can_be_forgotten() -> None:
    """A key that is gone is None again; forgetting what is not there is nothing."""
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)
    recent.pop("a")
    recent.pop("a")
    assert recent.get("a") is None


def test_turns_are_kept_in_each_session() -> None:
    """The oldest turn of a session goes, and the session least recently used goes whole."""
    states: TurnStates[list[int]] = TurnStates(list, sessions_kept=2, turns_kept=2)
    first = states.of("s1", "t1")
    assert states.of("s1", "t1") is first
    assert states.find("s1", "t2") is None
    assert states.find("s2", "t1") is None
    states.of("s1", "t2")
    states.of("s1", "t3")
    assert states.find("s1", "t1") is None
    states.of("s2", "t1")
    states.of("s3", "t1")
    assert states.find("s1", "t3") is None
    assert states.find("s2", "t1") is not None


def test_a_call_is_new_once() -> None:
    """The same id with the same content is one call; without an id each one is new."""
    seen = SeenCalls()
    assert seen.is_new("s", "c1", "read a", "r1")
    assert not seen.is_new("s", "c1", "read a", "r1")
    assert seen.is_new("s", "c1", "read b", "r1")
    assert seen.is_new("other", "c1", "read a", "r1")
    assert seen.is_new("s", None)
    assert seen.is_new("s", None)
    assert seen.is_new("s", "")
    for number in range(CALLS_KEPT):
        seen.is_new("s", f"n{number}")
    assert seen.is_new("s", "c1", "read a", "r1")
