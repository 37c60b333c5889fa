"""The digest of a call."""

from typing import Any

import pytest

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
