"""The traffic as handlers of the `llm.*` stages see and change it, before the lens looks at what is left of it.

A reply's text is held only for a handler that may cancel or change the whole of it; everybody else is told of it when
it has passed.
Knows: which bytes make an event or a whole reply. Does not know: any API's shape, order of rounds, sockets.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.stages import LlmChunk, LlmRequest, LlmResponse
from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.api import BEHIND_ARRAY, Codec, Unreadable
from interpose.gateway.judging import Judging
from interpose.gateway.transcript import Transcript
from interpose.gateway.upstream import UpstreamDown
from interpose.gateway.wording import refusal_line
from interpose.wire.jsonarray import ArrayReader
from interpose.wire.jsonbytes import read_json, write_json
from interpose.wire.sse import SseEvent, SseReader

Chunks = AsyncIterator[bytes | UpstreamDown]

_UNREADABLE = Refusal("interpose", "it cannot be read as a whole, and a handler is to see it first")


@dataclass(frozen=True, slots=True)
class Shaping:
    """What the handlers of one workspace make of one exchange's traffic. Used by that exchange's task only."""

    codec: Codec
    judging: Judging

    @property
    def holds(self) -> bool:
        """Whether a streamed reply is held until it is complete."""
        return self.judging.policy.changes("llm.response")

    async def request(self, body: bytes) -> bytes | Refusal:
        """The body as the handlers leave it, its own bytes where nobody changed it; why it is not sent."""
        if not self.judging.policy.wants("llm.request"):
            return body
        value = _object(body)
        if value is None:
            return body
        verdict = await self.judging.traffic(LlmRequest(self.judging.context, self.codec.api, value))
        if not verdict.allowed:
            return verdict.refusal or _UNREADABLE
        return body if verdict.body is None else write_json(verdict.body)

    def streamed(self, chunks: Chunks, status: int) -> Chunks:
        """A streamed reply as the handlers leave it, event by event, and whole where it is held."""
        policy = self.judging.policy
        if policy.wants("llm.chunk"):
            chunks = self._each(chunks)
        if policy.changes("llm.response"):
            return self._held(chunks, status)
        if policy.wants("llm.response"):
            return self._watched(chunks, status)
        return chunks

    def whole(self, chunks: Chunks, status: int) -> Chunks:
        """A reply that is not streamed as the handlers leave it."""
        return self._held_body(chunks, status) if self.judging.policy.wants("llm.response") else chunks

    async def _each(self, chunks: Chunks) -> Chunks:
        pieces: _Events | _Items | None = None
        async for chunk in chunks:
            if isinstance(chunk, UpstreamDown):
                yield chunk
                return
            if pieces is None:
                is_array = self.codec.streams_arrays and chunk.lstrip().startswith(b"[")
                pieces = _Items() if is_array else _Events()
            yield await self._judged(pieces, pieces.feed(chunk))
        if pieces is not None:
            yield await self._judged(pieces, pieces.finish())

    async def _judged(self, pieces: "_Events | _Items", found: "list[_Piece]") -> bytes:
        out: list[bytes] = []
        for piece in found:
            value = _json(piece.data)
            if value is None:
                out.append(pieces.kept(piece))
                continue
            point = LlmChunk(self.judging.context, self.codec.api, pieces.count, piece.name, value)
            pieces.count += 1
            verdict = await self.judging.traffic(point)
            if not verdict.allowed and not self.codec.closes(value):
                continue
            if not verdict.allowed:
                self.judging.kept(verdict)
            out.append(pieces.kept(piece) if verdict.body is None else pieces.changed(piece, write_json(verdict.body)))
        return b"".join(out)

    async def _held(self, chunks: Chunks, status: int) -> Chunks:
        """All of the reply at its end. One that broke off is nothing but that."""
        transcript = Transcript()
        async for chunk in chunks:
            if isinstance(chunk, UpstreamDown):
                yield chunk
                return
            transcript.add(chunk)
        raw = transcript.taken()
        is_array = self.codec.streams_arrays and raw.lstrip().startswith(b"[")
        body = self.codec.shown(_as_events(raw) if is_array else raw)
        verdict = await self._whole_verdict(body, status, streamed=True)
        told = self._told(verdict)
        if told is None:
            yield raw
            return
        yield write_json([told]) if is_array else self.codec.as_stream(told)

    async def _watched(self, chunks: Chunks, status: int) -> Chunks:
        """The reply as it comes; whoever only looks at it is told when it has passed."""
        transcript = Transcript()
        async for chunk in chunks:
            yield chunk
            if isinstance(chunk, UpstreamDown):
                return
            transcript.add(chunk)
        raw = transcript.taken()
        is_array = self.codec.streams_arrays and raw.lstrip().startswith(b"[")
        body = self.codec.shown(_as_events(raw) if is_array else raw)
        if body is not None:
            await self._whole_verdict(body, status, streamed=True)

    async def _held_body(self, chunks: Chunks, status: int) -> Chunks:
        pieces: list[bytes] = []
        async for chunk in chunks:
            if isinstance(chunk, UpstreamDown):
                yield chunk
                return
            pieces.append(chunk)
        raw = b"".join(pieces)
        told = self._told(await self._whole_verdict(_object(raw), status, streamed=False))
        yield raw if told is None else write_json(told)

    async def _whole_verdict(self, body: JsonObject | None, status: int, *, streamed: bool) -> Verdict:
        """The verdict on a whole reply. What cannot be read is refused, where a handler has the right to."""
        if body is None:
            if self.judging.policy.changes("llm.response"):
                return self.judging.unreadable("llm.response", _UNREADABLE)
            return Verdict(action="", stage="llm.response", outcome="allowed")
        return await self.judging.traffic(
            LlmResponse(self.judging.context, self.codec.api, status, body, streamed=streamed)
        )

    def _told(self, verdict: Verdict) -> JsonObject | None:
        """The reply in the place of the model's; None when that is let go as it is."""
        if not verdict.allowed:
            line = refusal_line("the reply", verdict.refusal or _UNREADABLE)
            return self.codec.said(line, self.judging.context.model)
        body: Json = verdict.body
        return body if isinstance(body, dict) else None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a stream: an event, an item, or what is left at its end; `data` is None where nobody reads it."""

    raw: bytes
    data: bytes | None = None
    name: str | None = None
    event: SseEvent | None = None


class _Events:
    """A stream of server-sent events."""

    def __init__(self) -> None:
        self.count = 0
        self._reader = SseReader()

    def feed(self, data: bytes) -> list[_Piece]:
        return [_piece(event) for event in self._reader.split(self._reader.take(data))]

    def finish(self) -> list[_Piece]:
        events, rest = self._reader.finish()
        return [*(_piece(event) for event in events), *([_Piece(rest)] if rest else [])]

    def kept(self, piece: _Piece) -> bytes:
        return piece.raw

    def changed(self, piece: _Piece, data: bytes) -> bytes:
        return piece.event.with_data(data).raw if piece.event is not None else piece.raw


class _Items:
    """A stream that is one array. What stands between its items is made anew, since any of them may be dropped."""

    def __init__(self) -> None:
        self.count = 0
        self._reader = ArrayReader()
        self._has_item = False

    def feed(self, data: bytes) -> list[_Piece]:
        pieces = [_Piece(piece.raw, piece.raw) for piece in self._reader.feed(data) if piece.is_item]
        if self._reader.has_more:
            raise Unreadable(BEHIND_ARRAY)
        return pieces

    def finish(self) -> list[_Piece]:
        self._reader.finish()
        return [_Piece(b"]" if self._has_item else b"[]")] if self._reader.is_over else []

    def kept(self, piece: _Piece) -> bytes:
        return piece.raw if piece.data is None else self.changed(piece, piece.raw)

    def changed(self, _piece: _Piece, data: bytes) -> bytes:
        separator = b",\r\n" if self._has_item else b"["
        self._has_item = True
        return separator + data


def _piece(event: SseEvent) -> _Piece:
    name = event.name
    return _Piece(event.raw, event.data, None if name == "message" else name, event)


def _as_events(array: bytes) -> bytes:
    """The items of an array as events, for who reads only those."""
    try:
        items: Json = read_json(array)
    except ValueError:
        return b""
    return b"".join(SseEvent.build(None, write_json(item)).raw for item in items if isinstance(item, dict))


def _json(data: bytes | None) -> Json:
    """The value of an event that is an object; None for every other, which nobody is asked about."""
    if data is None or not data.lstrip().startswith(b"{"):
        return None
    return _object(data)


def _object(body: bytes) -> JsonObject | None:
    try:
        value: Json = read_json(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
