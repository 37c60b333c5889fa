"""An event loop on a thread of its own, for callers that have none or another one.

Knows: how a coroutine gets there and its result back, sync and async. Does not know: what runs.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Final, TypeVar

from interpose.contracts.errors import MisuseError

T = TypeVar("T")

_LAST_WORDS_S: Final = 1.0


class LoopThread:
    """Starts with the first coroutine, ends with `close`. Any thread and any other event loop may use it.

    `shown` is whose loop it is, for people.
    """

    def __init__(self, name: str, shown: str) -> None:
        self._name = name
        self._shown = shown
        self._changing = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, waited for in this thread; an interrupted wait cancels the work."""
        future = self._submit(work)
        try:
            return future.result()
        except CancelledError as error:
            raise MisuseError(f"{self._shown} was closed while it worked") from error
        except BaseException:
            future.cancel()
            raise

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, awaited; a cancelled caller cancels the work."""
        future = self._submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise MisuseError(f"{self._shown} was closed while it worked") from error

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Lets `work` run and waits for nothing; when the thread is closed it does not run."""
        try:
            self._submit(work)
        except MisuseError:
            return

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Runs `last`, then ends the loop and its thread; a second time nothing happens."""
        with self._changing:
            loop, thread, self._is_closed = self._loop, self._thread, True
            self._loop = self._thread = None
        if loop is None or thread is None:
            last.close()
            return

        try:
            asyncio.run_coroutine_threadsafe(last, loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        with self._changing:
            if self._is_closed:
                work.close()
                raise MisuseError(f"{self._shown} was closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        if left:  # calls whose connection is closed have a last word to say
            loop.run_until_complete(asyncio.wait(left, timeout=_LAST_WORDS_S))
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
