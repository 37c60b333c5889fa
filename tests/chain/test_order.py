"""Order by links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.chain.order import Cycle, DanglingLink, Entry, resolve


def test_without_links_position_decides_and_then_the_id() -> None:
    """Stable for a list, by id for entries of equal position; never by the sequence they come in."""
    assert resolve([Entry("b", position=0), Entry("a", position=1)]).ids == ("b", "a")
    assert resolve([Entry("b"), Entry("c"), Entry("a")]).ids == ("a", "b", "c")
    assert resolve([]).ids == ()


def test_links_decide_before_positions() -> None:
    """`before` and `after` say the same from both ends, and the reasons name the links."""
    entries = [Entry("a", after=("c",)), Entry("b", position=1), Entry("c", position=2)]
    order = resolve(entries)
    assert order.ids == ("b", "c", "a")
    assert order.reasons == {"b": (), "c": ("before 'a'",), "a": ("after 'c'",)}
    assert resolve([Entry("a", position=0), Entry("b", position=1, before=("a",))]).ids == ("b", "a")


def test_a_disabled_entry_is_passed_through() -> None:
    """Its links still hold between those on both sides of it."""
    entries = [Entry("a", after=("middle",)), Entry("middle", after=("z",), enabled=False), Entry("z")]
    order = resolve(entries)
    assert order.ids == ("z", "a")
    assert order.problems == ()


def test_only_an_id_never_known_is_dangling() -> None:
    """One that was known once says nothing; the others are told in the order of the entries."""
    order = resolve([Entry("b", before=("ghost",), after=("gone",)), Entry("a", after=("ghost",))], known={"gone"})
    assert order.ids == ("a", "b")
    assert order.problems == (DanglingLink("b", "before", "ghost"), DanglingLink("a", "after", "ghost"))


def test_a_cycle_is_told_whole_and_the_rest_keeps_its_order() -> None:
    """The members fall back to their positions, the links to others still hold."""
    entries = [Entry("a", after=("c",)), Entry("b", after=("a",)), Entry("c", after=("b", "d")), Entry("d", position=9)]
    order = resolve(entries)
    assert order.problems == (Cycle(("a", "b", "c")),)
    assert order.ids == ("a", "b", "d", "c")
    assert resolve([Entry("a", after=("a",))]).problems == (Cycle(("a",)),)


def test_two_cycles_are_both_told() -> None:
    """One repair at a time would be a poor answer."""
    entries = [Entry("a", after=("b",)), Entry("b", after=("a",)), Entry("c", before=("d",)), Entry("d", before=("c",))]
    assert set(resolve(entries).problems) == {Cycle(("a", "b")), Cycle(("c", "d"))}


def test_a_repeated_id_is_misuse() -> None:
    """The message names it."""
    with pytest.raises(ValueError, match="repeated: 'a'"):
        resolve([Entry("a"), Entry("b"), Entry("a")])


IDS = "abcdef"
ENTRIES = st.lists(
    st.builds(
        Entry,
        id=st.sampled_from(IDS),
        before=st.lists(st.sampled_from(IDS + "xy"), max_size=2).map(tuple),
        after=st.lists(st.sampled_from(IDS + "xy"), max_size=2).map(tuple),
        position=st.integers(0, 3),
        enabled=st.booleans(),
    ),
    unique_by=lambda entry: entry.id,
)


@given(ENTRIES, st.randoms(use_true_random=False))
def test_a_sound_order_keeps_every_link_and_depends_on_nothing_else(
    entries: list[Entry],
    random: "st.random.Random",  # type: ignore[name-defined]
) -> None:
    """All enabled entries are there, every link between them holds, and shuffling the input changes nothing."""
    order = resolve(entries, known="xy")
    assert sorted(order.ids) == sorted(entry.id for entry in entries if entry.enabled)
    shuffled = list(entries)
    random.shuffle(shuffled)
    assert resolve(shuffled, known="xy").ids == order.ids
    if order.problems:
        return
    place = {name: index for index, name in enumerate(order.ids)}
    for entry in entries:
        for target in entry.before:
            assert place.get(entry.id, -1) < place.get(target, 99) or entry.id not in place
        for target in entry.after:
            assert place.get(target, -1) < place.get(entry.id, 99)
