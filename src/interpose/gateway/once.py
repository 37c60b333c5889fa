"""One task at a time judges what a key names. Knows: keys, who waits. Does not know: what is judged."""

import asyncio


class Once:
    """Turns to judge. Belongs to one event loop."""

    __slots__ = ("_judged_now",)

    def __init__(self) -> None:
        """Nothing is judged now."""
        self._judged_now: dict[object, asyncio.Event] = {}

    def of(self, key: object) -> "Turn":
        """The turn to judge what `key` names."""
        return Turn(self._judged_now, key)


class Turn:
    """The turn to judge what a key names: one task at a time has it, the others wait."""

    __slots__ = ("_judged_now", "_key")

    def __init__(self, judged_now: dict[object, asyncio.Event], key: object) -> None:
        """`judged_now` is what other tasks judge."""
        self._judged_now = judged_now
        self._key = key

    async def __aenter__(self) -> None:
        """Waits until nobody else has it."""
        while (other := self._judged_now.get(self._key)) is not None:
            await other.wait()
        self._judged_now[self._key] = asyncio.Event()

    async def __aexit__(self, *_error: object) -> None:
        """Lets the next one have it."""
        self._judged_now.pop(self._key).set()
