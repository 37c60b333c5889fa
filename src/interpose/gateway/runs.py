"""Runs of events that differ in their text only: nearly all of a stream, and not looked at one by one.

Knows: bytes that repeat, JSON strings. Does not know: any API.
"""

import re
from collections.abc import Callable, Iterable
from itertools import groupby, islice, repeat
from typing import Final, NamedTuple, TypeAlias

import msgspec

from interpose.wire.jsonbytes import read_json

STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
"""A pattern of a JSON string."""

Part: TypeAlias = bytes | str
"""A part of a stream: its bytes, or what they tell where that was read while they passed."""

RUN_BYTES_MIN: Final = 4_096
"""In fewer bytes there are too few events for a run to be of use."""

_DATA = b"data:"
_EVENT_END = b"\n\n"
_INNER = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*')
_KEY_LETTER = re.compile(rb"\\u00[4-7]")
_TEXT = msgspec.json.Decoder(str)
_TEXTS = msgspec.json.Decoder(list[str])


class Text(NamedTuple):
    """How an API writes texts.

    Attributes:
        pattern: finds one: group 1 is what it is called, and group 2 its JSON string.
        name: what it is called where it is for the person.
        place: finds one that is for the person where it belongs: its only group is its JSON value, empty where it is
            none that can be read so.
        key: what stands once in each that is for the person; one that `place` does not find is somewhere else.
        hides: whether these bytes may tell the person something that `place` does not find.
    """

    pattern: re.Pattern[bytes]
    name: bytes
    place: re.Pattern[bytes]
    key: bytes
    hides: Callable[[bytes], bool]


class Alike(NamedTuple):
    """The events from `start` to `end` of a block are alike, and tell `text` together."""

    start: int
    end: int
    text: str


class Run:
    """What is around the texts of events that are alike. Keeps no state.

    Attributes:
        sample: such an event, with an empty text.
        is_told: whether its texts are for the person.
    """

    __slots__ = ("_closing", "_head", "_opening", "_seam", "_tail", "is_told", "sample")

    def __init__(self, head: bytes, tail: bytes, opening: bytes, *, is_told: bool) -> None:
        """`head` and `tail` are an event around its text, the quotes with them; `opening` ends the head."""
        self._head = head
        self._tail = tail
        self._seam = tail + head
        self._opening = opening
        self._closing = self._seam.removesuffix(opening)
        self.sample = head + tail
        self.is_told = is_told

    def within(self, block: bytes) -> Alike | None:
        """The part of whole events that are alike; None where there is hardly any, or something else is in it."""
        head, tail, seam = self._head, self._tail, self._seam
        start = 0 if block.startswith(head) else block.find(seam) + len(tail)
        end = len(block) if block.endswith(tail) else block.rfind(seam) + len(tail)
        if end < start + len(seam) or not block.startswith(head, start):  # also where there is no seam
            return None

        body = block[start + len(head) : end - len(tail)]
        *pieces, last = body.split(self._opening)
        texts = [*map(bytes.removesuffix, pieces, repeat(self._closing)), last]
        joined = b"".join(texts)
        if len(joined) != len(body) - len(pieces) * len(seam):  # something else stood before an opening
            return None
        text = _together(texts, joined)
        return None if text is None else Alike(start, end, text)


def learned(block: bytes, text: Text) -> Run | None:
    """The run that a block begins; None where its first texts show none."""
    shown = list(islice(text.pattern.finditer(block), 1, 3))  # the first event may have more in it
    if len(shown) < 2:
        return None
    one, after = shown
    seam = block[one.end() - 1 : after.start(2) + 1]
    opening = block[after.start() : after.start(2) + 1]
    tail, end, head = seam.partition(_EVENT_END)
    if not end or _EVENT_END in head or b"\r" in seam or b"\\" in seam or one[1] != after[1]:
        return None
    sample = head + tail + end
    is_told = after[1] == text.name
    if sample.count(text.key) != is_told or (is_told and text.place.match(sample, sample.find(_DATA)) is None):
        return None
    return None if text.hides(sample) else Run(head, tail + end, opening, is_told=is_told)


def hides_letter(raw: bytes) -> bool:
    """Whether a letter of a key may be written as an escape; signs and umlauts, which some servers escape, are none."""
    escape = raw.find(b"\\")  # one byte is found ten times as fast as more of them
    return escape >= 0 and _KEY_LETTER.search(raw, escape) is not None


def told(parts: Iterable[Part], text: Text) -> list[str] | None:
    """The texts of a stream for the person, those that were read while they passed and those in its bytes, in order.

    None where a quick look may miss one, or take something else for one.
    """
    texts: list[str] = []
    rest: list[bytes] = []
    for kind, some in groupby(parts, type):
        if kind is str:
            texts += [part for part in some if isinstance(part, str)]
            continue
        raw = b"".join(part for part in some if isinstance(part, bytes))
        run = learned(raw, text) if len(raw) >= RUN_BYTES_MIN else None
        alike = run.within(raw) if run is not None and run.is_told else None
        pieces = (raw,) if alike is None else (raw[: alike.start], alike.text, raw[alike.end :])
        for piece in pieces:
            if isinstance(piece, str):
                texts.append(piece)
                continue
            rest.append(piece)
            expected = piece.count(text.key)
            if not expected:
                continue
            written = text.place.findall(piece)
            values = _values(written) if len(written) == expected else None
            if values is None:
                return None
            texts += values
    return None if text.hides(b"".join(rest)) else texts


def _values(written: list[bytes]) -> list[str] | None:
    if b"" in written:
        return None
    try:
        values: list[str | None] = read_json(b"[" + b",".join(written) + b"]")
    except ValueError:
        return None
    return [value for value in values if value is not None]


def _together(texts: list[bytes], joined: bytes) -> str | None:
    """What the texts say, one behind the other; None where one of them is more than a text, or less."""
    try:
        if joined.isascii() and joined.find(b"\\") < 0:  # nothing of one can be made whole by the next
            return _TEXT.decode(b'"%b"' % joined)
        # A backslash at the end of one would make the next one a part of it.
        if not all(map(_INNER.fullmatch, [one for one in texts if b"\\" in one])):
            return None
        values = _TEXTS.decode(b'["%b"]' % b'","'.join(texts))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return "".join(values) if len(values) == len(texts) else None
