"""kernel.frozen."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.kernel.frozen import FrozenDict, FrozenList, freeze, thaw

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values)
def test_frozen_equals_the_original_everywhere(value: Any) -> None:
    """A frozen value compares, serialises, pickles and thaws as the plain one."""
    frozen = freeze(value)

    assert frozen == value
    assert json.dumps(frozen) == json.dumps(value)
    assert thaw(frozen) == value
    assert pickle.loads(pickle.dumps(frozen)) == value  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    "mutate",
    [
        lambda v: v["list"].append(1),
        lambda v: v["list"].sort(),
        lambda v: v["list"].__setitem__(0, 1),
        lambda v: v["list"].__iadd__([1]),
        lambda v: v.update(a=1),
        lambda v: v.pop("list"),
        lambda v: v.setdefault("b", 1),
        lambda v: v["inner"].__setitem__("x", 1),
        lambda v: v["inner"].__ior__({"x": 1}),
        lambda v: v["inner"].clear(),
    ],
)
def test_every_mutator_raises(mutate: Callable[[Any], Any]) -> None:
    """What a handler receives cannot be changed, however deep."""
    value = freeze({"list": [3, 2], "inner": {"x": 0}})

    with pytest.raises(TypeError, match="frozen"):
        mutate(value)

    assert value == {"list": [3, 2], "inner": {"x": 0}}


def test_freezing_twice_is_free() -> None:
    """What is already frozen is returned as it is."""
    value = freeze({"a": [1]})

    assert freeze(value) is value
    assert isinstance(value, FrozenDict)
    assert isinstance(value["a"], FrozenList)


def test_copies_are_plain() -> None:
    """What `copy` gives can be changed: at the top, and deep for a deep copy."""
    value = freeze({"a": [{"x": 1}]})

    deep, shallow = copy.deepcopy(value), copy.copy(value)
    deep["a"][0]["x"] = 2
    shallow["a"] = copy.copy(value["a"])
    shallow["a"].append(3)

    assert (deep, shallow) == ({"a": [{"x": 2}]}, {"a": [{"x": 1}, 3]})
    assert value == {"a": [{"x": 1}]}


def test_thawed_values_are_apart() -> None:
    """Changing a thawed copy changes nothing else."""
    value = freeze({"a": [1]})

    thawed = thaw(value)
    thawed["a"].append(2)

    assert value == {"a": [1]}
