"""The candidates of a reply or a chunk of one: their calls judged, refused ones told as text in their place.

Knows: candidates, their contents and parts. Does not know: streams, the ends of replies, sockets.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from interpose.contracts.json import Json
from interpose.gateway.api import Answer, ProposedCall, RefusedCall, RoundOver, answered
from interpose.gateway.bodies import RawObject, is_same, open_array, open_object, value_of
from interpose.gateway.gemini.parts import SIGNATURE, is_call, member, read_call, spoken_text, with_arguments
from interpose.gateway.marks import told
from interpose.gateway.wording import refused_line
from interpose.wire.jsonbytes import write_json

_NATURAL = "STOP"
"""Why a model stops by itself."""

_NOTHING = {"text": ""}


@dataclass(slots=True)
class Candidate:
    """What one candidate has said so far, over all its chunks.

    Attributes:
        has_text: whether the person was told anything.
        is_parting: whether a line of ours was told last, so that a text of the model's must stand apart from it.
        is_last: whether nothing of the model's stands behind its last refused call.
        released: how many calls the agent has got.
        signature: that of a refused call, until a released one takes it: the provider wants it back with the first
            call of the content.
    """

    has_text: bool = False
    is_parting: bool = False
    is_last: bool = True
    released: int = 0
    signature: msgspec.Raw | None = None

    def tell(self, line: str) -> str:
        """A line of ours as it follows on what was said."""
        text = told(line, has_text=self.has_text)
        self.has_text = self.is_parting = self.is_last = True
        return text


@dataclass(slots=True)
class Candidates:
    """The candidates of one reply of the client's, by index, and what of the model's present one was refused."""

    refused: list[RefusedCall] = field(default_factory=list)
    _known: dict[str, Candidate] = field(default_factory=dict)

    def at(self, index: Json, place: int = 0) -> Candidate:
        """The candidate with this index; one without is known by its place in the chunk."""
        return self._known.setdefault(str(place if index is None else index), Candidate())

    @property
    def is_parting(self) -> bool:
        """Whether a text that comes next may have to stand apart."""
        return any(candidate.is_parting for candidate in self._known.values())

    def over(self, raw: bytes, reason: str | None) -> RoundOver:
        """The end of a reply of the model. Of several candidates none can be gone on with."""
        is_last = not self.refused or all(candidate.is_last for candidate in self._known.values())
        return RoundOver(
            raw=raw,
            refused=tuple(self.refused),
            released=sum(candidate.released for candidate in self._known.values()),
            stop_reason=reason,
            is_natural=reason == _NATURAL and len(self._known) <= 1 and is_last,
        )

    def begin_next(self) -> None:
        """Another reply of the model follows on what the client has."""
        self.refused = []
        for candidate in self._known.values():
            candidate.is_last, candidate.released, candidate.signature = True, 0, None


Asking: TypeAlias = Generator[ProposedCall, Answer, RawObject | None]


def judged_chunk(chunk: RawObject, candidates: Candidates) -> Asking:
    """The chunk with each call replaced by what became of it; None when it stays as it is."""
    items = items_of(chunk)
    judged: list[msgspec.Raw] = []
    for place, item in enumerate(items):
        changed = yield from _candidate(item, place, candidates)
        judged.append(item if changed is None else msgspec.Raw(write_json(changed)))
    if is_same(judged, items):
        return None
    return {**chunk, "candidates": msgspec.Raw(write_json(judged))}


def items_of(chunk: RawObject) -> list[msgspec.Raw]:
    """The candidates of a chunk as they came; none where there is no list of them."""
    raw = chunk.get("candidates")
    return open_array(raw) if raw is not None and bytes(raw).startswith(b"[") else []


def _candidate(raw: msgspec.Raw, place: int, candidates: Candidates) -> Asking:
    value = value_of(raw)
    if not isinstance(value, dict):
        return None
    candidate = candidates.at(value.get("index"), place)
    content = value.get("content")
    if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
        return None

    fields = open_object(raw)
    content_fields = open_object(fields["content"])
    parts = open_array(content_fields["parts"])
    judged: list[msgspec.Raw] = []
    for part in parts:
        changed = yield from _part(part, candidate, candidates.refused)
        judged.append(part if changed is None else msgspec.Raw(write_json(changed)))
    if is_same(judged, parts):
        return None
    changed_content = {**content_fields, "parts": msgspec.Raw(write_json(judged))}
    return {**fields, "content": msgspec.Raw(write_json(changed_content))}


def _part(raw: msgspec.Raw, candidate: Candidate, refused: list[RefusedCall]) -> Asking:
    value = value_of(raw)
    if not isinstance(value, dict):
        return None
    fields = open_object(raw)
    if not is_call(fields):
        return _passed(value, fields, candidate)

    own = member(fields, SIGNATURE)
    moved = candidate.signature if own is None else None
    known = fields if moved is None else {**fields, SIGNATURE[0]: moved}
    call = read_call(known, candidate.released)
    verdict = answered((yield call))
    if not verdict.allowed:
        line = refused_line(call.name, verdict)
        refused.append(RefusedCall(call, line, None if call.problem is not None else value))
        if not candidate.released:
            candidate.signature = candidate.signature or own
        return {"text": msgspec.Raw(write_json(candidate.tell(line)))}

    candidate.released += 1
    candidate.signature = None
    if verdict.arguments is not None:
        is_signed = member(known, SIGNATURE) is not None
        return with_arguments(known, verdict.arguments, "" if is_signed else call.call_id)
    return None if moved is None else known


def _passed(value: dict[str, Json], fields: RawObject, candidate: Candidate) -> RawObject | None:
    """A part that is no call; None when it leaves as it is."""
    if value == _NOTHING:
        return None
    candidate.is_last = False
    text = spoken_text(value)
    if not text:
        return None
    is_parting, candidate.is_parting = candidate.is_parting, False
    candidate.has_text = True
    return {**fields, "text": msgspec.Raw(write_json(told(text, has_text=True)))} if is_parting else None
