"""One call on its way through a middleware list, and what reached the tool.

Knows: that only an offered tool is called, that only a known one runs, and that what runs is what was judged, in this
list and in those around it.
Does not know: middlewares, who judges, what becomes of the result.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Any, TypeAlias

from interpose.contracts.arguments import owned
from interpose.contracts.calls import Above, Arguments, Call, LateJudge, Run, Withheld
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import MisuseError, ToolNameError, UnknownToolError
from interpose.contracts.naming import not_a_name
from interpose.contracts.stopping import stop_of, stopped

Reach: TypeAlias = Callable[[str, dict[str, Any], Call], Any]
"""Runs a tool: its name, its arguments, the call as the list has seen it."""
ReachAsync: TypeAlias = Callable[[str, dict[str, Any], Call], Awaitable[Any]]

_RUNNING: ContextVar[tuple[Call, str, dict[str, Any]] | None] = ContextVar("interpose-running-tool", default=None)
"""The call whose tool is running here, with the tool's name and arguments; for what the tool calls on by itself."""


def demand_name(tool_name: object) -> None:
    """Raises ToolNameError for what can be no name, which a caller gave."""
    if (problem := not_a_name(tool_name)) is not None:
        raise ToolNameError(tool_name, problem)


def called_inside(tool_name: str, arguments: Arguments) -> Call:
    """The call for a driver that a running tool calls by itself: what its list makes of it is judged above too."""
    running = _RUNNING.get()
    if running is None:
        return Call("")
    call, name, given = running
    if call_digest(tool_name, given) == (digest := call_digest(tool_name, owned(arguments, "the caller"))):
        return Call("", above=Above(call, name, tool_name))
    return Call("", above=Above(call, tool_name, tool_name, given=digest))


class Attempt:
    """The end of the list for one call; belongs to that call alone.

    Attributes:
        call: the call as the list sees it.
        run: what it has led to; of a driver that hands its calls on, in the driver that has the tool.
        tool_error: what the last run raised. Let go of it with `forget`: it holds the frames that hold this value.
    """

    __slots__ = ("_hands_on", "_known", "_offered", "call", "run", "tool_error")

    def __init__(
        self, call: Call, *, known: Iterable[str], offered: Iterable[str], late_rewrite: bool, hands_on: bool = False
    ) -> None:
        self.call = call
        self.call.late_rewrite = late_rewrite
        self.run = call.run = call.run or Run()
        self._hands_on = hands_on
        self.tool_error: BaseException | None = None
        self._known = frozenset(known)
        self._offered = frozenset(offered)

    def admit(self, tool_name: str) -> None:
        """Raises UnknownToolError for a tool that the list does not offer, ToolNameError for what can be no name."""
        demand_name(tool_name)
        if tool_name not in self._offered:
            raise UnknownToolError(tool_name, self._offered)

    def terminal(self, tool_name: str, arguments: dict[str, Any], reach: Reach) -> Any:
        """Runs the tool, or returns why it may not run as it is now; raises what it raises."""
        final = owned(arguments, "the list")
        for judge, name in self._late_judges(tool_name, final):
            if (withheld := judge.judge(name, final)) is not None:
                return withheld.answer

        if not self._hands_on:
            self.call.ran(tool_name, final)
        running = _RUNNING.set((self.call, tool_name, final))
        try:
            result = reach(tool_name, arguments, self.call)
        except BaseException as error:
            self.tool_error = error
            if (stop := stop_of(error)) is not None:
                self.tool_error = stopped(f"the tool {tool_name!r}", stop)
                raise self.tool_error from stop
            raise
        finally:
            _RUNNING.reset(running)
        self._came_back(tool_name, result)
        return result

    async def terminal_async(self, tool_name: str, arguments: dict[str, Any], reach: ReachAsync) -> Any:
        """As `terminal`, awaited."""
        final = owned(arguments, "the list")
        for judge, name in self._late_judges(tool_name, final):
            if (withheld := await judge.judge_async(name, final)) is not None:
                return withheld.answer

        if not self._hands_on:
            self.call.ran(tool_name, final)
        running = _RUNNING.set((self.call, tool_name, final))
        try:
            result = await reach(tool_name, arguments, self.call)
        except BaseException as error:
            self.tool_error = error
            if (stop := stop_of(error)) is not None:
                self.tool_error = stopped(f"the tool {tool_name!r}", stop)
                raise self.tool_error from stop
            raise
        finally:
            _RUNNING.reset(running)
        self._came_back(tool_name, result)
        return result

    def forget(self) -> None:
        """Lets go of the exception."""
        self.tool_error = None

    def _came_back(self, tool_name: str, result: Any) -> None:
        if inspect.iscoroutine(result) or isinstance(result, asyncio.Future):
            kind = type(result).__name__
            result.close() if inspect.iscoroutine(result) else result.cancel()  # else Python warns of it
            self.tool_error = MisuseError(
                f"the tool {tool_name!r} returned a {kind}: an async tool is an `async def execute_tool_async`, "
                "and awaits what it calls"
            )
            raise self.tool_error
        if not self._hands_on:
            self.call.came_back()

    def _late_judges(self, tool_name: str, arguments: dict[str, Any]) -> list[tuple[LateJudge, str]]:
        """Who must judge once more what is about to run, outermost first, each with the name that it knows the tool by.

        They are those of this list and of all the lists around this driver who have judged something else.
        """
        if tool_name not in self._known:
            raise UnknownToolError(tool_name, self._known)
        judges: list[tuple[LateJudge, str]] = []
        call, name = self.call, tool_name
        while True:
            above, judgements = call.above, () if call.late_rewrite else call.judgements
            digest = call_digest(name, arguments) if judgements or (above and above.given) else ""
            here = [(each.late_judge or _NobodyJudges(), name) for each in judgements if each.digest != digest]
            judges = [*here, *judges]
            if above is None or (above.given and above.given == digest):
                return judges
            call, name = above.call, above.name_of(name)


class _NobodyJudges:
    """Stands where a digest was written and nobody can judge what differs from it: it does not run."""

    def judge(self, tool_name: str, _arguments: Any) -> Withheld:
        return Withheld(
            f"{tool_name} did not run: it was changed after it had been judged, and nobody can judge it again"
        )

    async def judge_async(self, tool_name: str, _arguments: Any) -> Withheld:
        return self.judge(tool_name, _arguments)
