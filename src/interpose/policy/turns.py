"""What must be remembered between the points of one session: its continuation, and the calls of its turns.

Knows: sessions, turns, calls by their ids. Does not know: what is made of them.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from interpose.contracts.effects import MetadataValue

SESSIONS_KEPT: Final = 4_096
"""The sessions, and the turns, remembered; beyond it the one least recently used is forgotten."""

CALLS_KEPT: Final = 1_000
"""The calls of one turn told apart by id; beyond it each one counts, whatever its id."""


@dataclass(slots=True)
class _Turn:
    begun: bool = False
    active_tools: MetadataValue = None
    calls: int = 0
    ids: set[str] = field(default_factory=set)
    names: dict[str, None] = field(default_factory=dict)


class Turns:
    """Per session: is the one continuation of the present prompt spent? Per turn: what was called?

    A forgotten session may be nudged once more; a forgotten turn has no facts. Any thread may ask or tell.
    """

    def __init__(self, *, kept: int = SESSIONS_KEPT) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._spent: OrderedDict[str, None] = OrderedDict()
        self._turns: OrderedDict[tuple[str, str | None], _Turn] = OrderedDict()

    def begin(
        self,
        session: str,
        turn: str | None = None,
        *,
        continues: bool = False,
        active_tools: MetadataValue = None,
    ) -> None:
        """A turn starts, without calls so far; unless it only `continues` one, its continuation is there again."""
        with self._lock:
            if not continues:
                self._spent.pop(session, None)
            self._turns.pop((session, turn), None)
            self._put(session, turn, _Turn(begun=True, active_tools=active_tools))

    def called(self, session: str, turn: str | None, call_id: str, tool: str) -> None:
        """A tool is called; the same id twice in one turn is one call, seen at two mounts."""
        with self._lock:
            known = self._turns.get((session, turn)) or self._put(session, turn, _Turn())
            if call_id and call_id in known.ids:
                return
            known.calls += 1
            if len(known.ids) < CALLS_KEPT:
                known.ids.add(call_id)
                known.names[tool] = None

    def facts(self, session: str, turn: str | None) -> dict[str, MetadataValue]:
        """What is known of a turn that ends, as hook metadata; nothing when nobody saw it start."""
        with self._lock:
            known = self._turns.get((session, turn))
            if known is None or not known.begun:
                return {}
            return {
                "turnToolCalls": known.calls,
                "turnToolNames": ",".join(known.names),
                "activeToolNames": known.active_tools,
            }

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

    def _put(self, session: str, turn: str | None, known: _Turn) -> _Turn:
        self._turns[session, turn] = known
        while len(self._turns) > self._kept:
            self._turns.popitem(last=False)
        return known
