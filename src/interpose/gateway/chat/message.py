"""A whole chat completion: put together from its chunks, taken apart into them, or said by interpose itself.

Knows: choices, messages and their deltas. Does not know: verdicts, requests, who sends it.
Source: https://platform.openai.com/docs/api-reference/chat-streaming.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.bodies import content_text, object_of
from interpose.gateway.chat.calls import LEGACY, THOUGHTS
from interpose.gateway.chat.choice import Choice
from interpose.gateway.chat.chunks import DONE, events_of, is_done
from interpose.gateway.marks import GAP
from interpose.gateway.runs import STRING, Part, Text, hides_letter, told
from interpose.kernel.ids import random_id
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent
from interpose.wire.strictjson import join_pieces

WHOLE = "chat.completion"
CHUNK = "chat.completion.chunk"

_GROWING = ("content", "refusal", *THOUGHTS)
"""Members of a message that come in pieces."""

_LISTED = ("content", "annotations", "reasoning_details")

_FLAT = rb"[^{}\[\]\r\n]*"
"""Members of an object that have no members themselves."""

_OTHER_CHOICE = re.compile(rb'"index"\s*:\s*[^0\s]')
_REFUSAL = re.compile(rb'"refusal"\s*:\s*"[^"]')
Join: TypeAlias = Callable[[str, Json, Json], Json]


class _Incoherent(ValueError):  # noqa: N818 - says what the chunks are
    """Chunks that do not add up to a completion."""


def _hides(raw: bytes) -> bool:
    """Whether there may be another choice than the first, a refusal, or a key that is not found."""
    return hides_letter(raw) or _OTHER_CHOICE.search(raw) is not None or _REFUSAL.search(raw) is not None


TEXT = Text(
    pattern=re.compile(rb'"(content)"\s*:\s*(' + STRING + rb")"),
    name=b"content",
    place=re.compile(
        rb"data:(?<=^data:) ?\{" + _FLAT + rb'"choices"\s*:\s*\[\s*\{' + _FLAT + rb'"delta"\s*:\s*\{' + _FLAT + rb"?"
        rb'"content"\s*:\s*(null|' + STRING + rb"|)",
        re.MULTILINE,
    ),
    key=b'"content"',
    hides=_hides,
)
"""How texts are written."""


def collected(raw: bytes) -> JsonObject | None:
    """The completion that the chunks add up to; None when a part of it comes in pieces that nobody knows to join."""
    return _collected(raw, _joined)


def shown(raw: bytes) -> JsonObject | None:
    """As `collected`, where it need not be exact: what nobody knows to join is there as it came last."""
    return _collected(raw, _joined_or_last)


def spoken(raw: bytes, parts: Sequence[Part] = ()) -> str:
    """What the first choice of a streamed completion tells the person, whatever else comes with it."""
    texts = told(parts or (raw,), TEXT)
    return join_pieces(texts or []) or _text_in(events_of(raw))


def text_of(completion: JsonObject) -> str:
    """The text of a completion's first choice, and what the model says behind it, or in its place, when it refuses."""
    choices = completion.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        return ""
    refusal = message.get("refusal")
    return _told(content_text(message.get("content")), refusal if isinstance(refusal, str) else "")


def said(text: str, model: str | None) -> JsonObject:
    """A completion that says `text` and is done."""
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": f"chatcmpl-{random_id('interpose', 16)}",
        "object": WHOLE,
        "created": 0,
        "model": model or "interpose",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


def as_stream(completion: JsonObject) -> bytes:
    """The chunks of a whole completion: each part of a message in one, all unknown members kept where they were.

    The usage comes with the last finish: readers that want it in a chunk of its own take it from there too.
    """
    events = [SseEvent.build(None, write_json(chunk)).raw for chunk in _chunks(completion)]
    return b"".join([*events, SseEvent.build(None, DONE).raw])


def _text_in(events: Iterable[SseEvent]) -> str:
    """The text of the first choice and its refusal; unlike those of `collected` the chunks need not add up."""
    contents: dict[int, list[str]] = {}
    refusals: dict[int, list[str]] = {}
    for event in events:
        choices = object_of(event.data).get("choices")
        for said in choices if isinstance(choices, list) else ():
            message = _message_in(said)
            index = said.get("index") if isinstance(said, dict) else None
            place = index if isinstance(index, int) else 0
            refusal = message.get("refusal")
            contents.setdefault(place, []).append(content_text(message.get("content")))
            refusals.setdefault(place, []).append(refusal if isinstance(refusal, str) else "")
    first = 0 if 0 in contents else next(iter(contents), 0)
    return _told(join_pieces(contents.get(first, [])), join_pieces(refusals.get(first, [])))


def _told(content: str, refusal: str) -> str:
    return GAP.join(text for text in (content, refusal) if text)


def _message_in(said: Json) -> JsonObject:
    """What a choice adds to its message; some servers have no delta, and the message whole."""
    found = (said.get(name) for name in ("delta", "message")) if isinstance(said, dict) else ()
    return next((value for value in found if isinstance(value, dict)), {})


def _collected(raw: bytes, join: Join) -> JsonObject | None:
    try:
        return _Collecting(join).of(events_of(raw))
    except (_Incoherent, AttributeError, TypeError):
        return None


class _Collecting:
    """A completion on its way in."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._top: dict[str, Any] = {}
        self._choices: dict[Json, _CollectedChoice] = {}
        self._is_begun = False

    def of(self, events: list[SseEvent]) -> JsonObject:
        for event in events:
            data = event.data
            if data is not None and not is_done(data):
                self._take(object_of(data))
        if not self._is_begun:
            raise _Incoherent("no chunk came")
        top = {key: WHOLE if (key, value) == ("object", CHUNK) else value for key, value in self._top.items()}
        return {**top, "choices": [choice.complete() for choice in self._choices.values()]}

    def _take(self, chunk: JsonObject) -> None:
        choices = chunk.get("choices")
        if not isinstance(choices, list) or chunk.get("error"):
            raise _Incoherent("no chunk, or an error of the provider")
        self._is_begun = True
        _keep_newest(self._top, {key: value for key, value in chunk.items() if key != "choices"})
        for said in choices:
            self._choices.setdefault(said.get("index", 0), _CollectedChoice(self._join)).add(said)


class _CollectedChoice:
    """One choice on its way in."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._fields: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._calls = Choice()
        self._has_calls = False

    def add(self, said: JsonObject) -> None:
        delta = said.get("delta") or {}
        _keep_newest(self._fields, {key: value for key, value in said.items() if key not in ("delta", "logprobs")})
        self._add_logprobs(said)
        self._has_calls = self._has_calls or isinstance(delta.get("tool_calls"), list)
        self._calls.add(delta)
        for key, value in delta.items():
            if key not in ("tool_calls", LEGACY) or value is None:
                self._message[key] = self._join(key, self._message.get(key), value)

    def complete(self) -> JsonObject:
        message = dict(self._message)
        calls: list[Json] = []
        for call in self._calls.calls:
            entry = call.complete()
            if call.is_legacy:
                message[LEGACY] = entry["function"]
            else:
                calls.append({key: value for key, value in entry.items() if key != "index"})
        if calls or self._has_calls:
            message["tool_calls"] = calls
        return {**self._fields, "message": message}

    def _add_logprobs(self, said: JsonObject) -> None:
        if "logprobs" not in said:
            return
        fresh = said["logprobs"]
        known = self._fields.get("logprobs")
        if known is None or fresh is None:
            self._fields["logprobs"] = known if fresh is None else fresh
            return
        self._fields["logprobs"] = {
            **known,
            **{key: [*(known.get(key) or []), *value] for key, value in fresh.items() if value is not None},
        }


def _joined(key: str, known: Json, fresh: Json) -> Json:
    """A member of a message with what one more delta says of it. Raises _Incoherent when the two cannot be joined."""
    if known is None or fresh is None:
        return fresh if known is None else known
    match known, fresh:
        case (str(), str()) if key in _GROWING:
            return known + fresh
        case ("", _) | (_, "") if key in _GROWING:
            return known or fresh
        case (list(), list()) if key in _LISTED:
            return [*known, *fresh]
        case (dict(), dict()) if key == "audio":
            pieces = {name: known.get(name, "") + fresh[name] for name in ("data", "transcript") if name in fresh}
            return {**known, **fresh, **pieces}
        case _ if key == "role" and known == fresh:
            return known
        case _:
            raise _Incoherent(f"{key} comes in pieces")


def _joined_or_last(key: str, known: Json, fresh: Json) -> Json:
    """As `_joined`; of what cannot be joined what came last, and of a text with parts all of them."""
    try:
        return _joined(key, known, fresh)
    except _Incoherent:
        return [*_parts(known), *_parts(fresh)] if key == "content" else fresh


def _parts(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _keep_newest(known: dict[str, Any], fresh: JsonObject) -> None:
    for key, value in fresh.items():
        if value is not None or key not in known:
            known[key] = value


def _chunks(completion: JsonObject) -> Iterator[JsonObject]:
    head = {key: value for key, value in completion.items() if key not in ("choices", "usage")}
    if head.get("object") == WHOLE:
        head["object"] = CHUNK
    usage = {"usage": completion["usage"]} if "usage" in completion else {}
    given = completion.get("choices")
    choices = given if isinstance(given, list) else []
    for place, choice in enumerate(choices):
        frame = {key: value for key, value in choice.items() if key not in ("message", "logprobs", "finish_reason")}
        for delta in _deltas(choice.get("message") or {}):
            unfinished = {"finish_reason": None} if "finish_reason" in choice else {}
            yield {**head, "choices": [{**frame, "delta": delta, **unfinished}]}
        ended = {key: choice[key] for key in ("logprobs", "finish_reason") if key in choice}
        yield {**head, "choices": [{**frame, "delta": {}, **ended}], **(usage if place == len(choices) - 1 else {})}
    if not choices:
        yield {**head, "choices": [], **usage}


def _deltas(message: JsonObject) -> Iterator[JsonObject]:
    yield {key: value for key, value in message.items() if key not in ("content", "tool_calls", LEGACY)}
    if "content" in message:
        yield {"content": message["content"]}
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        yield {"tool_calls": [{"index": index, **entry} for index, entry in enumerate(calls)]}
    elif "tool_calls" in message:
        yield {"tool_calls": calls}
    if LEGACY in message:
        yield {LEGACY: message[LEGACY]}
