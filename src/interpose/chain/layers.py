"""One call on its way through compiled layers, sync and async.

Knows: that each layer gets arguments of its own and a `call_next` that ends with it. Does not know: where the list
came from, what the terminal does.

The two functions that run for every layer of every call are written out, one sync and one async, and copy flat
arguments in place: they set the price of a layer (docs/performance.md).
"""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from interpose.chain.arguments import is_flat, owned
from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import Arguments, Call, CallNextAsync, ExecuteTool, ExecuteToolAsync

# The last parameter is a CallNext or CallNextAsync; a plain function with the attribute `call` plays it here.
Hook: TypeAlias = Callable[[str, Arguments, Any], Any]
HookAsync: TypeAlias = Callable[[str, Arguments, Any], Awaitable[Any]]

_HookT = TypeVar("_HookT")
_TerminalT = TypeVar("_TerminalT")


@dataclass(frozen=True, slots=True)
class Layers(Generic[_HookT]):
    """The hooks of a list, outermost first, and the names that messages use for them."""

    hooks: tuple[_HookT, ...]
    names: tuple[str, ...]


@dataclass(slots=True)
class _Run(Generic[_HookT, _TerminalT]):
    """What stays the same during one call."""

    hooks: tuple[_HookT, ...]
    names: tuple[str, ...]
    terminal: _TerminalT
    attributes: dict[str, Any]
    """The attributes of every `call_next` of this call: `call`."""
    flat: dict[str, Any] | None
    """The first arguments when they hold no nested values: what equals them can be copied shallowly."""
    length: int = field(init=False)

    def __post_init__(self) -> None:
        self.length = len(self.hooks)


def run(layers: Layers[Hook], tool_name: str, arguments: Arguments, terminal: ExecuteTool, call: Call) -> Any:
    """Runs `terminal` inside `layers`; returns and raises what the outermost layer does."""
    own = owned(arguments, "the caller")
    if not layers.hooks:
        return terminal(tool_name, own)

    return _run_layer(_new_run(layers, own, terminal, call), 0, tool_name, own)


async def run_async(
    layers: Layers[HookAsync], tool_name: str, arguments: Arguments, terminal: ExecuteToolAsync, call: Call
) -> Any:
    """As `run`, awaited."""
    own = owned(arguments, "the caller")
    if not layers.hooks:
        return await terminal(tool_name, own)

    return await _run_layer_async(_new_run(layers, own, terminal, call), 0, tool_name, own)


def in_thread(hook: Hook) -> HookAsync:
    """A sync hook as an async one: it runs in a thread of its own, and its `call_next` waits for the loop.

    A thread of its own, since threads of a bounded pool that wait for each other's layers would wait forever. When
    the waiting task is cancelled, what the thread waits for is cancelled too, and `call_next` is over.
    """

    async def hook_async(tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        loop = asyncio.get_running_loop()
        waiting: list[Future[Any]] = []
        is_open = True

        def call_next_in_thread(tool_name: str, arguments: Arguments) -> Any:
            if not is_open:
                raise MisuseError(_late(getattr(hook, "__qualname__", repr(hook))))
            inner = asyncio.run_coroutine_threadsafe(call_next(tool_name, arguments), loop)
            waiting.append(inner)
            return inner.result()

        call_next_in_thread.__dict__["call"] = call_next.call
        try:
            started = _start(hook, tool_name, arguments, call_next_in_thread)
            return await asyncio.wrap_future(started)
        finally:
            is_open = False
            for inner in waiting:
                inner.cancel()

    return hook_async


def _new_run(
    layers: Layers[_HookT], own: Mapping[str, Any], terminal: _TerminalT, call: Call
) -> _Run[_HookT, _TerminalT]:
    flat = dict(own) if is_flat(own) else None
    return _Run(layers.hooks, layers.names, terminal, {"call": call}, flat)


def _run_layer(run: _Run[Hook, ExecuteTool], position: int, tool_name: str, arguments: dict[str, Any]) -> Any:
    is_open = True
    flat = run.flat
    following = position + 1

    def call_next(tool_name: str, arguments: Arguments) -> Any:
        if not is_open:
            raise MisuseError(_late(run.names[position]))
        own = {**arguments} if arguments == flat else owned(arguments, run.names[position])
        if following == run.length:
            return run.terminal(tool_name, own)
        return _run_layer(run, following, tool_name, own)

    call_next.__dict__ = run.attributes
    try:
        return run.hooks[position](tool_name, arguments, call_next)
    finally:
        is_open = False


async def _run_layer_async(
    run: _Run[HookAsync, ExecuteToolAsync], position: int, tool_name: str, arguments: dict[str, Any]
) -> Any:
    is_open = True
    flat = run.flat
    following = position + 1

    async def call_next(tool_name: str, arguments: Arguments) -> Any:
        if not is_open:
            raise MisuseError(_late(run.names[position]))
        own = {**arguments} if arguments == flat else owned(arguments, run.names[position])
        if following == run.length:
            return await run.terminal(tool_name, own)
        return await _run_layer_async(run, following, tool_name, own)

    call_next.__dict__ = run.attributes
    try:
        return await run.hooks[position](tool_name, arguments, call_next)
    finally:
        is_open = False


def _late(name: str) -> str:
    return f"{name} used its call_next after it had returned: a call_next ends with the hook that it was given to"


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
