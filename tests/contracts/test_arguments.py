"""contracts.arguments: what is copied, what is read-only, what is shared."""

import copy
import decimal
import enum
import io
import json
import pickle
import uuid
from collections import UserDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from interpose.contracts.arguments import ReadOnlySet, copied, is_data, owned, read_only, snapshot
from interpose.contracts.errors import MisuseError


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
