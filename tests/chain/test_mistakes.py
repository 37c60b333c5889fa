"""What a middleware does wrong, and that it is the one who is named."""

import asyncio
from typing import Any

import pytest

from interpose.chain.chain import Chain
from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import Arguments, CallNext, CallNextAsync, Flow, FlowMiddleware, ToolMiddleware


class Passing(FlowMiddleware):
    """Lets everything through."""

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """Through."""
        return (yield tool_name, arguments)


class Renaming(ToolMiddleware):
    """Calls on with what is no name."""

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Wrong."""
        return call_next(["a"], arguments)  # type: ignore[arg-type]

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Wrong too."""
        return await call_next(None, arguments)  # type: ignore[arg-type]


class Circling(FlowMiddleware):
    """Calls on with arguments that hold themselves."""

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """Wrong."""
        circle: dict[str, Any] = {}
        circle["self"] = circle
        return (yield tool_name, circle)


class NotAwaiting(ToolMiddleware):
    """Forgets an await."""

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Wrong."""
        return call_next(tool_name, arguments)


class Stopping(ToolMiddleware):
    """Raises what ends generators."""

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Wrong."""
        raise StopIteration("over")


def done(tool_name: str, arguments: dict[str, Any]) -> str:
    """The tool."""
    return "done"


async def done_async(tool_name: str, arguments: dict[str, Any]) -> str:
    """The tool."""
    return "done"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Renaming(), "Renaming called on with the tool name .*: expected a str"),
        (Circling(), "Circling gave arguments that hold themselves, or nest too deep"),
    ],
)
def test_who_calls_on_wrongly_is_named(wrong: ToolMiddleware, said: str) -> None:
    """In sync and async calls, with others around."""
    chain = Chain([Passing(), wrong, Passing()])
    with pytest.raises(MisuseError, match=said):
        chain.call("t", {}, done)
    with pytest.raises(MisuseError, match=said):
        asyncio.run(chain.call_async("t", {}, done_async))


def test_who_forgets_an_await_is_named() -> None:
    """No coroutine comes out as a result."""
    with pytest.raises(MisuseError, match=r"^NotAwaiting returned a coroutine .*`await call_next\(…\)` gives one"):
        asyncio.run(Chain([Passing(), NotAwaiting()], serves="async").call_async("t", {}, done_async))


def test_a_stop_iteration_of_a_middleware_ends_no_generator_around_it() -> None:
    """It comes out as an error that names who raised it."""
    with pytest.raises(RuntimeError, match=r"^Stopping raised StopIteration\('over'\)"):
        Chain([Passing(), Stopping()]).call("t", {}, done)


def test_a_list_is_checked_when_it_is_made() -> None:
    """None is no list, and there are two ways to serve."""
    nothing: Any = None
    with pytest.raises(TypeError, match=r"None is no middleware list: expected middlewares, outermost first, or \(\)"):
        Chain(nothing)
    sync: Any = "sync"
    with pytest.raises(ValueError, match="serves='sync': expected 'both' or 'async'"):
        Chain(serves=sync)
