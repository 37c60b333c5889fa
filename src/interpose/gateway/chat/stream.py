"""A streamed chat reply: calls are held until their choice is finished, everything else leaves at once.

Knows: chunks, choices, the end of a stream. Does not know: sockets, why a call is refused.
"""

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import Verdict
from interpose.gateway.api import CUT_SHORT, HELD_BYTES_MAX, Dropped, Steps, answered
from interpose.gateway.bodies import read_in_one_way
from interpose.gateway.chat.calls import LEGACY
from interpose.gateway.chat.choice import Choice, PartialCall, rewritten_deltas
from interpose.gateway.chat.reply import CALL_REASONS
from interpose.gateway.faults import error_event
from interpose.wire.jsonbytes import read_json, write_json
from interpose.wire.sse import SseEvent, SseReader, split

_CALL_MARK = b"_call"
"""Without it a chunk cannot matter while no call is held: it is in both forms of a call and in both of its finishes."""

_HAS_TEXT = re.compile(rb'"content"\s*:\s*"[^"]')
_DONE = b"[DONE]"
_Out: TypeAlias = list[bytes]


@dataclass(frozen=True, slots=True)
class _LateFinish:
    """A finish that came before its calls were complete; it is told when the stream is over."""

    event: SseEvent
    choice: Choice


class ChatStream:
    """The port `ReplyStream`. A call is complete when its choice is finished, or the stream says [DONE]."""

    def __init__(self) -> None:
        self._reader = SseReader()
        self._choices: dict[Json, Choice] = {}
        self._tail: list[SseEvent | _LateFinish] = []
        self._is_over = False
        self._has_text = False
        self._unread = b""
        """The last that left without being read."""
        self._newline = b"\n"

    def feed(self, data: bytes) -> Steps:
        """What `data` makes possible; texts leave within the same call."""
        block = self._reader.take(data)
        first = _first_mark(block) if self._is_idle else 0
        if first < 0:
            if block:
                self._unread = block
                self._note_text(block)
                yield block
            return

        plain, events = self._reader.split_from(block, first)
        self._note_text(plain)
        out: _Out = [plain] if plain else []
        for event in events:
            self._note_text(event.raw)
            if self._is_idle and _first_mark(event.raw) < 0:
                self._unread = event.raw
                out.append(event.raw)
                continue
            yield from self._take(event, out)
        if out:
            yield b"".join(out)

    def finish(self, fault: str | None = None) -> Steps:
        """The end of the stream. A call whose choice was not finished is dropped, and an error says so."""
        out: _Out = []
        events, rest = self._reader.finish()
        for event in [*events, SseEvent(rest, self._reader.opens)] if rest and fault is None else events:
            yield from self._take(event, out)

        if self._is_over or (fault is not None and _tells_end(self._unread)):
            fault = None
        for choice in self._choices.values():
            if choice.calls and choice.is_late and fault is None:
                yield from self._settle(choice, None, out)
        held = any(choice.calls for choice in self._choices.values())
        yield from self._drop_held(fault or CUT_SHORT)
        out += self._final_tail()
        if held or fault is not None:
            out.append(error_event("chat", fault or CUT_SHORT, self._newline))
        if out:
            yield b"".join(out)

    @property
    def _is_idle(self) -> bool:
        return not self._choices and not self._tail

    def _note_text(self, raw: bytes) -> None:
        if not self._has_text:
            self._has_text = _HAS_TEXT.search(raw) is not None

    def _take(self, event: SseEvent, out: _Out) -> Steps:
        yield from read_in_one_way(event.data, out)
        data = event.data
        if _is_done(data):
            yield from self._done(event, out)
            return

        chunk = _parsed(data)
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices:
            if chunk.get("error"):
                yield from self._drop_held("the provider sent an error")
                self._is_over = True
            self._pass(event, out)
            return
        if len(choices) == 1:
            yield from self._chunk(event, chunk, choices[0], out)
            return
        if not self._choices and not any(_proposes(choice) or _ends_in_call(choice) for choice in choices):
            self._pass(event, out)
            return
        for choice in choices:
            single = {**chunk, "choices": [choice]}
            yield from self._chunk(event.with_data(write_json(single)), single, choice, out)

    def _chunk(self, event: SseEvent, chunk: JsonObject, said: Json, out: _Out) -> Steps:
        """One chunk with one choice: its calls are held, its finish settles them, the rest passes."""
        index = said.get("index") if isinstance(said, dict) else None
        key = index if isinstance(index, int) else str(index)
        known = self._choices.get(key)
        if not _proposes(said):
            yield from self._without_calls(event, said, key, known, out)
            return

        choice = self._choices.setdefault(key, Choice(has_text=self._has_text))
        yield from self._with_calls(event, chunk, said, choice, out)

    def _without_calls(self, event: SseEvent, said: Json, key: Json, known: Choice | None, out: _Out) -> Steps:
        if not _is_finish(said):
            if known is not None and _text_of(said):
                known.has_text = True
            self._pass(event, out, is_late=known is not None and known.is_late)
            return
        if known is None and not _ends_in_call(said):
            self._pass(event, out)
            return
        choice = self._choices.setdefault(key, Choice(has_text=self._has_text))
        yield from self._finished(event, said, choice, out)

    def _with_calls(self, event: SseEvent, chunk: JsonObject, said: JsonObject, choice: Choice, out: _Out) -> Steps:
        delta: JsonObject = said["delta"]
        rest = {key: value for key, value in delta.items() if key not in ("tool_calls", LEGACY)}
        is_finish = _is_finish(said)
        has_rest = any(value for key, value in rest.items() if key != "role")
        if choice.frame is None:
            choice.frame = {**chunk, "choices": [{**said, "delta": {}, "finish_reason": None}]}
        self._newline = event.newline
        choice.add(delta)
        held = event
        exact = bytes(choice.raw) + event.raw if is_finish and not has_rest else None
        if has_rest:
            choice.has_text = choice.has_text or _text_of(said)
            self._pass(_with_delta(event, chunk, said, rest, None), out)
            choice.role = None
        if has_rest or is_finish:
            only_calls = {
                key: value for key, value in delta.items() if key not in rest or (key == "role" and not has_rest)
            }
            held = _with_delta(event, chunk, said, only_calls, None)
        choice.raw += held.raw
        if len(choice.raw) > HELD_BYTES_MAX:
            yield from self._drop(choice, f"the calls are larger than {HELD_BYTES_MAX} bytes")
        if is_finish:
            finish = _with_delta(event, chunk, said, {}, said["finish_reason"])
            yield from self._finished(finish, said, choice, out, exact)

    def _finished(
        self, event: SseEvent, said: JsonObject, choice: Choice, out: _Out, exact: bytes | None = None
    ) -> Steps:
        """The choice is finished. A finish that cannot be true yet waits for the end of the stream.

        `exact` is all that came of its calls when the last chunk held the finish too; it leaves if nothing changes.
        """
        is_early = any(call.proposed().problem for call in choice.calls)
        expects_calls = not choice.calls and not choice.closed and _ends_in_call(said)
        if choice.is_late or is_early or expects_calls:
            choice.is_late = True
            self._tail.append(_LateFinish(event, choice))
            return
        yield from self._settle(choice, event, out, exact)

    def _settle(self, choice: Choice, finish: SseEvent | None, out: _Out, exact: bytes | None = None) -> Steps:
        calls = choice.take()
        verdicts: list[Verdict] = []
        for call in calls:
            if out:
                yield b"".join(out)
                out.clear()
            verdicts.append(answered((yield call.proposed())))

        raw = bytes(choice.raw)
        choice.raw.clear()
        is_same = all(verdict.allowed and verdict.arguments is None for verdict in verdicts)
        if is_same and not choice.has_late_piece:
            choice.released += len(calls)
            out += [exact] if exact is not None else [raw, *([finish.raw] if finish else [])]
            return

        out += self._rewritten(choice, calls, verdicts)
        if finish is not None:
            out.append(_final_finish(finish, choice).raw)

    def _rewritten(self, choice: Choice, calls: list[PartialCall], verdicts: list[Verdict]) -> _Out:
        deltas, left = rewritten_deltas(choice, calls, verdicts)
        choice.refused += len(calls) - left
        choice.released += left
        frame = choice.frame or {}
        said: JsonObject = frame["choices"][0]
        return [
            SseEvent.build(None, write_json({**frame, "choices": [{**said, "delta": delta}]}), self._newline).raw
            for delta in deltas
        ]

    def _done(self, event: SseEvent, out: _Out) -> Steps:
        for choice in self._choices.values():
            if choice.calls:
                yield from self._settle(choice, None, out)
        out += self._final_tail()
        out.append(event.raw)
        self._is_over = True

    def _pass(self, event: SseEvent, out: _Out, *, is_late: bool = True) -> None:
        if self._tail and is_late:
            self._tail.append(event)
            return
        out.append(event.raw)

    def _drop_held(self, reason: str) -> Generator[Dropped, Verdict | None, None]:
        for choice in self._choices.values():
            yield from self._drop(choice, reason)

    def _drop(self, choice: Choice, reason: str) -> Generator[Dropped, Verdict | None, None]:
        for call in choice.take():
            proposed = call.proposed()
            choice.refused += 1
            yield Dropped(proposed.call_id, proposed.name, reason)
        choice.raw.clear()

    def _final_tail(self) -> _Out:
        entries, self._tail = self._tail, []
        return [
            (_final_finish(entry.event, entry.choice) if isinstance(entry, _LateFinish) else entry).raw
            for entry in entries
        ]


def _first_mark(raw: bytes) -> int:
    """Where the first byte stands that matters, or -1; an escape may hide a mark."""
    if raw.find(_CALL_MARK) < 0 and raw.find(b"\\") < 0:  # quicker than `in`
        return -1
    return min((at for mark in (_CALL_MARK, b"\\u") if (at := raw.find(mark)) >= 0), default=-1)


def _tells_end(block: bytes) -> bool:
    """Whether the stream was over, by its own word or by an error of the provider."""
    return any(_is_done(event.data) or bool(_parsed(event.data).get("error")) for event in split(block))


def _is_done(data: bytes | None) -> bool:
    return data is not None and data.strip() == _DONE


def _parsed(data: bytes | None) -> JsonObject:
    if data is None:
        return {}
    try:
        value: Json = read_json(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _proposes(said: Json) -> bool:
    delta = said.get("delta") if isinstance(said, dict) else None
    return isinstance(delta, dict) and (bool(delta.get("tool_calls")) or isinstance(delta.get(LEGACY), dict))


def _is_finish(said: Json) -> bool:
    return isinstance(said, dict) and said.get("finish_reason") is not None


def _ends_in_call(said: Json) -> bool:
    return isinstance(said, dict) and said.get("finish_reason") in CALL_REASONS


def _text_of(said: Json) -> bool:
    delta = said.get("delta") if isinstance(said, dict) else None
    return isinstance(delta, dict) and bool(delta.get("content"))


def _with_delta(
    event: SseEvent, chunk: JsonObject, said: JsonObject, delta: dict[str, Any], finish_reason: Json
) -> SseEvent:
    choice = {**said, "delta": delta, "finish_reason": finish_reason}
    return event.with_data(write_json({**chunk, "choices": [choice]}))


def _final_finish(event: SseEvent, choice: Choice) -> SseEvent:
    """The event with `stop` where it says that calls are to be run, since none is left."""
    if choice.released or not choice.refused:
        return event
    chunk = _parsed(event.data)
    said = chunk["choices"][0]
    if not _ends_in_call(said):
        return event
    return event.with_data(write_json({**chunk, "choices": [{**said, "finish_reason": "stop"}]}))
