"""Waiting across the border between threads and event loops, for no longer than one is willing to.

Knows: daemon threads, event loops, limits. Does not know: what is waited for.

The threads are daemons and nobody joins them: what never ends does not keep the process from ending.
"""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_GRACE_S = 0.5
"""How long something that was cancelled may take to notice."""


class LateError(TimeoutError):
    """The limit passed; what was waited for may raise a TimeoutError of its own, which is none of these."""


async def within(awaitable: Awaitable[T], limit_s: float) -> T:
    """What `awaitable` comes to; raises what it raises, and LateError after `limit_s`.

    At the limit it is cancelled and left to itself, so that one which ignores that holds nobody up. Cancelling the
    caller cancels it too.
    """
    task = asyncio.ensure_future(awaitable)
    try:
        done, _ = await asyncio.wait({task}, timeout=limit_s)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.add_done_callback(_heard)
        task.cancel()
        raise LateError
    return task.result()


def run_within(awaitable: Awaitable[T], limit_s: float) -> T:
    """As `within`, from a plain thread, or from one whose event loop may wait: it runs on a loop of its own."""
    outcome: _Outcome[T] = _Outcome()
    context = contextvars.copy_context()
    threading.Thread(
        target=lambda: context.run(outcome.fill, lambda: asyncio.run(within(awaitable, limit_s))),
        name="interpose-wait",
        daemon=True,
    ).start()
    if not outcome.ready.wait(limit_s + _GRACE_S):
        raise LateError
    return outcome.value()


async def in_thread(call: Callable[[], T]) -> T:
    """What `call` returns, run in a thread of its own; raises what it raises.

    For calls that wait for minutes: they take no place in the event loop's pool. Cancelling the caller leaves the
    thread to itself.
    """
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    outcome: _Outcome[T] = _Outcome()
    context = contextvars.copy_context()

    def run() -> None:
        context.run(outcome.fill, call)
        try:
            loop.call_soon_threadsafe(ready.set)
        except RuntimeError:  # the loop has ended, and with it whoever waited
            return

    threading.Thread(target=run, name="interpose-wait", daemon=True).start()
    await ready.wait()
    return outcome.value()


class _Outcome(Generic[T]):
    """What came of a call in another thread."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self._results: list[T] = []
        self._error: BaseException | None = None

    def fill(self, call: Callable[[], T]) -> None:
        try:
            self._results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error
        finally:
            self.ready.set()

    def value(self) -> T:
        if self._error is not None:
            raise self._error
        return self._results[0]


def _heard(task: "asyncio.Future[T]") -> None:
    """Takes note of how a task that nobody waits for ended, so that asyncio does not complain."""
    if not task.cancelled():
        task.exception()
