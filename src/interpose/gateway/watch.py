"""A clock for one connection: one timer serves all its requests and the time between them.

Knows: the event loop's time. Does not know: what is due.
"""

import asyncio
from collections.abc import Callable


class Watch:
    """Calls `look` at the time that was set last, or earlier; whoever looks tells whether it is time.

    Timers are dear: one that would ring later is moved by setting it anew only when it has rung. Belongs to one loop.
    """

    def __init__(self, look: Callable[[], None]) -> None:
        self._look: Callable[[], None] | None = look
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0

    def now(self) -> float:
        """The loop's time, in seconds."""
        return self._loop.time()

    def set(self, at: float) -> None:
        """Rings at `at`, or earlier; not at all once it was stopped."""
        if self._look is None:
            return
        if self._timer is not None:
            if self._rings_at <= at:
                return
            self._timer.cancel()
        self._rings_at = at
        self._timer = self._loop.call_at(at, self._ring)

    def stop(self) -> None:
        """Does not ring any more, and forgets whom it would tell."""
        self._look = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        if self._look is not None:
            self._look()
