"""The texts of a streamed reply, for whoever reads all of them at its end.

Knows: bytes that repeat. Does not know: any API.
"""

import re
from itertools import islice
from typing import NamedTuple

from interpose.contracts.json import Json
from interpose.wire.jsonbytes import read_json

STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
"""A pattern of a JSON string."""

_RUN_MIN = 8
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n")


class Told(NamedTuple):
    """What a stream tells.

    Attributes:
        texts: the values that were found, in order; None where they cannot be read.
        rest: the stream without most of them; what is around those stands in it once.
    """

    texts: list[Json] | None
    rest: bytes


class _Run(NamedTuple):
    """Texts that nothing but the same bytes part, as they are written, and the stream before and behind them."""

    before: bytes
    texts: list[bytes]
    behind: bytes


def told(raw: bytes, text: re.Pattern[bytes]) -> Told:
    """The texts of a stream: what `text` finds, whose group 1 is a JSON value and its end.

    Quick where nothing but the same bytes stand between most of the texts: they are nearly all of a stream, and are
    not looked at text by text.
    """
    run = _run(raw, text)
    if run is not None:
        before, behind = text.findall(run.before), text.findall(run.behind)
        inner = b'"' + b'","'.join(run.texts) + b'"'
        texts = _values([*before, inner, *behind])
        # One more or less, and what was taken for a text is not one.
        if texts is not None and len(texts) == len(before) + len(run.texts) + len(behind):
            return Told(texts, run.before + run.behind)
    return Told(_values(text.findall(raw)), raw)


def _run(raw: bytes, text: re.Pattern[bytes]) -> _Run | None:
    shown = list(islice(text.finditer(raw), 1, 3))  # the first text may be told otherwise
    if len(shown) < 2 or not all(one[1] and one[1].startswith(b'"') for one in shown):
        return None
    one, next_one = shown
    start = one.end() - 1
    seam = raw[start : next_one.start(1) + 1]
    opening = raw[next_one.start() : next_one.start(1) + 1]
    seams = raw.count(seam, start)
    if seams < _RUN_MIN or b"\\" in seam or not any(end in seam for end in _EVENT_ENDS):
        return None

    last = raw.rfind(seam)
    pieces = raw[start + len(seam) : last].split(opening)
    if len(pieces) != seams - 1:
        return None
    closing = len(seam) - len(opening)
    last_text = pieces.pop()
    texts = [piece[:-closing] for piece in pieces]
    texts.append(last_text)
    return _Run(raw[: start + 1], texts, raw[last + 1 :])


def _values(written: list[bytes]) -> list[Json] | None:
    if b"" in written:
        return None
    try:
        values: Json = read_json(b"[" + b",".join(written) + b"]")
    except ValueError:
        return None
    return values if isinstance(values, list) else None
