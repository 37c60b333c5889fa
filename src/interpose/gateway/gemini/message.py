"""A whole reply of the model: put together from its chunks, told as one, or said by interpose itself.

Knows: chunks of events and of one array. Does not know: verdicts, requests, who sends it.
Source: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse.
"""

from collections.abc import Sequence
from typing import Any

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.gemini.parts import ONE_TEXT, OTHER_CANDIDATE, joined, spoken_text
from interpose.kernel.ids import random_id
from interpose.wire.jsonbytes import read_json, write_json
from interpose.wire.sse import SseEvent, split

BLANK = b"\xef\xbb\xbf \t\r\n"
"""What may stand before the first byte that tells events from an array."""

_END = b"\n\n"
"""What the last event of a stream may lack."""

_GROWING = ("citationMetadata", "logprobsResult")
"""Members of a candidate of which each chunk tells the lists of its own part."""


def collected(raw: bytes) -> JsonObject | None:
    """The reply that the chunks add up to; None when one of them cannot be read, or tells an error."""
    chunks = chunks_of(raw)
    if not chunks or any(chunk.get("error") is not None for chunk in chunks):
        return None
    if len(chunks) == 1:
        return chunks[0]
    try:
        return _together(chunks)
    except (AttributeError, TypeError):
        return None


def chunks_of(raw: bytes) -> list[JsonObject]:
    """The chunks of a stream; none when one of them is no object."""
    try:
        values = _values(raw)
    except ValueError:
        return []
    return values if isinstance(values, list) and all(isinstance(value, dict) for value in values) else []


def spoken(raw: bytes, parts: Sequence[bytes | str] = ()) -> str:  # noqa: ARG001 - all of it is looked at
    """What the first candidate of a streamed reply tells the person."""
    found = list(ONE_TEXT.finditer(raw))
    is_one = raw.count(b'"parts"') == len(found) <= raw.count(b'"candidates"')
    if is_one and OTHER_CANDIDATE.search(raw) is None:
        texts = [one["text"] for one in found if one["thought"] is None]
        try:
            return "".join(read_json(b'["' + b'","'.join(texts) + b'"]'))
        except ValueError:
            pass
    return text_of(collected(raw) or {})


def text_of(reply: JsonObject) -> str:
    """What the first candidate of a whole reply tells the person."""
    candidates = reply.get("candidates")
    if not isinstance(candidates, list) or not candidates:
        return ""
    return "".join(spoken_text(part) for part in parts_of(candidates[0]))


def parts_of(candidate: Json) -> list[Json]:
    """The parts of a candidate; none where it has no list of them."""
    content = candidate.get("content") if isinstance(candidate, dict) else None
    parts = content.get("parts") if isinstance(content, dict) else None
    return parts if isinstance(parts, list) else []


def said(text: str, model: str | None) -> JsonObject:
    """A reply that says `text` and is done."""
    return {
        **text_chunk(text, finishReason="STOP"),
        "usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0},
        "modelVersion": model or "interpose",
        "responseId": random_id("interpose", 16),
    }


def text_chunk(text: str, **members: Json) -> JsonObject:
    """A chunk that says `text`, with these members of its candidate."""
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, **members, "index": 0}]}


def as_stream(reply: JsonObject) -> bytes:
    """The events of a whole reply: one chunk has room for all of it."""
    return SseEvent.build(None, write_json(reply), b"\r\n").raw


def _values(raw: bytes) -> Json:
    if raw.lstrip(BLANK).startswith(b"["):
        return read_json(raw.removeprefix(b"\xef\xbb\xbf"))
    datas = [event.data for event in split(raw + _END, opens=True)]
    return [read_json(data) for data in datas if data is not None]


def _together(chunks: list[JsonObject]) -> JsonObject:
    whole: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    parts: dict[int, list[Json]] = {}
    for chunk in chunks:
        whole.update(chunk)
        for place, candidate in enumerate(chunk.get("candidates") or ()):
            index = candidate.get("index", place)
            candidates[index] = _grown(candidates.get(index, {}), candidate)
            parts.setdefault(index, []).extend(parts_of(candidate))
    for index, candidate in candidates.items():
        content = candidate.get("content") or {"role": "model"}
        candidate["content"] = {**content, "parts": joined(parts[index])}
    return {**whole, "candidates": list(candidates.values())} if candidates else whole


def _grown(former: dict[str, Any], candidate: JsonObject) -> dict[str, Any]:
    grown = {**former, **candidate, "content": {**(former.get("content") or {}), **(candidate.get("content") or {})}}
    for name in _GROWING:
        if name in former and name in candidate:
            grown[name] = _appended(former[name], candidate[name])
    return grown


def _appended(former: JsonObject, latter: JsonObject) -> JsonObject:
    lists = {name: former[name] + value for name, value in latter.items() if isinstance(former.get(name), list)}
    return {**former, **latter, **lists}
