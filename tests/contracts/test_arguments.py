"""contracts.arguments: what is copied, what is read-only, what is shared."""

import copy
import decimal
import enum
import io
import json
import pickle
import re
import uuid
from collections import UserDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from interpose.contracts.arguments import owned, read_only, snapshot
from interpose.contracts.copying import beyond, copied
from interpose.contracts.errors import MisuseError
from interpose.contracts.extent import is_data
from interpose.contracts.readonly import ReadOnlySet


class Colour(enum.StrEnum):
    """One value."""

    RED = "red"


@dataclass
class Box:
    """Holds something."""

    held: Any


@pytest.mark.parametrize(
    "value", [{1}, frozenset({1}), bytearray(b"a"), deque([1]), Box(1), UserDict(a=1), (1,), [1], {"a": 1}], ids=repr
)
def test_data_is_copied(value: Any) -> None:
    """The copy is equal, of the same type, and another object where it can be changed."""
    assert is_data(value)
    assert copied(value) == value
    assert type(copied(value)) is type(value)
    assert copied(value) is not value or isinstance(value, frozenset)


@pytest.mark.parametrize(
    "value",
    [
        *("text", b"bytes", 1, True, 1.5, None, Colour.RED, PurePosixPath("a"), uuid.UUID(int=1)),
        *(io.StringIO(), len, lambda: None, [].append, SimpleNamespace(a=1), object()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_rest_is_shared(value: Any) -> None:
    """What cannot change, and what may be alive."""
    assert not is_data(value)
    assert copied(value) is value


def test_values_that_never_change_may_say_how_they_are_copied() -> None:
    """A Decimal does, and gives itself."""
    value = decimal.Decimal("1.5")
    assert copied(value) is value


def test_an_own_copying_that_raises_means_shared() -> None:
    """Whatever it raises."""

    class Stubborn:
        """Cannot be copied."""

        def __deepcopy__(self, memo: object) -> Any:
            raise LookupError("no")

    value = Stubborn()
    assert is_data(value)
    assert owned({"v": [value]}, "the caller")["v"][0] is value


@pytest.mark.parametrize("copying", [set, copy.copy, copy.deepcopy, ReadOnlySet.copy, lambda given: given | set()])
def test_a_copy_of_a_read_only_set_is_plain(copying: Callable[[Any], Any]) -> None:
    """However it is made, pickled too."""
    given = read_only({"tags": {"a"}}, "the caller")["tags"]
    assert isinstance(given, set)
    assert type(copying(given)) is type(pickle.loads(pickle.dumps(given))) is set  # noqa: S301 - our own bytes
    assert copying(given) == {"a"}


def test_a_snapshot_is_read_only_and_shares_what_is_no_json() -> None:
    """For whoever only looks: dicts, lists, tuples and sets are apart, nothing else is copied."""
    given = {"list": [1], "box": Box(1), "flat": 1}
    shown = snapshot(given, "the caller")
    assert shown == given
    assert json.dumps(shown["list"]) == "[1]"
    assert shown["box"] is given["box"]
    with pytest.raises(MisuseError, match="read-only"):
        shown["list"].append(2)
    with pytest.raises(MisuseError, match=r"^the caller gave arguments of type list: expected a mapping"):
        snapshot([1], "the caller")


def nested(levels: int) -> list[Any]:
    """That many lists, one in the other."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def doubled(times: int, leaf: Any) -> Any:
    """The leaf in two to the power of `times` places."""
    for _ in range(times):
        leaf = [leaf, leaf]
    return leaf


@pytest.mark.parametrize("form", [read_only, owned, snapshot])
def test_how_deep_arguments_may_nest_does_not_depend_on_the_stack(form: Any) -> None:
    """200 levels with the arguments themselves; one more is refused by the name of who gave it."""
    assert form({"x": nested(199)}, "Mine") == {"x": nested(199)}
    for levels in (200, 5_000, 100_000):
        with pytest.raises(MisuseError, match=r"^Mine gave arguments that hold themselves, or nest deeper than 200 le"):
            form({"x": nested(levels)}, "Mine")


@pytest.mark.parametrize("form", [read_only, owned, snapshot])
def test_what_is_in_many_places_is_copied_once(form: Any) -> None:
    """It is the same in all of them in the copy too, whatever it is; a second copy made of the first one too."""
    shared: list[Any] = [1]
    pair, table, odd = (shared, 2), {"in": shared}, deque([shared])
    given = {"a": shared, "b": [shared, shared], "c": pair, "d": pair, "e": table, "f": [table], "g": [odd, odd]}
    made = form(given, "")
    assert made["a"] is made["b"][0] is made["b"][1] is made["c"][0] is made["e"]["in"]
    assert (made["c"] is made["d"], made["e"] is made["f"][0], made["g"][0] is made["g"][1]) == (True, True, True)
    assert made["a"] is not shared
    again = owned(made, "")
    assert again["a"] is again["b"][0] is again["c"][0] is not made["a"]


@pytest.mark.parametrize("leaf", [[1], {"x": 1}, ([],), {1}, deque([1])])
@pytest.mark.parametrize("form", [read_only, owned, snapshot])
def test_what_would_be_endless_written_out_is_refused(form: Any, leaf: Any) -> None:
    """In time that grows with what is there; what is repeated less is taken, however much it is."""
    with pytest.raises(MisuseError, match=r"^Mine gave arguments that repeat more than 1,000,000 values, since"):
        form({"x": doubled(60, leaf)}, "Mine")
    assert form({"x": doubled(10, leaf)}, "Mine") == {"x": doubled(10, leaf)}


def test_a_big_value_is_no_repeated_one() -> None:
    """Only what is in more than one place counts."""
    big = [[number] for number in range(600_000)]
    assert len(owned({"x": big}, "Mine")["x"]) == 600_000


def test_a_half_copy_of_one_value_is_not_taken_for_another() -> None:
    """Where data cannot be copied to its end, what was copied until then is thrown away."""

    class Broken:
        def __deepcopy__(self, memo: Any) -> Any:
            raise LookupError("never")

    inner: deque[Any] = deque()
    inner.extend([1, Broken(), 2])
    fine = deque([[3]])
    made = owned({"a": deque([fine, inner]), "b": fine, "c": {"d": inner}}, "Mine")
    assert made["c"]["d"] is inner
    assert (made["b"], made["b"] is fine) == (fine, False)


def test_a_copy_of_a_circle_is_a_circle() -> None:
    """Of a result; arguments that hold themselves are refused."""
    circle: list[Any] = [{"x": 1}]
    circle[0]["up"] = circle
    made = copied(circle)
    assert made[0]["up"] is made
    assert made is not circle


@pytest.mark.parametrize("value", [nested(201), nested(100_000), doubled(60, [1])])
def test_what_is_beyond_the_bounds_is_not_copied(value: Any) -> None:
    """It is shared, as all that cannot be copied; what keeps it from being copied can be asked."""
    assert copied(value) is value
    assert beyond(value) is not None
    assert beyond(nested(200)) is beyond("text") is None
    assert re.match("it holds itself, or nests deeper|it repeats more than", beyond(value) or "")
