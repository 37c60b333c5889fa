"""Keys that an object has twice are found wherever they stand, and nothing else is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.wire.repeats import repeated_key

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"a": 1, "a": 1}', "a"),
        ('{"a":1,"b":{"c":[[{"d":1,"d":2}]]}}', "d"),
        ('[{"x": 1}, {"x": 1, "x": 2}]', "x"),
        ('{"na\\u006de": 1, "name": 2}', "name"),
        ('{"input": {"a": 1, "a": 2}}', None),
        ('{"input": {}, "input": {}}', "input"),
        ('{"a": {"input": [{"b": 1, "b": 2}]}, "c": {"d": 1, "d": 2}}', "d"),
        ('{"text": "{\\"a\\": 1, \\"a\\": 2}"}', None),
        ('{"n": NaN, "n": 1}', "n"),
        ('{"n": ' + "9" * 5000 + ', "n": 1}', "n"),
        ("not json {", None),
        ("", None),
    ],
)
def test_the_key_that_is_there_twice(text: str, key: str | None) -> None:
    """Keys are compared as they are meant; texts and arguments are nobody's structure."""
    assert repeated_key(text.encode(), arguments="input") == key


@given(TREES, st.sampled_from([None, 1]), st.booleans())
def test_what_a_writer_wrote_has_no_key_twice(tree: Any, indent: int | None, ascii_only: bool) -> None:
    """However it is laid out and escaped."""
    assert repeated_key(json.dumps(tree, indent=indent, ensure_ascii=ascii_only).encode()) is None


@given(TREES, TREES)
def test_a_second_key_is_found_at_any_depth(tree: Any, other: Any) -> None:
    """Whatever stands around it."""
    doubled = f'{{"k": {json.dumps(other)}, "k": {json.dumps(tree)}}}'
    assert repeated_key(f'[{json.dumps(other)}, [{{"x": {doubled}}}]]'.encode()) is not None


def test_what_is_nested_too_deep_is_not_taken_for_unique() -> None:
    """It is a ValueError, never a None."""
    with pytest.raises(ValueError, match="too deep"):
        repeated_key(b"[" * 100_000 + b'{"a":1,"a":2}' + b"]" * 100_000)
