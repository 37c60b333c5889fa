"""A whole reply or one chunk of a streamed one: its calls judged, refused ones told as text in their place.

Knows: candidates, their contents and parts. Does not know: verdicts' reasons, sockets.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from interpose.contracts.json import Json
from interpose.contracts.verdict import Verdict
from interpose.gateway.api import ProposedCall, Steps, answered
from interpose.gateway.bodies import RawObject, open_array, open_body, open_object, value_of
from interpose.gateway.gemini.parts import SIGNATURE, is_call, member, read_call, with_arguments
from interpose.gateway.wording import refused_line
from interpose.wire.jsonarray import ArrayReader
from interpose.wire.jsonbytes import write_json


@dataclass(slots=True)
class Candidate:
    """What one candidate has said so far, over all its chunks.

    `signature` is that of a refused call, until a released one takes it: the provider wants it back with the first
    call of the content.
    """

    has_text: bool = False
    released: int = 0
    signature: msgspec.Raw | None = None


@dataclass(slots=True)
class Candidates:
    """The candidates of one reply, by index."""

    _known: dict[str, Candidate] = field(default_factory=dict)

    def at(self, index: Json) -> Candidate:
        """The candidate with this index; a missing one is the first."""
        return self._known.setdefault(str(index or 0), Candidate())


_Asking: TypeAlias = Generator[ProposedCall, Verdict | None, RawObject | None]


def judged_reply(body: bytes) -> Steps:
    """Asks for each call in order, then yields the body: the upstream's bytes when nothing was changed.

    Raises Unreadable when the body is neither a JSON object nor an array of objects.
    """
    candidates = Candidates()
    if not body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        changed = yield from judged_chunk(open_body(body, arguments="args"), candidates)
        yield body if changed is None else write_json(changed)
        return

    judged: list[bytes] = []
    reader = ArrayReader()
    for piece in reader.feed(body):
        changed = (
            (yield from judged_chunk(open_body(piece.raw, arguments="args"), candidates)) if piece.is_item else None
        )
        judged.append(piece.raw if changed is None else write_json(changed))
    yield b"".join([*judged, reader.finish()])


def judged_chunk(chunk: RawObject, candidates: Candidates) -> _Asking:
    """The chunk with each call replaced by what became of it; None when it stays as it is."""
    raw = chunk.get("candidates")
    if raw is None or not bytes(raw).startswith(b"["):
        return None
    items = open_array(raw)
    judged: list[msgspec.Raw] = []
    for item in items:
        changed = yield from _candidate(item, candidates)
        judged.append(item if changed is None else msgspec.Raw(write_json(changed)))
    if all(new is old for new, old in zip(judged, items, strict=True)):
        return None
    return {**chunk, "candidates": msgspec.Raw(write_json(judged))}


def _candidate(raw: msgspec.Raw, candidates: Candidates) -> _Asking:
    value = value_of(raw)
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
        return None

    candidate = candidates.at(value.get("index"))
    fields = open_object(raw)
    content_fields = open_object(fields["content"])
    parts = open_array(content_fields["parts"])
    judged: list[msgspec.Raw] = []
    for part in parts:
        changed = yield from _part(part, candidate)
        judged.append(part if changed is None else msgspec.Raw(write_json(changed)))
    if all(new is old for new, old in zip(judged, parts, strict=True)):
        return None
    changed_content = {**content_fields, "parts": msgspec.Raw(write_json(judged))}
    return {**fields, "content": msgspec.Raw(write_json(changed_content))}


def _part(raw: msgspec.Raw, candidate: Candidate) -> _Asking:
    value = value_of(raw)
    if not isinstance(value, dict):
        return None
    fields = open_object(raw)
    if not is_call(fields):
        candidate.has_text = candidate.has_text or (bool(value.get("text")) and value.get("thought") is not True)
        return None

    call = read_call(fields, candidate.released)
    verdict = answered((yield call))
    if not verdict.allowed:
        line = refused_line(call.name, verdict)
        text = f"\n\n{line}" if candidate.has_text else line
        candidate.has_text = True
        if not candidate.released:
            candidate.signature = candidate.signature or member(fields, SIGNATURE)
        return {"text": msgspec.Raw(write_json(text))}

    candidate.released += 1
    changed = None if verdict.arguments is None else with_arguments(fields, verdict.arguments)
    signature, candidate.signature = candidate.signature, None
    if signature is None or member(fields, SIGNATURE) is not None:
        return changed
    return {**(changed or fields), SIGNATURE[0]: signature}
