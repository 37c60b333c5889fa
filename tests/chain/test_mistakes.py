"""What a middleware does wrong, and that it is the one who is named."""

import asyncio
from typing import Any

import pytest

from interpose.chain.chain import Chain
from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import (
    Arguments,
    CallNext,
    CallNextAsync,
    Flow,
    FlowMiddleware,
    ListTools,
    ToolMiddleware,
)


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
        (Circling(), "Circling gave arguments that hold themselves, or nest deeper than 200"),
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


class Mistyped(ToolMiddleware):
    """Means to be a hook."""

    def on_execute_tools(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Nobody calls it."""


class Empty(FlowMiddleware):
    """Has no flow."""

    def flows(self, tool_name: str, arguments: Arguments) -> Flow:
        """Nobody calls it."""
        return (yield tool_name, arguments)


class Yielding(ToolMiddleware):
    """A flow under the name of a hook."""

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Never runs."""
        yield tool_name, arguments


class YieldingAsync(ToolMiddleware):
    """The same, async."""

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Never runs."""
        yield tool_name, arguments


class YieldingTools(ToolMiddleware):
    """A list of tools, one by one."""

    def on_list_tools(self, call_next: ListTools) -> Any:
        """Never runs."""
        yield from call_next()


class LaterTools(ToolMiddleware):
    """A list of tools, later."""

    on_list_tools: Any = NotAwaiting.on_execute_tool_async


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            Mistyped(),
            r"^Mistyped overrides none of the hooks .*`on_execute_tool` or `on_execute_tool_async` or `on_list",
        ),
        (Empty(), "^Empty overrides none of the hooks and would do nothing: write `flow`"),
        (Yielding(), r"^Yielding.on_execute_tool has a yield and would never run: write it as `flow` of a FlowMiddl"),
        (YieldingAsync(), r"^YieldingAsync.on_execute_tool_async has a yield and would never run"),
        (YieldingTools(), r"^YieldingTools.on_list_tools has a yield"),
        (LaterTools(), r"^LaterTools.on_list_tools is a coroutine function: write it as a plain `def`"),
    ],
)
def test_what_would_never_run_is_refused_when_added(wrong: ToolMiddleware, said: str) -> None:
    """By its class, with what to write; also in a list that serves async only."""
    for serves in ("both", "async"):
        with pytest.raises(TypeError, match=said):
            Chain([wrong], serves=serves)


def test_one_hook_is_enough() -> None:
    """Any of them, and of a flow either the flow or a method; the two passing classes themselves pass."""

    class Listing(ToolMiddleware):
        """Only lists."""

        def on_list_tools(self, call_next: ListTools) -> Any:
            """As they are."""
            return call_next()

    class Written(FlowMiddleware):
        """A flow by descent only."""

        def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            """Through."""
            return call_next(tool_name, arguments)

    chain = Chain([Listing(), Written(), Passing(), ToolMiddleware(), FlowMiddleware()])
    assert chain.call("t", {}, done) == "done"


def test_a_task_in_place_of_a_result_is_a_forgotten_await() -> None:
    """It is ended, and who returned it is named."""
    begun: list[asyncio.Task[Any]] = []

    class Starting(ToolMiddleware):
        """Starts the rest and does not wait."""

        async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
            """A task."""
            begun.append(asyncio.ensure_future(call_next(tool_name, arguments)))
            return begun[0]

    async def work() -> None:
        with pytest.raises(MisuseError, match=r"^Starting returned a Task in place of a result: `await call_next"):
            await Chain([Passing(), Starting()], serves="async").call_async("t", {}, done_async)
        await asyncio.wait(begun)
        assert begun[0].cancelled()

    asyncio.run(work())


@pytest.mark.parametrize("layers", [0, 1])
def test_a_tool_of_the_other_kind_is_told_apart(layers: int) -> None:
    """Sync calls are for plain functions and async ones for coroutine functions; the error says which to use."""
    chain = Chain([Passing() for _ in range(layers)])
    wrong: Any = done_async
    with pytest.raises(
        MisuseError, match=r"^t came back with a coroutine \(done_async\).*`await chain.call_async\(…\)`"
    ):
        chain.call("t", {}, wrong)
    plain: Any = done
    with pytest.raises(
        MisuseError, match=r"^t returned a str that cannot be awaited: `call_async` takes an `async def`"
    ):
        asyncio.run(chain.call_async("t", {}, plain))


def test_who_fails_at_the_list_of_tools_is_named() -> None:
    """Once, as the one who raised it."""

    class Failing(ToolMiddleware):
        """Cannot say."""

        def on_list_tools(self, call_next: ListTools) -> Any:
            """Raises."""
            raise LookupError("gone")

    class Around(ToolMiddleware):
        """Lets it through."""

        def on_list_tools(self, call_next: ListTools) -> Any:
            """As they are."""
            return call_next()

    with pytest.raises(LookupError) as caught:
        Chain([Around(), Failing()]).list_tools(list)
    assert caught.value.__notes__ == ["raised by Failing.on_list_tools"]


def test_a_kept_list_of_tools_is_over_with_its_hook() -> None:
    """Called later it raises, and names who kept it."""
    kept: list[ListTools] = []

    class Keeping(ToolMiddleware):
        """Keeps it."""

        def on_list_tools(self, call_next: ListTools) -> Any:
            """As they are."""
            kept.append(call_next)
            return call_next()

    assert Chain([Keeping()]).list_tools(list) == []
    with pytest.raises(MisuseError, match=r"^Keeping.on_list_tools used its call_next after it had returned"):
        kept[0]()


class BlockingOnce(FlowMiddleware):
    """One hook by hand, and no flow."""

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Never goes on."""
        return "blocked"


class BlockingAsync(FlowMiddleware):
    """The other hook by hand, and no flow."""

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Never goes on."""
        return "blocked"


def test_a_flow_middleware_without_a_flow_serves_by_what_it_has() -> None:
    """The flow that only passes through lets no call past a hook written by hand."""
    chain = Chain([BlockingOnce()])
    assert chain.call("t", {}, done) == "blocked"
    assert asyncio.run(chain.call_async("t", {}, done_async)) == "blocked"
    with pytest.raises(TypeError, match="BlockingAsync has only on_execute_tool_async and would be skipped"):
        Chain([BlockingAsync()])


@pytest.mark.parametrize(
    ("base", "right", "wrong", "meant"),
    [
        (ToolMiddleware, "on_list_tools", "on_execute_tools", "on_execute_tool"),
        (ToolMiddleware, "on_execute_tool", "on_list_tool", "on_list_tools"),
        (ToolMiddleware, "on_execute_tool", "on_execute_tool_asnc", "on_execute_tool_async"),
        (ToolMiddleware, "on_list_tools", "on_execute_tol", "on_execute_tool"),
        (ToolMiddleware, "on_list_tools", "onexecute_tool", "on_execute_tool"),
        (ToolMiddleware, "on_list_tools", "on_result", "on_execute_tool or .*"),
        (FlowMiddleware, "on_list_tools", "Flow", "flow"),
    ],
)
def test_a_mistyped_hook_beside_a_right_one_is_refused(base: type, right: str, wrong: str, meant: str) -> None:
    """It names the method and the hook that was meant."""

    def through(self: Any, *given: Any) -> Any:
        """Calls on."""

    kind = type("Half", (base,), {right: through, wrong: through})
    with pytest.raises(TypeError, match=rf"^Half\.{wrong} is no hook and would never be called: call it {meant},"):
        Chain([kind()])
    assert Chain([type("Own", (base,), {right: through, "allow": through, "execute_tool": through})()]).ids == ("Own",)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("kept", [True, False])
def test_a_call_that_nobody_awaits_is_named(kept: bool) -> None:
    """A result of its own does not hide that nothing ran."""
    begun: list[Any] = []

    class Dropping(ToolMiddleware):
        """Forgets an await."""

        async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
            """Wrong."""
            coming = call_next(tool_name, arguments)
            if kept:
                begun.append(coming)
            return begun if kept else "done"

    with pytest.raises(MisuseError, match=r"^Dropping used its call_next without an await, and nothing ran"):
        asyncio.run(Chain([Passing(), Dropping()], serves="async").call_async("t", {}, done_async))
    for coming in begun:
        coming.close()
