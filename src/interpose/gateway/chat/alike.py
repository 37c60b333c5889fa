"""Chunks that are one another's but for a piece of a call: thousands follow each other, and few must be read.

Knows: how a chunk with one piece is written. Does not know: what else chunks say, the order of them.
"""

import re
from collections.abc import Mapping

import msgspec

from interpose.contracts.json import Json
from interpose.gateway.chat.choice import Choice, PartialCall
from interpose.gateway.proposed import place_of
from interpose.gateway.runs import STRING
from interpose.wire.sse import SseEvent

_PIECE = re.compile(rb'"arguments"\s*:\s*(' + STRING + rb")")
_TEXT = msgspec.json.Decoder(str)


class Alike:
    """One chunk that was read, for those behind it that differ in their piece only. Not for several threads."""

    __slots__ = ("_before", "_behind", "_call", "choice")

    def __init__(self, choice: Choice, call: PartialCall, before: bytes, behind: bytes) -> None:
        """`before` and `behind` are the bytes around the piece, its quotes among them."""
        self.choice = choice
        self._call = call
        self._before = before
        self._behind = behind

    def takes(self, event: SseEvent) -> bool:
        """Whether it is such a chunk; its piece is then kept with its call, and the bytes with the choice."""
        raw = event.raw
        before, behind = self._before, self._behind
        if not raw.startswith(before) or not raw.endswith(behind) or len(raw) < len(before) + len(behind):
            return False
        try:
            piece = _TEXT.decode(raw[len(before) - 1 : len(raw) - len(behind) + 1])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return False
        self._call.pieces.append(piece)
        self.choice.raw += raw
        return True


def alike(event: SseEvent, delta: Json, choice: Choice) -> Alike | None:
    """What is known from a chunk that was read; None where it says more than one piece of one call."""
    match delta:
        case {"tool_calls": [{"index": int() as index, "function": {"arguments": str() as piece, **named}, **other}]}:
            pass
        case _:
            return None
    call = next((call for call in reversed(choice.calls) if call.index == place_of(index)), None)
    found = list(_PIECE.finditer(event.raw))
    if call is None or len(delta) > 1 or len(found) != 1 or not _says_nothing(named, other, call):
        return None
    written = found[0]
    try:
        if _TEXT.decode(written[1]) != piece:
            return None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return Alike(choice, call, event.raw[: written.start(1) + 1], event.raw[written.end(1) - 1 :])


def _says_nothing(named: Mapping[object, Json], other: Mapping[object, Json], call: PartialCall) -> bool:
    """Whether the members beside the piece may be said again and again: they are empty, or known already."""
    is_known = all(value is None or value == call.entry.get(str(name)) for name, value in other.items())
    return is_known and not any(named.values())
