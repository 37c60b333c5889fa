"""kernel.boundary."""

import asyncio
from typing import NoReturn

import pytest

from interpose.kernel.boundary import fault_line, guarded, guarded_async


def _raise(error: BaseException) -> NoReturn:
    raise error


def test_a_value_passes_and_an_exception_becomes_what_failure_says() -> None:
    """The direction of a failure is the caller's to declare."""
    assert guarded(lambda: 1, failure=lambda _: 2) == 1
    assert guarded(lambda: _raise(ValueError("no")), failure=lambda error: f"open: {error}") == "open: no"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()])
def test_what_is_meant_for_the_process_passes(error: BaseException) -> None:
    """Interrupts, exits and cancellations are not swallowed."""
    with pytest.raises(type(error)):
        guarded(lambda: _raise(error), failure=lambda _: None)


def test_the_awaited_form_does_the_same() -> None:
    """A coroutine that raises is stopped at the boundary too."""

    async def broken() -> int:
        raise OSError("gone")

    async def fine() -> int:
        return 5

    async def both() -> tuple[int, int]:
        return (
            await guarded_async(fine, failure=lambda _: -1),
            await guarded_async(broken, failure=lambda _: -1),
        )

    assert asyncio.run(both()) == (5, -1)


def test_a_fault_is_told_on_one_line_even_when_its_text_raises() -> None:
    """The line is made for journals: one line, bounded, never an exception of its own."""

    class Unspeakable(Exception):  # noqa: N818 - named for what it is
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert fault_line(ValueError("a\n  b")) == "ValueError: a b"
    assert fault_line(ValueError()) == "ValueError"
    assert fault_line(Unspeakable()) == "Unspeakable: its text cannot be read"
    assert len(fault_line(ValueError("x" * 10_000))) == 500
