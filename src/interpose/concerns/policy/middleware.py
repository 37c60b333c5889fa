"""A middleware that asks the port `Policy` before a tool runs and about what it returned.

Knows: what a verdict means for a call and its result. Does not know: handlers, rules, consent.
"""

import json
import logging
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, get_args

from interpose.concerns.driving import Act, driven, driven_async
from interpose.contracts.copying import beyond
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import ToolError
from interpose.contracts.faults import error_words
from interpose.contracts.ports import Policy
from interpose.contracts.results import result_text, shown
from interpose.contracts.settings import a_flag, a_function, name_of, of_kind
from interpose.contracts.settings import refused as configured
from interpose.contracts.stages import Annotation, Context, Stage, ToolCall, ToolResult
from interpose.contracts.stopping import stop_of
from interpose.contracts.tools import Arguments, Call, CallNext, CallNextAsync, ToolMiddleware, Withheld
from interpose.contracts.verdict import Outcome, Refusal, Verdict
from interpose.contracts.wording import annotated, refusal_text, withheld_text

_log = logging.getLogger(__name__)

_ASKED = ("judge", "judge_async")
_SEVERITIES = ("info", "warn")

_Steps: TypeAlias = Generator[ToolCall | ToolResult | Act, Any, Any]
"""Yields what is to be judged or run, receives the verdict or the result, returns what the caller gets."""

RefusedWith: TypeAlias = Callable[[ToolCall | ToolResult, Verdict], Any]
"""What a caller gets in place of a refused call's or result's own; may raise instead."""

_LateSteps: TypeAlias = Generator[ToolCall | ToolResult | Act, Any, Withheld | None]
_Judging: TypeAlias = Generator[ToolCall | ToolResult | Act, Any, Verdict]


class PolicyMiddleware(ToolMiddleware):
    """Judges each call, and its result, by one policy.

    A refused call does not run: its result is a sentence that names who refused and why. A patched call runs with the
    patched arguments. A text result gets the annotations as lines of their own below it; any other kind is left as it
    is. A patched result is the new text, or the value that it says where the tool gave no text. A refused result is
    withheld and a sentence stands in its place. What the tool raises is judged as an error result and raised on,
    unchanged; where that is patched a ToolError says the new text, and where it is refused the sentence stands in its
    place. A policy that itself raises, or answers with nonsense, counts as a refusal.

    `context` is who acts and where, or a function that says so for each call. `judge_results` off leaves results
    alone. `refused` makes what stands in the place of a refused call or result, instead of the sentence; what it
    raises reaches the caller. A result that nobody can read, see `contracts.results.shown`, is withheld. A call
    that a middleware further in changes is judged once more when its driver asks, and refused where that verdict
    refuses or would change it again. One instance may serve many drivers and threads at once.
    Raises ConfigError naming the setting for what none can be.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        context: Context | Callable[[], Context],
        judge_results: bool = True,
        refused: RefusedWith | None = None,
    ) -> None:
        if isinstance(policy, type) or not all(callable(getattr(policy, name, None)) for name in _ASKED):
            raise configured("PolicyMiddleware(policy)", policy, "a Policy, such as interpose.load_policy() gives")
        if not isinstance(context, Context) and not callable(context):
            raise configured("PolicyMiddleware(context=…)", context, "a Context, or a function that gives one")
        self._policy = policy
        self._context = context
        self._judge_results = a_flag("PolicyMiddleware(judge_results=…)", judge_results)
        self._refused = _sentence if refused is None else a_function("PolicyMiddleware(refused=…)", refused)

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Asks `policy.judge`; not to be called on the runtime's loop thread."""
        return driven(self._steps(tool_name, arguments, call_next.call), self._policy.judge, call_next)

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """As `on_execute_tool`, asking `policy.judge_async`."""
        return await driven_async(
            self._steps(tool_name, arguments, call_next.call), self._policy.judge_async, call_next
        )

    def _whose(self) -> Context:
        if not callable(self._context):
            return self._context
        try:
            context = self._context()
        except Exception as error:
            error.add_note(f"raised by the context function {name_of(self._context)} of PolicyMiddleware")
            raise
        return of_kind(
            f"PolicyMiddleware: what the function {name_of(self._context)} gave", context, Context, "a Context"
        )

    def _steps(self, tool_name: str, arguments: Arguments, call: Call) -> _Steps:
        call.call_id = call.call_id or f"call_{uuid.uuid4().hex}"
        context = self._whose()
        proposed = ToolCall(context, call.call_id, tool_name, arguments, leaf=_leaf(call, tool_name))
        digest = call_digest(tool_name, arguments)  # before: what a handler edits in place was not judged
        verdict = yield from self._judged(proposed)
        if verdict.refusal is not None:
            return self._refused(proposed, verdict)

        final = arguments
        if verdict.arguments is not None:
            final, digest = verdict.arguments, call_digest(tool_name, verdict.arguments)
        late = _LateJudge(self._policy, self._late_steps, call, replace(proposed, arguments=final))
        call.judged(self, digest, late)
        started = time.monotonic()

        def came_back(output: str, *, is_error: bool) -> ToolResult:
            elapsed_ms = (time.monotonic() - started) * 1000
            ran, annotations = late.ran, (*verdict.annotations, *late.annotations)
            return ToolResult(
                context,
                call.call_id,
                ran.tool_name,
                ran.arguments,
                output,
                is_error,
                elapsed_ms,
                annotations=annotations,
                leaf=ran.leaf,
            )

        try:
            result = yield Act(tool_name, final)
        except Exception as error:
            if not self._judge_results:
                raise
            failed = came_back(error_words(error), is_error=True)
            back = yield from self._judged(failed)
            if back.refusal is None and back.text is None:
                raise
            if back.text is not None:
                raise ToolError(back.text) from None
            return self._refused(failed, back)
        if not self._judge_results:
            return _with_annotations(result, (*verdict.annotations, *late.annotations))

        told = shown(result)
        returned = came_back(told.text, is_error=False)
        back = _unread(returned, told.problem) if told.problem is not None else (yield from self._judged(returned))
        if back.refusal is not None:
            return self._refused(returned, back)
        if back.text is not None:
            result = _as_given(result, back.text)
        return _with_annotations(result, back.annotations)

    def _late_steps(self, late: "_LateJudge", changed: ToolCall) -> _LateSteps:
        digest = call_digest(changed.tool_name, changed.arguments)  # before: see `_steps`
        verdict = yield from self._judged(changed)
        if verdict.arguments is not None:
            refusal = _changed_twice(late.ran, changed, verdict.arguments)
            verdict = verdict._replace(outcome="refused", arguments=None, refusal=refusal)
        if verdict.refusal is not None:
            return Withheld(self._refused(changed, verdict))
        late.accept(changed, verdict)
        late.call.judged(self, digest, late)
        return None

    def _judged(self, point: ToolCall | ToolResult) -> _Judging:
        try:
            answer = yield point
        except Exception as error:  # noqa: BLE001 - the policy's own failure refuses: fails closed
            _log.exception("%s failed at %s", type(self._policy).__name__, point.stage)
            return self._broken(point, f"it failed with {type(stop_of(error) or error).__name__}")

        if not isinstance(answer, Verdict):
            return self._broken(point, f"it answered with {type(answer).__name__}, not a verdict")
        if (problem := _ill_formed(answer, point.stage)) is not None:
            return self._broken(point, f"its verdict has {problem}")
        if (answer.outcome == "refused") != (answer.refusal is not None):
            return self._broken(point, f"its verdict is {answer.outcome} with refusal {answer.refusal!r}")
        name, patch = ("arguments", answer.arguments) if isinstance(point, ToolCall) else ("text", answer.text)
        if (answer.outcome == "patched") != (patch is not None):
            return self._broken(point, f"its verdict is {answer.outcome} with {name} {patch!r:.200}")
        return answer

    def _broken(self, point: ToolCall | ToolResult, problem: str) -> Verdict:
        given = point.annotations if isinstance(point, ToolResult) else ()
        refusal = Refusal(type(self._policy).__name__, f"the policy could not judge: {problem}")
        return Verdict("", point.stage, "refused", refusal, annotations=given)


class _LateJudge:
    """Of one call: judges what a middleware further in has made of it. `ran` is the form that was judged last."""

    def __init__(
        self, policy: Policy, steps: Callable[["_LateJudge", ToolCall], _LateSteps], call: Call, judged: ToolCall
    ) -> None:
        self.call = call
        self.ran = judged
        self.annotations: tuple[Annotation, ...] = ()
        self._policy = policy
        self._steps = steps

    def judge(self, tool_name: str, arguments: Arguments) -> Withheld | None:
        return driven(self._steps(self, self._changed(tool_name, arguments)), self._policy.judge)

    async def judge_async(self, tool_name: str, arguments: Arguments) -> Withheld | None:
        return await driven_async(self._steps(self, self._changed(tool_name, arguments)), self._policy.judge_async)

    def accept(self, changed: ToolCall, verdict: Verdict) -> None:
        self.ran = changed
        self.annotations += verdict.annotations

    def _changed(self, tool_name: str, arguments: Arguments) -> ToolCall:
        leaf = _leaf(self.call, tool_name)
        return replace(self.ran, tool_name=tool_name, arguments=arguments, leaf=leaf)


def _ill_formed(answer: Verdict, stage: Stage) -> str | None:
    """What of a verdict about this stage is of no kind that it could be, in words; None for nothing."""
    given: Any = answer
    if given.stage != stage:
        return f"the stage {given.stage!r:.80}, not {stage!r}"
    if not isinstance(given.outcome, str) or given.outcome not in get_args(Outcome):
        return f"the outcome {given.outcome!r:.80}"
    if given.refusal is not None and not _is_refusal(given.refusal):
        return f"the refusal {given.refusal!r:.80}"
    if not isinstance(given.annotations, tuple) or not all(map(_is_annotation, given.annotations)):
        return f"the annotations {given.annotations!r:.80}"
    if given.text is not None and not isinstance(given.text, str):
        return f"a text of type {type(given.text).__name__}"
    return None if given.arguments is None else _unfit(given.arguments)


def _is_refusal(value: Any) -> bool:
    return isinstance(value, Refusal) and isinstance(value.handler, str) and isinstance(value.reason, str)


def _is_annotation(value: Any) -> bool:
    return (
        isinstance(value, Annotation)
        and isinstance(value.handler, str)
        and value.severity in _SEVERITIES
        and isinstance(value.message, str)
        and isinstance(value.in_front, bool)
    )


def _unfit(arguments: Any) -> str | None:
    """What keeps patched arguments from running, in words; None for nothing."""
    if not isinstance(arguments, Mapping):
        return f"arguments of type {type(arguments).__name__}"
    problem = beyond(arguments)
    if problem is not None:
        return f"arguments that cannot run: {problem}"
    unnamed = [name for name in arguments if not isinstance(name, str)]
    return f"an argument whose name is {unnamed[0]!r:.80}, not a text" if unnamed else None


def _leaf(call: Call, tool_name: str) -> str | None:
    leaf = call.leaf(tool_name)
    return None if leaf == tool_name else leaf


def _unread(returned: ToolResult, problem: str) -> Verdict:
    """A result that nobody can read is withheld: fails closed."""
    refusal = Refusal(PolicyMiddleware.__name__, f"its result cannot be judged, since {problem}")
    return Verdict("", returned.stage, "refused", refusal, annotations=returned.annotations)


def _changed_twice(judged: ToolCall, changed: ToolCall, wanted: Arguments) -> Refusal:
    return Refusal(
        PolicyMiddleware.__name__,
        "a middleware further in changed the call, and the policy would change it again: "
        f"judged as {judged.tool_name} {result_text(judged.arguments)}, "
        f"changed to {changed.tool_name} {result_text(changed.arguments)}, wanted as {result_text(wanted)}",
    )


def _sentence(point: ToolCall | ToolResult, verdict: Verdict) -> str:
    assert verdict.refusal is not None  # noqa: S101 - only a refused verdict is told
    if isinstance(point, ToolCall):
        return refusal_text(point.tool_name, verdict.refusal)
    return annotated(withheld_text(point.tool_name, verdict.refusal), verdict.annotations)


def _with_annotations(result: Any, annotations: tuple[Annotation, ...]) -> Any:
    return annotated(result, annotations) if isinstance(result, str) else result


def _as_given(result: Any, text: str) -> Any:
    """The patched text in the kind that the tool gave: a text, or the value that the text says."""
    if isinstance(result, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
