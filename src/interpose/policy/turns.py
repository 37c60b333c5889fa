"""What must be remembered between the points of one session: its continuation, its turns' calls, consents, tool choice.

Knows: sessions, turns, calls by their ids. Does not know: what is made of them.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from interpose.contracts.effects import MetadataValue
from interpose.contracts.verdict import ToolChoice

SESSIONS_KEPT: Final = 4_096
"""The sessions, and the turns, remembered; beyond it the one least recently used is forgotten."""

CALLS_KEPT: Final = 1_000
"""The calls of one turn told apart by id; beyond it each one counts, whatever its id."""

_NO_TOOLS: Final = ""
"""The active tools of a turn whose client is known to offer none."""


@dataclass(slots=True)
class _Turn:
    begun: bool = False
    active_tools: MetadataValue = None
    calls: int = 0
    ids: set[str] = field(default_factory=set)
    names: dict[str, None] = field(default_factory=dict)
    consents: set[str] = field(default_factory=set)
    choice: ToolChoice | None = None


class Turns:
    """Per session: is the one continuation of the present prompt spent? Per turn: what was called, which tools may be?

    A forgotten session may be nudged once more; a forgotten turn has no facts. Any thread may ask or tell.
    """

    def __init__(self, *, kept: int = SESSIONS_KEPT) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._spent: OrderedDict[str, None] = OrderedDict()
        self._turns: OrderedDict[tuple[str, str | None], _Turn] = OrderedDict()
        self._proposed: OrderedDict[tuple[str, str], str] = OrderedDict()

    def begin(
        self,
        session: str,
        turn: str | None = None,
        *,
        continues: bool = False,
        active_tools: MetadataValue = None,
    ) -> None:
        """A turn starts, without calls and with every tool.

        Its one continuation is there again, unless it only `continues` the turn before it, or has no tools to go on
        with (as when an agent asks for a title beside the prompt).
        """
        with self._lock:
            if not continues and active_tools != _NO_TOOLS:
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

    def choose(self, session: str, turn: str | None, own: ToolChoice | None) -> ToolChoice | None:
        """Takes what one verdict says of the tools, and returns what holds now for the turn's next request.

        Locked tools stay locked until the next turn starts. A required tool stays so until it is called, or another
        one is required, or all are locked. Where nobody saw the turn start each verdict stands for itself.
        """
        with self._lock:
            known = self._turns.get((session, turn))
            if known is None or not known.begun:
                return own
            if own is not None and (known.choice is None or known.choice.mode != "none"):
                known.choice = own
            return known.choice

    def started(self, session: str, turn: str | None, names: Collection[str]) -> None:
        """A tool with these names runs: it is no longer required."""
        with self._lock:
            known = self._turns.get((session, turn))
            if known is not None and known.choice is not None and known.choice.tool_name in names:
                known.choice = None

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

    def consent(self, session: str, turn: str | None, call_id: str, digest: str) -> None:
        """A person said yes to the call with this digest: for its turn, or for this one call where nobody saw it start.

        A turn keeps 1,000 of them; whatever comes later is asked again.
        """
        with self._lock:
            known = self._turns.get((session, turn)) or self._put(session, turn, _Turn())
            if len(known.consents) < CALLS_KEPT:
                known.consents.add(digest if known.begun else f"{call_id} {digest}")

    def consented(self, session: str, turn: str | None, call_id: str, digest: str) -> bool:
        """Whether that yes holds."""
        with self._lock:
            known = self._turns.get((session, turn))
            return known is not None and (digest in known.consents or f"{call_id} {digest}" in known.consents)

    def propose(self, session: str, call_id: str, fingerprint: str) -> None:
        """A call will run as something else than the model proposed; its result still belongs to what it proposed."""
        with self._lock:
            self._proposed[session, call_id] = fingerprint
            while len(self._proposed) > self._kept:
                self._proposed.popitem(last=False)

    def proposed(self, session: str, call_id: str) -> str | None:
        """The fingerprint of what the model proposed, where that is not what ran."""
        if not self._proposed:
            return None
        with self._lock:
            return self._proposed.get((session, call_id))

    def spend_continuation(self, session: str) -> None:
        """The prompt has had its continuation."""
        with self._lock:
            self._spent[session] = None
            self._spent.move_to_end(session)
            while len(self._spent) > self._kept:
                self._spent.popitem(last=False)

    def may_continue(self, session: str, turn: str | None) -> bool:
        """Whether the prompt has its continuation left; a turn without tools never has one."""
        with self._lock:
            known = self._turns.get((session, turn))
            return session not in self._spent and (known is None or known.active_tools != _NO_TOOLS)

    def _put(self, session: str, turn: str | None, known: _Turn) -> _Turn:
        self._turns[session, turn] = known
        while len(self._turns) > self._kept:
            self._turns.popitem(last=False)
        return known
