"""A middleware that asks the port `Policy` before a tool runs and about what it returned.

Knows: what a verdict means for a call and its result. Does not know: handlers, rules, consent.
"""

import json
import logging
import time
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from interpose.contracts.digest import call_digest
from interpose.contracts.ports import Policy
from interpose.contracts.stages import Annotation, Context, ToolCall, ToolResult
from interpose.contracts.tools import Arguments, Call, CallNext, CallNextAsync, ToolMiddleware
from interpose.contracts.verdict import Refusal, Verdict
from interpose.contracts.wording import annotated, refusal_text, withheld_text

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Act:
    """Wanted: the rest of the list, with these."""

    tool_name: str
    arguments: Arguments


_Steps: TypeAlias = Generator[ToolCall | ToolResult | _Act, Any, Any]
"""Yields what is to be judged or run, receives the verdict or the result, returns what the caller gets."""

RefusedWith: TypeAlias = Callable[[ToolCall | ToolResult, Verdict], Any]
"""What a caller gets in place of a refused call's or result's own; may raise instead."""

_Judging: TypeAlias = Generator[ToolCall | ToolResult | _Act, Any, Verdict]


class PolicyMiddleware(ToolMiddleware):
    """Judges each call, and its result, by one policy.

    A refused call does not run: its result is a sentence that names who refused and why. A patched call runs with the
    patched arguments. A text result gets the annotations as lines of their own below it; any other kind is left as it
    is. A refused result is withheld and a sentence stands in its place. What the tool raises is judged as an error
    result and raised on, unchanged. A policy that itself raises, or answers with nonsense, counts as a refusal.

    `context` is who acts and where, or a function that says so for each call. `judge_results` off leaves results
    alone. `refused` makes what stands in the place of a refused call or result, instead of the sentence; what it
    raises reaches the caller. One instance may serve many drivers and threads at once.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        context: Context | Callable[[], Context],
        judge_results: bool = True,
        refused: RefusedWith | None = None,
    ) -> None:
        self._policy = policy
        self._context = context
        self._judge_results = judge_results
        self._refused = refused or _sentence

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Asks `policy.judge`; not to be called on the runtime's loop thread."""
        steps = self._steps(tool_name, arguments, call_next.call)
        try:
            wanted = next(steps)
            while True:
                try:
                    answer = (
                        call_next(wanted.tool_name, wanted.arguments)
                        if isinstance(wanted, _Act)
                        else self._policy.judge(wanted)
                    )
                except BaseException as error:  # noqa: BLE001 - handed to the steps, which refuse or raise it on
                    wanted = steps.throw(error)
                else:
                    wanted = steps.send(answer)
        except StopIteration as stop:
            return stop.value

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """As `on_execute_tool`, asking `policy.judge_async`."""
        steps = self._steps(tool_name, arguments, call_next.call)
        try:
            wanted = next(steps)
            while True:
                try:
                    answer = (
                        await call_next(wanted.tool_name, wanted.arguments)
                        if isinstance(wanted, _Act)
                        else await self._policy.judge_async(wanted)
                    )
                except BaseException as error:  # noqa: BLE001 - handed to the steps, which refuse or raise it on
                    wanted = steps.throw(error)
                else:
                    wanted = steps.send(answer)
        except StopIteration as stop:
            return stop.value

    def _steps(self, tool_name: str, arguments: Arguments, call: Call) -> _Steps:
        call.call_id = call.call_id or f"call_{uuid.uuid4().hex}"
        context = self._context() if callable(self._context) else self._context
        proposed = ToolCall(context, call.call_id, tool_name, arguments)
        verdict = yield from self._judged(proposed)
        if verdict.refusal is not None:
            return self._refused(proposed, verdict)

        final = arguments if verdict.arguments is None else verdict.arguments
        call.judged_digest = call_digest(tool_name, final)
        started = time.monotonic()

        def came_back(output: str, *, is_error: bool) -> ToolResult:
            elapsed_ms = (time.monotonic() - started) * 1000
            return ToolResult(
                context, call.call_id, tool_name, final, output, is_error, elapsed_ms, annotations=verdict.annotations
            )

        try:
            result = yield _Act(tool_name, final)
        except Exception as error:
            if self._judge_results:
                yield from self._judged(came_back(str(error) or type(error).__name__, is_error=True))
            raise
        if not self._judge_results:
            return _with_annotations(result, verdict.annotations)

        returned = came_back(_text(result), is_error=False)
        back = yield from self._judged(returned)
        if back.refusal is not None:
            return self._refused(returned, back)
        return _with_annotations(result, back.annotations)

    def _judged(self, point: ToolCall | ToolResult) -> _Judging:
        try:
            answer = yield point
        except Exception as error:  # noqa: BLE001 - the policy's own failure refuses: fails closed
            _log.exception("%s failed at %s", type(self._policy).__name__, point.stage)
            return self._broken(point, f"it failed with {type(error).__name__}")

        if not isinstance(answer, Verdict):
            return self._broken(point, f"it answered with {type(answer).__name__}, not a verdict")
        if (answer.outcome == "refused") != (answer.refusal is not None):
            return self._broken(point, f"its verdict is {answer.outcome} with refusal {answer.refusal!r}")
        if point.stage == "tool.call" and (answer.outcome == "patched") != (answer.arguments is not None):
            return self._broken(point, f"its verdict is {answer.outcome} with arguments {answer.arguments!r}")
        return answer

    def _broken(self, point: ToolCall | ToolResult, problem: str) -> Verdict:
        given = point.annotations if isinstance(point, ToolResult) else ()
        refusal = Refusal(type(self._policy).__name__, f"the policy could not judge: {problem}")
        return Verdict("", point.stage, "refused", refusal, annotations=given)


def _sentence(point: ToolCall | ToolResult, verdict: Verdict) -> str:
    assert verdict.refusal is not None  # noqa: S101 - only a refused verdict is told
    if isinstance(point, ToolCall):
        return refusal_text(point.tool_name, verdict.refusal)
    return annotated(withheld_text(point.tool_name, verdict.refusal), verdict.annotations)


def _with_annotations(result: Any, annotations: tuple[Annotation, ...]) -> Any:
    return annotated(result, annotations) if isinstance(result, str) else result


def _text(result: Any) -> str:
    """The result as the model would see it."""
    if isinstance(result, str):
        return result

    try:
        return json.dumps(result, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that are no strings, circles
        return repr(result)
