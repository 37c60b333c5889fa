"""The candidates of a reply or a chunk of one: their calls judged, refused ones told as text in their place.

Knows: candidates, their contents and parts. Does not know: streams, the ends of replies, sockets.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from interpose.contracts.json import Json
from interpose.contracts.verdict import Verdict
from interpose.gateway.api import CUT_SHORT, Answer, Dropped, ProposedCall, RefusedCall, RoundOver, answered, hindrance
from interpose.gateway.bodies import RawObject, is_same, open_array, open_object, value_of
from interpose.gateway.gemini.parts import SIGNATURE, is_call, member, own_id, read_call, spoken_text, with_arguments
from interpose.gateway.gemini.pieces import Pieces, begins, piece_of, signature_in
from interpose.gateway.marks import told
from interpose.gateway.proposed import CallIds
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
        pieces: a call that is not complete yet.
        ids: those of the calls of the model's present reply.
    """

    has_text: bool = False
    is_parting: bool = False
    is_last: bool = True
    released: int = 0
    signature: msgspec.Raw | None = None
    pieces: Pieces | None = None
    ids: CallIds = field(default_factory=CallIds)

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

    @property
    def is_holding(self) -> bool:
        """Whether a call is not complete yet."""
        return any(candidate.pieces is not None for candidate in self._known.values())

    def dropped(self, reason: str) -> Iterator[Dropped]:
        """Lets go of the calls that will never be complete."""
        for candidate in self._known.values():
            if candidate.pieces is not None:
                yield Dropped(candidate.pieces.call_id, candidate.pieces.name, reason)
                candidate.pieces = None

    def over(self, raw: bytes, reason: str | None) -> RoundOver:
        """The end of a reply of the model. Of several candidates none can be gone on with."""
        is_last = not self.refused or all(candidate.is_last for candidate in self._known.values())
        return RoundOver(
            raw=raw,
            refused=tuple(self.refused),
            released=sum(candidate.released for candidate in self._known.values()),
            stop_reason=reason,
            hindrance=hindrance(
                reason, is_natural=reason == _NATURAL, is_last=is_last, is_several=len(self._known) > 1
            ),
        )

    def begin_next(self) -> None:
        """Another reply of the model follows on what the client has."""
        self.refused = []
        for candidate in self._known.values():
            candidate.is_last, candidate.released, candidate.signature = True, 0, None
            candidate.ids = CallIds()


Asking: TypeAlias = Generator[ProposedCall, Answer, RawObject | None]
_Telling: TypeAlias = Generator[ProposedCall, Answer, list[Any]]
"""What stands in the place of a part; the part itself where it leaves as it is."""


def judged_chunk(chunk: RawObject, candidates: Candidates, *, is_whole: bool = False) -> Asking:
    """The chunk with each call replaced by what became of it; None when it stays as it is.

    `is_whole` says that nothing follows on it, so that a call which is not complete never will be.
    """
    items = items_of(chunk)
    judged: list[msgspec.Raw] = []
    for place, item in enumerate(items):
        changed = yield from _candidate(item, place, candidates, is_whole=is_whole)
        judged.append(item if changed is None else msgspec.Raw(write_json(changed)))
    if is_same(judged, items):
        return None
    return {**chunk, "candidates": msgspec.Raw(write_json(judged))}


def items_of(chunk: RawObject) -> list[msgspec.Raw]:
    """The candidates of a chunk as they came; none where there are none."""
    return _listed(chunk.get("candidates"))


def _listed(raw: msgspec.Raw | None) -> list[msgspec.Raw]:
    """The items of a list. Google's readers take a single object for a list of one."""
    if raw is None or not bytes(raw).startswith((b"[", b"{")):
        return []
    return [raw] if bytes(raw).startswith(b"{") else open_array(raw)


def _candidate(raw: msgspec.Raw, place: int, candidates: Candidates, *, is_whole: bool) -> Asking:
    value = value_of(raw)
    if not isinstance(value, dict):
        return None
    candidate = candidates.at(value.get("index"), place)
    fields = open_object(raw)
    content = open_object(fields["content"]) if isinstance(value.get("content"), dict) else {}
    parts = _listed(content.get("parts"))
    judged: list[Any] = []
    for part in parts:
        judged += yield from _part(part, candidate, candidates.refused)
    if candidate.pieces is not None and (is_whole or value.get("finishReason") is not None):
        judged += yield from _complete(candidate, candidates.refused, CUT_SHORT)
    if is_same(judged, parts):
        return None
    told = msgspec.Raw(write_json(judged or [_NOTHING]))
    members = content or {"role": msgspec.Raw(b'"model"')}
    return {**fields, "content": msgspec.Raw(write_json({**members, "parts": told}))}


def _part(raw: msgspec.Raw, candidate: Candidate, refused: list[RefusedCall]) -> _Telling:
    value = value_of(raw)
    if not isinstance(value, dict):
        return [raw]
    fields = open_object(raw)
    if not is_call(fields):
        passed = _passed(value, fields, candidate)
        return [raw if passed is None else passed]

    piece = piece_of(fields)
    told: list[Any] = []
    if candidate.pieces is not None and (piece is None or not candidate.pieces.belongs(piece)):
        told = yield from _complete(candidate, refused, "another call began before it was complete")
    if piece is not None and (candidate.pieces is not None or begins(piece)):
        candidate.pieces = candidate.pieces or Pieces()
        if candidate.pieces.add(raw, piece, signature_in(fields)):
            told += yield from _complete(candidate, refused, None)
        return told
    call = yield from _call(raw, fields, value, candidate, refused)
    return [*told, call]


def _call(
    raw: msgspec.Raw, fields: RawObject, value: Json, candidate: Candidate, refused: list[RefusedCall]
) -> Generator[ProposedCall, Answer, Any]:
    """What stands in the place of a call that came whole."""
    own = member(fields, SIGNATURE)
    moved = candidate.signature if own is None else None
    known = fields if moved is None else {**fields, SIGNATURE[0]: moved}
    call = candidate.ids.own(read_call(known, candidate.released), own_id(fields))
    verdict = answered((yield call))
    if not verdict.allowed:
        return _refuse(call, verdict, own, None if call.problem is not None else value, candidate, refused)

    candidate.released += 1
    candidate.signature = None
    if verdict.arguments is not None:
        is_signed = member(known, SIGNATURE) is not None
        return with_arguments(known, verdict.arguments, "" if is_signed else call.call_id)
    return raw if moved is None else known


def _complete(candidate: Candidate, refused: list[RefusedCall], problem: str | None) -> _Telling:
    """What stands in the place of all pieces of a call; `problem` says why it never will be complete."""
    pieces, candidate.pieces = candidate.pieces or Pieces(), None
    call = candidate.ids.own(pieces.proposed(candidate.released, problem), pieces.call_id)
    verdict = answered((yield call))
    if not verdict.allowed:
        return [_refuse(call, verdict, pieces.signature(), None, candidate, refused)]

    candidate.released += 1
    return [*pieces.parts] if verdict.arguments is None else [pieces.whole(verdict.arguments)]


def _refuse(
    call: ProposedCall,
    verdict: Verdict,
    signature: msgspec.Raw | None,
    entry: Json,
    candidate: Candidate,
    refused: list[RefusedCall],
) -> RawObject:
    """The text that stands in the place of a refused call."""
    line = refused_line(call.name, verdict)
    refused.append(RefusedCall(call, line, entry))
    if not candidate.released:
        candidate.signature = candidate.signature or signature
    return {"text": msgspec.Raw(write_json(candidate.tell(line)))}


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
