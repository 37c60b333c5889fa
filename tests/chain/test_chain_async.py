"""The async half of a middleware list, with sync middlewares in threads."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.chain.chain import Chain
from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import Arguments, Call, CallNext, CallNextAsync, Flow, FlowMiddleware, ToolMiddleware


class Sync(ToolMiddleware):
    """Has only the sync method."""

    def __init__(self, name: str, trace: list[str]) -> None:
        self.name, self.trace = name, trace

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """In, on, out, and whether it was on the loop's thread."""
        where = "loop" if threading.current_thread() is threading.main_thread() else "thread"
        self.trace.append(f"{self.name} in {where}")
        try:
            return call_next(tool_name, arguments)
        finally:
            self.trace.append(f"{self.name} out")


class Async(ToolMiddleware):
    """Has only the async method."""

    def __init__(self, name: str, trace: list[str]) -> None:
        self.name, self.trace = name, trace

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """In, on, out."""
        self.trace.append(f"{self.name} in")
        try:
            return await call_next(tool_name, arguments)
        finally:
            self.trace.append(f"{self.name} out")


class Retrying(FlowMiddleware):
    """Calls again after a failure, with one argument more."""

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """Twice at most."""
        try:
            return (yield tool_name, arguments)
        except LookupError:
            return (yield "again", {**arguments, "retry": True})


class Keeping(ToolMiddleware):
    """Keeps its call_next, in both forms."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Keeps and passes."""
        self.kept.append(call_next)
        return call_next(tool_name, arguments)


class KeepingAsync(Keeping):
    """Keeps its call_next in the async form too."""

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Keeps and passes."""
        self.kept.append(call_next)
        return await call_next(tool_name, arguments)


async def echo(tool_name: str, arguments: dict[str, Any]) -> Any:
    """A tool that answers with what it was given."""
    await asyncio.sleep(0)
    return (tool_name, arguments)


def test_sync_middlewares_run_in_threads_in_their_place() -> None:
    """The order is that of the list whatever each is written as; nobody blocks the loop."""
    trace: list[str] = []
    chain = Chain([Async("a", trace), Sync("b", trace), Async("c", trace), Sync("d", trace)], serves="async")
    assert asyncio.run(chain.call_async("t", {"x": [1]}, echo)) == ("t", {"x": [1]})
    inwards = ["a in", "b in thread", "c in", "d in thread"]
    assert trace == [*inwards, "d out", "c out", "b out", "a out"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["sync", "async", "flow", "pass"]), max_size=4))
def test_passing_on_is_the_identity(kinds: list[str]) -> None:
    """Any mixture gives what the bare tool gives."""
    trace: list[str] = []
    made: dict[str, Callable[[], ToolMiddleware]] = {
        "sync": lambda: Sync("s", trace),
        "async": lambda: Async("a", trace),
        "flow": FlowMiddleware,
        "pass": ToolMiddleware,
    }
    chain = Chain([made[kind]() for kind in kinds], serves="async")
    assert asyncio.run(chain.call_async("t", {"x": {"y": 1}}, echo)) == ("t", {"x": {"y": 1}})


def test_a_flow_serves_both_lists() -> None:
    """The same instance catches and calls again, sync and async."""
    chain = Chain([Retrying()])

    def failing(tool_name: str, arguments: dict[str, Any]) -> Any:
        if "retry" not in arguments:
            raise LookupError(tool_name)
        return (tool_name, arguments)

    async def failing_async(tool_name: str, arguments: dict[str, Any]) -> Any:
        return failing(tool_name, arguments)

    expected = ("again", {"x": 1, "retry": True})
    assert chain.call("t", {"x": 1}, failing) == expected
    assert asyncio.run(chain.call_async("t", {"x": 1}, failing_async)) == expected


def test_an_error_passes_unchanged_through_threads() -> None:
    """The very object that the tool raised."""
    trace: list[str] = []
    error = ValueError("x")

    async def failing(tool_name: str, arguments: dict[str, Any]) -> Any:
        raise error

    with pytest.raises(ValueError, match="x") as caught:
        asyncio.run(Chain([Sync("a", trace), ToolMiddleware(), FlowMiddleware()]).call_async("t", {}, failing))
    assert caught.value is error
    assert trace == ["a in thread", "a out"]


class Stopping(ToolMiddleware):
    """Raises what a generator must not."""

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """StopIteration."""
        raise StopIteration(1)


def test_a_stop_iteration_from_a_thread_arrives() -> None:
    """As the RuntimeError that a coroutine makes of it, and nobody waits forever."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(Chain([Stopping()]).call_async("t", {}, echo))


@pytest.mark.parametrize("keeping", [Keeping(), KeepingAsync()], ids=["thread", "loop"])
def test_call_next_ends_with_its_hook(keeping: Keeping) -> None:
    """A kept one raises, whichever form it has."""
    chain = Chain([keeping])

    async def work() -> None:
        await chain.call_async("t", {}, echo)
        with pytest.raises(MisuseError, match="after it had returned"):
            await keeping.kept[0]("t", {})

    asyncio.run(work())


def test_the_call_value_reaches_a_thread() -> None:
    """The same object on the loop and off it, and so do context variables."""
    seen: list[Any] = []
    variable = contextvars.ContextVar("variable", default="none")

    class Noting(ToolMiddleware):
        """Notes what it can see."""

        def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            """Notes and passes."""
            seen.extend([call_next.call, variable.get()])
            return call_next(tool_name, arguments)

    async def tool(tool_name: str, arguments: dict[str, Any]) -> Any:
        seen.append(variable.get())

    async def work() -> None:
        variable.set("set")
        await Chain([Noting()]).call_async("t", {}, tool, mine)

    mine = Call("c")
    asyncio.run(work())
    assert seen[0] is mine
    assert seen[1:] == ["set", "set"]


def test_cancelling_reaches_the_tool_inside_a_thread() -> None:
    """The tool is cancelled, the middleware sees it, and its call_next is over."""
    trace: list[str] = []
    left = threading.Event()

    class Stubborn(Sync):
        """Tries again when it is cancelled."""

        def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            """Calls on twice."""
            try:
                return super().on_execute_tool(tool_name, arguments, call_next)
            except BaseException:
                with pytest.raises(MisuseError):
                    call_next(tool_name, arguments)
                raise
            finally:
                left.set()

    async def work() -> None:
        started, cancelled = asyncio.Event(), asyncio.Event()

        async def tool(tool_name: str, arguments: dict[str, Any]) -> Any:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        task = asyncio.ensure_future(Chain([Stubborn("a", trace)]).call_async("t", {}, tool))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(cancelled.wait(), 5)

    asyncio.run(work())
    assert left.wait(5)
    assert trace == ["a in thread", "a out"]


def test_many_calls_with_many_threads_do_not_wait_for_each_other() -> None:
    """More waiting layers at once than any pool has threads: all end."""
    trace: list[str] = []
    chain = Chain([Sync("a", trace), Sync("b", trace), Sync("c", trace)])

    async def work() -> list[Any]:
        return await asyncio.gather(*(chain.call_async("t", {"n": number}, echo) for number in range(40)))

    assert asyncio.run(work()) == [("t", {"n": number}) for number in range(40)]
    assert len(trace) == 40 * 6
