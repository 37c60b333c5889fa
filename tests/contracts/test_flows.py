"""A middleware written as a flow: what it may be, and what its mistakes are told as."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import Arguments, Call, FlowMiddleware, Linked

Through: TypeAlias = Callable[[FlowMiddleware], Any]


class Going:
    """A `call_next` that says what it was called with."""

    call = Call("")

    def __call__(self, tool_name: str, arguments: Arguments) -> Any:
        """Name and arguments."""
        return tool_name, arguments


class GoingAsync:
    """The same, awaited."""

    call = Call("")

    async def __call__(self, tool_name: str, arguments: Arguments) -> Any:
        """Name and arguments."""
        return tool_name, arguments


def through(middleware: FlowMiddleware) -> Any:
    """A sync call."""
    return middleware.on_execute_tool("t", {"x": 1}, Going())


def through_async(middleware: FlowMiddleware) -> Any:
    """An async call."""
    return asyncio.run(middleware.on_execute_tool_async("t", {"x": 1}, GoingAsync()))


both = pytest.mark.parametrize("run", [through, through_async])


class Answering(FlowMiddleware):
    """Has no yield at all."""

    def flow(self, tool_name: str, arguments: Arguments) -> str:
        """The answer."""
        return f"{tool_name} is off"


@both
def test_a_flow_without_a_yield_has_answered(run: Through) -> None:
    """What it returns is what the caller gets, and the rest never runs."""
    assert run(Answering()) == "t is off"


@both
def test_a_flow_of_another_middleware_may_be_handed_on(run: Through) -> None:
    """A plain method that returns a flow is that flow."""

    class Delegating(FlowMiddleware):
        def flow(self, tool_name: str, arguments: Arguments) -> Any:
            return FlowMiddleware().flow("other", arguments)

    assert run(Delegating()) == ("other", {"x": 1})


class Forgetting(FlowMiddleware):
    """Forgets to yield."""

    def flow(self, tool_name: str, arguments: Arguments) -> None:
        """Nothing."""


class Coroutine(FlowMiddleware):
    """Thinks that a flow is awaited."""

    async def flow(self, tool_name: str, arguments: Arguments) -> Any:
        """Something."""
        return tool_name


class AsyncGenerating(FlowMiddleware):
    """The same with a yield."""

    async def flow(self, tool_name: str, arguments: Arguments) -> AsyncIterator[Any]:
        """The call."""
        yield tool_name, arguments


class Bare(FlowMiddleware):
    """Yields nothing."""

    def flow(self, tool_name: str, arguments: Arguments) -> Any:
        """Nothing."""
        yield


class NameOnly(FlowMiddleware):
    """Yields two letters, once the tool has run."""

    def flow(self, tool_name: str, arguments: Arguments) -> Any:
        """The call, and then no call."""
        yield tool_name, arguments
        yield "ab"


@both
@pytest.mark.parametrize(
    ("middleware", "said"),
    [
        (Forgetting(), "Forgetting.flow has no yield and returned None: `return (yield tool_name, arguments)`"),
        (Coroutine(), "Coroutine.flow is an async function: write `def flow`"),
        (AsyncGenerating(), "AsyncGenerating.flow is an async function: write `def flow`"),
        (Bare(), "Bare.flow yielded None: expected a name and arguments"),
        (NameOnly(), "NameOnly.flow yielded 'ab': expected a name and arguments"),
    ],
)
def test_a_mistaken_flow_is_named_with_what_to_write(run: Through, middleware: FlowMiddleware, said: str) -> None:
    """The class and the way out."""
    with pytest.raises(MisuseError) as caught:
        run(middleware)
    assert said in str(caught.value)


def test_links_are_tuples_of_ids() -> None:
    """One text would be taken letter by letter."""
    with pytest.raises(TypeError, match=r"Linked\('a', before='bcd'\): expected a tuple of ids, \('bcd',\)"):
        Linked(FlowMiddleware(), "a", before="bcd")  # type: ignore[arg-type]
    links: Any = ["b"]
    assert Linked(FlowMiddleware(), "a", after=links).after == ("b",)
    wrong: Any = 5
    with pytest.raises(TypeError, match=r"Linked\('a', after=5\): expected a tuple of ids$"):
        Linked(FlowMiddleware(), "a", after=wrong)
    for no_id in (5, "", None):
        with pytest.raises(TypeError, match=rf"^Linked\(…, id={no_id!r}\): expected a name"):
            Linked(FlowMiddleware(), no_id)  # type: ignore[arg-type]
