"""A middleware list: order, copies, call_next, and what is refused."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.chain.chain import Chain
from interpose.chain.layers import innermost
from interpose.contracts.drivers import Tool
from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import (
    Arguments,
    Call,
    CallNext,
    CallNextAsync,
    Flow,
    FlowMiddleware,
    Linked,
    ListTools,
    ToolMiddleware,
)


class Tracing(ToolMiddleware):
    """Writes down when it is entered and left."""

    def __init__(self, name: str, trace: list[str]) -> None:
        self.name, self.trace = name, trace

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """In, on, out."""
        self.trace.append(f"{self.name} in")
        try:
            return call_next(tool_name, arguments)
        finally:
            self.trace.append(f"{self.name} out")


class TracingFlow(FlowMiddleware):
    """As `Tracing`, written once."""

    def __init__(self, name: str, trace: list[str]) -> None:
        self.name, self.trace = name, trace

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """In, on, out."""
        self.trace.append(f"{self.name} in")
        try:
            return (yield tool_name, arguments)
        finally:
            self.trace.append(f"{self.name} out")


class Doing(ToolMiddleware):
    """Does what the given function says."""

    def __init__(self, hook: Callable[[str, Arguments, CallNext], Any]) -> None:
        self.hook = hook

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """The function."""
        return self.hook(tool_name, arguments, call_next)


class AsyncOnly(ToolMiddleware):
    """Has only the async method."""

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Through."""
        return await call_next(tool_name, arguments)


def echo(tool_name: str, arguments: dict[str, Any]) -> Any:
    """A tool that answers with what it was given."""
    return (tool_name, arguments)


def test_the_first_sees_the_call_first_and_the_result_last() -> None:
    """List order, outermost first, for methods and flows mixed; `add` appends innermost."""
    trace: list[str] = []
    chain = Chain([Tracing("a", trace), TracingFlow("b", trace)])
    chain.add(Tracing("c", trace))
    chain.call("t", {}, lambda name, arguments: trace.append("tool"))
    assert trace == ["a in", "b in", "c in", "tool", "c out", "b out", "a out"]


def test_links_move_a_middleware_in_the_list() -> None:
    """One that says `before` comes before, and the list says why each stands where it stands."""
    trace: list[str] = []
    chain = Chain(
        [Tracing("a", trace), Linked(Tracing("b", trace), "second", before=("Tracing",)), Tracing("c", trace)]
    )
    chain.call("t", {}, lambda name, arguments: None)
    assert trace == ["b in", "a in", "c in", "c out", "a out", "b out"]
    assert chain.ids == ("second", "Tracing", "Tracing-2")
    assert chain.explain().splitlines() == [
        "1. second (Tracing): before 'Tracing'",
        "2. Tracing (Tracing): after 'second'",
        "3. Tracing-2 (Tracing): list order",
    ]
    assert chain.problems == ()


def test_broken_links_are_told_and_left_out_of_account() -> None:
    """The calls go on in list order; what follows is for the owner of the list to decide."""
    chain = Chain(
        [Linked(Doing(echo_through), "a", after=("b",)), Linked(Doing(echo_through), "b", after=("a", "ghost"))]
    )
    assert chain.ids == ("a", "b")
    assert [str(problem) for problem in chain.problems] == [
        "'b' is to come after 'ghost', which is not known",
        "links go in a circle: 'a' before 'b' before 'a'",
    ]
    assert "problem: links go in a circle" in chain.explain()


def echo_through(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
    """Calls on."""
    return call_next(tool_name, arguments)


def test_an_empty_list_is_the_tool_itself() -> None:
    """Same result, and the tool's own dict to change."""
    given_arguments = {"a": [1]}
    name, arguments = Chain().call("t", given_arguments, echo)
    assert (name, arguments) == ("t", given_arguments)
    assert arguments is not given_arguments
    assert arguments["a"] is not given_arguments["a"]
    assert Chain().explain() == "no middleware: the tool is called as it is"


ARGUMENTS = st.dictionaries(
    st.text(max_size=3),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(ARGUMENTS, st.lists(st.sampled_from(["pass", "method", "flow"]), max_size=5))
def test_passing_on_is_the_identity(arguments: dict[str, Any], kinds: list[str]) -> None:
    """Any list of middlewares that only pass on gives what the bare tool gives, with the types of every value."""
    trace: list[str] = []
    makers: dict[str, Callable[[], ToolMiddleware]] = {
        "pass": ToolMiddleware,
        "method": lambda: Tracing("m", trace),
        "flow": lambda: TracingFlow("f", trace),
    }
    chain = Chain([makers[kind]() for kind in kinds])
    assert repr(chain.call("t", arguments, echo)) == repr(("t", arguments))


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
def test_nesting_is_associative(first: int, second: int, third: int) -> None:
    """(a b) c, a (b c) and a b c are the same list."""

    def trace_of(nest: Callable[[list[Chain]], Callable[[str, dict[str, Any]], Any]]) -> list[str]:
        trace: list[str] = []
        names = iter(range(100))
        parts = [Chain([Tracing(str(next(names)), trace) for _ in range(count)]) for count in (first, second, third)]
        nest(parts)("t", {"x": 1})
        return trace

    def inside(outer: Chain, inner: Callable[[str, dict[str, Any]], Any]) -> Callable[[str, dict[str, Any]], Any]:
        return lambda name, arguments: outer.call(name, arguments, inner)

    def joined(*parts: Chain) -> Chain:
        return Chain([middleware for part in parts for middleware in part.middlewares])

    flat = trace_of(lambda parts: inside(joined(*parts), echo))
    assert flat == trace_of(lambda parts: inside(joined(*parts[:2]), inside(parts[2], echo)))
    assert flat == trace_of(lambda parts: inside(parts[0], inside(joined(*parts[1:]), echo)))
    assert len(flat) == 2 * (first + second + third)


@given(st.lists(st.integers(0, 3), max_size=4))
def test_the_tool_runs_as_often_as_the_layers_ask(times: list[int]) -> None:
    """Zero, one or many times: the side effects are the product."""
    effects: list[str] = []

    def repeating(count: int) -> ToolMiddleware:
        return Doing(lambda name, arguments, call_next: [call_next(name, arguments) for _ in range(count)])

    Chain([repeating(count) for count in times]).call("t", {}, lambda name, arguments: effects.append(name))
    expected = 1
    for count in times:
        expected *= count
    assert len(effects) == expected


def test_what_a_layer_passes_on_is_what_the_next_one_gets() -> None:
    """A rewrite counts even where Python calls the old and the new value equal."""
    rewriting = Doing(lambda name, arguments, call_next: call_next("other", {**arguments, "flag": True}))
    name, arguments = Chain([rewriting, ToolMiddleware()]).call("t", {"flag": 1}, echo)
    assert name == "other"
    assert arguments["flag"] is True


def test_a_middleware_may_answer_itself_or_catch() -> None:
    """Without a call_next the tool does not run; what the tool raises can become a result."""

    def failing(tool_name: str, arguments: dict[str, Any]) -> Any:
        raise LookupError("gone")

    def catching(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        try:
            return call_next(tool_name, arguments)
        except LookupError as error:
            return f"caught {error}"

    assert Chain([Doing(lambda *_: "mine")]).call("t", {}, failing) == "mine"
    assert Chain([Doing(catching), ToolMiddleware()]).call("t", {}, failing) == "caught gone"
    assert Chain([Doing(lambda *_: None)]).call("t", {}, failing) is None


def test_an_error_passes_unchanged() -> None:
    """The very object that the tool or a middleware raised, BaseException included."""
    trace: list[str] = []
    for error in (ValueError("x"), KeyboardInterrupt()):

        def failing(tool_name: str, arguments: dict[str, Any], raised: BaseException = error) -> Any:
            raise raised

        with pytest.raises(type(error)) as caught:
            Chain([ToolMiddleware(), Tracing("a", trace), TracingFlow("b", trace)]).call("t", {}, failing)
        assert caught.value is error
    assert trace == ["a in", "b in", "b out", "a out"] * 2


def test_arguments_that_are_no_mapping_name_the_culprit() -> None:
    """The caller, or the middleware that passed them on."""
    wrong: Any = ["x"]
    with pytest.raises(MisuseError, match="the caller gave arguments of type list"):
        Chain().call("t", wrong, echo)
    with pytest.raises(MisuseError, match="Doing gave arguments of type list"):
        Chain([Doing(lambda name, arguments, call_next: call_next(name, wrong))]).call("t", {}, echo)


def test_the_call_value_travels() -> None:
    """Every layer sees the same object; without one, an empty one is made for the call."""
    seen: list[Call] = []

    def noting(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        seen.append(call_next.call)
        return call_next(tool_name, arguments)

    chain = Chain([Doing(noting), Doing(noting)])
    mine = Call("c1")
    chain.call("t", {}, echo, mine)
    chain.call("t", {}, echo)
    assert seen[0] is seen[1] is mine
    assert seen[2] is seen[3]
    assert seen[2] == Call("")


def test_an_instance_has_one_place() -> None:
    """The same instance or id twice is refused and named; the list stays as it was."""
    middleware = ToolMiddleware()
    with pytest.raises(ValueError, match="this ToolMiddleware is already in the list"):
        Chain([middleware, middleware])
    chain = Chain([Linked(middleware, "a")])
    with pytest.raises(ValueError, match="already in the list"):
        chain.add(middleware)
    with pytest.raises(ValueError, match="the id 'a' is already"):
        chain.add(Linked(ToolMiddleware(), "a"))
    assert chain.middlewares == (middleware,)
    chain.add(Linked(ToolMiddleware(), "ToolMiddleware-2"))
    for _ in range(3):
        chain.add(ToolMiddleware())
    assert chain.ids == ("a", "ToolMiddleware-2", "ToolMiddleware", "ToolMiddleware-3", "ToolMiddleware-4")


class Confused(ToolMiddleware):
    """A coroutine function under the sync name."""

    on_execute_tool: Any = AsyncOnly.on_execute_tool_async


class Duck:
    """No subclass, and still a middleware."""

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Through."""
        return call_next(tool_name, arguments)


def test_what_cannot_serve_is_refused_when_added() -> None:
    """By name, and the chain stays as it was."""
    chain = Chain()
    wrong: list[tuple[Any, str]] = [
        (AsyncOnly(), "AsyncOnly has only on_execute_tool_async"),
        (Confused(), "Confused.on_execute_tool is a coroutine function"),
        (object(), "is no middleware: expected an object with on_execute_tool"),
        (ToolMiddleware, "the class ToolMiddleware is no middleware"),
    ]
    for middleware, message in wrong:
        with pytest.raises(TypeError, match=message):
            chain.add(middleware)
    assert chain.middlewares == ()
    duck: Any = Duck()
    chain.add(duck)
    assert chain.call("t", {}, echo) == ("t", {})
    with pytest.raises(MisuseError, match="async calls only"):
        Chain([AsyncOnly()], serves="async").call("t", {}, echo)


class Listing(ToolMiddleware):
    """Does to the list of tools what the given function says."""

    def __init__(self, change: Callable[[tuple[Tool, ...]], Any]) -> None:
        self.change = change

    def on_list_tools(self, call_next: ListTools) -> Any:
        """The function, over what the inner ones leave."""
        return self.change(tuple(call_next()))


def test_the_list_of_tools_goes_through_the_list() -> None:
    """Innermost first: the outer one sees what the inner one left; a middleware without the method changes nothing."""
    read, write, more = Tool("read", "Read"), Tool("write", "Write"), Tool("more", "More")
    duck: Any = Duck()
    chain = Chain([Listing(lambda tools: (*tools, more)), duck, ToolMiddleware(), Listing(lambda tools: tools[1:])])
    assert chain.list_tools(lambda: [read, write]) == (write, more)
    assert Chain().list_tools(lambda: [read]) == [read]


@pytest.mark.parametrize("answer", [None, "read", ["read"], 3])
def test_a_list_of_tools_that_is_none_names_the_culprit(answer: Any) -> None:
    """Anything but a sequence of tools."""
    with pytest.raises(MisuseError, match=r"Listing\.on_list_tools returned (NoneType|str|list|int): expected"):
        Chain([Listing(lambda tools: answer)]).list_tools(list)


def test_an_error_tells_which_layer_it_came_from() -> None:
    """The innermost one that it passed; None when there is none."""

    def failing(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        raise LookupError("gone")

    with pytest.raises(LookupError) as caught:
        Chain([TracingFlow("a", []), Doing(failing), Tracing("b", [])]).call("t", {}, echo)
    assert innermost(caught.value) == "Doing"
    assert innermost(ValueError("never raised")) is None


def test_a_call_keeps_the_list_it_started_with() -> None:
    """A middleware added in the middle of a call is not seen by that call."""
    trace: list[str] = []
    chain = Chain()

    def adding(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        chain.add(Tracing("new", trace))
        return call_next(tool_name, arguments)

    chain.add(Doing(adding))
    chain.call("t", {}, echo)
    assert trace == []
    assert len(chain.middlewares) == 2


def test_many_threads_share_one_instance() -> None:
    """64 threads through one list: each gets its own arguments and its own result, none is lost."""
    trace: list[str] = []
    chain = Chain([Tracing("a", trace), TracingFlow("b", trace), ToolMiddleware()])
    results: dict[int, Any] = {}
    barrier = threading.Barrier(64)

    def work(number: int) -> None:
        barrier.wait(10)
        for turn in range(20):
            results[number * 20 + turn] = chain.call("t", {"n": number, "list": [turn]}, echo)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n * 20 + turn: ("t", {"n": n, "list": [turn]}) for n in range(64) for turn in range(20)}
    assert len(trace) == 64 * 20 * 4


def test_adding_from_many_threads_loses_nobody() -> None:
    """Each `add` builds on the one before."""
    chain = Chain()
    threads = [threading.Thread(target=lambda: chain.add(ToolMiddleware())) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(chain.middlewares) == 32
