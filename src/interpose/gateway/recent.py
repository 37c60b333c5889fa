"""A bounded map of what was used last. Knows: how much it holds. Does not know: what for."""

from collections import OrderedDict
from collections.abc import Collection
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A map that forgets what was not used for longest. Not for several threads by itself."""

    def __init__(self, limit: int) -> None:
        """It holds at most `limit` items."""
        self._limit = limit
        self._items: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value, which counts as used now, or None."""
        found = self._items.get(key)
        if found is not None:
            self._items.move_to_end(key)
        return found

    def put(self, key: K, value: V) -> list[V]:
        """Remembers `value` and returns what was forgotten or replaced for it."""
        gone = [self._items.pop(key)] if key in self._items else []
        self._items[key] = value
        while len(self._items) > self._limit:
            gone.append(self._items.popitem(last=False)[1])
        return gone

    def keys(self) -> Collection[K]:
        """What is known, longest unused first."""
        return self._items.keys()
