"""A streamed chat reply: calls are held until their choice is finished, everything else leaves at once.

Knows: chunks, choices, the end of a stream. Does not know: sockets, why a call is refused.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import Verdict
from interpose.gateway.api import (
    CUT_SHORT,
    CUT_SHORT_TOLD,
    HELD_BYTES_MAX,
    Answer,
    Dropped,
    RefusedCall,
    RoundOver,
    Step,
    Steps,
    answered,
    hindrance,
)
from interpose.gateway.bodies import read_event
from interpose.gateway.chat.alike import Alike, alike
from interpose.gateway.chat.calls import LEGACY
from interpose.gateway.chat.choice import Choice, PartialCall, refused_calls, rewritten_deltas
from interpose.gateway.chat.chunks import (
    CALL,
    NATURAL,
    TEXT_MARK,
    Earlier,
    earlier_of,
    ends_in_call,
    finished_as_stop,
    finishes_in,
    first_mark,
    has_text,
    is_done,
    is_finish,
    proposes,
    tells_error,
    told_as_deltas,
    with_delta,
)
from interpose.gateway.chat.message import TEXT
from interpose.gateway.faults import error_event
from interpose.gateway.proposed import place_of
from interpose.gateway.runs import Part
from interpose.gateway.streaming import EventStream, Out, left
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent


@dataclass(frozen=True, slots=True)
class _Finish:
    """A finish that is told when the stream is over: it is the end of the reply, or `waits` for its calls."""

    event: SseEvent
    choice: Choice
    waits: bool


class ChatStream(EventStream):
    """The port `ReplyStream`. A call is complete when its choice is finished, or the stream says [DONE].

    A finish that leaves no call for the client to run is held back until the stream is over, since another reply of
    the model may follow in this one.
    """

    def __init__(self) -> None:
        super().__init__("chat", TEXT)
        self._choices: dict[Json, Choice] = {}
        self._tail: list[SseEvent | _Finish] = []
        self._told: list[RefusedCall] = []
        self._earlier: Earlier | None = None
        self._is_over = False
        self._last_piece: Alike | None = None
        """The last event, where it said nothing but a piece of a call."""
        self._is_one_choice = True
        self._finishes = 0
        self._over_with = b""
        """The last reply, once it was over."""
        self._has_text = False
        self._wants_text = True
        self._newline = b"\n"

    @property
    def is_ended(self) -> bool:
        """As the port says: a choice was finished, or there was a [DONE], or an error."""
        return self._is_over or self._finishes > 0 or finishes_in(self._over_with) > 0

    def _ended(self, fault: str | None, out: Out) -> Steps:
        """The end of the stream. A call whose choice was not finished is dropped, and an error says so."""
        if self._is_over or tells_error(self._unread):
            self._is_over, fault = True, None
        for choice in self._choices.values():
            if choice.calls and choice.is_late and fault is None:
                yield from self._settle(choice, None, out)
        held = self._is_holding()
        yield from self._drop_held(fault or CUT_SHORT)
        if not held and fault is None and not self._is_over and (yield from self._goes_on(out)):
            return
        out += self._final_tail()
        if held or fault is not None:
            out.append(error_event("chat", fault or CUT_SHORT_TOLD, self._newline))

    def _is_holding(self) -> bool:
        return any(choice.calls for choice in self._choices.values())

    def _first_mark(self, raw: bytes) -> int:
        if self._choices or self._tail or self._earlier is not None:
            return 0
        return first_mark(raw)

    def _pass_cut(self, event: SseEvent, out: Out) -> None:
        self._pass(event, out)

    def _note_text(self, raw: bytes) -> None:
        self._has_text = self._has_text or TEXT_MARK.search(raw) is not None
        self._wants_text = not self._has_text

    def _collects(self, event: SseEvent) -> bool:
        alike = self._last_piece
        if alike is None or len(alike.choice.raw) + len(event.raw) > HELD_BYTES_MAX:
            return False
        return alike.takes(event)

    def _take(self, event: SseEvent, out: Out) -> Steps:
        self._last_piece = None
        if self._wants_text:
            self._note_text(event.raw)
        data = event.data
        if is_done(data):
            yield from self._done(event, out)
            return

        chunk = yield from read_event(data, out, CALL)
        if self._earlier is not None:
            carried, chunk, self._earlier = self._earlier.carried(event, chunk)
            if carried is None:
                return
            event = carried
        event, chunk = told_as_deltas(event, chunk)
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
        self._is_one_choice = False
        if not self._choices and not any(proposes(choice) or ends_in_call(choice) for choice in choices):
            self._pass(event, out)
            return
        for choice in choices:
            single = {**chunk, "choices": [choice]}
            yield from self._chunk(event.with_data(write_json(single)), single, choice, out)

    def _chunk(self, event: SseEvent, chunk: JsonObject, said: Json, out: Out) -> Steps:
        """One chunk with one choice: its calls are held, its finish settles them, the rest passes."""
        index = said.get("index") if isinstance(said, dict) else None
        key = 0 if index is None else place_of(index)
        known = self._choices.get(key)
        if known is None and self._choices:
            self._part_choices(out)
        if not proposes(said):
            yield from self._without_calls(event, said, key, known, out)
            return

        choice = self._choices.setdefault(key, Choice(has_text=self._has_text))
        yield from self._with_calls(event, chunk, said, choice, out)

    def _part_choices(self, out: Out) -> None:
        """There are several choices: no other reply can follow, so nothing waits for one."""
        self._is_one_choice = False
        if not any(isinstance(entry, _Finish) and entry.waits for entry in self._tail):
            out += self._final_tail()

    def _without_calls(self, event: SseEvent, said: Json, key: Json, known: Choice | None, out: Out) -> Steps:
        if not is_finish(said):
            if known is not None and has_text(said):
                known.spoke()
            self._pass(event, out, is_late=known is not None and known.is_late)
            return
        choice = self._choices.setdefault(key, Choice(has_text=self._has_text))
        yield from self._finished(event, said, choice, out)

    def _with_calls(self, event: SseEvent, chunk: JsonObject, said: JsonObject, choice: Choice, out: Out) -> Steps:
        delta: JsonObject = said["delta"]
        rest = {key: value for key, value in delta.items() if key not in ("tool_calls", LEGACY)}
        is_end = is_finish(said)
        has_rest = any(value for key, value in rest.items() if key != "role")
        bare = {key: value for key, value in chunk.items() if key != "usage"}
        if choice.frame is None:
            choice.frame = {**bare, "choices": [{**said, "delta": {}, "finish_reason": None}]}
        self._newline = event.newline
        choice.add(delta)
        held = event
        exact = bytes(choice.raw) + event.raw if is_end and not has_rest else None
        if has_rest:
            if has_text(said):
                choice.spoke()
            self._pass(with_delta(event, bare, said, rest, None), out)
            choice.role = None
        if has_rest or is_end:
            only_calls = {
                key: value for key, value in delta.items() if key not in rest or (key == "role" and not has_rest)
            }
            held = with_delta(event, bare if is_end else chunk, said, only_calls, None)
        choice.raw += held.raw
        if len(choice.raw) > HELD_BYTES_MAX:
            yield from self._drop(choice, f"the calls are larger than {HELD_BYTES_MAX} bytes")
        elif held is event and self._earlier is None:
            self._last_piece = alike(event, delta, choice)
        if is_end:
            finish = with_delta(event, chunk, said, {}, said["finish_reason"])
            yield from self._finished(finish, said, choice, out, exact)

    def _finished(
        self, event: SseEvent, said: JsonObject, choice: Choice, out: Out, exact: bytes | None = None
    ) -> Steps:
        """The choice is finished. A finish that cannot be true yet, or ends the reply, waits for the end of the stream.

        `exact` is all that came of its calls when the last chunk held the finish too; it leaves if nothing changes.
        """
        self._finishes += 1
        choice.stop_reason = said["finish_reason"]
        is_early = any(call.proposed().problem for call in choice.calls)
        expects_calls = not choice.calls and not choice.closed and ends_in_call(said)
        waits = choice.is_late or is_early or expects_calls
        if not waits:
            yield from self._settle(choice, event, out, exact)
            if choice.released:
                return
        finish = _Finish(event, choice, waits)
        if self._is_one_choice or waits:
            choice.is_late = True
            self._tail.append(finish)
            return
        out.append(_told(finish).raw)

    def _settle(self, choice: Choice, finish: SseEvent | None, out: Out, exact: bytes | None = None) -> Steps:
        """Lets the calls go that may run, and the finish with them; where none is left it is the caller's."""
        calls = choice.take()
        proposed = [call.named_by(choice.ids) for call in calls]
        verdicts: list[Verdict] = []
        for call in proposed:
            yield from left(out)
            verdicts.append(answered((yield call)))

        raw = bytes(choice.raw)
        choice.raw.clear()
        refused = refused_calls(choice, calls, proposed, verdicts)
        is_same = not refused and all(verdict.arguments is None for verdict in verdicts)
        if is_same and not choice.has_late_piece and not choice.is_ambiguous(calls):
            choice.released += len(calls)
            if exact is not None and calls:
                out.append(exact)
                return
            out.append(raw)
        else:
            self._told += refused
            out += self._rewritten(choice, calls, verdicts, [call.line for call in refused])
        if finish is not None and choice.released:
            out.append(finish.raw)

    def _rewritten(self, choice: Choice, calls: list[PartialCall], verdicts: list[Verdict], lines: list[str]) -> Out:
        deltas, kept = rewritten_deltas(choice, calls, verdicts, lines)
        choice.refused += len(calls) - kept
        choice.released += kept
        frame = choice.frame or {}
        said: JsonObject = frame["choices"][0]
        return [
            SseEvent.build(None, write_json({**frame, "choices": [{**said, "delta": delta}]}), self._newline).raw
            for delta in deltas
        ]

    def _done(self, event: SseEvent, out: Out) -> Steps:
        for choice in self._choices.values():
            if choice.calls:
                yield from self._settle(choice, None, out)
        if not self._is_over and (yield from self._goes_on(out)):
            return
        out += self._final_tail()
        out.append(event.raw)
        self._is_over = True

    def _goes_on(self, out: Out) -> Generator[Step, Answer, bool]:
        """Whether another reply of the model follows in this one; asked before the end leaves."""
        yield from left(out)
        raw, parts = self._taken()
        answer = yield from self._followed(self._over(raw, parts))
        if answer is not None:
            self._begin_next(raw, answer.note, out)
        return answer is not None

    def _over(self, raw: bytes, parts: tuple[Part, ...]) -> RoundOver:
        choices = list(self._choices.values())
        first = self._choices.get(0) or next(iter(choices), None)
        reason = first.stop_reason if first is not None else None
        is_several = not self._is_one_choice or any(key != 0 for key in self._choices) or len(choices) > 1
        why_not = hindrance(
            reason,
            is_natural=reason in NATURAL,
            is_last=not any(choice.goes_on_behind for choice in choices),
            is_lost=sum(choice.refused for choice in choices) != len(self._told),
            is_several=is_several,
        )
        noticed = self._finishes
        self._over_with = raw
        return RoundOver(
            raw=raw,
            refused=tuple(self._told),
            released=sum(choice.released for choice in choices),
            stop_reason=reason if isinstance(reason, str) else None,
            hindrance=why_not,
            ends=lambda raw: finishes_in(raw) <= noticed,
            parts=parts,
        )

    def _begin_next(self, raw: bytes, note: str, out: Out) -> None:
        self._has_text = self._has_text or bool(self._told)
        self._earlier = earlier_of(raw, self._earlier, has_text=self._has_text)
        if note:
            out.append(self._earlier.note(note, self._newline))
            self._has_text = True
            self._earlier = replace(self._earlier, owes_gap=True)
        self._choices.clear()
        self._tail.clear()
        self._told = []
        self._is_one_choice = True
        self._finishes = 0
        self._unread = b""

    def _pass(self, event: SseEvent, out: Out, *, is_late: bool = True) -> None:
        if self._tail and is_late:
            self._tail.append(event)
            return
        out.append(event.raw)

    def _drop_held(self, reason: str) -> Generator[Dropped, Answer, None]:
        for choice in self._choices.values():
            yield from self._drop(choice, reason)

    def _drop(self, choice: Choice, reason: str) -> Generator[Dropped, Answer, None]:
        for call in choice.take():
            proposed = call.proposed()
            choice.refused += 1
            yield Dropped(proposed.call_id, proposed.name, reason)
        choice.raw.clear()

    def _final_tail(self) -> Out:
        entries, self._tail = self._tail, []
        return [(_told(entry) if isinstance(entry, _Finish) else entry).raw for entry in entries]


def _told(finish: _Finish) -> SseEvent:
    """The finish as it is true, now that the stream is over."""
    choice = finish.choice
    return finish.event if choice.released or not choice.refused else finished_as_stop(finish.event)
