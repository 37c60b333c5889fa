"""A streamed reply of Gemini: a call comes whole in its chunk, so a chunk waits for its own verdicts only.

Knows: chunks as server-sent events, and as items of one array. Does not know: sockets, why a call is refused.
"""

import re
from collections.abc import Generator
from typing import TypeAlias

import msgspec

from interpose.contracts.json import Json
from interpose.contracts.verdict import Verdict
from interpose.gateway.api import CUT_SHORT, ProposedCall, Steps, Unreadable
from interpose.gateway.bodies import RawObject, open_body, read_in_one_way
from interpose.gateway.faults import error_body, error_event
from interpose.gateway.gemini.parts import HARMLESS
from interpose.gateway.gemini.reply import Candidates, judged_chunk
from interpose.wire.jsonarray import ArrayReader
from interpose.wire.jsonbytes import read_json, write_json
from interpose.wire.sse import SseEvent, SseReader

_ONE_TEXT = re.compile(
    rb'"parts"\s*:\s*\[\s*\{\s*"text"\s*:\s*"(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)"\s*'
    rb'(?P<thought>,\s*"thought"\s*:\s*true\s*)?(?:,\s*"thoughtSignature"\s*:\s*"[^"\\]*"\s*)?\}\s*\]'
)
"""The parts of a chunk that says one text and nothing else."""

_MATTERS = (b"\\u", b'"error"', b'"finish')
"""Bytes for which a chunk is read all the same; an escape may hide any of them."""

_OTHER_CANDIDATE = re.compile(rb'"index"\s*:\s*[^0\s]')
_BLANK = b"\xef\xbb\xbf \t\r\n"
_Out: TypeAlias = list[bytes]
_Judging: TypeAlias = Generator[ProposedCall | bytes, Verdict | None, bytes | None]


class _Content(msgspec.Struct):
    parts: list[dict[str, msgspec.Raw]] | None = None


class _Candidate(msgspec.Struct):
    content: _Content | None = None
    index: int = 0
    finish: Json = msgspec.field(default=None, name="finishReason")


class _Chunk(msgspec.Struct):
    candidates: list[_Candidate] | None = None
    error: Json = None


_CHUNK = msgspec.json.Decoder(_Chunk)


class GeminiStream:
    """The port `ReplyStream`. The first byte that is not blank tells events from an array."""

    def __init__(self) -> None:
        self._blank = b""
        self._form: _Events | _Array | None = None

    def feed(self, data: bytes) -> Steps:
        """What `data` makes possible. Raises EventTooLong or ItemTooLong when a chunk does not end."""
        if self._form is None:
            data = self._blank + data
            start = data.lstrip(_BLANK)
            if not start:
                self._blank = data
                return
            self._form = _Array() if start.startswith(b"[") else _Events()
        yield from self._form.feed(data)

    def finish(self, fault: str | None = None) -> Steps:
        """The end of the stream; a fault before the model was finished is told as an error in the API's shape."""
        if self._form is None:
            self._form = _Events()
            yield from self._form.feed(self._blank)
        yield from self._form.finish(fault)


class _Chunks:
    """What all chunks of one reply are judged by."""

    def __init__(self) -> None:
        self._candidates = Candidates()
        self.is_over = False

    def judged(self, data: bytes, out: _Out) -> _Judging:
        """The chunk as it may leave, None when that is as it came; `out` leaves before anything is asked."""
        if self.passes(data):
            return None
        yield from read_in_one_way(data, out, arguments="args")
        try:
            chunk = _CHUNK.decode(data)
        except (msgspec.DecodeError, RecursionError):
            chunk = None
        if chunk is not None:
            self._note(chunk)
            if _is_plain(chunk):
                return None
        fields = _fields(data)
        if fields is None:
            return None
        if out:
            yield b"".join(out)
            out.clear()
        changed = yield from judged_chunk(fields, self._candidates)
        return None if changed is None else write_json(changed)

    def passes(self, raw: bytes) -> bool:
        """Whether a chunk, or what stands around it, is one text that need not be read."""
        if any(mark in raw for mark in _MATTERS) or raw.count(b'"parts"') != 1:
            return False
        found = _ONE_TEXT.search(raw)
        if found is None or _OTHER_CANDIDATE.search(raw) is not None:
            return False
        if found["text"] and found["thought"] is None:
            self._candidates.at(0).has_text = True
        return True

    def _note(self, chunk: _Chunk) -> None:
        self.is_over = self.is_over or chunk.error is not None
        for candidate in chunk.candidates or ():
            self.is_over = self.is_over or candidate.finish is not None
            if _is_plain(chunk) and any(_has_text(part) for part in _parts(candidate)):
                self._candidates.at(candidate.index).has_text = True


class _Events:
    """Chunks as server-sent events."""

    def __init__(self) -> None:
        self._reader = SseReader()
        self._chunks = _Chunks()
        self._last = b"\r\n"

    def feed(self, data: bytes) -> Steps:
        block = self._reader.take(data)
        self._last = block or self._last
        if self._chunks.passes(block):
            yield block
            return
        out: _Out = []
        for event in self._reader.split(block):
            yield from self._take(event, out)
        if out:
            yield b"".join(out)

    def finish(self, fault: str | None) -> Steps:
        out: _Out = []
        events, rest = self._reader.finish()
        for event in [*events, SseEvent(rest, self._reader.opens)] if rest and fault is None else events:
            yield from self._take(event, out)
        if fault is not None and not self._chunks.is_over:
            out.append(error_event("gemini", fault, SseEvent(self._last).newline))
        if out:
            yield b"".join(out)

    def _take(self, event: SseEvent, out: _Out) -> Steps:
        if self._chunks.passes(event.raw):
            out.append(event.raw)
            return
        data = event.data
        changed = (yield from self._chunks.judged(data, out)) if data is not None else None
        out.append(event.raw if changed is None else event.with_data(changed).raw)


class _Array:
    """Chunks as the items of one array."""

    def __init__(self) -> None:
        self._reader = ArrayReader()
        self._chunks = _Chunks()
        self._wants_comma = False

    def feed(self, data: bytes) -> Steps:
        out: _Out = []
        for piece in self._reader.feed(data):
            changed = (yield from self._chunks.judged(piece.raw, out)) if piece.is_item else None
            self._wants_comma = piece.is_item or (self._wants_comma and b"," not in piece.raw)
            out.append(piece.raw if changed is None else changed)
        if out:
            yield b"".join(out)

    def finish(self, fault: str | None) -> Steps:
        """An item that is not complete is nothing to anybody who reads arrays, and is left out."""
        self._reader.finish()
        if self._reader.is_over or (fault is None and self._chunks.is_over):
            return
        separator = b",\r\n" if self._wants_comma else b""
        yield separator + error_body("gemini", 502, fault or CUT_SHORT) + b"]"


def _is_plain(chunk: _Chunk) -> bool:
    return all(part.keys() <= HARMLESS for candidate in chunk.candidates or () for part in _parts(candidate))


def _parts(candidate: _Candidate) -> list[dict[str, msgspec.Raw]]:
    return (candidate.content.parts if candidate.content is not None else None) or []


def _has_text(part: dict[str, msgspec.Raw]) -> bool:
    return bytes(part.get("text", b'""')) not in (b'""', b"null") and bytes(part.get("thought", b"")) != b"true"


def _fields(data: bytes) -> RawObject | None:
    """The members of a chunk, read as its most lenient reader would; None when it is no object."""
    try:
        return open_body(data, arguments="args")
    except Unreadable:
        pass
    try:
        value = read_json(data)
    except ValueError:
        return None
    return open_body(write_json(value)) if isinstance(value, dict) else None
