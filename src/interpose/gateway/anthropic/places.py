"""Where the blocks of a streamed message stand at the client, when one that is held is overtaken.

Clients keep blocks in the order in which they begin, and look them up by their index.
Knows: indexes. Does not know: events, what blocks say.
"""

from interpose.contracts.json import Json


class Places:
    """The indexes of one reply's blocks: those that wait are taken in the order in which blocks begin to leave.

    While nothing is overtaken each block has the index that the provider gave it, whichever that is; a block without
    one has none. Not for several threads.
    """

    def __init__(self) -> None:
        self._free: set[int] = set()
        self._given: dict[str, int] = {}
        self.has_moved = False
        """Whether a block may have another index than it came with."""

    def come(self, index: Json) -> None:
        """A block with this index has come."""
        if isinstance(index, int):
            self._free.add(index)

    def leave(self, index: Json) -> Json:
        """A block that came with this index begins to leave; its index at the client."""
        if not isinstance(index, int) or not self._free:
            return index
        place = min(self._free)
        self._free.remove(place)
        self._given[str(index)] = place
        self.has_moved = self.has_moved or place != index
        return place

    def of(self, index: Json) -> Json:
        """The index at the client of the block that came with this one."""
        return self._given.get(str(index), index)
