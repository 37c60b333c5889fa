"""assembly.binding: a call as named arguments, and back."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.assembly.binding import Binding
from interpose.contracts.errors import MisuseError


def positional_only(a: int, /, b: int = 2) -> tuple[Any, ...]:
    """A function of one kind."""
    return (a, b)


def keyword_only(*, a: int, b: int = 2) -> tuple[Any, ...]:
    """A function of another kind."""
    return (a, b)


def everything(a: int, *rest: int, b: int = 2, **more: int) -> tuple[Any, ...]:
    """A function of all kinds."""
    return (a, rest, b, more)


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "named"),
    [
        (positional_only, (1,), {}, {"a": 1, "b": 2}),
        (keyword_only, (), {"a": 1}, {"a": 1, "b": 2}),
        (everything, (1, 5, 6), {"b": 3, "x": 9}, {"a": 1, "rest": [5, 6], "b": 3, "x": 9}),
    ],
)
def test_calls_are_named_and_made_again(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Any]
) -> None:
    """Every kind of parameter is named, defaults included, and the call made of it is the same."""
    binding = Binding(function)

    arguments = binding.arguments(args, kwargs)
    positional, keywords = binding.call(arguments)

    assert arguments == named
    assert function(*positional, **keywords) == function(*args, **kwargs)


@given(st.integers(), st.lists(st.integers()), st.integers(), st.dictionaries(st.sampled_from("xyz"), st.integers()))
def test_every_call_survives(a: int, rest: list[int], b: int, more: dict[str, int]) -> None:
    """Whatever is passed arrives."""
    binding = Binding(everything)

    positional, keywords = binding.call(binding.arguments((a, *rest), {"b": b, **more}))

    assert everything(*positional, **keywords) == everything(a, *rest, b=b, **more)


def test_wrong_calls_fail_as_the_function_would() -> None:
    """A missing argument is a TypeError, a changed call with a name too many as well, and a non-callable is misuse."""
    with pytest.raises(TypeError, match="missing a required"):
        Binding(keyword_only).arguments((), {})
    with pytest.raises(TypeError, match="unexpected arguments"):
        Binding(keyword_only).call({"a": 1, "c": 3})
    with pytest.raises(MisuseError, match="cannot be protected"):
        Binding(5)  # type: ignore[arg-type]
