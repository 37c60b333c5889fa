"""What follows when one reply of the model is over: the end, or another reply within the client's one.

A refused call can be told to the model as an error at once, and a turn that ends can be carried onward; both ask the
upstream again, with the model's own reply and what answers it.
Knows: when to go on, what is remembered of it. Does not know: any API's shape, sockets, bytes of streams.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from interpose.contracts.journal import Step
from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import Codec, Mark, Onward, RefusedCall, RequestView, Resumed, RoundOver
from interpose.gateway.bodies import object_of
from interpose.gateway.judging import Judging
from interpose.gateway.marks import ITEMS, TOLD_ITEMS
from interpose.gateway.settings import OnRefusal
from interpose.gateway.upstream import UpstreamDown, UpstreamReply
from interpose.gateway.visit import Teller
from interpose.gateway.wording import TOLD_AS, nudge_line, reminded
from interpose.kernel.ids import random_id
from interpose.wire.jsonbytes import read_json

ROUNDS_MAX = 3
"""How often the model is asked again within one reply of the client's."""

_ENDS: Mapping[str, str] = {"completed": "stop"}
"""Words of an API that say more plainly in another's what they mean."""

_CALLED: Mapping[str, str] = {"tool_use": "end_turn", "tool_calls": "stop", "function_call": "stop"}
"""Why a reply ends for the client whose calls were all refused."""

_FAULT_CHARS = 300
_CONVERSATION = b'"conv_'
"""What a reply in a conversation that the provider keeps under an id of its own has."""

_ID = re.compile(rb'"id"\s*:\s*"([^"\\]{1,200})"')
_ID_BYTES = 64 * 1024
"""A response's own id is its first; it stands near the beginning."""


@dataclass(frozen=True, slots=True)
class _Stopped:
    """Why the model is not asked again; `step` says in the journal whether it could not be, or failed."""

    reason: str
    step: Step = "skipped"


AskAgain = Callable[[bytes], Awaitable[UpstreamReply | UpstreamDown]]


@dataclass(slots=True)
class Rounds:
    """The replies of the model within one reply of the client's. Used by one exchange's task only.

    Attributes:
        sent: the body that the upstream was sent last.
        replied: is told the id of a response, or an item of ours, that the client may go on from.
        ask: sends another one, and gives the answer once its head is there.
        is_streamed: whether the replies are streams.
        content_type: what the first reply is, and all others must be.
        reply: the answer that follows; None until there is one.
    """

    teller: Teller
    codec: Codec
    judging: Judging
    request: RequestView
    sent: bytes
    ask: AskAgain
    on_refusal: OnRefusal
    replied: Callable[[str], Awaitable[None]]
    is_streamed: bool = False
    content_type: str = ""
    reply: UpstreamReply | None = None
    _left: int = ROUNDS_MAX
    _nudged: bool = False
    _is_noted: bool = False
    _first_id: str | None = None
    _lines: list[str] = field(default_factory=list)

    async def over(self, step: RoundOver) -> Onward | None:
        """What follows a reply. After an Onward `reply` holds the next one."""
        self.reply = None
        await self._note_id(step)
        for refused in step.refused:
            if refused.item_id:
                told = Mark(None, refused.line, ends_round=False)
                self.judging.ledger.keep_mark(TOLD_ITEMS, refused.item_id, 0, told)
                await self.replied(refused.item_id)
        follows = await self._following(step)
        self._resume(step, goes_on=follows is not None)
        return follows

    async def _note_id(self, step: RoundOver) -> None:
        """The client knows its reply by the id of the first one."""
        if self.codec.api != "responses" or self._is_noted:
            return
        self._is_noted = True
        found = _ID.search(step.raw, 0, _ID_BYTES)
        if found is not None:
            await self.replied(found.group(1).decode("utf-8", "replace"))

    async def _following(self, step: RoundOver) -> Onward | None:
        if step.released:
            if self.on_refusal == "continue":
                self._remember(step, goes_on=False)
            return None
        if step.refused and await self._told_to_model(step):
            return Onward()
        return await self._ended(step)

    async def _told_to_model(self, step: RoundOver) -> bool:
        """Whether the refusals were told to the model, which goes on; if not, they were told to the person."""
        if self.on_refusal == "tell":
            return False
        stopped = self._why_not(step) or await self._asked_again(step, _answers(step.refused), None)
        if stopped is not None:
            reason = f"the model is not told of a refusal: {stopped.reason}"
            self.teller.record(stopped.step, outcome="told", reason=reason)
            return False
        return True

    async def _ended(self, step: RoundOver) -> Onward | None:
        """The turn is over, unless a handler carries it onward, once."""
        if self.judging.is_aside or not self.judging.policy.wants("turn.end"):
            return None
        nudge = await self.judging.turn_end(self._text(step), _end_of(step))
        if nudge is None or self._nudged:
            return None
        self._nudged = True
        if step.refused or not self.request.tool_names():
            return None
        stopped = self._why_not(step) or await self._asked_again(step, (), reminded(nudge))
        if stopped is not None:
            reason = f"the turn cannot go on here: {stopped.reason}"
            self.teller.record(stopped.step, outcome="not_applicable", reason=reason)
            return None
        line = nudge_line(nudge)
        note_id = random_id("msg_", 20) if self.codec.api == "responses" else ""
        if note_id:
            await self.replied(note_id)
        self._keep(line, Mark(None, reminded(nudge), ends_round=True), note_id)
        return Onward(line, note_id)

    def _why_not(self, step: RoundOver) -> _Stopped | None:
        if self._left <= 0:
            return _Stopped(f"it was asked {ROUNDS_MAX} times within this reply")
        if why_not := step.why_not:
            return _Stopped(why_not)
        if any(refused.entry is None for refused in step.refused):
            return _Stopped("its history cannot hold a call that cannot be read")
        return None

    async def _asked_again(
        self, step: RoundOver, answers: Sequence[tuple[RefusedCall, str]], nudge: str | None
    ) -> _Stopped | None:
        """Why there is no next reply; None when there is, in `reply`."""
        said = self._whole(step)
        body = self.codec.onward(self.sent, said, answers, nudge) if said is not None else None
        if body is None:
            return _Stopped("no history can be made of it that the provider takes")
        if answers:  # before it is asked: the client has the lines, and may go on with them without waiting
            self._remember(step, goes_on=True)
        reply = await self.ask(body)
        if isinstance(reply, UpstreamDown):
            return _Stopped(f"the upstream does not answer: {reply.reason}", "failed")
        if not 200 <= reply.status < 300 or not reply.is_readable or reply.content_type != self.content_type:
            return _Stopped(f"the upstream answered {reply.status} {reply.content_type}{await _fault(reply)}", "failed")
        self._left -= 1
        self.sent = body
        self.reply = reply
        return None

    def _remember(self, step: RoundOver, *, goes_on: bool) -> None:
        """Keeps what the model's history has where the client's has our lines."""
        for mark, refused in zip(_marks(step.refused, goes_on=goes_on), step.refused, strict=True):
            if mark.entry is not None:
                self._keep(refused.line, mark, refused.item_id)

    def _keep(self, line: str, mark: Mark, item_id: str) -> None:
        nth = self.request.occurrences(line) + self._lines.count(line)
        self._lines.append(line)
        self.judging.ledger.keep_mark(self.request.root, line, nth, mark)
        if item_id:
            self.judging.ledger.keep_mark(ITEMS, item_id, 0, mark)

    def _resume(self, step: RoundOver, *, goes_on: bool) -> None:
        """A conversation that the provider keeps goes on from its own last reply, which waits for what is owed."""
        if self.codec.api != "responses":
            return
        if not (step.refused or self._first_id or goes_on or _CONVERSATION in step.raw):
            return
        said = self._whole(step) or {}
        own = said.get("id")
        if not isinstance(own, str):
            return
        self._first_id = self._first_id or own
        resumed = Resumed(own, () if goes_on else _owed(step, said))
        conversation = said.get("conversation")
        name = conversation.get("id") if isinstance(conversation, dict) else None
        for key in (self._first_id, name):
            if isinstance(key, str):
                self.judging.ledger.keep_resumed(key, resumed)

    def _whole(self, step: RoundOver) -> JsonObject | None:
        if not step.raw:
            return None
        if self.is_streamed:
            return self.codec.collected(step.raw)
        try:
            value: Json = read_json(step.raw)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def _text(self, step: RoundOver) -> str:
        if self.is_streamed:
            return self.codec.spoken(step.raw, step.parts)
        return self.codec.final_text(self._whole(step) or {})


def _end_of(step: RoundOver) -> str | None:
    """The API's word for why the reply ends, as the client is told it."""
    end = step.stop_reason or ""
    return _ENDS.get(end) or (_CALLED.get(end) if step.refused else None) or step.stop_reason


async def _fault(reply: UpstreamReply) -> str:
    """What the upstream says is wrong, as far as it says so in a first piece that can be read."""
    first = await anext(reply.chunks(), b"") if reply.is_readable else b""
    error = object_of(first if isinstance(first, bytes) else None).get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return f": {message[:_FAULT_CHARS]}" if isinstance(message, str) and message else ""


def _answers(refused: Sequence[RefusedCall]) -> list[tuple[RefusedCall, str]]:
    """Each refused call with what the model is told of it: the person's line, without the mark that it is ours."""
    return [(call, call.line.removeprefix(TOLD_AS)) for call in refused]


def _marks(refused: Sequence[RefusedCall], *, goes_on: bool) -> list[Mark]:
    last = len(refused) - 1
    return [
        Mark(call.entry, answer, ends_round=goes_on and place == last)
        for place, (call, answer) in enumerate(_answers(refused))
    ]


def _owed(step: RoundOver, said: JsonObject) -> tuple[Mark, ...]:
    """The results that the provider waits for, of calls that cannot be read too: it has them as they are."""
    output = said.get("output")
    calls = {item.get("call_id"): item for item in output or () if isinstance(item, dict)}
    marks = zip(_marks(step.refused, goes_on=False), step.refused, strict=True)
    owed = (mark if mark.entry is not None else replace(mark, entry=calls.get(one.call.call_id)) for mark, one in marks)
    return tuple(mark for mark in owed if mark.entry is not None)
