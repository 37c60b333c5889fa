"""The nudge `nudge.read-only-exploration`: much looking around in one round is work for a scout.

Knows: which calls only look. Does not know: which agents exist. It is silent unless the mount says that tasks can be
given away (`agent` among the active tools).

State, per session (the 1,024 used last): 32 turns with a counter and two flags, and 512 call ids. Any thread may
evaluate; one lock is held for the bookkeeping, and commands are read without it.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import Effect, EvaluationContext, HookInput, InjectReminder, Registration
from interpose.contracts.json import Json, JsonObject
from interpose.guards.calls import CallReader
from interpose.guards.given import content_of, ended_normally, ended_turn, names_in, session_of, succeeded, tool_turn
from interpose.guards.state import SeenCalls, TurnStates

EXPLORATION_ID: Final = "nudge.read-only-exploration"
SCOUT: Final = "scout"
DISPATCH_TOOL: Final = "agent"
LOOKS: Final = 9
"""So many looks in one model round are worth a word."""

_LOOKING_TOOLS: Final = frozenset({"read", "search", "grep", "find", "ls", "code_nav", "git"})
_LOOKING_PROGRAMS: Final = frozenset(
    {"awk", "cat", "fd", "find", "git", "grep", "head", "jq", "ls", "rg", "sed", "tail", "tree", "wc"}
)
_DEFAULT_AGENT: Final = "coder"
_AGENT_FIELDS: Final = ("agent", "agent_id", "kind")
_OTHER_MODES: Final = frozenset({"list", "apply_winner", "review", "compete"})
_MESSAGE: Final = (
    "Many calls of this round only looked around. A scout can do that in one task and report back, which keeps your "
    "own context free."
)


@dataclass(slots=True)
class _Turn:
    looks: int = 0
    scouted: bool = False
    advised: bool = False


class ExplorationNudge:
    """The nudge of one workspace."""

    def __init__(self, *, reader: CallReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._turns: TurnStates[_Turn] = TurnStates(_Turn)
        self._seen = SeenCalls()

    def registration(self) -> Registration:
        """The nudge's entry in the table."""
        return Registration(
            id=EXPLORATION_ID,
            description="advises to send a scout when a round only looks around",
            hooks=("before_tool", "after_tool", "turn_end"),
            evaluate=self.evaluate,
            reads=("activeToolNames", "resultKind"),
        )

    def evaluate(self, given: HookInput, _context: EvaluationContext) -> tuple[Effect, ...]:
        """Counts a look, notes a scout's success, or advises at the end of a round."""
        match given.hook:
            case "before_tool":
                if self._looks(given):
                    self._count(given)
                return ()
            case "after_tool":
                if given.tool_name == DISPATCH_TOOL and succeeded(given) and _sends_a_scout(given.tool_args or {}):
                    with self._lock:
                        self._turns.of(session_of(given), tool_turn(given)).scouted = True
                return ()
            case "turn_end":
                return self._advise(given)
            case _:
                return ()

    def _looks(self, given: HookInput) -> bool:
        if given.tool_name == "context":
            return (given.tool_args or {}).get("scope") in (None, "workspace")
        if given.tool_name != "shell":
            return given.tool_name in _LOOKING_TOOLS
        reading = self._reader.read(given)
        return not isinstance(reading, Unknown) and bool(
            reading.commands and reading.commands[0].name in _LOOKING_PROGRAMS
        )

    def _count(self, given: HookInput) -> None:
        with self._lock:
            if self._seen.is_new(session_of(given), given.tool_call_id, *content_of(given)):
                self._turns.of(session_of(given), tool_turn(given)).looks += 1

    def _advise(self, given: HookInput) -> tuple[Effect, ...]:
        with self._lock:
            turn = self._turns.find(session_of(given), ended_turn(given))
            if turn is None:
                return ()
            due = turn.looks >= LOOKS and not turn.scouted and not turn.advised
            turn.looks = 0
            if not due or not ended_normally(given) or DISPATCH_TOOL not in (names_in(given, "activeToolNames") or ()):
                return ()
            turn.advised = True
        return (InjectReminder(_MESSAGE, "info"),)


def _sends_a_scout(arguments: JsonObject) -> bool:
    if arguments.get("mode") in _OTHER_MODES or any(arguments.get(mode) for mode in _OTHER_MODES):
        return False
    return any(agent.lower() == SCOUT for agent in _agents(arguments))


def _agents(arguments: JsonObject) -> Iterator[str]:
    own = next((name.strip() for key in _AGENT_FIELDS if isinstance(name := arguments.get(key), str)), _DEFAULT_AGENT)
    tasks = _tasks(arguments.get("tasks"))
    if not tasks:
        yield own
    for task in tasks:
        names = [task[key] for key in _AGENT_FIELDS if isinstance(task.get(key), str)] if isinstance(task, dict) else []
        yield names[0].strip() if names else own


def _tasks(tasks: Json) -> list[Json]:
    """A list of tasks, however it was written: a list, one object, or either as JSON in text."""
    if isinstance(tasks, str):
        try:
            tasks = json.loads(tasks)
        except (ValueError, RecursionError):
            return []
    if isinstance(tasks, dict):
        return [tasks]
    return tasks if isinstance(tasks, list) else []
