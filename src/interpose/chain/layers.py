"""One call on its way through compiled layers, sync and async.

Knows: that each layer gets arguments of its own and a `call_next` that ends with it. Does not know: where the list
came from, what the terminal does.

A list is compiled once into functions that each know the next one. The two that run for every layer of every call are
written out, one sync and one async, and copy flat arguments in place: they set the price of a layer
(docs/performance.md). Annotations are not evaluated here, since a `call_next` is made for each layer of each call.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from types import CoroutineType, TracebackType
from typing import Any, NoReturn, TypeAlias

from interpose.chain.arguments import is_flat, owned
from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import Arguments, Call, CallNextAsync, ExecuteTool, ExecuteToolAsync

# The last parameter is a CallNext or CallNextAsync; a plain function with the attribute `call` plays it here.
Hook: TypeAlias = Callable[[str, Arguments, Any], Any]
HookAsync: TypeAlias = Callable[[str, Arguments, Any], Awaitable[Any]]


@dataclass(slots=True)
class Run:
    """What stays the same during one call.

    Attributes:
        terminal: what stands at the end of the list.
        attributes: of every `call_next` of this call: `call`.
        flat: the first arguments when they hold no nested values: what equals them is copied shallowly. Else None.
    """

    terminal: Callable[[str, dict[str, Any]], Any]
    attributes: dict[str, Any]
    flat: dict[str, Any] | None


Enter: TypeAlias = Callable[[Run, str, dict[str, Any]], Any]
"""Runs a layer and all inside of it; the arguments are its own from here on."""
EnterAsync: TypeAlias = Callable[[Run, str, dict[str, Any]], Awaitable[Any]]


def compiled(layers: Iterable[tuple[str, Hook]]) -> Enter:
    """The way into these layers, named and outermost first; it reaches the terminal when there are none."""
    enter: Enter = _enter_terminal
    for name, hook in reversed(tuple(layers)):
        enter = _layer(name, hook, enter)
    return enter


def compiled_async(layers: Iterable[tuple[str, HookAsync]]) -> EnterAsync:
    """As `compiled`, awaited."""
    enter: EnterAsync = _enter_terminal
    for name, hook in reversed(tuple(layers)):
        enter = _layer_async(name, hook, enter)
    return enter


def run(enter: Enter, tool_name: str, arguments: Arguments, terminal: ExecuteTool, call: Call) -> Any:
    """Runs `terminal` inside the compiled layers; returns and raises what the outermost layer does."""
    flat = {**arguments} if is_flat(arguments) else None
    own = owned(arguments, "the caller") if flat is None else {**flat}
    return enter(Run(terminal, {"call": call}, flat), tool_name, own)


async def run_async(
    enter: EnterAsync, tool_name: str, arguments: Arguments, terminal: ExecuteToolAsync, call: Call
) -> Any:
    """As `run`, awaited."""
    flat = {**arguments} if is_flat(arguments) else None
    own = owned(arguments, "the caller") if flat is None else {**flat}
    return await enter(Run(terminal, {"call": call}, flat), tool_name, own)


def innermost(error: BaseException) -> str | None:
    """The name of the innermost layer that `error` passed, read from its traceback; None when it passed none.

    It is the layer that raised it, when the terminal did not.
    """
    name: str | None = None
    step: TracebackType | None = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if code.co_filename == __file__ and code.co_name == "enter":
            name = step.tb_frame.f_locals.get("name")
        step = step.tb_next
    return name


def in_thread(hook: Hook) -> HookAsync:
    """A sync hook as an async one: it runs in a thread of its own, and its `call_next` waits for the loop.

    A thread of its own, since threads of a bounded pool that wait for each other's layers would wait forever. When
    the waiting task is cancelled, what the thread waits for is cancelled too, and `call_next` is over.
    """

    async def hook_async(tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        loop = asyncio.get_running_loop()
        waiting: list[Future[Any]] = []
        over = threading.Event()

        def call_next_in_thread(tool_name: str, arguments: Arguments) -> Any:
            if over.is_set():
                raise MisuseError(_late(getattr(hook, "__qualname__", repr(hook))))
            inner = asyncio.run_coroutine_threadsafe(call_next(tool_name, arguments), loop)
            waiting.append(inner)
            if over.is_set():  # cancelled in between: then nobody else has seen it
                inner.cancel()
            return inner.result()

        call_next_in_thread.__dict__["call"] = call_next.call
        try:
            started = _start(hook, tool_name, arguments, call_next_in_thread)
            return await asyncio.wrap_future(started)
        finally:
            over.set()
            for inner in waiting:
                inner.cancel()

    return hook_async


def _enter_terminal(run: Run, tool_name: str, arguments: dict[str, Any]) -> Any:
    return run.terminal(tool_name, arguments)


def _layer(name: str, hook: Hook, inner: Enter) -> Enter:
    def enter(run: Run, tool_name: str, arguments: dict[str, Any]) -> Any:
        open_run: Run | None = run

        def call_next(tool_name: str, arguments: Arguments) -> Any:
            current = open_run
            if current is None:
                raise MisuseError(_late(name))
            if not isinstance(tool_name, str):
                raise MisuseError(_no_name(name, tool_name))
            return inner(current, tool_name, {**arguments} if arguments == current.flat else owned(arguments, name))

        call_next.__dict__ = run.attributes
        try:
            return hook(tool_name, arguments, call_next)
        except StopIteration as error:
            raise RuntimeError(f"{name} raised {error!r}") from error
        finally:
            open_run = None  # the hook is over, and so is its call_next

    return enter


def _layer_async(name: str, hook: HookAsync, inner: EnterAsync) -> EnterAsync:
    async def enter(run: Run, tool_name: str, arguments: dict[str, Any]) -> Any:
        open_run: Run | None = run

        async def call_next(tool_name: str, arguments: Arguments) -> Any:
            current = open_run
            if current is None:
                raise MisuseError(_late(name))
            if not isinstance(tool_name, str):
                raise MisuseError(_no_name(name, tool_name))
            return await inner(
                current, tool_name, {**arguments} if arguments == current.flat else owned(arguments, name)
            )

        call_next.__dict__ = run.attributes
        try:
            answer = await hook(tool_name, arguments, call_next)
            return _not_awaitable(name, answer) if type(answer) is CoroutineType else answer
        finally:
            open_run = None  # the hook is over, and so is its call_next

    return enter


def _late(name: str) -> str:
    return f"{name} used its call_next after it had returned: a call_next ends with the hook that it was given to"


def _no_name(name: str, tool_name: object) -> str:
    return f"{name} called on with the tool name {tool_name!r:.80}: expected a str"


def _not_awaitable(name: str, answer: CoroutineType[Any, Any, Any]) -> NoReturn:
    inner = answer.__qualname__
    answer.close()  # else Python warns that nobody awaited it
    raise MisuseError(f"{name} returned a coroutine ({inner}) in place of a result: `await call_next(…)` gives one")


def _start(hook: Hook, tool_name: str, arguments: Arguments, call_next: Callable[[str, Arguments], Any]) -> Future[Any]:
    outcome: Future[Any] = Future()
    outcome.set_running_or_notify_cancel()  # from here on a waiter that is cancelled leaves it alone
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(hook, tool_name, arguments, call_next))
        except StopIteration as error:
            # As a coroutine would: a loop's future does not take a StopIteration.
            replaced = RuntimeError(f"the hook raised {error!r}")
            replaced.__cause__ = error
            outcome.set_exception(replaced)
        except BaseException as error:  # noqa: BLE001 - handed over whole to whoever awaits; fails as the hook does
            outcome.set_exception(error)

    threading.Thread(target=work, name="interpose-middleware", daemon=True).start()
    return outcome
