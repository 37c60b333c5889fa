"""The numbers of a streamed response's events, which grow by one however many events are put in or left out.

Knows: numbers, and where they stand in an event's bytes. Does not know: what the events say.
"""

import re

from interpose.gateway.api import Unreadable
from interpose.gateway.bodies import object_of, open_body, value_of
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent, split

_KEY = b'"sequence_number"'
_ESCAPE = re.compile(rb"\\u00[567]")
"""An escaped letter, such as may stand in the key too."""

_NUMBER = re.compile(rb'"sequence_number"\s*:\s*(\d+)')


class Numbering:
    """The way from the numbers of the model's replies to those of the client's. Not for several threads.

    A server may leave numbers out; then none are put in.
    """

    def __init__(self) -> None:
        self._changes: list[tuple[int, int]] = []
        self._shift: int | None = 0
        self._next: int | None = None
        """The first number of a reply that follows; None where the former had none."""

    def moved(self, number: int) -> int:
        """The number as it leaves: behind what was put in, and up to what was left out, before it came."""
        return number + (self._shift or 0) + sum(more for at, more in self._changes if number > at)

    def renumbered(self, raw: bytes) -> bytes:
        """The bytes of events with their numbers as they leave; the very bytes where those are the same."""
        if not self._changes and not self._shift:
            return raw
        if _is_plain(raw):
            return _NUMBER.sub(self._rewritten, raw)
        return b"".join(
            _NUMBER.sub(self._rewritten, event.raw) if _is_plain(event.raw) else self._apart(event)
            for event in _events(raw)
        )

    def put_in(self, numbers: list[int], count: int) -> list[int]:
        """The numbers of `count` events in the place of those that came with `numbers`; what follows makes room."""
        last = max(numbers)
        moved = sorted({self.moved(number) for number in numbers})
        more = max(0, count - len(moved))
        moved += range(moved[-1] + 1, moved[-1] + 1 + more)
        if more:
            self._changes.append((last, more))
        return [*moved[: count - 1], moved[-1]]

    def put_before(self, number: object, count: int) -> list[int | None]:
        """Numbers for `count` events ahead of the one that came with this number, which makes room."""
        if not isinstance(number, int):
            return [None] * count
        first = self.moved(number)
        self._changes.append((number - 1, count))
        return list(range(first, first + count))

    def leave_out(self, number: object) -> None:
        """An event that came with this number does not leave."""
        if isinstance(number, int):
            self._changes.append((number, -1))

    def begin_next(self, end: object) -> None:
        """Another reply follows; the former one's `end` does not leave."""
        self._next = self.moved(end) if isinstance(end, int) else None
        self._changes.clear()
        self._shift = None if self._next is not None else 0

    def drawn(self, count: int) -> list[int | None]:
        """Numbers for events between two replies."""
        if self._next is None:
            return [None] * count
        self._next += count
        return list(range(self._next - count, self._next))

    def see(self, number: object) -> None:
        """The first number of a reply that follows tells how it is counted on."""
        if self._shift is None and self._next is not None and isinstance(number, int):
            self._shift = self._next - number

    def behind(self, last: bytes) -> int:
        """A number behind those of the last bytes that came."""
        numbers = [int(number) for number in _NUMBER.findall(last)]
        if _ESCAPE.search(last) is not None:
            told = (object_of(event.data).get("sequence_number") for event in _events(last))
            numbers += [number for number in told if isinstance(number, int)]
        return self.moved(max(numbers)) + 1 if numbers else self._next or 0

    def _rewritten(self, found: re.Match[bytes]) -> bytes:
        return b'"sequence_number":%d' % self.moved(int(found.group(1)))

    def _apart(self, event: SseEvent) -> bytes:
        """An event in whose inside the word may stand too, or an escaped key: only its own number is changed."""
        try:
            fields = open_body(event.data or b"{}")
        except Unreadable:
            return event.raw
        number = value_of(fields.get("sequence_number"))
        if not isinstance(number, int):
            return event.raw
        return event.with_data(write_json({**fields, "sequence_number": self.moved(number)})).raw


def _is_plain(raw: bytes) -> bool:
    """Whether the number is where the key is, and the key as it is mostly written."""
    return raw.count(_KEY) <= 1 and _ESCAPE.search(raw) is None


def _events(raw: bytes) -> list[SseEvent]:
    """The events of a piece, the last one of a stream that breaks off in it too."""
    events = split(raw)
    rest = raw[sum(len(event.raw) for event in events) :]
    return [*events, SseEvent(rest)] if rest else events
