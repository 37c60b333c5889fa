"""A whole chat completion: put together from its chunks, taken apart into them, or said by interpose itself.

Knows: choices, messages and their deltas. Does not know: verdicts, requests, who sends it.
Source: https://platform.openai.com/docs/api-reference/chat-streaming.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.bodies import content_text, object_of
from interpose.gateway.chat.calls import LEGACY, THOUGHTS
from interpose.gateway.chat.choice import Choice
from interpose.gateway.chat.chunks import DONE, events_of, finishes_in, is_done
from interpose.gateway.runs import STRING, Part, Text, told
from interpose.kernel.ids import random_id
from interpose.wire.jsonbytes import write_json
from interpose.wire.sse import SseEvent
from interpose.wire.strictjson import join_pieces

WHOLE = "chat.completion"
CHUNK = "chat.completion.chunk"

_GROWING = ("content", "refusal", *THOUGHTS)
"""Members of a message that come in pieces."""

_LISTED = ("content", "annotations", "reasoning_details")
TEXT = Text(re.compile(rb'"(content)"\s*:\s*(' + STRING + rb")"), name=b"content")
"""How texts are written that follow each other."""

_CONTENT = re.compile(rb'"content"\s*:\s*(null|' + STRING + rb"|)")
"""Each content; nothing where it is no text."""

_REFUSAL = re.compile(rb'"refusal"\s*:\s*[^\sn]')
_ESCAPE = b"\\u00"
"""How a letter may be written that a mark is then not found by."""


class _Incoherent(ValueError):  # noqa: N818 - says what the chunks are
    """Chunks that do not add up to a completion."""


def collected(raw: bytes) -> JsonObject | None:
    """The completion that the chunks add up to; None when a part of it comes in pieces that nobody knows to join."""
    try:
        return _Collecting().of(events_of(raw))
    except (_Incoherent, AttributeError, TypeError):
        return None


def spoken(raw: bytes, parts: Sequence[Part] = ()) -> str:
    """What a streamed completion tells the person."""
    texts, rest = told(parts or (raw,), _CONTENT, TEXT)
    if texts is not None and _is_quick(rest):
        return join_pieces([text for text in texts if text is not None])
    return text_of(collected(raw) or {})


def _is_quick(raw: bytes) -> bool:
    """Whether it is one choice, for each has a finish of its own, without a refusal or letters written as escapes."""
    if raw.find(_ESCAPE) >= 0 or finishes_in(raw) > 1:
        return False
    return raw.find(b'"refusal"') < 0 or _REFUSAL.search(raw) is None


def text_of(completion: JsonObject) -> str:
    """The text of a completion's first choice, or what the model says in its place when it refuses."""
    choices = completion.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        return ""
    refusal = message.get("refusal")
    return content_text(message.get("content")) or (refusal if isinstance(refusal, str) else "")


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


class _Collecting:
    """A completion on its way in."""

    def __init__(self) -> None:
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
            self._choices.setdefault(said.get("index", 0), _CollectedChoice()).add(said)


class _CollectedChoice:
    """One choice on its way in."""

    def __init__(self) -> None:
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
                self._message[key] = _joined(key, self._message.get(key), value)

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
