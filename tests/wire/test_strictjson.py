"""wire.strictjson."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.wire.strictjson import DEPTH_MAX, join_pieces, read_arguments, read_object

plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), plain_values), st.booleans())
def test_reads_what_every_writer_writes(value: dict[str, Any], escaped: bool) -> None:
    """A plain object is read as it was meant, as text and as bytes."""
    text = json.dumps(value, ensure_ascii=escaped)

    assert read_arguments(text) == (value, None)
    assert read_arguments(text.encode()) == (value, None)


@pytest.mark.parametrize("nothing", ["", " ", "\n", b""])
def test_nothing_is_a_call_without_arguments(nothing: str | bytes) -> None:
    """Providers send an empty string for no arguments."""
    assert read_arguments(nothing) == ({}, None)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"a": 1, "a": 2}', "'a' twice"),
        ('{"x": {"b": 1, "b": 2}}', "'b' twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": 1e400}', "no double"),
        ('{"a": 1} {"b": 2}', "not JSON"),
        ('{"a": 1}x', "not JSON"),
        ('{"a"', "not JSON"),
        ("{'a': 1}", "not JSON"),
        ('\ufeff{"a": 1}', "not JSON"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"\\udc00": 1}', "surrogate"),
        ('{"a": "\ud800"}', "UTF-8"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'{"a": "\xc0\xaf"}', "UTF-8"),
        ("[]", "an array"),
        ('"rm"', "a string"),
        ("null", "null"),
        ("true", "a boolean"),
        ("1.5", "a number"),
        ('{"a":' * (DEPTH_MAX + 1) + "1" + "}" * (DEPTH_MAX + 1), "nested"),
        ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
        ('{"a": ' + "9" * 5000 + "}", "no double can hold"),
        ('{"a": [-' + "9" * 309 + "]}", "no double can hold"),
    ],
)
def test_what_two_parsers_may_read_differently_is_a_problem(text: str | bytes, word: str) -> None:
    """Each ambiguous text gives no arguments and a problem that names what is wrong."""
    arguments, problem = read_arguments(text)

    assert arguments is None
    assert problem is not None
    assert word in problem


def test_two_hundred_levels_are_read() -> None:
    """The limit itself is still allowed."""
    text = '{"a":' * DEPTH_MAX + "1" + "}" * DEPTH_MAX

    assert read_arguments(text)[1] is None


def test_escaped_pairs_are_no_problem() -> None:
    """A whole surrogate pair is one character, escaped or cut between two pieces."""
    assert read_arguments('{"a": "\\ud83d\\ude00"}') == ({"a": "😀"}, None)
    assert join_pieces(['{"a": "\ud83d', '\ude00"}']) == '{"a": "😀"}'
    assert join_pieces(["a", "b"]) == "ab"
    assert read_arguments(join_pieces(['{"a": "\ud83d', '"}']))[0] is None


@pytest.mark.parametrize("text", ['{"a": "b', '{"a": ', '{"a": 1', "{", '{"a": "b\\'])
def test_arguments_that_were_cut_short_say_so(text: str) -> None:
    """Nobody has to guess at a position behind the end."""
    assert read_arguments(text) == (None, "the arguments are not JSON: they break off")


def test_arguments_that_were_read_already_are_looked_at_as_strictly() -> None:
    """What lenient readers take is a problem here too, in our own words."""
    assert read_object({"a": [1, "x"], "b": 10**308}) == ({"a": [1, "x"], "b": 10**308}, None)
    for value in (math.nan, math.inf, 10**309):
        arguments, problem = read_object({"a": value})
        assert arguments is None
        assert "no double can hold" in (problem or "")
    assert "half a surrogate pair" in (read_object({"a": "\ud800"})[1] or "")
    assert "an array" in (read_object([])[1] or "")
