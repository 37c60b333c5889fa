"""The shape phase over one point: each handler in turn, each with the last patch.

Knows: order, limits, which failure is which, what ends the chain. Does not know: which handlers match, or what a
mount does with the outcome.

An async handler is cancelled at its limit. A sync one cannot be stopped: its answer counts however late, and a notice
tells how long it took.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Final, TypeAlias, TypeGuard

from interpose.catalog.reading import HookForm
from interpose.contracts.decisions import Cancel, Continue, Patch, Unknown
from interpose.contracts.effects import HandlerKind
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.json import JsonObject
from interpose.contracts.stages import Point, ToolCall
from interpose.contracts.verdict import Answer, Failure, Notice, Reaction, Refusal
from interpose.contracts.wording import doubt_text
from interpose.kernel.boundary import fault_line
from interpose.kernel.waiting import LateError, run_within, within
from interpose.stages.payloads import PatchError, Subject, changes_of, patched, patched_value, subject_of
from interpose.stages.registry import STAGE_RULES, StageRule

SLOW_NOTICE: Final = "slow-handler"

_DECISIONS: Final = (Continue, Cancel, Patch, Unknown)
_WORDS: Final = {"raised": "raised", "too_slow": "too slow", "invalid_answer": "invalid answer", "unreadable": "unread"}

Monotonic: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A handler that cannot tell, and wants a person asked."""

    handler: str
    kind: HandlerKind
    reason: str


@dataclass(frozen=True, slots=True)
class Shaping:
    """What the handlers came to.

    Attributes:
        point: what may happen, in the agent's own words.
        form: its hook form, for a tool point.
        changed: whether that is something else than was proposed.
        refusal: why it may not happen, or None.
        doubts: what a person must be asked first; empty where it is refused.
        reactions: every handler that matched, in order.
        notices: what the operator should know.
    """

    point: Point
    form: HookForm | None = None
    changed: bool = False
    refusal: Refusal | None = None
    doubts: tuple[Doubt, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """A handler that gave no answer that counts."""

    failure: Failure
    text: str


def shape(
    point: Point,
    handlers: tuple[ShapeHandler, ...],
    form: HookForm | None = None,
    *,
    monotonic: Monotonic = time.monotonic,
) -> Shaping:
    """What `handlers` make of `point`, on the caller's stack; an async one runs to its end on a loop of its own.

    `form` is the hook form of a tool point. Never raises for what a handler does; many may be called at once.
    """
    progress = _Progress(point, form)
    for handler in handlers:
        if progress.skips(handler):
            continue
        started = monotonic()
        answer = _ask(handler, progress.seen)
        progress.take(handler, answer, monotonic() - started)
    return progress.shaping()


async def shape_async(
    point: Point,
    handlers: tuple[ShapeHandler, ...],
    form: HookForm | None = None,
    *,
    monotonic: Monotonic = time.monotonic,
) -> Shaping:
    """As `shape`, from an event loop: async handlers are awaited, the others run on the loop itself."""
    progress = _Progress(point, form)
    for handler in handlers:
        if progress.skips(handler):
            continue
        started = monotonic()
        answer = await _ask_async(handler, progress.seen)
        progress.take(handler, answer, monotonic() - started)
    return progress.shaping()


def limit_of(handler: ShapeHandler, rule: StageRule) -> float:
    """How long the handler may take at a stage, in seconds."""
    return rule.timeout_s if handler.timeout_s is None else handler.timeout_s


def _ask(handler: ShapeHandler, seen: Point) -> Any:
    limit_s = limit_of(handler, STAGE_RULES[seen.stage])
    try:
        answer = handler.run(seen)
        return run_within(answer, limit_s) if _waits(answer) else answer
    except Exception as error:  # noqa: BLE001 - one shape handler; open, or as its `fail_closed` says
        return _failed(error, limit_s)
    except asyncio.CancelledError as error:  # of its own making: a thread is not cancelled
        return _failed(error, limit_s)


async def _ask_async(handler: ShapeHandler, seen: Point) -> Any:
    limit_s = limit_of(handler, STAGE_RULES[seen.stage])
    try:
        answer = handler.run(seen)
        return await within(answer, limit_s) if _waits(answer) else answer
    except Exception as error:  # noqa: BLE001 - one shape handler; open, or as its `fail_closed` says
        return _failed(error, limit_s)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _failed(error, limit_s)


def _waits(answer: Any) -> TypeGuard[Awaitable[Any]]:
    if answer is None or isinstance(answer, _DECISIONS):
        return False
    return isawaitable(answer)


def _failed(error: BaseException, limit_s: float) -> Failed:
    if isinstance(error, LateError):
        return Failed("too_slow", f"too slow: no answer within {limit_s:g} s")
    return Failed("raised", f"raised {fault_line(error)}")


class _Progress:
    """One chain so far. Belongs to that run alone."""

    __slots__ = ("_doubts", "_ended", "_first", "_notices", "_reactions", "_refusal", "_rule", "_subject", "_unread")

    def __init__(self, point: Point, form: HookForm | None) -> None:
        self._rule = STAGE_RULES[point.stage]
        self._reactions: list[Reaction] = []
        self._notices: list[Notice] = []
        self._doubts: list[Doubt] = []
        self._refusal: Refusal | None = None
        self._unread: str | None = None
        try:
            self._subject = subject_of(point, form)
        except ValueError as error:
            self._unread = f"unread: what it should see is {error}"
            self._subject = Subject(point, point, form)
        self._first = self._subject

    @property
    def seen(self) -> Point:
        return self._subject.seen

    def skips(self, handler: ShapeHandler) -> bool:
        """Whether the handler is not asked: the chain has ended, or the point cannot be shown."""
        if self._refusal is not None:
            self._react(handler, "not_reached")
            return True
        if self._unread is not None:
            self._fail(handler, Failed("unreadable", self._unread), 0.0)
            return True
        return False

    def take(self, handler: ShapeHandler, answer: Any, elapsed_s: float) -> None:
        """What the handler answered."""
        elapsed_ms = elapsed_s * 1000
        if elapsed_s > limit_of(handler, self._rule) and not isinstance(answer, Failed):
            self._tell_slow(handler, elapsed_s)
        match answer:
            case None:
                self._react(handler, "silent", elapsed_ms=elapsed_ms)
            case Continue():
                self._react(handler, "continue", elapsed_ms=elapsed_ms)
            case Cancel(reason=reason):
                self._cancel(handler, reason, elapsed_ms)
            case Patch(payload=payload):
                self._patch(handler, payload, elapsed_ms)
            case Unknown(reason=reason):
                self._doubt(handler, reason, elapsed_ms)
            case Failed():
                self._fail(handler, answer, elapsed_ms)
            case _:
                self._invalid(handler, f"{type(answer).__name__} is no decision", elapsed_ms)

    def shaping(self) -> Shaping:
        subject = self._subject
        return Shaping(
            subject.point,
            subject.form,
            changed=subject is not self._first and patched_value(subject.seen) != patched_value(self._first.seen),
            refusal=self._refusal,
            doubts=() if self._refusal is not None else tuple(self._doubts),
            reactions=tuple(self._reactions),
            notices=tuple(self._notices),
        )

    def _cancel(self, handler: ShapeHandler, reason: Any, elapsed_ms: float) -> None:
        text = reason if isinstance(reason, str) and reason.strip() else f"cancelled by {handler.id}, without a reason"
        if not self._may_cancel(handler, "a cancel", elapsed_ms):
            return
        self._react(handler, "cancel", reason=text, elapsed_ms=elapsed_ms)
        self._refuse(handler, text)

    def _patch(self, handler: ShapeHandler, payload: Any, elapsed_ms: float) -> None:
        if not handler.can_change:
            self._invalid(handler, "a patch from a handler that says it only looks (can_change=False)", elapsed_ms)
            return
        before = self._subject
        try:
            after = patched(before, payload)
            changes = changes_of(before, after)
        except PatchError as error:
            self._invalid(handler, str(error), elapsed_ms)
            return
        except Exception as error:  # noqa: BLE001 - a patch of foreign make; open, or as the handler's `fail_closed` says
            self._invalid(handler, f"its patch cannot be taken: {fault_line(error)}", elapsed_ms)
            return
        self._react(handler, "patch", elapsed_ms=elapsed_ms, changes=changes)
        if handler.mode == "enforce":
            self._subject = after

    def _doubt(self, handler: ShapeHandler, reason: Any, elapsed_ms: float) -> None:
        text = reason if isinstance(reason, str) and reason.strip() else f"{handler.id} does not say why"
        if not self._may_cancel(handler, "unknown", elapsed_ms):
            return
        self._react(handler, "unknown", reason=text, elapsed_ms=elapsed_ms)
        self._wonder(handler, text)

    def _wonder(self, handler: ShapeHandler, text: str) -> None:
        """What follows where the handler cannot tell."""
        if handler.on_unknown == "pass" or handler.mode == "observe":
            return
        if handler.on_unknown == "ask" and self._rule.asks:
            self._doubts.append(Doubt(handler.id, handler.kind, text))
            return
        asked = " and nobody can be asked here" if handler.on_unknown == "ask" else ""
        self._refuse(handler, doubt_text(self.seen.stage, [text], asked))

    def _may_cancel(self, handler: ShapeHandler, what: str, elapsed_ms: float) -> bool:
        if not handler.can_change:
            self._invalid(handler, f"{what} from a handler that says it only looks (can_change=False)", elapsed_ms)
            return False
        if not self._rule.cancellable:
            self._invalid(handler, f"{what} means nothing at {self.seen.stage}", elapsed_ms)
            return False
        return True

    def _invalid(self, handler: ShapeHandler, text: str, elapsed_ms: float) -> None:
        self._fail(handler, Failed("invalid_answer", f"invalid answer: {text}"), elapsed_ms)

    def _fail(self, handler: ShapeHandler, failed: Failed, elapsed_ms: float) -> None:
        self._react(handler, "failed", reason=failed.text, elapsed_ms=elapsed_ms, failure=failed.failure)
        if handler.fail_closed and self._rule.cancellable:
            how = _WORDS[failed.failure]
            self._refuse(handler, f"{handler.id} failed ({how}), and what it guards does not happen without it")
            return
        seen = self.seen
        if isinstance(seen, ToolCall) and seen.problem is not None and handler.can_change:
            self._wonder(handler, seen.problem)  # it looked for arguments that nobody could read

    def _refuse(self, handler: ShapeHandler, reason: str) -> None:
        if handler.mode == "enforce":
            self._refusal = Refusal(handler.id, reason)

    def _tell_slow(self, handler: ShapeHandler, elapsed_s: float) -> None:
        limit_s = limit_of(handler, self._rule)
        stage = self.seen.stage
        text = f"{handler.id} took {elapsed_s:.2f} s at {stage}, of {limit_s:g} s; only an async handler is cut off"
        self._notices.append(Notice(handler.id, SLOW_NOTICE, text))

    def _react(
        self,
        handler: ShapeHandler,
        answer: Answer,
        *,
        reason: str | None = None,
        elapsed_ms: float = 0.0,
        failure: Failure | None = None,
        changes: JsonObject | None = None,
    ) -> None:
        self._reactions.append(
            Reaction(
                handler=handler.id,
                kind=handler.kind,
                phase="shape",
                answer=answer,
                mode=handler.mode,
                reason=reason,
                duration_ms=elapsed_ms,
                failure=failure,
                changes=changes,
            )
        )
