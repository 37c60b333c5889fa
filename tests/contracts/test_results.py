"""The text that stands for a result."""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from interpose.contracts.arguments import owned, read_only, snapshot
from interpose.contracts.copying import beyond, copied
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import MisuseError
from interpose.contracts.extent import Extents
from interpose.contracts.faults import error_words
from interpose.contracts.results import result_text, shown


class Sulking:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise LookupError("no")


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
DEEP: list[Any] = []
for _ in range(300):
    DEEP = [DEEP]
WIDE: Any = [1]
for _ in range(60):
    WIDE = {"a": WIDE, "b": WIDE}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is", "as it is"),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (CIRCLE, "[[...]]"),
        ([Sulking()], '["a Sulking that cannot be shown"]'),
        ({(1, 2): Sulking()}, "a dict that cannot be shown"),
        (DEEP, "a list that cannot be shown: it holds itself, or nests deeper than 200 levels"),
        (
            WIDE,
            f"a dict that cannot be shown: {beyond(WIDE)}",
        ),
    ],
)
def test_every_value_has_a_text(result: Any, text: str) -> None:
    """Its JSON, else its repr, else why it cannot be shown; in time that does not grow with what it repeats."""
    assert result_text(result) == text
    assert (shown(result).problem is None) is ("cannot be shown" not in text)


@dataclass
class Node:
    """Data with something in it."""

    inner: Any


@dataclass(slots=True)
class Slotted:
    """Data without a dict."""

    inner: Any


class Model(BaseModel):
    """As a library makes it."""

    inner: Any


NESTS: list[Callable[[Any], Any]] = [
    lambda inner: [inner],
    lambda inner: (inner,),
    lambda inner: {"x": inner},
    lambda inner: deque([inner]),
    lambda inner: MappingProxyType({"x": inner}),
    Node,
    Slotted,
    lambda inner: Model(inner=inner),
]


@pytest.mark.parametrize("nest", NESTS)
def test_the_bounds_hold_in_all_kinds_of_data(nest: Callable[[Any], Any]) -> None:
    """A result is told or said to be beyond one; arguments are refused in every form; at once in both cases."""
    deep: Any = 1
    for _ in range(250):
        deep = nest(deep)
    wide: Any = [1]
    for _ in range(40):
        wide = nest([wide, wide])
    for value in (deep, wide):
        assert shown(value).problem == beyond(value) is not None
        for form in (read_only, owned, snapshot):
            with pytest.raises(MisuseError, match=r"^Mine gave arguments that (hold themselves, or nest|repeat more)"):
                form({"x": value}, "Mine")


@pytest.mark.parametrize("nest", [*NESTS[:4], Node])
def test_depth_counts_where_a_value_is_met_again(nest: Callable[[Any], Any]) -> None:
    """Not only where it is met first, so that no copy and no text nests deeper than the bound."""
    out: dict[str, Any] = {}
    inner: Any = [1]
    for number in range(4):
        for _ in range(60):
            inner = nest(inner)
        out[f"k{number}"] = inner
    assert beyond({**out, "k3": None}) is None
    assert beyond(out) == "it holds itself, or nests deeper than 200 levels"
    for form in (read_only, owned, snapshot):
        assert form({**out, "k3": None}, "Mine") == {**out, "k3": None}
        with pytest.raises(MisuseError, match="gave arguments that hold themselves, or nest deeper than 200 levels"):
            form(out, "Mine")


@given(st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=3) | st.tuples(inner), max_leaves=20))
def test_what_is_said_of_a_value_is_said_of_it_in_every_order(value: Any) -> None:
    """The height of a value is the same wherever it is met first."""

    def height(part: Any) -> int:
        return 1 + max(map(height, part), default=0) if isinstance(part, list | tuple) else 0

    around: list[Any] = [value]
    for _ in range(200 - height(value) - 3):
        around = [around]
    for both in ([value, around], [around, value]):
        assert beyond([both]) is None
        assert beyond([[both]]) is not None


@pytest.mark.parametrize("result", [Sulking(), {(1, 2): Sulking()}, [Sulking(), "secret"], [Sulking(), {1: 2}]])
def test_a_text_that_tells_less_than_is_there_says_so(result: Any) -> None:
    """So that nobody takes it for the whole."""
    assert re.fullmatch("it cannot be shown|it holds a Sulking that cannot be shown", shown(result).problem or "")


class BadDict(dict[str, Any]):
    """Cannot be looked through."""

    def items(self) -> Any:
        """Fails."""
        raise LookupError("no items")


class BadList(list[Any]):
    """Nor can this."""

    def __iter__(self) -> Any:
        raise LookupError("no items")


@pytest.mark.parametrize("value", [BadDict(a=1), BadList([1]), [BadDict(a=1)]])
def test_a_value_whose_own_code_fails_is_told_and_shared(value: Any) -> None:
    """As a result; as arguments it is refused by the name of who gave it."""
    problem = "it cannot be looked through: LookupError: no items"
    assert beyond(value) == problem
    assert result_text(value) == f"a {type(value).__name__} that cannot be shown: {problem}"
    assert copied(value) is value
    for form in (read_only, owned):
        with pytest.raises(MisuseError, match=r"^Mine gave arguments that cannot be read: LookupError: no items"):
            form({"x": value}, "Mine")


def test_an_exception_has_words_whatever_its_text_does() -> None:
    """Its text, its type's name, or that it cannot be read."""

    class Mute(Exception):  # noqa: N818 - not raised
        def __str__(self) -> str:
            raise LookupError

    assert [error_words(error) for error in (ValueError("v"), ValueError(), Mute())] == [
        "v",
        "ValueError",
        "Mute: its text cannot be read",
    ]


def test_a_number_too_long_to_be_said_has_a_digest() -> None:
    """Python says no number of more than 4300 digits in tens."""
    assert call_digest("t", {"x": 10**5000}) == call_digest("t", {"x": 10**5000})
    assert call_digest("t", {"x": 10**5000}) != call_digest("t", {"x": 10**5000 + 1})
    assert result_text(10**5000) == "a int that cannot be shown"


def tangled(nodes: int) -> list[Any]:
    """Lists that all hold each other."""
    lists: list[list[Any]] = [[] for _ in range(nodes)]
    for each in lists:
        each.extend(lists)
    return lists


def test_what_holds_itself_in_many_ways_is_told_while_it_is_short() -> None:
    """Written out it grows with the factorial of what is there; time and memory do not."""
    for nodes in (1, 2, 5):
        assert shown(tangled(nodes)).problem is None
    for nodes in (12, 100):
        problem = "it repeats more than 1,000,000 values, since the same ones are in many places"
        assert shown(tangled(nodes)).problem == problem


def written(value: Any, around: tuple[int, ...] = ()) -> tuple[int, int]:
    """How many values a list has when it is written out, and in how many levels."""
    if id(value) in around:
        return 0, 0
    parts = [written(item, (*around, id(value))) for item in value]
    return len(value) + sum(count for count, _ in parts), 1 + max((height for _, height in parts), default=0)


@given(st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=5, max_size=5))
def test_the_extent_of_a_value_is_that_of_its_text(links: list[list[int]]) -> None:
    """However its parts hold each other."""
    lists: list[list[Any]] = [[] for _ in links]
    for each, held in zip(lists, links, strict=True):
        each.extend(lists[number] for number in held)
    extents = Extents()
    extents.of(lists)
    assert (extents.count, extents.deepest) == written(lists)
