"""Behaviour of results and errors as text: always there, and always sendable."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.errors import ToolError
from interpose.drivers.results import error_text, sendable, told

ANY_TEXT = st.text(st.characters())


@given(
    st.recursive(ANY_TEXT | st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner))
)
def test_every_result_can_be_sent(result: Any) -> None:
    """Whatever halves of surrogate pairs a result holds, its text can be encoded, and no other character changes."""
    text = told(result)

    text.encode("utf-8")
    if isinstance(result, str) and not any(0xD800 <= ord(each) <= 0xDFFF for each in result):
        assert text == result


@pytest.mark.parametrize("given_text", ["\ud83d", "a\udcffb", "ö\ud800\udc00"])
def test_every_error_can_be_sent(given_text: str) -> None:
    """An exception's text is sendable too."""
    error_text(ToolError(given_text)).encode("utf-8")
    error_text(ValueError(given_text)).encode("utf-8")


def test_a_half_pair_is_written_as_json_would() -> None:
    """The escape is the one a model knows; text that is well stays as it is."""
    assert sendable("\udcff.txt ö 😀") == "\\udcff.txt ö 😀"
    assert json.loads(f'"{sendable(chr(0xDCFF))}"') == "\udcff"
