"""A `call_next` lives as long as its hook, and whoever uses it wrongly is named."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from interpose.chain.chain import Chain
from interpose.chain.layers import innermost
from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import Arguments, CallNext, CallNextAsync, FlowMiddleware, ToolMiddleware


class Keeping(ToolMiddleware):
    """Keeps each `call_next` that it gets, sync and async."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Keeps and passes."""
        self.kept.append(call_next)
        return call_next(tool_name, arguments)

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Keeps and passes."""
        self.kept.append(call_next)
        return await call_next(tool_name, arguments)


class First(Keeping):
    """Stands outermost."""


class Middle(Keeping):
    """Stands in between."""


class Last(Keeping):
    """Stands innermost."""


class Doing(ToolMiddleware):
    """Does what the given function says."""

    def __init__(self, hook: Callable[[str, Arguments, CallNext], Any]) -> None:
        self.hook = hook

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """The function."""
        return self.hook(tool_name, arguments, call_next)


LATE = "used its call_next after it had returned"


@pytest.mark.parametrize("passed_on", [{}, {"x": 1}, {"other": [1]}])
def test_a_kept_one_names_its_layer(passed_on: dict[str, Any]) -> None:
    """Wherever it stands, with the arguments of the call or others, and nothing runs."""
    runs: list[str] = []
    layers = [First(), Middle(), Last()]
    Chain(layers).call("t", {"x": 1}, lambda name, arguments: runs.append(name))
    for layer in layers:
        with pytest.raises(MisuseError, match=rf"^{type(layer).__name__} {LATE}"):
            layer.kept[0]("t", passed_on)
    assert runs == ["t"]
    assert [len(layer.kept) for layer in layers] == [1, 1, 1]


def test_a_kept_one_names_its_layer_when_awaited() -> None:
    """Also when it was called in time and awaited too late."""
    runs: list[str] = []
    layers = [First(), Middle(), Last()]

    async def tool(tool_name: str, arguments: dict[str, Any]) -> None:
        runs.append(tool_name)

    class Forgetting(ToolMiddleware):
        """Calls on and waits for nothing."""

        async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
            """Answers itself."""
            self.begun = call_next(tool_name, arguments)
            return "mine"

    async def work() -> None:
        await Chain(layers).call_async("t", {"x": 1}, tool)
        for layer in layers:
            with pytest.raises(MisuseError, match=rf"^{type(layer).__name__} {LATE}"):
                await layer.kept[0]("t", {"x": 1})
        forgetting = Forgetting()
        with pytest.raises(MisuseError, match=r"^Forgetting used its call_next without an await"):
            await Chain([forgetting], serves="async").call_async("t", {}, tool)
        with pytest.raises(MisuseError, match=rf"^Forgetting {LATE}"):
            await forgetting.begun

    asyncio.run(work())
    assert runs == ["t"]


def test_it_is_over_however_the_hook_ended() -> None:
    """After an exception, an interruption, an answer of the middleware's own."""
    kept: list[CallNext] = []

    def ending(error: BaseException | None) -> Callable[[str, Arguments, CallNext], Any]:
        def hook(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            kept.append(call_next)
            if error is not None:
                raise error
            return "mine"

        return hook

    for error in (LookupError("gone"), KeyboardInterrupt(), None):
        with suppress(LookupError, KeyboardInterrupt):
            Chain([Doing(ending(error))]).call("t", {}, lambda name, arguments: pytest.fail("ran"))
        with pytest.raises(MisuseError, match=LATE):
            kept.pop()("t", {})


def test_an_older_one_stays_over_while_a_newer_one_is_open() -> None:
    """Each entry of a layer has its own: entering it again does not open what was given before."""
    last = Last()
    told: list[str] = []

    def twice(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        call_next(tool_name, arguments)
        return call_next(tool_name, arguments)

    def tool(tool_name: str, arguments: dict[str, Any]) -> None:
        if len(last.kept) > 1:
            with pytest.raises(MisuseError, match=LATE):
                last.kept[0](tool_name, arguments)
            told.append("late")

    Chain([Doing(twice), last]).call("t", {}, tool)
    assert told == ["late"]


def test_another_layers_one_is_no_way_round() -> None:
    """An inner layer's is over for the outer ones too, while they themselves are still open."""
    last = Last()

    def borrowing(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        call_next(tool_name, arguments)
        return last.kept[0](tool_name, arguments)

    runs: list[str] = []
    with pytest.raises(MisuseError, match=rf"^Last {LATE}") as caught:
        Chain([Doing(borrowing), Middle(), last]).call("t", {}, lambda name, arguments: runs.append(name))
    assert runs == ["t"]
    assert innermost(caught.value) == "Doing"


def test_it_is_over_in_every_thread() -> None:
    """Open from other threads while the hook runs, also several at a time; over in all of them afterwards."""
    results: list[Any] = []
    kept: list[CallNext] = []

    def racing(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        kept.append(call_next)
        with ThreadPoolExecutor(4) as pool:
            results.extend(pool.map(lambda number: call_next(tool_name, {"n": number}), range(20)))
        return "done"

    assert Chain([Doing(racing), FlowMiddleware(), Middle()]).call("t", {}, lambda name, own: own["n"]) == "done"
    assert results == list(range(20))
    with ThreadPoolExecutor(1) as pool, pytest.raises(MisuseError, match=LATE):
        pool.submit(kept[0], "t", {}).result(5)


def test_what_is_inside_of_a_hook_that_is_over_goes_on() -> None:
    """A layer that still runs in another thread keeps its own `call_next`, whatever its outer ones have done."""
    entered, outer_is_over = threading.Event(), threading.Event()
    outcome: list[Any] = []

    def leaving(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        thread = threading.Thread(target=lambda: outcome.append(call_next(tool_name, arguments)))
        thread.start()
        assert entered.wait(5)
        return thread

    def staying(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        entered.set()
        assert outer_is_over.wait(5)
        return call_next(tool_name, {**arguments, "y": 2})

    thread = Chain([Doing(leaving), Doing(staying), Middle()]).call("t", {"x": 1}, lambda name, own: (name, own))
    outer_is_over.set()
    thread.join(5)
    assert outcome == [("t", {"x": 1, "y": 2})]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_who_passes_on_what_is_no_mapping_is_named(place: int) -> None:
    """Wherever it stands; and the error counts as that layer's own."""
    wrong: Any = ["x"]
    layers: list[ToolMiddleware] = [Middle(), Middle(), Middle()]
    layers[place] = Doing(lambda name, arguments, call_next: call_next(name, wrong))
    with pytest.raises(MisuseError, match=r"^Doing gave arguments of type list: expected a mapping") as caught:
        Chain(layers).call("t", {}, lambda name, arguments: pytest.fail("ran"))
    assert innermost(caught.value) == "Doing"


def test_the_caller_is_named_too() -> None:
    """With layers and without."""
    wrong: Any = ["x"]
    circle: dict[str, Any] = {}
    circle["self"] = circle
    for layers in ([], [Middle()]):
        with pytest.raises(MisuseError, match=r"^the caller gave arguments of type list"):
            Chain(layers).call("t", wrong, lambda name, arguments: pytest.fail("ran"))
        with pytest.raises(MisuseError, match=r"^the caller gave arguments that hold themselves"):
            Chain(layers).call("t", circle, lambda name, arguments: pytest.fail("ran"))


def test_the_innermost_layer_of_chains_in_chains() -> None:
    """An error of an inner list's layer is that layer's; one of the tool is that of the last layer it passed."""

    def failing(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        raise LookupError("gone")

    def gone(tool_name: str, arguments: dict[str, Any]) -> Any:
        raise LookupError("gone")

    inner = Chain([Middle(), Doing(failing)])
    with pytest.raises(LookupError) as caught:
        Chain([First(), Last()]).call("t", {}, lambda name, arguments: inner.call(name, arguments, gone))
    assert innermost(caught.value) == "Doing"
    with pytest.raises(LookupError) as caught:
        Chain([First(), Last()]).call("t", {}, gone)
    assert innermost(caught.value) == "Last"
    with pytest.raises(LookupError) as caught:
        Chain().call("t", {}, gone)
    assert innermost(caught.value) is None


def test_the_innermost_layer_of_an_awaited_call() -> None:
    """The same, with methods and flows mixed, and a sync layer in a thread."""

    async def gone(tool_name: str, arguments: dict[str, Any]) -> Any:
        raise LookupError("gone")

    def failing(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        raise LookupError("gone")

    for layers, expected in (([First(), FlowMiddleware(), Last()], "Last"), ([First(), Doing(failing)], "Doing")):
        with pytest.raises(LookupError) as caught:
            asyncio.run(Chain(layers).call_async("t", {}, gone))
        assert innermost(caught.value) == expected


def test_a_stop_iteration_of_the_tool_reaches_the_last_layer_as_an_error_that_names_it() -> None:
    """Which may make a result of it; it is the same error unhandled."""

    def stopping(tool_name: str, arguments: dict[str, Any]) -> Any:
        raise StopIteration(3)

    def catching(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        try:
            return call_next(tool_name, arguments)
        except RuntimeError as error:
            return getattr(error.__cause__, "value", None)

    assert Chain([First(), Doing(catching)]).call("t", {}, stopping) == 3
    with pytest.raises(RuntimeError, match=r"^the tool 't' raised StopIteration\(3\)"):
        Chain([First(), Last()]).call("t", {}, stopping)


def test_it_takes_its_parameters_by_name_too() -> None:
    """As the contract names them, sync and async."""

    class ByName(ToolMiddleware):
        """Calls on by name."""

        def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            """Through."""
            return call_next(arguments=arguments, tool_name=tool_name)

        async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
            """Through."""
            return await call_next(arguments=arguments, tool_name=tool_name)

    async def tool(tool_name: str, arguments: dict[str, Any]) -> Any:
        return (tool_name, arguments)

    chain = Chain([ByName(), ByName()])
    assert chain.call("t", {"x": 1}, lambda name, arguments: (name, arguments)) == ("t", {"x": 1})
    assert asyncio.run(chain.call_async("t", {"x": 1}, tool)) == ("t", {"x": 1})
