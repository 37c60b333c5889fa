"""The digest of a call."""

import copy
import threading
from collections import UserDict, deque
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from interpose.contracts.arguments import owned, read_only
from interpose.contracts.digest import call_digest

CIRCLE: dict[str, Any] = {}
CIRCLE["self"] = CIRCLE


def test_equal_calls_have_equal_digests() -> None:
    """The order of keys does not count."""
    assert call_digest("t", {"a": 1, "b": [1, {"c": None}]}) == call_digest("t", {"b": [1, {"c": None}], "a": 1})


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("u", {"a": 1}),
        ("t", {"a": 2}),
        ("t", {"a": "1"}),
        ("t", {"a": True}),
        ("t", {"a": 1.0}),
        ("t", {}),
        ("t", {"a": b"1"}),
        ("t", {"a": {1: 2}}),
        ("t", {"a": {1: 2, "x": 3}}),
        ("t", CIRCLE),
        ("t", {"a": "\ud800"}),
    ],
)
def test_any_difference_shows(name: str, arguments: Any) -> None:
    """Name, value and kind of value; what JSON cannot say has a digest as well."""
    assert call_digest(name, arguments) != call_digest("t", {"a": 1})
    assert len(call_digest(name, arguments)) == 64
    assert call_digest(name, arguments) == call_digest(name, arguments)


class Plain:
    """Has a repr with its address."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Model(BaseModel):
    """Hides what it holds."""

    secret: SecretStr


@dataclass(repr=False)
class Hidden:
    """Data whose repr says nothing of what is in it."""

    value: Any


def made() -> list[Any]:
    """Data that JSON cannot say, anew each time."""
    circle: deque[Any] = deque()
    circle.append(circle)
    return [
        {"b", "a", 1},
        frozenset({("a", 1)}),
        deque([Plain(1)]),
        Hidden([Plain({"x": {1, 2}})]),
        Hidden({1: "a", "x": None}),
        UserDict(a=Plain(b"1")),
        bytearray(b"a"),
        circle,
        [{1: Plain, "x": Hidden(len)}],
    ]


@pytest.mark.parametrize("number", range(len(made())))
def test_a_value_and_its_copy_have_one_digest(number: int) -> None:
    """No address of an object is in it, and sets have no order."""
    value = made()[number]
    digest = call_digest("t", {"v": value})
    assert call_digest("t", owned({"v": value}, "the caller")) == digest
    assert call_digest("t", {"v": copy.deepcopy(value)}) == digest
    assert call_digest("t", read_only({"v": value}, "the caller")) == digest
    assert [call_digest("t", {"v": other}) == digest for other in made()].count(True) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Hidden(1), Hidden(2)),
        (deque([Plain(1)]), deque([Plain(2)])),
        ({1}, {2}),
        ({1}, frozenset({1})),
        ({1}, [1]),
        ([Model(secret=SecretStr("a"))], [Model(secret=SecretStr("b"))]),
        (Hidden(threading.Lock()), Hidden(threading.Lock())),
    ],
)
def test_what_a_repr_hides_counts(one: Any, other: Any) -> None:
    """Data counts by what it is made of, and by who it is where it cannot be taken apart."""
    assert call_digest("t", {"v": one}) != call_digest("t", {"v": other})
    assert call_digest("t", {"v": one}) == call_digest("t", {"v": one})


def test_what_nests_too_deep_to_be_copied_has_a_digest() -> None:
    """It is shared, so it is told by who it is."""
    deep: Any = Hidden(None)
    for _ in range(5000):
        deep = Hidden(deep)
    assert owned({"v": deep}, "the caller")["v"] is deep
    assert call_digest("t", {"v": deep}) == call_digest("t", {"v": deep})


def test_what_is_in_many_places_is_taken_apart_once() -> None:
    """In data that JSON cannot say and behind keys that are no strings; the digest is that of a copy."""
    value: Any = deque([1])
    for _ in range(60):
        value = deque([value, value])
    arguments = {"x": value, "y": {1: value}}
    assert call_digest("t", arguments) == call_digest("t", copy.deepcopy(arguments))
    assert call_digest("t", arguments) != call_digest("t", {**arguments, "x": value[0]})


def test_two_values_are_not_one_whose_repr_says_both() -> None:
    """A repr counts as a text and cannot pass for a value's own form."""

    class Posing:
        def __init__(self, said: str) -> None:
            self.said = said

        def __reduce_ex__(self, protocol: Any) -> Any:
            raise TypeError

        def __repr__(self) -> str:
            return self.said

    one, two = Posing("x"), Posing("x), builtins.int(1")
    assert call_digest("t", {"x": {1: [two]}}) != call_digest("t", {"x": {1: [one, 1]}})
