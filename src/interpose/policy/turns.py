"""What must be remembered between the points of one session: whether its prompt has had its continuation."""

import threading
from collections import OrderedDict

SESSIONS_KEPT = 4_096
"""The sessions remembered; beyond it the one least recently used is forgotten (and may be nudged once more)."""


class Turns:
    """Per session: is the one continuation of the present prompt spent? Any thread may ask or tell."""

    def __init__(self, *, kept: int = SESSIONS_KEPT) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._spent: OrderedDict[str, None] = OrderedDict()

    def begin(self, session: str) -> None:
        """A new prompt: its continuation is there again."""
        with self._lock:
            self._spent.pop(session, None)

    def spend_continuation(self, session: str) -> None:
        """The prompt has had its continuation."""
        with self._lock:
            self._spent[session] = None
            self._spent.move_to_end(session)
            while len(self._spent) > self._kept:
                self._spent.popitem(last=False)

    def continuation_spent(self, session: str) -> bool:
        """Whether it has."""
        with self._lock:
            return session in self._spent
