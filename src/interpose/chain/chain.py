"""A middleware list and the calls through it.

Knows: who is in the list, in which order and why. Does not know: what a middleware does, what the terminal is.
"""

import difflib
import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from interpose.chain.layers import (
    HookAsync,
    Layers,
    awaiting,
    compiled,
    in_thread,
    is_wrong_call,
    run,
    run_async,
    yielding,
)
from interpose.chain.order import Entry, Order, OrderProblem, resolve
from interpose.contracts.drivers import Tool
from interpose.contracts.errors import MisuseError, ToolNameError
from interpose.contracts.naming import NAME_MOST, not_a_name
from interpose.contracts.stopping import stop_of, stopped
from interpose.contracts.tool import named_twice
from interpose.contracts.tools import (
    Arguments,
    Call,
    ExecuteTool,
    ExecuteToolAsync,
    FlowMiddleware,
    Linked,
    ListTools,
    ToolMiddleware,
)

Serves: TypeAlias = Literal["both", "async"]

_HOOKS = {
    "on_execute_tool": (ToolMiddleware.on_execute_tool, FlowMiddleware.on_execute_tool),
    "on_execute_tool_async": (ToolMiddleware.on_execute_tool_async, FlowMiddleware.on_execute_tool_async),
    "on_list_tools": (ToolMiddleware.on_list_tools,),
}
"""The hooks, each with those that are inherited and pass through."""
_YIELDING = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
_CLOSE = 0.9
"""How much of a name is like a hook's, so that the hook was meant: about two letters differ."""


@dataclass(frozen=True, slots=True)
class _Published:
    """One complete state of the list; replaced whole."""

    members: tuple[Linked, ...]
    order: Order
    middlewares: tuple[ToolMiddleware, ...]
    listers: tuple[ToolMiddleware, ...]
    layers: Layers | None
    layers_async: Layers


class Chain:
    """Middlewares around a terminal, outermost first.

    A middleware without links stays where the list has it; its id is its class name, numbered from the second on.
    Calls and `add` may come from any thread at once: a call keeps the list it started with. A chain that `serves`
    "both" refuses a middleware that has only the async method; one that serves "async" takes it and has no `call`.
    Raises ValueError for another `serves`, and what `add` raises.
    """

    def __init__(self, middlewares: Iterable[ToolMiddleware | Linked] = (), *, serves: Serves = "both") -> None:
        if serves not in get_args(Serves):
            raise ValueError(f"serves={serves!r}: expected {' or '.join(map(repr, get_args(Serves)))}")
        if not isinstance(middlewares, Iterable):
            raise TypeError(f"{middlewares!r} is no middleware list: expected middlewares, outermost first, or ()")
        self._serves: Serves = serves
        self._adding = threading.Lock()
        self._published = _publish(_members((), middlewares), serves)

    @property
    def middlewares(self) -> tuple[ToolMiddleware, ...]:
        """The middlewares in the order in which they see a call."""
        return self._published.middlewares

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids in the same order."""
        return self._published.order.ids

    @property
    def problems(self) -> tuple[OrderProblem, ...]:
        """Links that contradict each other or lead nowhere; they were left out of account. What follows is yours."""
        return self._published.order.problems

    def add(self, middleware: ToolMiddleware | Linked) -> None:
        """Appends, innermost unless links say otherwise; calls on their way do not see it.

        Raises ValueError when the very instance, or its id, is already in the list; TypeError when it is no
        middleware or cannot serve this chain.
        """
        with self._adding:
            self._published = _publish(_members(self._published.members, (middleware,)), self._serves)

    def call(self, tool_name: str, arguments: Arguments, terminal: ExecuteTool, call: Call | None = None) -> Any:
        """Runs `terminal` inside the list; returns what the outermost returns and raises what it raises.

        Layers get `arguments` read-only: a dict whose mutators raise MisuseError, as do those of what is in it. The
        terminal gets plain ones of its own. Raises MisuseError on a chain that serves async only, and for an async
        `terminal`; ToolNameError for what can be no name.
        """
        if type(tool_name) is not str or not tool_name.isidentifier() or len(tool_name) > NAME_MOST:
            _demand_name(tool_name)  # which looks closer than most names need
        layers = self._published.layers
        if layers is None:
            raise MisuseError("this Chain serves async calls only: use `await chain.call_async(...)`")
        return run(layers, tool_name, arguments, terminal, Call("") if call is None else call)

    async def call_async(
        self, tool_name: str, arguments: Arguments, terminal: ExecuteToolAsync, call: Call | None = None
    ) -> Any:
        """As `call`, from an event loop; a middleware with the sync method alone runs in a thread of its own.

        Raises MisuseError when what `terminal` returns cannot be awaited.
        """
        if type(tool_name) is not str or not tool_name.isidentifier() or len(tool_name) > NAME_MOST:
            _demand_name(tool_name)
        layers = self._published.layers_async
        return await run_async(layers, tool_name, arguments, terminal, Call("") if call is None else call)

    def list_tools(self, terminal: ListTools) -> Sequence[Tool]:
        """The tools of `terminal` as they come out of the list, each middleware seeing what the inner ones leave.

        Raises MisuseError naming the middleware that gives anything but a sequence of tools, each name once; else what
        they raise.
        """
        listing = terminal
        for middleware in reversed(self._published.listers):
            listing = _listing(middleware, listing)
        return listing()

    def explain(self) -> str:
        """The order in words, one line for each middleware with the reason for its place, then the problems."""
        published = self._published
        if not published.members:
            return "no middleware: the tool is called as it is"

        reasons = published.order.reasons
        named = zip(published.order.ids, published.middlewares, strict=True)
        lines = [
            f"{number}. {name} ({type(middleware).__name__}): {', '.join(reasons[name]) or 'list order'}"
            for number, (name, middleware) in enumerate(named, 1)
        ]
        return "\n".join([*lines, *(f"problem: {problem}" for problem in published.order.problems)])


def _demand_name(tool_name: object) -> None:
    if (problem := not_a_name(tool_name)) is not None:
        raise ToolNameError(tool_name, problem)


def _listing(middleware: ToolMiddleware, inner: ListTools) -> ListTools:
    name = f"{type(middleware).__name__}.on_list_tools"

    def listing() -> Sequence[Tool]:
        over = False

        def call_next() -> Sequence[Tool]:
            if over:
                raise MisuseError(f"{name} used its call_next after it had returned: it answers at once")
            return inner()

        try:
            answer: Any = middleware.on_list_tools(call_next)
        except Exception as error:
            if (stop := stop_of(error)) is not None:
                raise stopped(name, stop) from stop
            if is_wrong_call(error):
                raise MisuseError(f"{name} called its call_next wrongly: it is `call_next()`") from error
            if not getattr(error, "__notes__", ()):
                error.add_note(f"raised by {name}")
            raise
        finally:
            over = True
        if inspect.iscoroutine(answer):
            answer.close()  # else Python warns that nobody awaited it
            raise MisuseError(awaiting(name, "on_list_tools"))
        if not isinstance(answer, Sequence) or not all(isinstance(tool, Tool) for tool in answer):
            raise MisuseError(f"{name} returned {type(answer).__name__}: expected a sequence of Tool values")
        if twice := named_twice(answer):
            raise MisuseError(f"{name} names {twice} more than once: a name is one tool's")
        return answer

    return listing


def _members(present: tuple[Linked, ...], added: Iterable[ToolMiddleware | Linked]) -> tuple[Linked, ...]:
    members = list(present)
    for item in added:
        middleware = item.middleware if isinstance(item, Linked) else item
        if any(member.middleware is middleware for member in members):
            raise ValueError(f"this {type(middleware).__name__} is already in the list: one instance has one place")
        ids = [member.id for member in members]
        if isinstance(item, Linked) and item.id in ids:
            raise ValueError(f"the id {item.id!r} is already in the list: ids are unique")
        members.append(item if isinstance(item, Linked) else Linked(item, _free_id(type(item).__name__, ids)))
    return tuple(members)


def _free_id(name: str, taken: Sequence[str]) -> str:
    if name not in taken:
        return name

    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def _publish(members: tuple[Linked, ...], serves: Serves) -> _Published:
    for member in members:
        _check(member.middleware, serves)
    order = resolve([Entry(m.id, m.before, m.after, position) for position, m in enumerate(members)])
    by_id = {member.id: member.middleware for member in members}
    middlewares = tuple(by_id[name] for name in order.ids)
    named = [(type(middleware).__name__, middleware) for middleware in middlewares]
    listers = tuple(each for each in middlewares if _has_list(each))
    layers = compiled((name, middleware.on_execute_tool) for name, middleware in named) if serves == "both" else None
    layers_async = compiled((name, _hook_async(middleware)) for name, middleware in named)
    return _Published(members, order, middlewares, listers, layers, layers_async)


def _check(middleware: ToolMiddleware, serves: Serves) -> None:
    name = type(middleware).__name__
    has_sync, has_async = _has_sync(middleware), _has_async(middleware)
    if isinstance(middleware, type) or not (has_sync or has_async or isinstance(middleware, ToolMiddleware)):
        what = f"the class {middleware.__name__}" if isinstance(middleware, type) else repr(middleware)
        raise TypeError(f"{what} is no middleware: expected an object with on_execute_tool(name, arguments, call_next)")
    if not _does_something(middleware):
        raise TypeError(
            f"{name} overrides none of the hooks and would do nothing: write "
            + ("`flow`" if isinstance(middleware, FlowMiddleware) else " or ".join(f"`{hook}`" for hook in _HOOKS))
        )
    _check_names(middleware, has_call=has_sync or has_async)
    for hook in _HOOKS:
        _check_kind(name, hook, getattr(middleware, hook, None))
    if has_async and not has_sync and serves == "both":
        raise TypeError(
            f"{name} has only on_execute_tool_async and would be skipped by sync calls: "
            'give it on_execute_tool too, or make the list Chain(..., serves="async")'
        )


def _does_something(middleware: ToolMiddleware) -> bool:
    """Whether it overrides a hook; the two classes that pass everything through are taken at their word."""
    if type(middleware) in (ToolMiddleware, FlowMiddleware):
        return True
    if isinstance(middleware, FlowMiddleware) and _is_own(middleware.flow, FlowMiddleware.flow):
        return True
    return any(_is_own(getattr(middleware, hook, None), *given) for hook, given in _HOOKS.items())


def _check_names(middleware: ToolMiddleware, *, has_call: bool) -> None:
    """Raises TypeError for a method that is meant to be a hook, and has a name that nobody calls."""
    kind = type(middleware)
    if not has_call and not isinstance(middleware, FlowMiddleware) and callable(getattr(middleware, "flow", None)):
        raise TypeError(f"{kind.__name__}.flow is never called: write `class {kind.__name__}(FlowMiddleware)`")
    foreign = (own for own in kind.__mro__ if own not in (ToolMiddleware, FlowMiddleware, object))
    for method in sorted({name for own in foreign for name in vars(own) if not name.startswith("_")}):
        meant = _meant_by(method, flows=isinstance(middleware, FlowMiddleware))
        if meant is not None and callable(getattr(middleware, method, None)):
            raise TypeError(
                f"{kind.__name__}.{method} is no hook and would never be called: "
                f"call it {meant}, or begin its name with an underscore"
            )


def _meant_by(name: str, *, flows: bool) -> str | None:
    """The hook whose name was mistyped, or None."""
    hooks = {**_HOOKS, "flow": ()} if flows else _HOOKS
    if name in hooks:
        return None
    folded = name.casefold()
    if flows and (sorted(folded.strip("_s")) == sorted("flow") or folded == "flow_async"):
        return "flow"
    close = difflib.get_close_matches(folded, _HOOKS, n=1, cutoff=_CLOSE)
    if close:
        return close[0]
    return " or ".join(hooks) if name.startswith("on_") else None


def _check_kind(name: str, hook: str, method: Any) -> None:
    if _is_made_of(method, _YIELDING):
        raise TypeError(yielding(f"{name}.{hook}"))
    if hook != "on_execute_tool_async" and _is_made_of(method, (inspect.iscoroutinefunction,)):
        raise TypeError(awaiting(f"{name}.{hook}", hook))


def _is_made_of(method: Any, kinds: Sequence[Callable[[Any], bool]]) -> bool:
    """Whether it is of one of these kinds, also behind decorators, as far as they tell what they decorate."""
    seen: set[int] = set()
    while method is not None and id(method) not in seen:
        if any(is_kind(method) for is_kind in kinds):
            return True
        seen.add(id(method))
        method = inspect.getattr_static(getattr(method, "__func__", method), "__wrapped__", None)
    return False


def _hook_async(middleware: ToolMiddleware) -> HookAsync:
    if _has_sync(middleware) and not _has_async(middleware):
        return in_thread(middleware.on_execute_tool)

    return middleware.on_execute_tool_async


def _has_sync(middleware: object) -> bool:
    return _serves_by(middleware, "on_execute_tool")


def _has_async(middleware: object) -> bool:
    return _serves_by(middleware, "on_execute_tool_async")


def _serves_by(middleware: object, hook: str) -> bool:
    """Whether it has the hook; the one that runs a `flow` counts where there is a flow, or nothing else."""
    passing, flowing = _HOOKS[hook]
    method = getattr(middleware, hook, None)
    if not isinstance(middleware, FlowMiddleware) or _is_own(method, passing, flowing):
        return _is_own(method, passing)
    others = [getattr(middleware, other) for other in ("on_execute_tool", "on_execute_tool_async") if other != hook]
    return _is_own(middleware.flow, FlowMiddleware.flow) or not any(
        _is_own(each, *_HOOKS[each.__name__]) for each in others
    )


def _has_list(middleware: object) -> bool:
    return _is_own(getattr(middleware, "on_list_tools", None), ToolMiddleware.on_list_tools)


def _is_own(method: object, *inherited: object) -> bool:
    """Whether the method is there and is none of those that pass through."""
    return callable(method) and getattr(method, "__func__", method) not in inherited
