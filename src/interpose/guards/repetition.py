"""Whether an agent goes round in circles: pure bookkeeping over the calls of one session.

Knows: identical calls in time, results that do not change. Does not know: what is done about it, threads, turns.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from interpose.contracts.effects import HookInput
from interpose.contracts.json import JsonObject
from interpose.guards.given import call_identity, digest_of, number_of, text_of
from interpose.kernel.canonical import canonical_json

WINDOW_S: Final = 30.0
"""An attempt counts for so many seconds ..."""

ATTEMPTS_KEPT: Final = 4
"""... and, however old, while it is among so many newest ones."""

ATTEMPTS_MOST: Final = 1_024
"""Attempts held for one session at any time."""

REPEATS: Final = 3
"""So many identical attempts, the present one included, are a loop."""

SAME_RESULTS: Final = 2
"""After so many equal results in a row the next attempt of the same shape is refused."""

SHAPES: Final = 3
"""So many different shapes in a row with one result are worth a warning ..."""

SMALLEST_RESULT_BYTES: Final = 64
"""... when the result has at least so many bytes."""

_PAGING: Final = frozenset({"limit", "offset", "max_bytes", "context"})
"""Arguments that ask for another part of the same thing."""


class Attempts:
    """The newest attempts of one session."""

    __slots__ = ("_counts", "_held")

    def __init__(self) -> None:
        self._held: deque[tuple[float, str]] = deque()
        self._counts: Counter[str] = Counter()

    def count(self, key: str, now: float) -> int:
        """Takes one attempt at `now` (seconds); returns how many equal ones are held, this one included."""
        self._held.append((now, key))
        self._counts[key] += 1
        while len(self._held) > ATTEMPTS_KEPT and (
            now - self._held[0][0] >= WINDOW_S or len(self._held) > ATTEMPTS_MOST
        ):
            self._forget(self._held.popleft()[1])
        return self._counts[key]

    def forget(self, *, key: str | None = None, but: str | None = None) -> None:
        """Lets go of the attempts of `key`, or of all but those of `but`: what they asked for may have changed."""
        self._held = deque(one for one in self._held if one[1] == but or (key is not None and one[1] != key))
        self._counts = Counter(held for _, held in self._held)

    def _forget(self, key: str) -> None:
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]


@dataclass(slots=True)
class Stagnation:
    """Results of one turn: equal ones for one shape of call, and for one tool asked in different ways."""

    shape: bytes | None = None
    result: str | None = None
    repeats: int = 0
    tool: str | None = None
    tool_result: str | None = None
    shapes: set[bytes] = field(default_factory=set)
    warned: bool = False

    def is_stuck(self, given: HookInput) -> bool:
        """Whether another call of this shape would only bring the same result again."""
        return self.repeats >= SAME_RESULTS and shape_of(given) == self.shape

    def take(self, given: HookInput, shape: bytes) -> bool:
        """Takes the result of a call; returns whether a warning about different shapes is due now."""
        result = text_of(given, "resultFingerprint") if given.metadata.get("resultKind") == "ok" else None
        self._take_shape(shape, result)
        return self._take_tool(given, shape, result)

    def _take_shape(self, shape: bytes, result: str | None) -> None:
        same = result is not None and shape == self.shape and result == self.result
        self.repeats = self.repeats + 1 if same else int(result is not None)
        self.shape, self.result = (shape, result) if result is not None else (None, None)

    def _take_tool(self, given: HookInput, shape: bytes, result: str | None) -> bool:
        counts = (
            result is not None
            and given.metadata.get("actionClass") == "read"
            and (number_of(given, "resultBytes") or 0) >= SMALLEST_RESULT_BYTES
        )
        if not counts or given.tool_name != self.tool or result != self.tool_result:
            self.tool, self.tool_result = (given.tool_name, result) if counts else (None, None)
            self.shapes = {shape} if counts else set()
            self.warned = False
            return False

        if self.warned:
            return False
        self.shapes.add(shape)
        self.warned = len(self.shapes) >= SHAPES
        return self.warned


def shape_of(given: HookInput) -> bytes:
    """The identity of a call when it does not matter which part of the thing it asks for."""
    arguments = given.tool_args or {}
    if given.unreadable is not None:
        return call_identity(given) or digest_of(f"{given.tool_name} unreadable")
    return digest_of(f"{given.tool_name} {_text_of({key: arguments[key] for key in arguments if key not in _PAGING})}")


def is_empty_stub(details: JsonObject | None) -> bool:
    """Whether a result was cut away so far that nothing of it was shown."""
    observation = (details or {}).get("observation")
    return isinstance(observation, dict) and observation.get("truncated") is True and observation.get("shownCount") == 0


def _text_of(arguments: JsonObject) -> str:
    try:
        return canonical_json(arguments)
    except (ValueError, TypeError):
        return "(unrepresentable)"
