"""What a middleware does wrong, and that it is the one who is named."""

import asyncio
import contextlib
import functools
import re
from typing import Any

import pytest

from interpose.chain.chain import Chain
from interpose.contracts.drivers import Tool
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
        (Renaming(), "Renaming called on with the tool name .*: expected 1 to 256 printable characters"),
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


def timed(hook: Any) -> Any:
    """A decorator as most are."""

    @functools.wraps(hook)
    def around(*given: Any) -> Any:
        return hook(*given)

    return around


def silent(hook: Any) -> Any:
    """A decorator that does not say what it decorates."""

    def around(self: Any, *given: Any) -> Any:
        return hook(self, *given)

    return around


@pytest.mark.parametrize("decorated", [timed, contextlib.contextmanager, lambda hook: timed(timed(hook))])
@pytest.mark.parametrize("hook", ["on_execute_tool", "on_execute_tool_async", "on_list_tools"])
def test_a_yield_behind_a_decorator_is_refused_when_added(decorated: Any, hook: str) -> None:
    """As one without."""
    method = {"on_list_tools": YieldingTools.on_list_tools}.get(hook, Yielding.on_execute_tool)
    wrong = type("Wrong", (ToolMiddleware,), {hook: decorated(method)})()
    with pytest.raises(TypeError, match=rf"^Wrong\.{hook} has a yield and would never run: write it as `flow`"):
        Chain([wrong])


@pytest.mark.parametrize("decorated", [timed, lambda hook: timed(timed(hook))])
@pytest.mark.parametrize("hook", ["on_execute_tool", "on_list_tools"])
def test_a_coroutine_function_behind_a_decorator_is_refused_when_added(decorated: Any, hook: str) -> None:
    """As one without, under each sync name."""
    wrong = type("Wrong", (ToolMiddleware,), {hook: decorated(NotAwaiting.on_execute_tool_async)})()
    with pytest.raises(TypeError, match=rf"^Wrong\.{hook} is a coroutine function: (call it on_exec|write it as a pl)"):
        Chain([wrong])


def test_a_coroutine_function_that_a_decorator_hides_fails_the_call_by_name() -> None:
    """In sync and async calls; the tool has not run, and Python has nothing to warn of."""

    class Later(ToolMiddleware):
        """Async under sync names."""

        async def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            """Never runs."""

        async def on_list_tools(self, call_next: ListTools) -> Any:  # type: ignore[override]
            """Never runs."""

    class Hidden(ToolMiddleware):
        """Nobody can see it."""

        on_execute_tool: Any = silent(Later.on_execute_tool)
        on_list_tools: Any = silent(Later.on_list_tools)

    chain = Chain([Passing(), Hidden()])
    with pytest.raises(
        MisuseError, match=r"Later\.on_execute_tool is a coroutine function: call it on_execute_tool_asy"
    ):
        chain.call("t", {}, done)
    with pytest.raises(MisuseError, match=r"^Hidden returned a coroutine"):
        asyncio.run(chain.call_async("t", {}, done_async))
    with pytest.raises(MisuseError, match=r"^Hidden\.on_list_tools is a coroutine function: write it as a plain `def`"):
        chain.list_tools(list)


def test_a_yield_that_a_decorator_hides_fails_the_call_by_name() -> None:
    """Where what it gave is the answer of the list, sync and async; the tool has not run.

    The tool's own generator is its result.
    """

    class Hidden(ToolMiddleware):
        """Nobody can see the yield."""

        on_execute_tool: Any = silent(Yielding.on_execute_tool)

    class HiddenAsync(ToolMiddleware):
        """Nor here."""

        on_execute_tool_async: Any = silent(YieldingAsync.on_execute_tool_async)

    def numbers(tool_name: str, arguments: dict[str, Any]) -> Any:
        """Yields."""
        yield 1

    with pytest.raises(MisuseError, match=r"^Yielding\.on_execute_tool has a yield and would never run: write it as"):
        Chain([Passing(), Hidden()]).call("t", {}, done)
    with pytest.raises(MisuseError, match=r"^Yielding\.on_execute_tool has a yield and would never run: write it as"):
        asyncio.run(Chain([Passing(), Hidden()]).call_async("t", {}, done_async))
    with pytest.raises(
        MisuseError, match=r"^HiddenAsync\.on_execute_tool_async gave nothing to await: it is an `async"
    ):
        asyncio.run(Chain([Passing(), HiddenAsync()], serves="async").call_async("t", {}, done_async))
    assert list(Chain([Passing()]).call("t", {}, numbers)) == [1]


def test_a_call_that_was_not_begun_for_want_of_time_is_not_forgotten() -> None:
    """A time limit of nothing, a task cancelled at once, a closed coroutine: the middleware's answer is the result."""

    class Hasty(ToolMiddleware):
        """Gives up before it began."""

        def __init__(self, give_up: Any) -> None:
            self.give_up = give_up

        async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
            """Its own answer."""
            await self.give_up(call_next(tool_name, arguments))
            return "given up"

    async def at_once(coming: Any) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(coming, 0)

    async def cancelled(coming: Any) -> None:
        asyncio.ensure_future(coming).cancel()

    async def closed(coming: Any) -> None:
        coming.close()

    for give_up in (at_once, cancelled, closed):
        chain = Chain([Passing(), Hasty(give_up)], serves="async")
        assert asyncio.run(chain.call_async("t", {}, done_async)) == "given up"


def test_a_task_that_nobody_awaits_is_a_forgotten_call() -> None:
    """It had not begun when the middleware had returned, and so it will not run."""

    class Starting(ToolMiddleware):
        """Forgets an await."""

        async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
            """Wrong."""
            begun.append(asyncio.ensure_future(call_next(tool_name, arguments)))
            return "done"

    async def work() -> None:
        with pytest.raises(MisuseError, match=r"^Starting used its call_next without an await, and nothing ran"):
            await Chain([Passing(), Starting()], serves="async").call_async("t", {}, done_async)
        with pytest.raises(MisuseError, match=r"^Starting used its call_next after it had returned"):
            await begun[0]

    begun: list[asyncio.Future[Any]] = []
    asyncio.run(work())


class StoppingFlow(FlowMiddleware):
    """Raises what ends generators."""

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """Wrong."""
        yield tool_name, arguments
        raise StopIteration("over")


class StoppingAsync(ToolMiddleware):
    """Raises what no coroutine lets through."""

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Wrong."""
        raise StopIteration("over")


@pytest.mark.parametrize("around", [[], [Passing()], [Passing(), ToolMiddleware()]])
@pytest.mark.parametrize("wrong", [Stopping(), StoppingFlow(), StoppingAsync()])
def test_a_stop_iteration_says_the_same_however_a_middleware_is_written(
    wrong: ToolMiddleware, around: list[ToolMiddleware]
) -> None:
    """Method or flow, sync or async, in a thread or on the loop; the StopIteration is the cause."""
    said = rf"^{type(wrong).__name__} raised StopIteration\('over'\)$"
    chain = Chain([*around, wrong, ToolMiddleware()], serves="async")
    with pytest.raises(RuntimeError, match=said) as caught:
        asyncio.run(chain.call_async("t", {}, done_async))
    assert isinstance(caught.value.__cause__, StopIteration)
    if not isinstance(wrong, StoppingAsync):
        with pytest.raises(RuntimeError, match=said) as caught:
            Chain([*around, wrong, ToolMiddleware()]).call("t", {}, done)
        assert isinstance(caught.value.__cause__, StopIteration)


@pytest.mark.parametrize("around", [[], [Passing()], [Passing(), ToolMiddleware()]])
def test_a_stop_iteration_of_a_tool_says_the_same_wherever_it_runs(around: list[ToolMiddleware]) -> None:
    """Sync and async, with and without layers."""

    async def stopping_async(tool_name: str, arguments: dict[str, Any]) -> Any:
        raise StopIteration("over")

    def stopping(tool_name: str, arguments: dict[str, Any]) -> Any:
        raise StopIteration("over")

    chain = Chain(around)
    for tool in (stopping, stopping_async):
        with pytest.raises(RuntimeError, match=r"^the tool 't' raised StopIteration\('over'\)$"):
            asyncio.run(chain.call_async("t", {}, tool))
    with pytest.raises(RuntimeError, match=r"^the tool 't' raised StopIteration\('over'\)$"):
        chain.call("t", {}, stopping)


def test_a_stop_iteration_at_the_list_of_tools_names_the_middleware() -> None:
    """As at a call."""

    class Ending(ToolMiddleware):
        """Has no tool to give."""

        def on_list_tools(self, call_next: ListTools) -> Any:
            """Raises."""
            return next(iter(()))

    with pytest.raises(RuntimeError, match=r"^Ending\.on_list_tools raised StopIteration\(\)"):
        Chain([Ending()]).list_tools(list)


class Wrong(ToolMiddleware):
    """Does what the given function says, whatever it is."""

    def __init__(self, hook: Any) -> None:
        self.hook = hook

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """The function."""
        return self.hook(tool_name, arguments, call_next)


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (lambda name, arguments, call_next: call_next(name), "called its call_next wrongly: it is `call_next(tool"),
        (lambda name, arguments, call_next: call_next(name, arguments, 1), "called its call_next wrongly: it is `call"),
        (lambda name, arguments, call_next: call_next(), "called its call_next wrongly: it is `call_next(tool_name"),
        (lambda name, arguments, call_next: call_next(tool=name), "called its call_next wrongly: it is `call_next("),
        (lambda name, arguments, call_next: call_next, "returned its call_next in place of a result: `call_next("),
    ],
)
def test_a_call_next_that_is_used_wrongly_is_told_by_who_used_it(hook: Any, said: str) -> None:
    """And not by names of our own; in a thread, on the loop and in the caller's thread."""

    class WrongAsync(ToolMiddleware):
        """The same, awaited where it can be."""

        async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
            """The function."""
            answer = hook(tool_name, arguments, call_next)
            return await answer if asyncio.iscoroutine(answer) else answer

    with pytest.raises(MisuseError, match=f"^Wrong {re.escape(said)}"):
        Chain([Passing(), Wrong(hook), Passing()]).call("t", {}, done)
    with pytest.raises(MisuseError, match=f"^Wrong {re.escape(said)}"):
        asyncio.run(Chain([Passing(), Wrong(hook), Passing()]).call_async("t", {}, done_async))
    with pytest.raises(MisuseError, match=f"^WrongAsync {re.escape(said)}"):
        asyncio.run(Chain([Passing(), WrongAsync(), Passing()], serves="async").call_async("t", {}, done_async))


def test_a_method_is_a_result_like_any_other() -> None:
    """One of a tool's own."""
    assert Chain([Passing()]).call("t", {}, lambda name, arguments: "x".upper)() == "X"
    assert Chain([Passing()]).call("t", {}, lambda name, arguments: Passing().flow).__name__ == "flow"


class ListingWrong(ToolMiddleware):
    """Lists as the given function says."""

    def __init__(self, listing: Any) -> None:
        self.listing = listing

    def on_list_tools(self, call_next: ListTools) -> Any:
        """The function."""
        return self.listing(call_next)


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        (lambda call_next: [*call_next(), *call_next()], "names 't' more than once: a name is one tool's"),
        (lambda call_next: call_next(1), r"called its call_next wrongly: it is `call_next\(\)`"),
        (lambda call_next: call_next, "returned function: expected a sequence of Tool values"),
    ],
)
def test_who_lists_tools_wrongly_is_named(listing: Any, said: str) -> None:
    """With what to write."""
    with pytest.raises(MisuseError, match=rf"^ListingWrong\.on_list_tools {said}"):
        Chain([ListingWrong(listing)]).list_tools(lambda: [Tool("t", "A tool")])
