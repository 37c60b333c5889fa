"""The text that stands for a result."""

from typing import Any

import pytest

from interpose.contracts.copying import beyond
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
