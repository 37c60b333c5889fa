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


class Text(str):
    """A text of its own kind."""

    __slots__ = ()


class Posing:
    """Its repr is what it was given, and none for nothing."""

    def __init__(self, said: str) -> None:
        self.said = said

    def __repr__(self) -> str:
        if not self.said:
            raise LookupError
        return self.said


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


@pytest.mark.parametrize("nest", [Hidden, lambda inner: [inner], lambda inner: {1: inner}, lambda inner: (inner,)])
def test_a_digest_does_not_depend_on_how_deep_a_value_nests(nest: Any) -> None:
    """It is equal for equal values and different for others, beyond every bound of arguments too."""

    def nested(leaf: Any) -> dict[str, Any]:
        for _ in range(5000):
            leaf = nest(leaf)
        return {"v": leaf}

    assert call_digest("t", nested(1)) == call_digest("t", nested(1)) != call_digest("t", nested(2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({1: "x"}, {"1": "x"}),
        ({None: "x"}, {"null": "x"}),
        ({True: "x"}, {"true": "x"}),
        ({True: "x"}, {1: "x"}),
        ({1.5: "x"}, {"1.5": "x"}),
        ((1,), [1]),
        ([(1, 2)], [[1, 2]]),
        (Text("x"), "x"),
        (Posing("1"), 1),
        ({1}, {"made_of": "set(builtins.int(0x1))"}),
        (b"x", {"repr": "b'x'", "type": "builtins.bytes"}),
        (0.0, -0.0),
    ],
)
def test_what_json_would_write_alike_is_told_apart(one: Any, other: Any) -> None:
    """A yes to one call is no yes to another one, wherever in the arguments they differ."""
    for place in (lambda value: value, lambda value: {"in": [value]}):
        assert call_digest("t", {"v": place(one)}) != call_digest("t", {"v": place(other)})
        assert call_digest("t", {"v": place(one)}) == call_digest("t", owned({"v": place(one)}, "the caller"))


def test_what_has_no_repr_counts_by_who_it_is() -> None:
    """It is shared, never copied."""
    one, other = Posing(""), Posing("")
    assert call_digest("t", {"v": one}) == call_digest("t", read_only({"v": one}, "")) != call_digest("t", {"v": other})


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
