"""One call on its way through compiled layers, sync and async.

Knows: that no layer can change another's arguments, and that a `call_next` ends with its hook. Does not know: where
the list came from, what the terminal does.

A list is compiled once into pairs, each of a hook and the pair inside of it. The function that runs for every layer of
every call is written out, once sync and once async, and uses little from around it: it sets the price of a layer
(docs/performance.md). It is made anew for each call; bound to what is inside of a layer, it is that layer's
`call_next`. Annotations are not evaluated here, since that would be done for each call.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import re
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from types import AsyncGeneratorType, CoroutineType, GeneratorType, MethodType, TracebackType
from typing import Any, NoReturn, TypeAlias

from interpose.contracts.arguments import owned, read_only
from interpose.contracts.copying import copied
from interpose.contracts.errors import MisuseError
from interpose.contracts.naming import not_a_name
from interpose.contracts.readonly import READ_ONLY, ReadOnlyDict
from interpose.contracts.stopping import stop_of, stopped
from interpose.contracts.tools import Arguments, Call, CallNextAsync, ExecuteTool, ExecuteToolAsync

# The last parameter is a CallNext or CallNextAsync; a bound function with the attribute `call` plays it here.
Hook: TypeAlias = Callable[[str, Arguments, Any], Any]
HookAsync: TypeAlias = Callable[[str, Arguments, Any], Awaitable[Any]]
Layers: TypeAlias = tuple[Any, Any]
"""A hook and the layers inside of it. Inside of the last hook are the names of all, outermost first, and None."""
_PENDING = frozenset({CoroutineType, asyncio.Task, asyncio.Future})
"""What a forgotten `await` leaves; types that are looked up, since each layer of each call asks."""
_YIELDING = frozenset({GeneratorType, AsyncGeneratorType})
_NO_RESULTS = READ_ONLY | _PENDING | _YIELDING | {MethodType}
"""What is looked at before it may leave a list as its result."""
_WRONG_CALL = re.compile(r"\A\w[\w.<>]*\.<locals>\.call_next(?:_in_thread)?\(\) (?:takes|missing|got) ")
_HOOK_NAMES = frozenset({"on_execute_tool", "on_execute_tool_async"})
Opened: TypeAlias = list[Any]
"""What a `call_next` is bound to: the layers that it enters, and what binds the `call_next` of the hook found there.
When the hook that it was given to is over, the second is `_late`, and nothing can be bound any more.
In async calls the third is how many of the coroutines that it gave have not begun to run, and these follow."""
_COMING = 3
"""Where they begin."""


def compiled(layers: Iterable[tuple[str, Hook]]) -> Layers:
    """These named hooks, outermost first, all sync or all async."""
    listed = tuple(layers)
    made: Layers = (tuple(name for name, _ in listed), None)
    for _, hook in reversed(listed):
        made = (hook, made)
    return made


def run(layers: Layers, tool_name: str, arguments: Arguments, terminal: ExecuteTool, call: Call) -> Any:
    """Runs `terminal` inside the compiled layers; returns and raises what the outermost layer does."""
    if layers[1] is None:
        answer = _ran(tool_name, owned(arguments, "the caller"), terminal)
        return _result(tool_name, answer) if type(answer) in _NO_RESULTS else answer

    called, given = tool_name, read_only(arguments, "the caller")

    def call_next(opened: Opened, tool_name: str, arguments: Arguments) -> Any:
        if arguments is not given or tool_name is not called:
            arguments = _passed_on(opened[0], tool_name, arguments)
        (hook, inside), bind = opened
        if inside is None:
            return _reached(opened, terminal, tool_name, arguments)
        opening = [inside, bind]
        try:
            return hook(tool_name, arguments, bind(opening))
        except (StopIteration, RuntimeError, TypeError) as error:
            raise _named(_name(opened[0]), error)  # noqa: B904 - it has its cause
        finally:
            opening[1] = _late  # the hook is over, and so is its call_next

    call_next.__dict__ = {"call": call}
    answer = call_next([layers, call_next.__get__], called, given)
    return _result(called, answer) if type(answer) in _NO_RESULTS else answer


async def run_async(
    layers: Layers, tool_name: str, arguments: Arguments, terminal: ExecuteToolAsync, call: Call
) -> Any:
    """As `run`, awaited."""
    if layers[1] is None:
        try:
            answer = await _awaitable(tool_name, _ran(tool_name, owned(arguments, "the caller"), terminal))
        except RuntimeError as error:
            raise _named(f"the tool {tool_name!r}", error)  # noqa: B904 - it has its cause
        return _result(tool_name, answer) if type(answer) in _NO_RESULTS else answer

    called, given = tool_name, read_only(arguments, "the caller")

    def call_next(opened: Opened, tool_name: str, arguments: Arguments) -> Any:
        if arguments is not given or tool_name is not called:
            arguments = _passed_on(opened[0], tool_name, arguments)
        opened[2] += 1
        coming = enter(opened, tool_name, arguments)
        opened.append(coming)
        return coming

    async def enter(opened: Opened, tool_name: str, arguments: Arguments) -> Any:
        opened[2] -= 1
        hook, inside = opened[0]
        bind = opened[1]
        if inside is None:
            try:
                return await _awaitable(tool_name, _reached(opened, terminal, tool_name, arguments))
            except RuntimeError as error:
                raise _named(f"the tool {tool_name!r}", error)  # noqa: B904 - it has its cause
        opening = [inside, bind, 0]
        try:
            answer = await hook(tool_name, arguments, bind(opening))
        except (TypeError, RuntimeError) as error:
            raise _named(_name(opened[0]), error)  # noqa: B904 - it has its cause
        else:
            if opening[2] or type(answer) in _PENDING:
                _check_awaited(_name(opened[0]), opening, answer)
            return answer
        finally:
            opening[1] = _late  # the hook is over, and so is its call_next
            if opening[2]:
                del opening[_COMING:]  # they hold what holds them

    call_next.__dict__ = {"call": call}
    answer = await call_next([layers, call_next.__get__, 0], called, given)
    return _result(called, answer) if type(answer) in _NO_RESULTS else answer


def innermost(error: BaseException) -> str | None:
    """The name of the innermost layer that `error` passed, read from its traceback; None when it passed none.

    It is the layer that raised it, when the terminal did not.
    """
    name: str | None = None
    step: TracebackType | None = error.__traceback__
    while step is not None:
        if (_is_of(step, "call_next") or _is_of(step, "enter")) and not _is_of(step.tb_next, "_late"):
            here = step.tb_frame.f_locals
            name = _name(here["opened"][0]) if "opening" in here else name
        step = step.tb_next
    return name


def renamer(error: BaseException) -> str | None:
    """The name of the layer that called on last with another tool's name, read from the traceback of `error`."""
    name: str | None = None
    before: dict[str, Any] = {}
    step: TracebackType | None = error.__traceback__
    while step is not None:
        if (_is_of(step, "call_next") or _is_of(step, "enter")) and not _is_of(step.tb_next, "_late"):
            here = step.tb_frame.f_locals
            if before and here["tool_name"] != before["tool_name"]:
                name = _name(before["opened"][0])
            before = here
        step = step.tb_next
    return name


def is_wrong_call(error: BaseException) -> bool:
    """Whether a `call_next` was given too much or too little; Python says so in names of our own."""
    return isinstance(error, TypeError) and _WRONG_CALL.search(str(error)) is not None


def in_thread(hook: Hook) -> HookAsync:
    """A sync hook as an async one: it runs in a thread of its own, and its `call_next` waits for the loop.

    A thread of its own, since threads of a bounded pool that wait for each other's layers would wait forever. When
    the waiting task is cancelled, what the thread waits for is cancelled too, and `call_next` is over.
    """

    async def hook_async(tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        loop = asyncio.get_running_loop()
        waiting: list[Future[Any]] = []
        over = threading.Event()

        async def entered(tool_name: str, arguments: Arguments) -> Any:
            return await call_next(tool_name, arguments)  # called on the loop's thread, which counts

        def call_next_in_thread(tool_name: str, arguments: Arguments) -> Any:
            if over.is_set():
                raise MisuseError(_too_late(_owner(hook)))
            inner = asyncio.run_coroutine_threadsafe(entered(tool_name, arguments), loop)
            waiting.append(inner)
            if over.is_set():  # cancelled in between: then nobody else has seen it
                inner.cancel()
            return inner.result()

        call_next_in_thread.__dict__["call"] = call_next.call
        try:
            started = _start(hook, tool_name, arguments, call_next_in_thread)
            answer = await asyncio.wrap_future(started)
            if answer is call_next_in_thread:
                raise MisuseError(_returned_call_next(_owner(hook)))
            return answer
        finally:
            over.set()
            for inner in waiting:
                inner.cancel()

    return hook_async


def _passed_on(layers: Layers, tool_name: object, arguments: object) -> ReadOnlyDict:
    """The arguments as these layers get them. Raises MisuseError naming who gave what they cannot get."""
    giver = _name(layers, outwards=1) or "the caller"
    if (problem := not_a_name(tool_name)) is not None:
        raise MisuseError(f"{giver} called on with {problem}")
    return read_only(arguments, giver)


def _reached(opened: Opened, terminal: Callable[[str, dict[str, Any]], Any], tool_name: str, arguments: Any) -> Any:
    """What the terminal gives, with arguments of its own."""
    if opened[1] is _late:
        raise MisuseError(_too_late(_name(opened[0], outwards=1)))
    return _ran(tool_name, owned(arguments, "the list"), terminal)


def _ran(tool_name: str, arguments: dict[str, Any], terminal: Callable[[str, dict[str, Any]], Any]) -> Any:
    try:
        return terminal(tool_name, arguments)
    except (StopIteration, RuntimeError) as error:
        raise _named(f"the tool {tool_name!r}", error)  # noqa: B904 - it has its cause


def _named(who: str | None, error: Exception) -> Exception:
    """What tells who raised it, in place of an error that tells nobody; any other error is itself."""
    if (stop := stop_of(error)) is not None:
        named: Exception = stopped(who, stop)
        named.__cause__ = stop
        return named
    if is_wrong_call(error):
        named = MisuseError(f"{who} called its call_next wrongly: it is `call_next(tool_name, arguments)`")
        named.__cause__ = error
        return named
    if not _is_not_awaitable(error):
        return error
    named = MisuseError(f"{who}.on_execute_tool_async gave nothing to await: it is an `async def` without a yield")
    named.__cause__ = error
    return named


def _is_not_awaitable(error: Exception) -> bool:
    """Whether the `await` of a hook raised it, and not the hook."""
    step = error.__traceback__
    return step is not None and step.tb_next is None and str(error).endswith("can't be used in 'await' expression")


def _awaitable(tool_name: str, answer: Any) -> Awaitable[Any]:
    if type(answer) is CoroutineType or hasattr(answer, "__await__"):
        awaited: Awaitable[Any] = answer
        return awaited
    raise MisuseError(
        f"{tool_name} returned a {type(answer).__name__} that cannot be awaited: `call_async` takes an `async def`, "
        "and `call` a plain function"
    )


def _late(opening: Opened) -> NoReturn:
    """In place of what binds a `call_next`: the hook that would get it is not to run."""
    raise MisuseError(_too_late(_name(opening[0], outwards=2)))


def _name(layers: Layers, *, outwards: int = 0) -> str | None:
    """The name of the outermost of these, or of the layer that many steps outside of it; None where there is none."""
    steps = outwards
    while layers[1] is not None:
        layers = layers[1]
        steps += 1
    names: tuple[str, ...] = layers[0]
    return names[-steps] if 0 < steps <= len(names) else None


def _is_of(step: TracebackType | None, function: str) -> bool:
    """Whether the traceback goes through this function of ours here."""
    if step is None:
        return False

    code = step.tb_frame.f_code
    return code.co_filename == __file__ and code.co_name == function


def _too_late(name: str | None) -> str:
    return f"{name} used its call_next after it had returned: a call_next ends with the hook that it was given to"


def _check_awaited(name: str | None, opening: Opened, answer: Any) -> None:
    """Raises MisuseError for an answer that is not there yet, and for a call that was forgotten."""
    if type(answer) in _PENDING:
        raise MisuseError(
            f"{name or 'the tool'} returned a {_given_up(answer)} in place of a result: `await call_next(…)` gives one"
        )
    if any(_is_forgotten(coming) for coming in opening[_COMING:]):
        raise MisuseError(f"{name} used its call_next without an await, and nothing ran: `await call_next(…)` runs it")


def _is_forgotten(coming: CoroutineType[Any, Any, Any]) -> bool:
    """Whether nobody runs it, and nobody said that it is not to run: a time limit that was over does that."""
    if inspect.getcoroutinestate(coming) != inspect.CORO_CREATED:
        return False
    task = next((each for each in asyncio.all_tasks() if each.get_coro() is coming), None)
    return task is None or not task.cancelling()


def _owner(hook: Hook) -> str:
    """The class of the middleware that a hook is a method of."""
    owner = getattr(hook, "__self__", None)
    return getattr(hook, "__qualname__", repr(hook)) if owner is None else type(owner).__name__


def _result(tool_name: str, answer: Any) -> Any:
    """What a caller gets in place of an answer that is none: arguments that are handed back become plain."""
    if type(answer) in READ_ONLY:
        return copied(answer)
    if type(answer) in _YIELDING:
        return _yielded(answer)
    if type(answer) is MethodType:
        return _not_called(answer)
    if type(answer) is CoroutineType and answer.__name__ == "on_execute_tool":
        answer.close()  # else Python warns that nobody awaited it
        raise MisuseError(awaiting(answer.__qualname__, answer.__name__))
    raise MisuseError(
        f"{tool_name} came back with a {_given_up(answer)} in place of a result: "
        "an async tool is called by `await chain.call_async(…)`"
    )


def _yielded(answer: Any) -> Any:
    """The tool's own generator; one that a hook became by a yield in it has run nothing."""
    if answer.__name__ not in _HOOK_NAMES:
        return answer
    raise MisuseError(yielding(answer.__qualname__))


def _not_called(answer: MethodType) -> Any:
    """A method that a tool may return; a `call_next` is none of those."""
    code = getattr(answer.__func__, "__code__", None)
    if code is None or code.co_filename != __file__ or code.co_name != "call_next":
        return answer
    opening: Any = answer.__self__
    raise MisuseError(_returned_call_next(_name(opening[0], outwards=1)))


def _returned_call_next(name: str | None) -> str:
    return f"{name} returned its call_next in place of a result: `call_next(tool_name, arguments)` gives one"


def yielding(hook: str) -> str:
    """In words, that a hook has a yield, and what to write."""
    return f"{hook} has a yield and would never run: write it as `flow` of a FlowMiddleware, or call on by `call_next`"


def awaiting(name: str, hook: str) -> str:
    """In words, that a sync hook is async, and what to write."""
    instead = "call it on_execute_tool_async" if hook == "on_execute_tool" else "write it as a plain `def`"
    return f"{name} is a coroutine function: {instead}"


def _given_up(answer: Any) -> str:
    """What it is; it will not run any more, and nobody is warned that it was not awaited."""
    if type(answer) is CoroutineType:
        answer.close()
        return f"coroutine ({answer.__qualname__})"
    answer.cancel()
    return type(answer).__name__


def _start(hook: Hook, tool_name: str, arguments: Arguments, call_next: Callable[[str, Arguments], Any]) -> Future[Any]:
    outcome: Future[Any] = Future()
    outcome.set_running_or_notify_cancel()  # from here on a waiter that is cancelled leaves it alone
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(hook, tool_name, arguments, call_next))
        except StopIteration as error:  # a loop's future does not take one
            replaced = stopped(_owner(hook), error)
            replaced.__cause__ = error
            outcome.set_exception(replaced)
        except BaseException as error:  # noqa: BLE001 - handed over whole to whoever awaits; fails as the hook does
            outcome.set_exception(error)

    threading.Thread(target=work, name="interpose-middleware", daemon=True).start()
    return outcome
