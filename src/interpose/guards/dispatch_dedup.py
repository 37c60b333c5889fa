"""The guard `guard.dispatch-dedup`: the same task is not given to the same agent twice in one turn.

Knows: the fields that make two tasks the same. Does not know: how a task is run.

State, per session (the 1,024 used last): 32 turns with the 256 newest tasks that succeeded in each. Failures are never
remembered. Any thread may evaluate; one lock is held for the bookkeeping.
"""

import threading
from collections.abc import Mapping
from typing import Final

from interpose.contracts.effects import BlockTool, EvaluationContext, HookInput, Registration
from interpose.contracts.json import Json, JsonObject
from interpose.guards.given import session_of, succeeded
from interpose.guards.state import Recent, TurnStates
from interpose.kernel.canonical import canonical_hash

DISPATCH_DEDUP_ID: Final = "guard.dispatch-dedup"
DEFAULT_AGENT: Final = "coder"
TASKS_KEPT: Final = 256

_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "agent": ("agent_id", "agentId", "agent", "kind"),
    "task": ("task",),
    "target": ("target",),
    "model": ("model",),
    "profile": ("profile",),
    "runtime": ("runtime",),
    "toolProfile": ("toolProfile", "tool_profile"),
    "thinkingLevel": ("thinkingLevel", "thinking_level"),
    "cwd": ("cwd",),
    "memorySection": ("memorySection", "memory_section"),
}
_CAPABILITIES: Final = ("requiredCapabilities", "required_capabilities")


class DispatchDedup:
    """The guard of one workspace. `default_agent` is who gets a task that names nobody."""

    def __init__(self, *, default_agent: str = DEFAULT_AGENT) -> None:
        self._default_agent = default_agent
        self._lock = threading.Lock()
        self._done: TurnStates[Recent[str, bool]] = TurnStates(lambda: Recent(TASKS_KEPT, touch=False))

    def registration(self) -> Registration:
        """The guard's entry in the table."""
        return Registration(
            id=DISPATCH_DEDUP_ID,
            description="refuses a task that this turn has already had done",
            hooks=("before_tool", "after_tool"),
            tool_names=("agent",),
            evaluate=self.evaluate,
            reads=("resultKind",),
        )

    def evaluate(self, given: HookInput, _context: EvaluationContext) -> tuple[BlockTool, ...]:
        """Remembers a task that ended with exit code 0; refuses it when it comes again."""
        fingerprint = self._fingerprint(given.tool_args or {})
        if given.turn_id is None or fingerprint is None:
            return ()

        with self._lock:
            if given.hook == "after_tool":
                if succeeded(given) and exited_well(given.tool_result_details):
                    self._done.of(session_of(given), given.turn_id).put(fingerprint, True)
                return ()
            done = self._done.find(session_of(given), given.turn_id)
            if done is None or fingerprint not in done:
                return ()
        return (BlockTool("this very task has already been done in this turn: use the result that stands above"),)

    def _fingerprint(self, arguments: JsonObject) -> str | None:
        fields = {name: _first(arguments, keys) for name, keys in _ALIASES.items()}
        if fields["task"] is None:
            return None
        fields["agent"] = fields["agent"] or self._default_agent
        capabilities: list[Json] = next(
            (arguments[key] for key in _CAPABILITIES if isinstance(arguments.get(key), list)), []
        )
        names = sorted(name.strip() for name in capabilities if isinstance(name, str))
        return canonical_hash({**fields, "requiredCapabilities": names})


def exited_well(details: JsonObject | None) -> bool:
    """Whether the details of a result say that a run ended with exit code 0."""
    code: Json = (details or {}).get("exitCode")
    return isinstance(code, int) and not isinstance(code, bool) and code == 0


def _first(arguments: JsonObject, keys: tuple[str, ...]) -> str | None:
    """The first of these fields that holds text other than blanks, trimmed."""
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None
