"""What one chunk of a chat stream says, and how it looks within a reply that has begun earlier.

Knows: chunks, deltas, usage. Does not know: verdicts, order of chunks.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.bodies import object_of
from interpose.gateway.chat.calls import LEGACY, entries_of
from interpose.gateway.marks import GAP, told
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent, SseReader, split

DONE = b"[DONE]"
CALL_REASONS = ("tool_calls", "function_call")
"""The finish reasons that tell the client to run calls."""

NATURAL = ("stop", *CALL_REASONS)
"""Why a model stops by itself."""

_CALL_MARK = b"_call"
"""In both forms of a call and in both of its finishes."""

CALL = re.compile(rb"_call|\\u00[2-7]")
"""In an event that cannot be read: a call may stand in it; an escape may hide that."""

TEXT_MARK = re.compile(rb'"content"\s*:\s*"[^"]')
"""How a text looks that is not empty."""

_FINISH_MARK = re.compile(rb'finish_reason"\s*:\s*[^\sn]')
_FINISHES = (b'finish_reason":"', b'finish_reason": "')
"""How nearly all servers write a finish: found ten times as fast as by the pattern, which is left for the others."""

_ESCAPE = b"\\"
_LETTER = b"\\u00"
"""How an escape begins that stands for a letter of a mark."""

_REASON = b'finish_reason"'
_NO_REASON = (b'finish_reason":null', b'finish_reason": null')
_BRACE = ord("}")
_END_BYTES = 64

_HEAD = ("id", "created", "model", "system_fingerprint")
"""Members that are the same in all chunks of a reply."""

_NO_HEAD = ("choices", "usage", "obfuscation")
"""Members that say something of one chunk only."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the client has of earlier replies of the model within the same one.

    `head` are the members of their chunks, `spent` what they cost; `owes_gap` says that the next text must be parted
    from theirs.
    """

    head: JsonObject
    spent: JsonObject
    owes_gap: bool = True

    def carried(self, event: SseEvent, chunk: JsonObject) -> tuple[SseEvent | None, JsonObject, "Earlier"]:
        """A later reply's chunk as it belongs to this one, None when it only begins it; and what is known then."""
        given = chunk.get("choices")
        if not isinstance(given, list):
            return event, chunk, self
        fresh = {**chunk, **{key: self.head[key] for key in _HEAD if key in chunk and key in self.head}}
        has_usage = isinstance(chunk.get("usage"), dict)
        if has_usage:
            fresh["usage"] = with_spent(chunk["usage"], self.spent)
        choices = [_without_role(said) for said in given]
        after = self
        if self.owes_gap:
            choices = [_parted(said) for said in choices]
            after = replace(self, owes_gap=not any(has_text(said) for said in given))
        if given and not has_usage and not any(_says_anything(said) for said in choices):
            return None, fresh, after
        fresh["choices"] = choices
        return event.with_data(write_json(fresh)), fresh, after

    def note(self, text: str, newline: bytes) -> bytes:
        """A chunk in which something of ours is told."""
        choice = {"index": 0, "delta": {"content": told(text, has_text=self.owes_gap)}, "finish_reason": None}
        return SseEvent.build(None, write_json({**self.head, "choices": [choice]}), newline).raw


def earlier_of(raw: bytes, before: Earlier | None, *, has_text: bool) -> Earlier:
    """What the client has when the reply `raw` is over too."""
    chunks = [chunk for event in events_of(raw) if "choices" in (chunk := object_of(event.data))]
    usage = next((chunk["usage"] for chunk in reversed(chunks) if isinstance(chunk.get("usage"), dict)), None)
    if before is not None:
        spent = before.spent if usage is None else with_spent(usage, before.spent)
        return Earlier(before.head, spent, owes_gap=has_text)
    first = chunks[0] if chunks else {}
    head = {key: value for key, value in first.items() if key not in _NO_HEAD}
    return Earlier(head, usage or {}, owes_gap=has_text)


def events_of(raw: bytes) -> list[SseEvent]:
    """All events of a stream that is over, also a last one that does not end."""
    reader = SseReader()
    events = reader.feed(raw)
    last, rest = reader.finish()
    return [*events, *last, *([SseEvent(rest, reader.opens)] if rest else [])]


def with_spent(usage: JsonObject, spent: JsonObject) -> JsonObject:
    """The usage of a reply with what earlier ones of the model wrote; what they read is counted once."""
    counts = {"completion_tokens": _count(spent, "completion_tokens")}
    counts["total_tokens"] = counts["completion_tokens"]
    total = {**usage, **{key: _count(usage, key) + more for key, more in counts.items() if key in usage}}
    details, earlier = usage.get("completion_tokens_details"), spent.get("completion_tokens_details")
    if isinstance(details, dict) and isinstance(earlier, dict):
        sums = {key: _count(details, key) + _count(earlier, key) for key in details if _is_count(details[key])}
        total["completion_tokens_details"] = {**details, **sums}
    return total


def first_mark(raw: bytes) -> int:
    """Where the first byte stands that matters while no call is held, or -1; an escape may hide a mark.

    A finish and the end are looked for at the end of a read: a finish which more of its choice follows within the same
    one, as hardly any server sends it, is not noticed; see `finishes_in`.
    """
    call, escape = raw.find(_CALL_MARK), raw.find(_ESCAPE)  # quicker than `in`
    goes_on = call < 0 and escape < 0 and raw.startswith(_NO_REASON, raw.rfind(_REASON))
    if goes_on and (raw[-3] == _BRACE or raw.find(DONE, -_END_BYTES) < 0):  # as nearly all reads: a text, no end
        return -1
    letter = raw.find(_LETTER, escape) if escape >= 0 else -1
    places = (call, letter, raw.find(DONE), _first_finish(raw))
    return min((at for at in places if at >= 0), default=-1)


def told_as_deltas(event: SseEvent, chunk: JsonObject) -> tuple[SseEvent, JsonObject]:
    """The chunk with calls only where they belong; the same where they are.

    Some servers put a whole message into a chunk, and some clients run the calls in it.
    """
    given = chunk.get("choices")
    choices = given if isinstance(given, list) else []
    if not any(isinstance(said, dict) and _has_calls(said.get("message")) for said in choices):
        return event, chunk
    fresh = {**chunk, "choices": [_as_delta(said) for said in choices]}
    return event.with_data(write_json(fresh)), fresh


def _first_finish(raw: bytes) -> int:
    found = [at for at in map(raw.find, _FINISHES) if at >= 0]
    if found:
        return min(found)
    other = _FINISH_MARK.search(raw)
    return -1 if other is None else other.start()


def finishes_in(raw: bytes) -> int:
    """How many finishes a reply seems to have, those that left unnoticed among them."""
    return sum(map(raw.count, _FINISHES)) or len(_FINISH_MARK.findall(raw))


def tells_error(block: bytes) -> bool:
    """Whether the provider ended the stream with an error."""
    return b"error" in block and any(bool(object_of(event.data).get("error")) for event in split(block))


def is_done(data: bytes | None) -> bool:
    """Whether the stream says that it is over."""
    return data is not None and data.strip() == DONE


def proposes(said: Json) -> bool:
    """Whether a choice has a piece of a call."""
    delta = said.get("delta") if isinstance(said, dict) else None
    return _has_calls(delta)


def is_finish(said: Json) -> bool:
    """Whether a choice says why it is finished."""
    return isinstance(said, dict) and said.get("finish_reason") is not None


def closes(chunk: JsonObject) -> bool:
    """Whether a client needs this chunk to know that the reply is over."""
    choices = chunk.get("choices")
    return "error" in chunk or (isinstance(choices, list) and any(map(is_finish, choices)))


def ends_in_call(said: Json) -> bool:
    """Whether a choice is finished with calls that the client is to run."""
    return isinstance(said, dict) and said.get("finish_reason") in CALL_REASONS


def has_text(said: Json) -> bool:
    """Whether a choice says something."""
    delta = said.get("delta") if isinstance(said, dict) else None
    return isinstance(delta, dict) and bool(delta.get("content"))


def with_delta(
    event: SseEvent, chunk: JsonObject, said: JsonObject, delta: dict[str, Any], finish_reason: Json
) -> SseEvent:
    """The event with another delta and finish in its one choice."""
    choice = {**said, "delta": delta, "finish_reason": finish_reason}
    return event.with_data(write_json({**chunk, "choices": [choice]}))


def finished_as_stop(event: SseEvent) -> SseEvent:
    """The event with `stop` where it says that calls are to be run."""
    chunk = object_of(event.data)
    said = chunk["choices"][0]
    if not ends_in_call(said):
        return event
    return event.with_data(write_json({**chunk, "choices": [{**said, "finish_reason": "stop"}]}))


def _has_calls(said: Json) -> bool:
    return isinstance(said, dict) and (bool(said.get("tool_calls")) or isinstance(said.get(LEGACY), dict))


def _as_delta(said: Json) -> Json:
    message = said.get("message") if isinstance(said, dict) else None
    if not isinstance(message, dict) or not _has_calls(message):
        return said
    rest = {key: value for key, value in said.items() if key != "message"}
    delta = said.get("delta")
    calls = [{"index": place, **entry} for place, entry in enumerate(entries_of(message.get("tool_calls")))]
    told = {**message, "tool_calls": calls} if calls else message
    return {**rest, "delta": {**told, **(delta if isinstance(delta, dict) else {})}}


def _without_role(said: Json) -> Json:
    """The choice in a message that has begun."""
    delta = said.get("delta") if isinstance(said, dict) else None
    if not isinstance(delta, dict) or "role" not in delta:
        return said
    return {**said, "delta": {key: value for key, value in delta.items() if key != "role"}}


def _parted(said: Json) -> Json:
    """The choice with its text parted from the one before."""
    delta = said.get("delta") if isinstance(said, dict) else None
    content = delta.get("content") if isinstance(delta, dict) else None
    if not isinstance(content, str) or not content:
        return said
    return {**said, "delta": {**said["delta"], "content": f"{GAP}{content}"}}


def _says_anything(said: Json) -> bool:
    """Whether a choice has more than the beginning of a message, which is an empty text."""
    if not isinstance(said, dict) or is_finish(said):
        return True
    delta = said.get("delta")
    return isinstance(delta, dict) and any(value not in ("", None) for value in delta.values())


def _is_count(value: Json) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _count(usage: JsonObject, key: str) -> int:
    value = usage.get(key)
    return value if _is_count(value) else 0
