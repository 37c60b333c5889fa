"""kernel.waiting: limits that hold across threads and event loops."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable

import pytest

from interpose.kernel.waiting import LateError, in_thread, run_within, within

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="none")


async def answer() -> str:
    """Says which context it runs in."""
    await asyncio.sleep(0)
    return VARIABLE.get()


async def fail() -> str:
    """Has a fault of its own."""
    raise TimeoutError("mine")


async def never() -> str:
    """Waits for what never comes."""
    await asyncio.Event().wait()
    return "never"


async def stubborn() -> str:
    """Does not let itself be cancelled at once."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()
    return "never"


def test_an_answer_comes_through() -> None:
    """On the loop and on one of its own, in the caller's context."""
    VARIABLE.set("mine")
    assert asyncio.run(within(answer(), 5)) == "mine"
    assert run_within(answer(), 5) == "mine"


@pytest.mark.parametrize("wait", [lambda: asyncio.run(within(fail(), 5)), lambda: run_within(fail(), 5)])
def test_a_fault_of_its_own_is_not_the_limit(wait: Callable[[], str]) -> None:
    """A TimeoutError that it raised stays what it is."""
    with pytest.raises(TimeoutError, match="mine") as caught:
        wait()
    assert not isinstance(caught.value, LateError)


@pytest.mark.parametrize("endless", [never, stubborn])
def test_the_limit_holds(endless: Callable[[], Awaitable[str]]) -> None:
    """Whatever ignores its cancellation holds nobody up."""
    with pytest.raises(LateError):
        run_within(endless(), 0.01)


def test_the_limit_holds_on_a_loop() -> None:
    """It is cancelled there, and the caller goes on."""

    async def main() -> bool:
        with pytest.raises(LateError):
            await within(never(), 0.01)
        return True

    assert asyncio.run(main())


def test_a_cancelled_caller_cancels_what_it_waits_for() -> None:
    """Nothing runs on behind the back of who gave up."""
    ended: list[str] = []

    async def noting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def main() -> None:
        task = asyncio.create_task(within(noting(), 5))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)

    asyncio.run(main())
    assert ended == ["cancelled"]


def test_it_works_while_a_loop_runs_in_the_thread() -> None:
    """A synchronous call from inside an event loop waits as any other."""

    async def main() -> str:
        return run_within(answer(), 5)

    assert asyncio.run(main()) == VARIABLE.get()


def test_a_call_in_a_thread_of_its_own() -> None:
    """Its answer and its fault come back; it is another thread, and a daemon."""

    def here() -> tuple[int, bool, str]:
        return threading.get_ident(), threading.current_thread().daemon, VARIABLE.get()

    def broken() -> None:
        raise LookupError("no")

    async def main() -> tuple[int, bool, str]:
        VARIABLE.set("inside")
        with pytest.raises(LookupError, match="no"):
            await in_thread(broken)
        return await in_thread(here)

    ident, daemon, variable = asyncio.run(main())
    assert (ident != threading.get_ident(), daemon, variable) == (True, True, "inside")


def test_a_thread_that_outlives_its_loop_is_quiet() -> None:
    """Whoever waited is gone; the thread ends without a word."""
    gate, ended = threading.Event(), threading.Event()

    def slow() -> None:
        gate.wait(5)
        ended.set()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(in_thread(slow), 0.01)

    asyncio.run(main())
    gate.set()
    assert ended.wait(5)
