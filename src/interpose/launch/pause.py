"""Whether judging is switched off for a while, in `state.db`, for every process of the same user.

Knows: until when a workspace, or everything, is switched off.
Does not know: who may switch it; the command line asks for a terminal and writes the journal.
"""

from dataclasses import dataclass, field
from pathlib import Path

from interpose.contracts.errors import StorageError
from interpose.contracts.ports import Clock
from interpose.kernel.db import open_database
from interpose.launch.schema import LAUNCH_SCHEMA

FRESH_S = 0.25
"""How old an answer of `is_off` may be."""

_EVERYWHERE = "*"


@dataclass(frozen=True, slots=True)
class SwitchedOff:
    """One switch-off: `workspace` is None for everywhere; `until` is in seconds since the epoch."""

    workspace: str | None
    until: float


@dataclass(frozen=True, slots=True)
class _Seen:
    at: float = float("-inf")
    until: dict[str, float] = field(default_factory=dict)


class SqlitePause:
    """The port `Pause` on a table that any number of processes share. Any thread may call any method.

    Raises StorageError when it is made and the file cannot be opened, and from all methods but `is_off` later.
    """

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self._clock = clock
        self._database = open_database(path, LAUNCH_SCHEMA)
        self._seen = _Seen()  # replaced whole, so that a reader needs no lock

    def is_off(self, workspace: str) -> bool:
        """True while the workspace, or everything, is switched off; at most a quarter of a second late.

        False when the table cannot be read: what cannot be known to be off is on.
        """
        seen = self._seen
        if self._clock.monotonic() - seen.at >= FRESH_S:
            seen = self._look()
        if not seen.until:
            return False
        now = self._clock.now()
        return seen.until.get(_EVERYWHERE, 0.0) > now or (workspace != "" and seen.until.get(workspace, 0.0) > now)

    def switch_off(self, workspace: str | None, *, until: float) -> None:
        """Switches judging off in the workspace, or everywhere for None, until then; a later call replaces it."""
        with self._database.transaction():
            self._database.execute("DELETE FROM pauses WHERE until <= ?", (self._clock.now(),))
            self._database.execute(
                "INSERT OR REPLACE INTO pauses (workspace, until) VALUES (?, ?)", (workspace or _EVERYWHERE, until)
            )
        self._seen = _Seen()

    def switch_on(self, workspace: str | None = None) -> None:
        """Ends the switch-off of one workspace; for None all of them, wherever they are."""
        if workspace is None:
            self._database.execute("DELETE FROM pauses")
        else:
            self._database.execute("DELETE FROM pauses WHERE workspace = ?", (workspace,))
        self._seen = _Seen()

    def state(self) -> tuple[SwitchedOff, ...]:
        """What is switched off now, that which lasts longest first."""
        rows = self._database.query(
            "SELECT workspace, until FROM pauses WHERE until > ? ORDER BY until DESC", (self._clock.now(),)
        )
        return tuple(SwitchedOff(None if name == _EVERYWHERE else name, until) for name, until in rows)

    def close(self) -> None:
        """Lets the file go; nothing is off from then on for this instance."""
        self._database.close()
        self._seen = _Seen()

    def _look(self) -> _Seen:
        try:
            until = {switched.workspace or _EVERYWHERE: switched.until for switched in self.state()}
        except StorageError:
            until = {}
        self._seen = _Seen(self._clock.monotonic(), until)
        return self._seen
