"""A streamed reply of Gemini: a call comes whole in its chunk, so a chunk waits for its own verdicts only.

Knows: chunks as server-sent events, and as items of one array. Does not know: what chunks say, sockets.
"""

import re
from collections.abc import Generator, Iterator

from interpose.gateway.api import (
    BEHIND_ARRAY,
    CUT_SHORT,
    CUT_SHORT_TOLD,
    UNENDED_TOLD,
    Answer,
    Onward,
    Step,
    Steps,
    Unreadable,
    steps_of,
)
from interpose.gateway.bodies import object_of
from interpose.gateway.faults import error_body, error_event
from interpose.gateway.gemini.chunks import Chunks
from interpose.gateway.gemini.message import BLANK
from interpose.gateway.streaming import EventStream, Out, left
from interpose.gateway.transcript import Transcript
from interpose.wire.jsonarray import ArrayReader, Piece
from interpose.wire.sse import SseEvent

_FIELDS = re.compile(rb"(?:data|event|id|retry)(?::|$)|:")
"""How a line begins that no client takes for anything but a field or a comment."""

_PLAIN = re.compile(rb"data:[^\r\n]*+(?:\r\n|\n){2}")
"""How nearly all events look."""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")


class GeminiStream:
    """The port `ReplyStream`. The first byte that is not blank tells events from an array.

    The chunk that says why the model stopped, and what is behind it, waits for the end of the model's bytes: another
    reply may follow in its place.
    """

    def __init__(self) -> None:
        self._blank = b""
        self._form: _Events | _Array | None = None

    def feed(self, data: bytes) -> bytes | Steps:
        """What `data` makes possible. Raises EventTooLong or ItemTooLong when a chunk does not end."""
        if self._form is None:
            data = self._blank + data
            start = data.lstrip(BLANK)
            if not start:
                self._blank = data
                return b""
            self._form = _Array() if start.startswith(b"[") else _Events()
        return self._form.feed(data)

    def finish(self, fault: str | None = None) -> Steps:
        """The end of the stream; a fault before the model was finished is told as an error in the API's shape."""
        if self._form is None:
            self._form = _Events()
            yield from steps_of(self._form.feed(self._blank))
        yield from self._form.finish(fault)

    @property
    def is_ended(self) -> bool:
        """As the port says: a candidate told why it is finished, or there was an error."""
        return self._form is not None and self._form.is_ended


class _Events(EventStream):
    """Chunks as server-sent events."""

    def __init__(self) -> None:
        super().__init__()
        self._chunks = Chunks()
        self._tail: list[SseEvent] = []

    @property
    def is_ended(self) -> bool:
        return self._chunks.is_over

    def _ended(self, fault: str | None, out: Out) -> Steps:
        lost = list(self._chunks.dropped(fault or CUT_SHORT))
        yield from lost
        fault = fault or (CUT_SHORT_TOLD if lost else None)
        may_go_on = fault is None and not self._chunks.is_broken
        if may_go_on and (yield from self._goes_on(out)):
            return
        out += [event.raw for event in self._tail]
        self._tail = []
        if fault is not None and (self._chunks.is_unread or not self._chunks.is_over):
            out.append(error_event("gemini", fault, self._newline))

    @property
    def _newline(self) -> bytes:
        return SseEvent(self._last or b"\r\n").newline

    def _is_holding(self) -> bool:
        return self._chunks.is_holding

    def _first_mark(self, raw: bytes) -> int:
        return -1 if self._chunks.passes(raw) else 0

    def _bears_cut(self, raw: bytes) -> bool:  # noqa: ARG002 - clients say themselves that they cannot read it
        return not self._chunks.is_over

    def _pass_cut(self, event: SseEvent, out: Out) -> None:
        if self._tail:
            self._tail.append(event)
            return
        out.append(event.raw)

    def _said(self, event: SseEvent) -> bytes | None:
        return event.data if event.data is not None else _bare(event)

    def _take(self, event: SseEvent, out: Out) -> Steps:
        if _has_stray_json(event):
            yield from self._take_bare(event, out)
            return
        data = event.data
        changed = (yield from self._chunks.judged(data, out)) if data is not None else None
        told = event if changed is None else event.with_data(changed)
        if self._chunks.is_ending:
            self._tail.append(told)
            return
        out.append(told.raw)

    def _take_bare(self, event: SseEvent, out: Out) -> Iterator[bytes]:
        """JSON that stands in no field: Google tells errors so, and its clients read it as any other chunk."""
        said = object_of(_bare(event))
        if event.data is None and said.get("error") is not None and "candidates" not in said:
            self._chunks.is_broken = True
            out.append(event.raw)
            return
        self._chunks.is_unread = True
        yield from left(out)
        raise Unreadable("it has JSON in a line without `data:`, which some clients read and others do not")

    def _goes_on(self, out: Out) -> Generator[Step, Answer, bool]:
        """Whether another reply of the model follows in this one; asked before the end leaves."""
        yield from left(out)
        raw = self._transcript.taken()
        answer = yield from self._followed(self._chunks.over(raw))
        if answer is None:
            return False
        for event in self._tail:
            kept = self._chunks.left_of(event.data)
            out += [] if kept is None else [event.with_data(kept).raw]
        self._chunks.begin_next(raw)
        if answer.note:
            out.append(SseEvent.build(None, self._chunks.note(answer.note), self._newline).raw)
        self._tail = []
        return True


class _Array:
    """Chunks as the items of one array. From a second reply on what stands between them is ours."""

    def __init__(self) -> None:
        self._reader = ArrayReader()
        self._transcript = Transcript()
        self._chunks = Chunks()
        self._tail: list[Piece] = []
        self._wants_comma = False
        self._is_ours = False
        self._is_closed = False
        """Whether the model's array is over, and all of it was taken."""

    def feed(self, data: bytes) -> Steps:
        self._transcript.add(data)
        out: Out = []
        for piece in self._reader.feed(data):
            yield from self._take(piece, out)
        if out:
            yield b"".join(out)
        if self._reader.has_more:
            self._is_closed = False
            raise Unreadable(BEHIND_ARRAY)
        self._is_closed = self._reader.is_over

    @property
    def is_ended(self) -> bool:
        return self._chunks.is_over

    def finish(self, fault: str | None) -> Steps:
        """An item that is not complete is nothing to anybody who reads arrays, and is left out."""
        self._reader.finish()
        out: Out = []
        lost = list(self._chunks.dropped(fault or CUT_SHORT))
        yield from lost
        is_told = self._is_closed or (fault is None and self._chunks.is_over)
        is_whole = is_told and not self._chunks.is_unread
        may_go_on = is_whole and fault is None and not self._chunks.is_broken
        if may_go_on and (yield from self._goes_on(out)):
            return
        for piece in self._tail:
            if is_whole or piece.is_item or b"]" not in piece.raw:
                self._tell(piece, out)
        self._tail = []
        if not is_whole:
            message = fault or (CUT_SHORT_TOLD if lost else UNENDED_TOLD)
            self._tell(Piece(error_body("gemini", 502, message), is_item=True), out, separates=True)
        if not is_whole or self._is_ours:
            out.append(b"]")
        if out:
            yield b"".join(out)

    def _take(self, piece: Piece, out: Out) -> Steps:
        if not piece.is_item:
            if self._is_ours:
                return
            if self._chunks.is_ending or self._tail or b"]" in piece.raw:
                self._tail.append(piece)
                return
            self._tell(piece, out)
            return
        changed = yield from self._chunks.judged(piece.raw, out)
        told = piece if changed is None else Piece(changed, is_item=True)
        if self._chunks.is_ending or self._tail:
            self._tail.append(told)
            return
        self._tell(told, out, separates=self._is_ours)

    def _tell(self, piece: Piece, out: Out, *, separates: bool = False) -> None:
        if self._wants_comma and (separates or self._is_ours):
            out.append(b",\r\n")
        self._wants_comma = piece.is_item or (self._wants_comma and b"," not in piece.raw)
        out.append(piece.raw)

    def _goes_on(self, out: Out) -> Generator[Step, Answer, bool]:
        """Whether another reply of the model follows in this one; asked before the end leaves."""
        raw = self._transcript.taken()
        answer = yield self._chunks.over(raw)
        if not isinstance(answer, Onward):
            return False
        told = [self._chunks.left_of(piece.raw) for piece in self._tail if piece.is_item]
        self._chunks.begin_next(raw)
        if answer.note:
            told.append(self._chunks.note(answer.note))
        for item in told:
            if item is not None:
                self._tell(Piece(item, is_item=True), out, separates=True)
        self._reader = ArrayReader()
        self._tail = []
        self._is_closed, self._is_ours = False, True
        if out:
            yield b"".join(out)
        return True


def _has_stray_json(event: SseEvent) -> bool:
    """Whether a line that is no field holds an object or an array; some clients trim lines, or read them as chunks."""
    if _PLAIN.fullmatch(event.raw) is not None:
        return False
    lines = _LINE_END.split(event.raw.removeprefix(_BOM) if event.opens else event.raw)
    return any(not _FIELDS.match(line) and (b"{" in line or line.lstrip().startswith(b"[")) for line in lines)


def _bare(event: SseEvent) -> bytes | None:
    """The object that all lines of an event are together; None where they begin otherwise."""
    raw = event.raw.strip(BLANK)
    return raw if raw.startswith(b"{") else None
