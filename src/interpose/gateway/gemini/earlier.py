"""What a reply of the client's owes to earlier replies of the model: one head, and all that was spent.

Knows: the members of a chunk around its parts. Does not know: calls, verdicts, streams.
Source: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.bodies import RawObject, open_array, open_object, value_of
from interpose.gateway.gemini.candidates import items_of
from interpose.wire.jsonbytes import write_json

_HEAD = ("responseId", "modelVersion")
_SPENT = ("candidatesTokenCount", "thoughtsTokenCount")
_TOTAL = "totalTokenCount"
_DETAILS = "candidatesTokensDetails"
_END = ("finishReason", "finishMessage")
_FORM = frozenset({"content", "index", "safetyRatings", "tokenCount", "avgLogprobs"})
"""Members of a candidate that say nothing by themselves."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The first reply's head, and the tokens that all replies so far have cost."""

    head: JsonObject = field(default_factory=dict)
    spent: JsonObject = field(default_factory=dict)

    def after(self, chunks: Sequence[JsonObject]) -> "Earlier":
        """The same when one more reply is over."""
        head = self.head or {name: chunks[0][name] for name in _HEAD if chunks and name in chunks[0]}
        usages = (chunk.get("usageMetadata") for chunk in reversed(chunks))
        usage: JsonObject = next((usage for usage in usages if isinstance(usage, dict)), {})
        return Earlier(head, {name: _count(self.spent, name) + _count(usage, name) for name in _SPENT})

    def told(self, chunk: RawObject) -> RawObject:
        """A chunk of a later reply as one of the client's; what was spent is counted in."""
        if "error" in chunk:
            return chunk
        heads = {name: msgspec.Raw(write_json(value)) for name, value in self.head.items()}
        usage = value_of(chunk.get("usageMetadata"))
        if not isinstance(usage, dict):
            return {**chunk, **heads}
        return {**chunk, "usageMetadata": msgspec.Raw(write_json(self._summed(usage))), **heads}

    def _summed(self, usage: dict[str, Any]) -> dict[str, Json]:
        summed = {name: value for name, value in usage.items() if name != _DETAILS}
        for name in _SPENT:
            if name in usage or _count(self.spent, name):
                summed[name] = _count(usage, name) + _count(self.spent, name)
        if _TOTAL in usage:
            summed[_TOTAL] = _count(usage, _TOTAL) + sum(_count(self.spent, name) for name in _SPENT)
        return summed


def without_end(chunk: RawObject) -> RawObject | None:
    """What of a last chunk the client is told when another reply follows; None when that is nothing."""
    told: list[RawObject] = []
    for raw in items_of(chunk):
        fields = {name: value for name, value in open_object(raw).items() if name not in _END}
        parts = parts_of(fields)
        if not parts and fields.keys() <= _FORM:
            continue
        content = value_of(fields.get("content"))
        members = content if isinstance(content, dict) else {"role": "model"}
        fields["content"] = msgspec.Raw(write_json({**members, "parts": parts}))
        told.append(fields)
    return {**chunk, "candidates": msgspec.Raw(write_json(told))} if told else None


def parts_of(candidate: RawObject) -> list[msgspec.Raw]:
    """The parts of a candidate that say something; none where it has no list of them."""
    content = value_of(candidate.get("content"))
    if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
        return []
    parts = open_array(open_object(candidate["content"])["parts"])
    return [part for part in parts if value_of(part) != {"text": ""}]


def _count(usage: JsonObject, name: str) -> int:
    tokens = usage.get(name)
    return tokens if isinstance(tokens, int) else 0
