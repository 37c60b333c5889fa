"""The chunks of one streamed reply, whatever frames them: which leave as they came, and what becomes of the others.

Knows: what a chunk says of the reply. Does not know: events, arrays, sockets, why a call is refused.
"""

import re
from collections.abc import Generator, Iterator
from typing import TypeAlias

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import Answer, Dropped, ProposedCall, RoundOver, Unreadable
from interpose.gateway.bodies import RawObject, object_of, open_body, read_in_one_way, refuse_hidden
from interpose.gateway.gemini.candidates import Candidates, judged_chunk
from interpose.gateway.gemini.earlier import Earlier, without_end
from interpose.gateway.gemini.message import chunks_of, text_chunk
from interpose.gateway.gemini.parts import HARMLESS, ONE_TEXT, OTHER_CANDIDATE
from interpose.gateway.shapes import refuse_foreign
from interpose.gateway.streaming import Out, left
from interpose.wire.jsonbytes import read_json, write_as_read, write_json

Judging: TypeAlias = Generator[ProposedCall | bytes, Answer, bytes | None]


class _Content(msgspec.Struct):
    parts: list[dict[str, msgspec.Raw]] | None = None


class _Candidate(msgspec.Struct):
    content: _Content | None = None
    index: int | None = None
    finish: Json = msgspec.field(default=None, name="finishReason")


class _Chunk(msgspec.Struct):
    candidates: list[_Candidate] | None = None
    error: Json = None


_CALL = re.compile(rb"parts|[cC]all|\\u00[2-7]")
"""In a chunk that cannot be read: a call may stand in it; an escape may hide that."""

_CHUNK = msgspec.json.Decoder(_Chunk)


def closes(chunk: JsonObject) -> bool:
    """Whether a client needs this chunk to know that the reply is over."""
    candidates = chunk.get("candidates")
    given = candidates if isinstance(candidates, list) else []
    is_ended = any(isinstance(candidate, dict) and candidate.get("finishReason") for candidate in given)
    return is_ended or "error" in chunk or "promptFeedback" in chunk


class Chunks:
    """What all chunks of one reply of the client's are judged by.

    Attributes:
        is_ending: whether the model's present reply told why it stopped: what comes then waits for its end.
        is_broken: whether the provider told an error.
        is_unread: whether a chunk was not let through, since it cannot be read, whatever it says of the end.
    """

    def __init__(self) -> None:
        self.is_ending = False
        self.is_broken = False
        self.is_unread = False
        self._candidates = Candidates()
        self._reason: str | None = None
        self._earlier: Earlier | None = None
        self._is_idle = True
        """Whether a text may pass unread."""

    @property
    def is_over(self) -> bool:
        """Whether the client knows how the reply ended."""
        return self.is_ending or self.is_broken

    @property
    def is_holding(self) -> bool:
        """Whether pieces of a call wait for the rest of it."""
        return self._candidates.is_holding

    def passes(self, raw: bytes) -> bool:
        """Whether a chunk, or what stands around it, is one text that need not be read."""
        if not self._is_idle or raw.count(b'"parts"') != 1 or _matters(raw):
            return False
        found = ONE_TEXT.search(raw)
        if found is None or OTHER_CANDIDATE.search(raw) is not None:
            return False
        if found["text"] and found["thought"] is None:
            self._candidates.at(0).has_text = True
        return True

    def judged(self, data: bytes, out: Out) -> Judging:
        """The chunk as it may leave, None when that is as it came; `out` leaves before anything is asked."""
        if self.passes(data):
            return None
        try:
            return (yield from self._read(data, out))
        except Unreadable:
            self.is_unread = True
            yield from left(out)
            raise

    def _read(self, data: bytes, out: Out) -> Judging:
        yield from read_in_one_way(data, out, arguments="args")
        chunk = _decoded(data)
        if chunk is not None and chunk.candidates is None:
            refuse_foreign("gemini", object_of(data))
        is_holding = self._candidates.is_holding
        is_plain = self._is_idle and not is_holding and chunk is not None and _is_plain(chunk)
        fields = None if is_plain else fields_of(data)
        if not is_plain and fields is None:
            refuse_hidden(data, _CALL)
        if chunk is not None:
            self._note(chunk, is_plain=is_plain)
        elif fields is not None:
            self.is_ending = self.is_ending or b"finishReason" in data
        changed = None if fields is None else (yield from self._judged(fields, out))
        self._is_idle = not self.is_ending and self._earlier is None and not self._candidates.is_parting
        return changed

    def dropped(self, reason: str) -> Iterator[Dropped]:
        """Lets go of the calls that will never be complete."""
        return self._candidates.dropped(reason)

    def over(self, raw: bytes) -> RoundOver:
        """The end of the model's reply; `raw` is all of it."""
        return self._candidates.over(raw, self._reason)

    def left_of(self, data: bytes | None) -> bytes | None:
        """What of a chunk at the end is told when another reply follows; None when that is nothing."""
        fields = fields_of(data) if data is not None else None
        kept = without_end(fields) if fields is not None else None
        return None if kept is None else write_json(kept)

    def begin_next(self, raw: bytes) -> None:
        """Another reply of the model follows on the one that was `raw`."""
        self._earlier = (self._earlier or Earlier()).after(chunks_of(raw))
        self._candidates.begin_next()
        self._reason = None
        self.is_ending = self._is_idle = False

    def note(self, line: str) -> bytes:
        """A chunk that tells a line of ours ahead of the next reply."""
        head: JsonObject = self._earlier.head if self._earlier is not None else {}
        return write_json({**text_chunk(self._candidates.at(0).tell(line)), **head})

    def _judged(self, fields: RawObject, out: Out) -> Judging:
        yield from left(out)
        changed = yield from judged_chunk(fields, self._candidates)
        if self._earlier is not None:
            return write_json(self._earlier.told(fields if changed is None else changed))
        return None if changed is None else write_json(changed)

    def _note(self, chunk: _Chunk, *, is_plain: bool) -> None:
        self.is_broken = self.is_broken or chunk.error is not None
        for place, candidate in enumerate(chunk.candidates or ()):
            known = self._candidates.at(candidate.index, place)
            if is_plain:
                known.has_text = known.has_text or any(_has_text(part) for part in _parts(candidate))
            if candidate.finish is not None:
                self.is_ending = True
                self._reason = candidate.finish if isinstance(candidate.finish, str) else None


def fields_of(data: bytes) -> RawObject | None:
    """The members of a chunk, read as its most lenient reader would; None when it is no object."""
    try:
        return open_body(data, arguments="args")
    except Unreadable:
        pass
    try:
        value = read_json(data)
    except ValueError:
        return None
    return open_body(write_as_read(value)) if isinstance(value, dict) else None


def _matters(raw: bytes) -> bool:
    """Whether a chunk is read all the same; an escape may hide anything."""
    if raw.find(b"\\u") >= 0 or raw.find(b'"error"') >= 0 or raw.find(b'"finish') >= 0:
        return True
    return raw.find(b'"response"') >= 0  # a chunk in another one's shape


def _decoded(data: bytes) -> _Chunk | None:
    try:
        return _CHUNK.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_plain(chunk: _Chunk) -> bool:
    return all(part.keys() <= HARMLESS for candidate in chunk.candidates or () for part in _parts(candidate))


def _parts(candidate: _Candidate) -> list[dict[str, msgspec.Raw]]:
    return (candidate.content.parts if candidate.content is not None else None) or []


def _has_text(part: dict[str, msgspec.Raw]) -> bool:
    return bytes(part.get("text", b'""')) not in (b'""', b"null") and bytes(part.get("thought", b"")) != b"true"
