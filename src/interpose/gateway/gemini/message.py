"""A whole reply of the model: put together from its chunks, told as one, or said by interpose itself.

Knows: chunks of events and of one array. Does not know: verdicts, requests, who sends it.
Source: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.bodies import object_of
from interpose.gateway.gemini.parts import ONE_TEXT, OTHER_CANDIDATE, joined, spoken_text
from interpose.gateway.runs import hides_letter
from interpose.kernel.ids import random_id
from interpose.wire.jsonarray import ArrayReader, ItemTooLong
from interpose.wire.jsonbytes import read_json, write_json
from interpose.wire.sse import SseEvent, split
from interpose.wire.strictjson import join_pieces

BLANK = b"\xef\xbb\xbf \t\r\n"
"""What may stand before the first byte that tells events from an array."""

_MARK = b"\xef\xbb\xbf"
_END = b"\n\n"
"""What the last event of a stream may lack."""

_ONE_TEXT = re.compile(
    rb'"candidates"\s*:\s*\[\s*\{\s*"content"\s*:\s*\{\s*(?:"role"\s*:\s*"\w*"\s*,\s*)?' + ONE_TEXT.pattern
)
"""A text where it belongs, and nothing else with it."""

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
    """What the first candidate of a streamed reply tells the person, whatever else comes with it."""
    found = list(_ONE_TEXT.finditer(raw))
    is_one = raw.count(b'"parts"') == len(found) and not hides_letter(raw)
    if is_one and OTHER_CANDIDATE.search(raw) is None:
        texts = [one["text"] for one in found if one["thought"] is None]
        try:
            told = join_pieces(read_json(b'["' + b'","'.join(texts) + b'"]'))
        except ValueError:
            told = ""
        if told:
            return told
    return _text_in(map(object_of, _datas(raw)))


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


def _text_in(chunks: Iterable[JsonObject]) -> str:
    """The text of the first candidate; unlike those of `collected` the chunks need not add up to a reply."""
    texts: dict[int, list[str]] = {}
    for chunk in chunks:
        candidates = chunk.get("candidates")
        named: dict[int, Json] = {}
        for place, candidate in enumerate(candidates if isinstance(candidates, list) else ()):
            index = candidate.get("index") if isinstance(candidate, dict) else None
            named.setdefault(index if isinstance(index, int) else place, candidate)
        for index, candidate in named.items():
            texts.setdefault(index, []).extend(map(spoken_text, parts_of(candidate)))
    first = 0 if 0 in texts else next(iter(texts), 0)
    return join_pieces(texts.get(first, []))


def _values(raw: bytes) -> Json:
    if _is_array(raw):
        return read_json(raw.removeprefix(_MARK))
    return [read_json(data) for data in _datas(raw)]


def _datas(raw: bytes) -> list[bytes]:
    """What the chunks say, one by one; of an array that breaks off those that came whole."""
    if not _is_array(raw):
        datas = [event.data for event in split(raw + _END, opens=True)]
        return [data for data in datas if data is not None]
    try:
        return [piece.raw for piece in ArrayReader().feed(raw.removeprefix(_MARK)) if piece.is_item]
    except ItemTooLong:
        return []


def _is_array(raw: bytes) -> bool:
    return raw.lstrip(BLANK).startswith(b"[")


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
