"""A bounded map of what was used last. Knows: how much it holds. Does not know: what for."""

from collections import OrderedDict
from collections.abc import Collection
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A map that forgets what was not used for longest. Not for several threads by itself.

    One that nothing was put into takes hardly any memory: sessions have many of them.
    """

    __slots__ = ("_items", "_limit")

    def __init__(self, limit: int) -> None:
        """It holds at most `limit` items."""
        self._limit = limit
        self._items: OrderedDict[K, V] | None = None

    def get(self, key: K) -> V | None:
        """The value, which counts as used now, or None."""
        if self._items is None:
            return None
        found = self._items.get(key)
        if found is not None:
            self._items.move_to_end(key)
        return found

    def put(self, key: K, value: V) -> list[V]:
        """Remembers `value` and returns what was forgotten or replaced for it."""
        items = self._items
        if items is None:
            items = self._items = OrderedDict()
        gone = [items.pop(key)] if key in items else []
        items[key] = value
        while len(items) > self._limit:
            gone.append(items.popitem(last=False)[1])
        return gone

    def keys(self) -> Collection[K]:
        """What is known, longest unused first."""
        return () if self._items is None else self._items.keys()
