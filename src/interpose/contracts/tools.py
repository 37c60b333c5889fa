"""The tool middleware contract, after the second source document.

A middleware sits around `execute_tool`. It may observe, rewrite, answer itself, or catch what the tool raises.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from types import GeneratorType
from typing import Any, Protocol, TypeAlias

from interpose.contracts.calls import Arguments, Call, LateJudge, Withheld
from interpose.contracts.drivers import Tool
from interpose.contracts.errors import MisuseError
from interpose.contracts.flows import no_call, plain_answer

__all__ = [
    "LABEL_END",
    "Arguments",
    "Call",
    "CallNext",
    "CallNextAsync",
    "ExecuteTool",
    "ExecuteToolAsync",
    "Flow",
    "FlowMiddleware",
    "FlowOrAnswer",
    "LateJudge",
    "Linked",
    "ListTools",
    "SupportsToolMiddleware",
    "ToolMiddleware",
    "Withheld",
    "without_label",
]

ExecuteTool: TypeAlias = Callable[[str, dict[str, Any]], Any]
ExecuteToolAsync: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Any]]
ListTools: TypeAlias = Callable[[], Sequence[Tool]]
Flow: TypeAlias = Generator[tuple[str, Arguments], Any, Any]
"""Yields the call to run, receives its result or has its exception raised at the yield, returns the final result."""
FlowOrAnswer: TypeAlias = Any
"""A `Flow`; or, from a method without any `yield`, the answer itself."""

_CALL_PARTS = 2

LABEL_END = "__"
"""Stands between the label of a driver among several and the name of its tool."""


def without_label(tool_name: str) -> str:
    """The part behind the last `__`, for whoever has a name alone; `Call.leaf` knows better."""
    return tool_name.rpartition(LABEL_END)[2] or tool_name


class CallNext(Protocol):
    """Runs the rest of the list and, at its end, the tool. Legal zero, one or many times, until the hook returns."""

    call: Call

    def __call__(self, tool_name: str, arguments: Arguments) -> Any:
        """What the rest of the list returns; raises what it raises; MisuseError after the hook has returned."""
        ...


class CallNextAsync(Protocol):
    """As `CallNext`, awaited."""

    call: Call

    async def __call__(self, tool_name: str, arguments: Arguments) -> Any:
        """What the rest of the list returns; raises what it raises; MisuseError after the hook has returned."""
        ...


class ToolMiddleware:
    """One concern around a tool call. Keeps configuration only, no state between calls: one instance may serve many
    drivers and threads at once. Every method passes through unless overridden.
    """

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Around a synchronous call; returns what the caller gets."""
        return call_next(tool_name, arguments)

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Around an asynchronous call; returns what the caller gets."""
        return await call_next(tool_name, arguments)

    def on_list_tools(self, call_next: ListTools) -> Sequence[Tool]:
        """Around the list of tools, as prompts, native tools and the check for known names see it.

        A tool left out cannot be called. Answers at once; keeps nothing.
        """
        return call_next()


class FlowMiddleware(ToolMiddleware):
    """A middleware written once, for sync and async calls alike: only `flow` is overridden.

    Each yield runs the rest of the list: zero, one or many times. What the rest raises is raised at the yield; a flow
    that does not catch it lets it through. What the flow returns is what the caller gets, None included.

    A `flow` without any `yield` is a plain method: what it returns is the answer, and the tool never runs. From such
    a method None is a mistake, as are a coroutine function, an async generator and a yield of anything but a name and
    arguments: MisuseError says what to write.
    """

    def flow(self, tool_name: str, arguments: Arguments) -> FlowOrAnswer:
        """Around a call; this one passes it through."""
        return (yield tool_name, arguments)

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Runs `flow` around a synchronous call."""
        flow = self.flow(tool_name, arguments)
        if type(flow) is not GeneratorType and not isinstance(flow, Generator):
            return plain_answer(type(self).__name__, flow)
        try:
            wanted = next(flow)
            while True:
                if not isinstance(wanted, tuple) or len(wanted) != _CALL_PARTS:
                    raise MisuseError(no_call(type(self).__name__, wanted))
                try:
                    result = call_next(*wanted)
                except BaseException as error:  # noqa: BLE001 - handed to the flow, which raises it unless it catches it
                    wanted = flow.throw(error)
                else:
                    wanted = flow.send(result)
        except StopIteration as stop:
            return stop.value
        finally:
            flow.close()

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Runs `flow` around an asynchronous call."""
        flow = self.flow(tool_name, arguments)
        if type(flow) is not GeneratorType and not isinstance(flow, Generator):
            return plain_answer(type(self).__name__, flow)
        try:
            wanted = next(flow)
            while True:
                if not isinstance(wanted, tuple) or len(wanted) != _CALL_PARTS:
                    raise MisuseError(no_call(type(self).__name__, wanted))
                try:
                    result = await call_next(*wanted)
                except BaseException as error:  # noqa: BLE001 - handed to the flow, which raises it unless it catches it
                    wanted = flow.throw(error)
                else:
                    wanted = flow.send(result)
        except StopIteration as stop:
            return stop.value
        finally:
            flow.close()


@dataclass(frozen=True, slots=True)
class Linked:
    """A middleware with an id and links to others in its list; without links list order decides.

    `before` and `after` are tuples of ids. Raises TypeError for one text in their place, and for
    what is no id.
    """

    middleware: ToolMiddleware
    id: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        own_id: Any = self.id
        if not isinstance(own_id, str) or not own_id:
            raise TypeError(f"Linked(…, id={own_id!r}): expected a name")
        links: tuple[tuple[str, Any], ...] = (("before", self.before), ("after", self.after))
        for link, ids in links:
            if isinstance(ids, str):
                raise TypeError(f"Linked({self.id!r}, {link}={ids!r}): expected a tuple of ids, ({ids!r},)")
            if not isinstance(ids, Iterable) or not all(isinstance(each, str) for each in ids):
                raise TypeError(f"Linked({self.id!r}, {link}={ids!r}): expected a tuple of ids")
            object.__setattr__(self, link, tuple(ids))


class SupportsToolMiddleware(ABC):
    """A driver that takes a middleware list. `invoke_tool` runs the list; `execute_tool` is the raw terminal."""

    CAPABILITY = "tool_middleware"

    @property
    @abstractmethod
    def middleware(self) -> tuple[ToolMiddleware, ...]:
        """The list, outermost first."""

    @abstractmethod
    def add_middleware(self, middleware: ToolMiddleware | Linked) -> None:
        """Appends, innermost unless links say otherwise.

        Raises ValueError when the very instance is already in the list.
        """

    @abstractmethod
    def offered_tools(self) -> Sequence[Tool]:
        """The tools as they come out of the list; no others can be called by `invoke_tool`."""

    @abstractmethod
    def invoke_tool(self, tool_name: str, arguments: Arguments) -> Any:
        """Runs the list around the tool; raises what it raises, UnknownToolError for a tool that is not offered."""

    @abstractmethod
    async def invoke_tool_async(self, tool_name: str, arguments: Arguments) -> Any:
        """As `invoke_tool`, from an event loop."""
