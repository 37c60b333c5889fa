"""The text that stands for a result."""

from typing import Any

import pytest

from interpose.contracts.arguments import owned, read_only
from interpose.contracts.copying import beyond, copied
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import MisuseError
from interpose.contracts.faults import error_words
from interpose.contracts.results import result_text


class Sulking:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise LookupError("no")


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
DEEP: list[Any] = []
for _ in range(300):
    DEEP = [DEEP]
WIDE: Any = [1]
for _ in range(60):
    WIDE = {"a": WIDE, "b": WIDE}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is", "as it is"),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (CIRCLE, "[[...]]"),
        ([Sulking()], '["a Sulking that cannot be shown"]'),
        ({(1, 2): Sulking()}, "a dict that cannot be shown"),
        (DEEP, "a list that cannot be shown: it holds itself, or nests deeper than 200 levels"),
        (
            WIDE,
            f"a dict that cannot be shown: {beyond(WIDE)}",
        ),
    ],
)
def test_every_value_has_a_text(result: Any, text: str) -> None:
    """Its JSON, else its repr, else why it cannot be shown; in time that does not grow with what it repeats."""
    assert result_text(result) == text


class BadDict(dict[str, Any]):
    """Cannot be looked through."""

    def items(self) -> Any:
        """Fails."""
        raise LookupError("no items")


class BadList(list[Any]):
    """Nor can this."""

    def __iter__(self) -> Any:
        raise LookupError("no items")


@pytest.mark.parametrize("value", [BadDict(a=1), BadList([1]), [BadDict(a=1)]])
def test_a_value_whose_own_code_fails_is_told_and_shared(value: Any) -> None:
    """As a result; as arguments it is refused by the name of who gave it."""
    problem = "it cannot be looked through: LookupError: no items"
    assert beyond(value) == problem
    assert result_text(value) == f"a {type(value).__name__} that cannot be shown: {problem}"
    assert copied(value) is value
    for form in (read_only, owned):
        with pytest.raises(MisuseError, match=r"^Mine gave arguments that cannot be read: LookupError: no items"):
            form({"x": value}, "Mine")


def test_an_exception_has_words_whatever_its_text_does() -> None:
    """Its text, its type's name, or that it cannot be read."""

    class Mute(Exception):  # noqa: N818 - not raised
        def __str__(self) -> str:
            raise LookupError

    assert [error_words(error) for error in (ValueError("v"), ValueError(), Mute())] == [
        "v",
        "ValueError",
        "Mute: its text cannot be read",
    ]


def test_a_number_too_long_to_be_said_has_a_digest() -> None:
    """Python says no number of more than 4300 digits in tens."""
    assert call_digest("t", {"x": 10**5000}) == call_digest("t", {"x": 10**5000})
    assert call_digest("t", {"x": 10**5000}) != call_digest("t", {"x": 10**5000 + 1})
    assert result_text(10**5000) == "a int that cannot be shown"
