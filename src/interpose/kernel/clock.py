"""The clock of the machine."""

import time


class SystemClock:
    """The port `Clock` on the operating system's clocks."""

    def now(self) -> float:
        """Seconds since the epoch (UTC)."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()
