"""What the streamed replies of all APIs that send events do alike.

Knows: which bytes leave unread, what waits to leave, where the next reply of the model begins. Does not know: what
events say.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from typing import Final, TypeAlias

from interpose.gateway.api import (
    CUT_SHORT,
    CUT_SHORT_TOLD,
    Answer,
    ApiName,
    Dropped,
    Onward,
    RoundOver,
    Step,
    Steps,
    Unreadable,
)
from interpose.gateway.runs import RUN_BYTES_MIN, Alike, Part, Run, Text, learned
from interpose.gateway.shapes import are_own, begins_own
from interpose.gateway.transcript import TRANSCRIPT_BYTES_MAX, Transcript
from interpose.wire.jsonbytes import read_json
from interpose.wire.sse import SseEvent, SseReader, split_from

Out: TypeAlias = list[bytes]
"""What may leave, and leaves at the latest when its read is through or something is asked."""

MISSES_MAX: Final = 6
"""After so many blocks without one no run is looked for any more."""

_CALL_WORD = re.compile(rb"[Cc]all|[Tt]ool|input_json|\\u00")
"""Bytes without which no API's event, however it is cut, says something of a call; an escape may hide any of them."""

_DONE = b"[DONE]"
"""What an event says that is no JSON, and whole."""


class EventStream(ABC):
    """The port `ReplyStream` as far as events are alike: what cannot matter leaves as it came, the rest is taken."""

    def __init__(self, api: ApiName | None = None, text: Text | None = None) -> None:
        """`api` is whose events they must be; None where the stream sees to that itself.

        `text` is how texts are written, where hundreds of them follow each other in events that are alike.
        """
        # A stream has at most 30 attributes with those of its API: CPython finds more of them a tenth slower.
        self._text = text
        self._run: Run | None = None
        self._misses = 0
        """How many blocks showed no run where one was looked for."""
        self._read: dict[int, tuple[Alike, bool]] = {}
        """By the number of its block what was read while it passed, and whether it is for the person."""
        self._api: ApiName | None = api
        self._is_known = api is None
        """Whether one of them was of this API's shape."""
        self._reader = SseReader()
        self._transcript = Transcript()
        self._last = b""
        """The last that came, all of one read."""
        self._unread = b""
        """The last that left without being read."""
        self._is_between = False
        """Whether the former reply is over and the next one has not begun."""
        self._wants_text = False
        """Whether it must still be known that the model has said something."""
        self._last_event = b""
        """The last event with the line ends that its provider left out."""
        self._missing = b""
        """Those line ends."""

    def feed(self, data: bytes) -> bytes | Steps:
        """What `data` makes possible; texts leave within the same call."""
        self._is_between = False
        block = self._reader.take(data)
        if not self._is_known:
            self._recognise(block, self._reader.each(block))
        size = len(block)
        transcript = self._transcript
        transcript.size += size
        if transcript.size <= TRANSCRIPT_BYTES_MAX:  # as `add` does, without a call for each read
            transcript.blocks.append(block)
        if size >= RUN_BYTES_MIN and self._text is not None and self._first_mark(b"") < 0:
            alike = self._alike(block, self._text)
            if alike is not None:
                return self._passed(block, alike)
        first = self._first_mark(block)
        if first < 0:
            if block:  # as `_pass_unread` does, without a call for each read
                self._last = self._unread = block
                if self._wants_text:
                    self._note_text(block)
            return block
        self._last = block or self._last
        return self._looked_through(*self._reader.split_from(block, first))

    def _alike(self, block: bytes, text: Text) -> Alike | None:
        """The events of a block that are alike and need not be looked at."""
        alike = self._run.within(block) if self._run is not None else None
        if alike is None and self._misses < MISSES_MAX:
            fresh = learned(block, text)
            is_plain = fresh is not None and self._first_mark(fresh.sample) < 0
            alike = fresh.within(block) if fresh is not None and is_plain else None
            self._run = fresh if alike is not None else self._run
            self._misses += alike is None
        return alike if alike is not None and self._first_mark(block[: alike.start]) < 0 else None

    def _passed(self, block: bytes, alike: Alike) -> bytes | Steps:
        """What a block makes possible whose events up to the end of a run need not be looked at."""
        self._last = block
        end = alike.end
        self._read[len(self._transcript.blocks) - 1] = alike, self._run is not None and self._run.is_told
        behind = block[end:]
        first = self._first_mark(behind) if behind else -1
        if first < 0:
            self._pass_unread(block)
            return block
        plain, events = split_from(behind, first)
        return self._looked_through(block[:end] + plain, events)

    def _looked_through(self, plain: bytes, events: list[SseEvent]) -> Steps:
        """The steps of what need not be looked at, and of events of which the first one matters."""
        out: Out = []
        if plain:
            self._pass_unread(plain)
            out.append(plain)
        transcript = self._transcript
        transcript.behind = sum(len(event.raw) for event in events)
        for event in events:
            transcript.behind -= len(event.raw)
            if self._first_mark(event.raw) < 0:
                self._pass_unread(event.raw)
                out.append(event.raw)
                continue
            if self._collects(event):
                continue
            try:
                yield from self._take(event, out)
            except Unreadable:
                self._reader = SseReader()  # what is behind it is nobody's, also what still waits for its end
                raise
            if self._is_between:
                break
        transcript.behind = 0
        yield from left(out)

    def finish(self, fault: str | None = None) -> Steps:
        """As the port says. A last event whose line ends never came gets them where something stands behind it."""
        steps = self._finish(fault)
        answer: Answer = None
        owed = b""
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                break
            if isinstance(step, bytes):
                step, owed = self._as_it_came(owed + step)
            answer = yield step
        if owed and self._is_between:
            yield owed

    def _finish(self, fault: str | None) -> Steps:
        out: Out = []
        fault = yield from self._take_last(fault, out)
        if not self._is_between:
            yield from self._ended(fault, out)
        yield from left(out)

    @property
    @abstractmethod
    def is_ended(self) -> bool:
        """As the port says."""

    @abstractmethod
    def _ended(self, fault: str | None, out: Out) -> Steps:
        """The end of the stream, as the API has it, behind its last event: what is still held is dropped."""

    @abstractmethod
    def _is_holding(self) -> bool:
        """Whether a call, or a part of one, waits."""

    @abstractmethod
    def _first_mark(self, raw: bytes) -> int:
        """Where the first byte stands that matters, -1 for none; 0 while all matters, since something is held."""

    @abstractmethod
    def _take(self, event: SseEvent, out: Out) -> Steps:
        """One event that may matter."""

    def _said(self, event: SseEvent) -> bytes | None:
        """What clients of this API take an event to say."""
        return event.data

    def _passes_cut(self, event: SseEvent) -> bool:
        """Whether an event that breaks off leaves all the same: it tells of no call, or of nothing."""
        is_clear = _CALL_WORD.search(event.raw) is None
        return is_clear and (self._said(event) is None or self._bears_cut(event.raw))

    def _bears_cut(self, raw: bytes) -> bool:
        """Whether nobody is misled by the first half of an event that says something."""
        return self._first_mark(raw) < 0

    def _pass_cut(self, event: SseEvent, out: Out) -> None:
        """Lets it leave behind all that came before it."""
        out.append(event.raw)

    def _collects(self, event: SseEvent) -> bool:  # noqa: ARG002 - for streams whose held calls come in hundreds
        """Whether the event is but another piece of what is held, in the form that nearly all have, and was kept."""
        return False

    def _pass_unread(self, raw: bytes) -> None:
        """Notes what leaves without being read."""
        self._unread = raw
        if self._wants_text:
            self._note_text(raw)

    def _note_text(self, raw: bytes) -> None:  # noqa: ARG002 - for streams that want it
        """Looks whether the model has said something; from then on it is not asked again."""
        self._wants_text = False

    def _take_last(self, fault: str | None, out: Out) -> Generator[Step, Answer, str | None]:
        """Takes an event that only the end completes, and one of which nothing is missing but its line ends.

        Of any other nobody can read what it says: it leaves only where no call can be meant. Gives what the stream
        broke off for: `fault`, or a cut in an event that may tell of a call.
        """
        self._is_between = False
        events, rest = self._reader.finish()
        last = self._completed(rest) if rest and fault is None else None
        if fault is None and not self._is_known:
            self._recognise(b"", events if last is None else [*events, last])
        for event in events:
            self._transcript.add(event.raw)
            try:
                yield from self._take(event, out)
            except Unreadable:
                if fault is None:
                    raise  # else the client is told of the fault
        if last is None:
            return fault

        self._transcript.add(last.raw)
        if _is_whole(self._said(last)):
            yield from self._take(last, out)
            return None
        if not self._is_holding() and self._passes_cut(last):
            self._pass_cut(last, out)
            return None
        self._missing = b""  # it does not leave
        if self._is_holding() or _CALL_WORD.search(rest) is None:
            return None  # the end of the stream says what became of a call
        yield Dropped("", "unknown", CUT_SHORT)
        return CUT_SHORT_TOLD

    def _completed(self, rest: bytes) -> SseEvent:
        """An unfinished event with its line ends, so that whatever comes next is another one."""
        newline = SseEvent(self._last or rest).newline
        if rest.endswith(b"\r"):
            self._missing = b"\n\r\n" if newline == b"\r\n" else b"\r"
        else:
            self._missing = newline if rest.endswith(b"\n") else newline + newline
        self._last_event = rest + self._missing
        return SseEvent(self._last_event, self._reader.opens)

    def _as_it_came(self, data: bytes) -> tuple[bytes, bytes]:
        """The data without line ends that are not the provider's, and those, where it ends with them."""
        if not self._missing or not data.endswith(self._last_event):
            return data, b""
        return data[: -len(self._missing)], self._missing

    def _recognise(self, block: bytes, events: Iterable[SseEvent]) -> None:
        if self._api is not None:
            self._is_known = begins_own(self._api, block) or are_own(self._api, events)

    def _taken(self) -> tuple[bytes, tuple[Part, ...]]:
        """All that was kept of a reply, and the same with what was read; what comes next is another one."""
        self._transcript.cut()
        blocks, read, self._read = self._transcript.blocks, self._read, {}
        raw = self._transcript.taken()
        if not raw or not read:
            return raw, ()
        parts: list[Part] = []
        for number, block in enumerate(blocks):
            if number not in read:
                parts.append(block)
                continue
            alike, is_told = read[number]
            parts += [block[: alike.start], alike.text if is_told else "", block[alike.end :]]
        return raw, tuple(parts)

    def _followed(self, over: RoundOver) -> Generator[Step, Answer, Onward | None]:
        """Asks whether another reply of the model follows in this one; from then on the events are that one's."""
        answer = yield over
        if not isinstance(answer, Onward):
            return None
        self._reader = SseReader()
        self._is_known = self._api is None
        self._is_between = True
        return answer


def left(out: Out) -> Iterator[bytes]:
    """What may leave leaves, before anything is asked."""
    if out:
        yield b"".join(out)
        out.clear()


def _is_whole(data: bytes | None) -> bool:
    """Whether nothing but line ends may be missing of an event that says this."""
    try:
        read_json(data or b"")
    except ValueError:
        return data == _DONE
    return True
