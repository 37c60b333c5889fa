"""How it stands with the writing of a journal, as a value.

Knows: what a person wants to know of it. Does not know: who writes, where it is told.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """`fault` is why nothing can be written, in words for a person, or None; `waiting` and `lost` count lines."""

    fault: str | None = None
    waiting: int = 0
    lost: int = 0

    @property
    def missing(self) -> int:
        """How many lines are not in the file: those that wait for it, and those that never will be."""
        return self.waiting + self.lost
