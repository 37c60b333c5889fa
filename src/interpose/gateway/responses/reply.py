"""A response as one object: its calls judged, refused ones told as messages in their place; several made into one.

Knows: the list of output items, what counts them. Does not know: verdicts' reasons, events, sockets.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from interpose.contracts.json import Json
from interpose.contracts.verdict import Refusal
from interpose.gateway.api import Answer, Onward, ProposedCall, RefusedCall, RoundOver, Steps, answered, hindrance
from interpose.gateway.bodies import RawObject, is_same, object_of, open_array, open_body, value_of
from interpose.gateway.proposed import DIFFER, CallIds, unknown_call
from interpose.gateway.responses.answers import entry_of
from interpose.gateway.responses.items import is_call, read_call, told_message, with_arguments
from interpose.gateway.responses.response import message
from interpose.gateway.shapes import refuse_foreign
from interpose.gateway.wholes import WholeReply
from interpose.gateway.wording import refusal_line, refused_line
from interpose.wire.jsonbytes import write_json

_HEAD = ("id", "created_at", "previous_response_id")
"""What the client knows a response by: that of the first of several."""

_SPENT = ("output_tokens", "total_tokens")
_UNFINISHED = ("queued", "in_progress")


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of one call, as it was read. `item` is what leaves in its place, None for nothing at all."""

    call: ProposedCall
    item: msgspec.Raw | None
    outcome: Literal["released", "rewritten", "gone"]
    refused: RefusedCall | None = None


Identity: TypeAlias = tuple[str, str]
"""The id of an item and the id of its call."""

Asking: TypeAlias = Generator[ProposedCall, Answer, Settled]


@dataclass(slots=True)
class Tally:
    """What became of the calls of one reply of the model, and how far its items go."""

    last: int = -1
    released: int = 0
    lost: int = 0
    ids: CallIds = field(default_factory=CallIds)
    _refused: list[tuple[int, RefusedCall]] = field(default_factory=list)

    def note(self, place: Json) -> None:
        """An item stands at this place of the output."""
        if isinstance(place, int):
            self.last = max(self.last, place)

    def add(self, place: Json, settled: Settled) -> None:
        """A call of this place was judged."""
        if settled.refused is None:
            self.released += 1
            return
        self._refused.append((place if isinstance(place, int) else -1, settled.refused))

    def over(self, raw: bytes, response: RawObject) -> RoundOver:
        """The reply is complete; the response is what its end says."""
        refused = sorted(self._refused, key=lambda one: one[0])
        status = value_of(response.get("status"))
        is_last = not refused or refused[-1][0] >= self.last
        return RoundOver(
            raw=raw,
            refused=tuple(call for _, call in refused),
            released=self.released,
            stop_reason=_reason(response, status),
            hindrance=hindrance(
                _reason(response, status), is_natural=status == "completed", is_last=is_last, is_lost=self.lost > 0
            ),
        )


@dataclass(slots=True)
class Earlier:
    """What the client's response has of the model's earlier ones."""

    _output: list[msgspec.Raw] = field(default_factory=list)
    _head: RawObject = field(default_factory=dict)
    _usages: list[Json] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is no earlier one."""
        return not self._usages

    def add(self, response: RawObject, onward: Onward, place: int) -> dict[str, Any] | None:
        """Keeps one more; the message that a note of ours makes behind its items, at this place of the output."""
        if self.is_empty:
            self._head = {name: response[name] for name in _HEAD if name in response}
        self._usages.append(value_of(response.get("usage")))
        self._output += items_of(response)
        if not onward.note:
            return None
        name = str(value_of(self._head.get("id")) or "interpose").removeprefix("resp_")
        item = message(onward.note_id or f"msg_{name}_{place}", onward.note)
        self._output.append(msgspec.Raw(write_json(item)))
        return item

    def told(self, response: RawObject) -> RawObject:
        """The last response as the client gets it: with the first one's head, all items, and the cost of all."""
        if self.is_empty:
            return response
        told = {name: value for name, value in response.items() if name in self._head or name not in _HEAD}
        told |= {**self._head, "output": msgspec.Raw(write_json([*self._output, *items_of(response)]))}
        usage = value_of(response.get("usage"))
        if isinstance(usage, dict):
            told["usage"] = msgspec.Raw(write_json(self._summed(usage)))
        return told

    def _summed(self, usage: dict[str, Any]) -> dict[str, Any]:
        spent = sum(_count(earlier, "output_tokens") for earlier in self._usages)
        total = usage | {name: _count(usage, name) + spent for name in _SPENT if name in usage}
        details = usage.get("output_tokens_details")
        if isinstance(details, dict) and "reasoning_tokens" in details:
            each = [*(_details(earlier) for earlier in self._usages), details]
            thought = sum(_count(one, "reasoning_tokens") for one in each)
            total["output_tokens_details"] = {**details, "reasoning_tokens": thought}
        return total


class ResponsesReply(WholeReply):
    """The port `ReplyStream` for replies that come whole; the client's body is its last step."""

    def __init__(self) -> None:
        super().__init__()
        self._earlier = Earlier()
        self._place = 0

    def _judged_body(self, body: bytes) -> Steps:
        top = open_body(body)
        if not has_items(top):
            refuse_foreign("responses", object_of(body))
        tally = Tally()
        changed = yield from judged_response(top, {}, tally)
        response = top if changed is None else changed
        if value_of(top.get("status")) not in _UNFINISHED and has_items(top):
            answer = yield tally.over(body, response)
            if isinstance(answer, Onward):
                self._place += tally.last + 1
                self._place += self._earlier.add(response, answer, self._place) is not None
                return
        if changed is None and self._earlier.is_empty:
            yield body
            return
        yield write_json(self._earlier.told(response))


def judged_response(
    response: RawObject, settled: Mapping[Identity, Settled], tally: Tally, first: int = 0
) -> Generator[ProposedCall, Answer, RawObject | None]:
    """The response with each call replaced by what became of it; None when it stays as it is.

    A call that was `settled` before is asked for again only when it now says something else. `first` is the place of
    its first item in what the client gets.
    """
    if not has_items(response):
        return None
    items = open_array(response["output"])
    tally.note(first + len(items) - 1)
    judged: list[msgspec.Raw] = []
    for place, raw in enumerate(items, first):
        if not is_call(value_of(raw)):
            judged.append(raw)
            continue
        known = settled.get(identity(value_of(raw)))
        call = _as_settled(settled, value_of(raw), read_call(raw))
        if known is None or (known.outcome != "gone" and known.call != call):
            known = yield from asked(raw, call, tally.ids if known is None else CallIds())
            tally.add(place, known)
        item = raw if known.outcome == "released" else known.item
        if item is not None:
            judged.append(item)
    if is_same(judged, items):
        return None
    return {**response, "output": msgspec.Raw(write_json(judged))}


def asked(raw: msgspec.Raw, read: ProposedCall, ids: CallIds) -> Asking:
    """Asks for one call; what becomes of it. `ids` are those of the calls of its reply."""
    call = ids.own(read)
    verdict = answered((yield call))
    if not verdict.allowed:
        return _refused(raw, read, call, refused_line(call.name, verdict))
    if verdict.arguments is None:
        return Settled(read, raw, "released")
    rewritten = with_arguments(raw, verdict.arguments)
    if rewritten is not None:
        return Settled(read, rewritten, "rewritten")
    refusal = Refusal("interpose", "it was to be changed, and a call of this kind cannot be")
    return _refused(raw, read, call, refusal_line(call.name, refusal))


def identity(item: Json) -> Identity:
    """Which item this is; the same in the events of a stream and in the response at its end."""
    if not isinstance(item, dict):
        return "", ""
    return str(item.get("id") or ""), str(item.get("call_id") or "")


def has_items(response: RawObject) -> bool:
    """Whether the response has a list of output items."""
    output = response.get("output")
    return output is not None and bytes(output).startswith(b"[")


def items_of(response: RawObject) -> list[msgspec.Raw]:
    """The output items of a response; none where it has no list of them."""
    return open_array(response["output"]) if has_items(response) else []


def _as_settled(settled: Mapping[Identity, Settled], item: Json, call: ProposedCall) -> ProposedCall:
    """The call; one that was told of before under another name is read otherwise by each client."""
    ids = {one for one in identity(item) if one}
    named = (one.call.name for known, one in settled.items() if ids & set(known))
    if all(name == call.name for name in named):
        return call
    return unknown_call(call.call_id, item.get("type") if isinstance(item, dict) else None, DIFFER)


def _refused(raw: msgspec.Raw, read: ProposedCall, call: ProposedCall, line: str) -> Settled:
    told = told_message(raw, line)
    refused = RefusedCall(call, line, entry_of(raw, call), told["id"])
    return Settled(read, msgspec.Raw(write_json(told)), "gone", refused)


def _reason(response: RawObject, status: Json) -> str | None:
    """The status, or what a response is incomplete for."""
    details = value_of(response.get("incomplete_details"))
    reason = details.get("reason") if isinstance(details, dict) else None
    told = reason or status
    return told if isinstance(told, str) else None


def _details(usage: Json) -> Json:
    return usage.get("output_tokens_details") if isinstance(usage, dict) else None


def _count(value: Json, name: str) -> int:
    count = value.get(name) if isinstance(value, dict) else None
    return count if isinstance(count, int) else 0
