"""kernel.canonical."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.kernel.canonical import canonical_hash, lenient_hash


@given(st.recursive(st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists, max_leaves=5))
def test_both_hashes_are_one_for_what_json_can_say(value: object) -> None:
    """What was hashed strictly before is known by a lenient reader too."""
    assert lenient_hash(value) == canonical_hash(value)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_only_the_lenient_one_takes_what_json_cannot_say(number: float) -> None:
    """The same number has the same hash."""
    assert lenient_hash({"a": [number]}) == lenient_hash({"a": [number]}) != lenient_hash({"a": [0.0]})
    with pytest.raises(ValueError, match="JSON"):
        canonical_hash([number])
