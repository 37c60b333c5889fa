"""One call on its way through a middleware list, and what reached the tool.

Knows: that only an offered tool is called, that only a known one runs, and that what runs is what was judged.
Does not know: middlewares, who judges, what becomes of the result.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from interpose.contracts.arguments import owned
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import MisuseError, UnknownToolError
from interpose.contracts.tools import Call, LateJudge, Withheld

Reach: TypeAlias = Callable[[str, dict[str, Any], Call], Any]
"""Runs a tool: its name, its arguments, the call as the list has seen it."""
ReachAsync: TypeAlias = Callable[[str, dict[str, Any], Call], Awaitable[Any]]


class Attempt:
    """The end of the list for one call; belongs to that call alone.

    Attributes:
        call: the call as the list sees it.
        executed: name and arguments of the last run of the tool, as it was given them; None while it did not run.
        returned: whether a run of the tool came back.
        tool_error: what the last run raised. Let go of it with `forget`: it holds the frames that hold this value.
    """

    __slots__ = ("_known", "_late_rewrite", "_offered", "call", "executed", "returned", "tool_error")

    def __init__(self, call: Call, *, known: Iterable[str], offered: Iterable[str], late_rewrite: bool) -> None:
        self.call = call
        self.executed: tuple[str, dict[str, Any]] | None = None
        self.returned = False
        self.tool_error: BaseException | None = None
        self._known = frozenset(known)
        self._offered = frozenset(offered)
        self._late_rewrite = late_rewrite

    def admit(self, tool_name: str) -> None:
        """Raises UnknownToolError for a tool that the list does not offer."""
        if tool_name not in self._offered:
            raise UnknownToolError(tool_name, self._offered)

    def terminal(self, tool_name: str, arguments: dict[str, Any], reach: Reach) -> Any:
        """Runs the tool, or returns why it may not run as it is now; raises what it raises."""
        final = owned(arguments, "the list")
        judge = self._late_judge(tool_name, final)
        if judge is not None and (withheld := judge.judge(tool_name, final)) is not None:
            return withheld.answer

        self.executed = (tool_name, final)
        try:
            result = reach(tool_name, arguments, self.call)
        except StopIteration as error:  # on its way out it would end a generator, and a middleware would be blamed
            self.tool_error = RuntimeError(f"the tool {tool_name!r} raised {error!r}")
            raise self.tool_error from error
        except BaseException as error:
            self.tool_error = error
            raise
        self._came_back(tool_name, result)
        return result

    async def terminal_async(self, tool_name: str, arguments: dict[str, Any], reach: ReachAsync) -> Any:
        """As `terminal`, awaited."""
        final = owned(arguments, "the list")
        judge = self._late_judge(tool_name, final)
        if judge is not None and (withheld := await judge.judge_async(tool_name, final)) is not None:
            return withheld.answer

        self.executed = (tool_name, final)
        try:
            result = await reach(tool_name, arguments, self.call)
        except BaseException as error:
            self.tool_error = error
            raise
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
        self.returned = True

    def _late_judge(self, tool_name: str, arguments: dict[str, Any]) -> LateJudge | None:
        """Who must judge once more what is about to run; None when it is what was judged, or nobody judges."""
        if tool_name not in self._known:
            raise UnknownToolError(tool_name, self._known)
        judged = self.call.judged_digest
        if judged is None or self._late_rewrite or call_digest(tool_name, arguments) == judged:
            return None
        return self.call.late_judge or _NobodyJudges()


class _NobodyJudges:
    """Stands where a digest was written and nobody can judge what differs from it: it does not run."""

    def judge(self, tool_name: str, _arguments: Any) -> Withheld:
        return Withheld(
            f"{tool_name} did not run: it was changed after it had been judged, and nobody can judge it again"
        )

    async def judge_async(self, tool_name: str, _arguments: Any) -> Withheld:
        return self.judge(tool_name, _arguments)
