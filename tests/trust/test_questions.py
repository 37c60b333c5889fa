"""trust.questions: what of a call people are shown."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.trust.questions import SHOWN_CHARS, shown_arguments, shown_text

SECRET = "ghp_" + "a" * 36

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_whatever_is_asked_about_can_be_kept_and_read(arguments: dict[str, Any]) -> None:
    """Any JSON arguments become JSON text of a bounded length that is plain ASCII."""
    text, _ = shown_arguments(arguments)

    assert isinstance(json.loads(text), dict)
    assert len(text) <= SHOWN_CHARS
    assert text.isascii()


def test_short_arguments_are_shown_whole() -> None:
    """They come back as they are."""
    text, is_whole = shown_arguments({"command": "ls", "n": [1, {"a": None}]})

    assert (json.loads(text), is_whole) == ({"command": "ls", "n": [1, {"a": None}]}, True)


def test_long_arguments_lose_their_middle_and_say_so() -> None:
    """The beginning and the end of a long text stay; no secret appears where it was cut."""
    long = "begin " + "x" * 400_000 + SECRET + " end"

    text, is_whole = shown_arguments({"content": long, "list": list(range(100_000)), "path": "a"})

    shown = json.loads(text)
    assert not is_whole
    assert shown["content"].startswith("begin ")
    assert shown["content"].endswith(" end")
    assert "characters are not shown" in shown["content"]
    assert shown["path"] == "a"
    assert shown["list"][-1] == "… (99950 more)"
    assert SECRET not in text


def test_arguments_that_stay_too_long_are_cut_as_one_text() -> None:
    """A great many short texts are shown by their beginning."""
    text, is_whole = shown_arguments({str(number): "x" * 50 for number in range(10_000)})

    assert not is_whole
    assert list(json.loads(text)) == ["its beginning"]


class Odd:
    """Something that JSON cannot say, and that cannot describe itself."""

    def __repr__(self) -> str:
        """Fails."""
        raise RuntimeError("no")


def test_what_json_cannot_say_is_described() -> None:
    """Objects, keys that are no texts, circles and endless nesting are shown somehow, and never raise."""
    circle: dict[str, Any] = {}
    circle["me"] = circle
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    odd_key: Any = {(1, 2): SECRET}

    assert "set()" in shown_arguments({"a": set()})[0]
    assert "cannot be shown" in shown_arguments({"a": Odd()})[0]
    for odd in (circle, {"a": deep}, odd_key):
        text, is_whole = shown_arguments(odd)
        assert not is_whole
        assert SECRET not in text


@pytest.mark.parametrize(
    ("text", "shown"), [("a\ud800b", "a\\ud800b"), (SECRET, "ghp_aaaa…"), ("x" * 9_000, "x" * 8_000)]
)
def test_short_texts_are_bounded_and_storable(text: str, shown: str) -> None:
    """Half characters are escaped, secrets masked, and the length has an end."""
    assert shown_text(text) == shown
