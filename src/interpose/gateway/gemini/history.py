"""The model's history where the client's has lines of ours: calls and their errors, nudges, arguments and signatures
as the model gave them; and how a history goes on within one reply of the client's.

Knows: contents and their parts, in both spellings. Does not know: verdicts, what is new in a request.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import Edits, Mark, RefusedCall
from interpose.gateway.bodies import RawObject, listed, open_array, open_body, open_object, value_of
from interpose.gateway.gemini.message import parts_of
from interpose.gateway.gemini.parts import (
    CALL,
    CALLING,
    RESPONSE,
    SIGNATURE,
    TOOL_CONFIG,
    answer_of,
    grows,
    is_empty,
    joined,
    member,
    proposes,
    read_call,
    spoken_text,
    with_own_arguments,
)
from interpose.gateway.marks import GAP, OURS, MarkReader
from interpose.wire.jsonbytes import write_json

_OURS = OURS.decode()
_CALL_MARKS = tuple(f'"{name}"'.encode() for name in CALL)


class Restoring:
    """Puts the model's history back, reply by reply from the first to the last. One history, one of these."""

    def __init__(self, edits: Edits, root: str) -> None:
        self._edits = edits
        self._reader = MarkReader(edits, root)
        self._answers: list[Json] = []
        """What the calls of the reply are answered with, in order; None where the client has the answer."""
        self._calls = 0
        """How many calls of the reply the client has."""
        self._is_parted = False
        """Whether a line of ours stood last, from which a text is parted by a gap."""
        self._moved: Json = None
        """The signature of a refused call, which the first call that was released may have."""

    def spoken(self, contents: list[bytes]) -> list[bytes]:
        """What the model's history has in the place of one reply; the same list where that is it.

        Most clients make one content of a reply, some make one of each chunk; the model made one.
        """
        if not any(self._concerns(content) for content in contents):
            return contents
        opened = [open_object(msgspec.Raw(content)) for content in contents]
        if not all(bytes(fields.get("parts") or b"").startswith(b"[") for fields in opened):
            return contents
        self._calls, self._is_parted, self._moved = 0, False, None
        return (
            self._restored(opened[0], [part for fields in opened for part in open_array(fields["parts"])]) or contents
        )

    def heard(self, content: bytes) -> bytes:
        """One content of the person's or a tool's, with the responses that the model waits for in their places."""
        answers, self._answers = self._answers, []
        if all(answer is None for answer in answers):
            return content
        fields = open_object(msgspec.Raw(content))
        return write_json({**fields, "parts": list(_answered(answers, listed(fields.get("parts"), "parts")))})

    def between(self) -> list[bytes]:
        """The responses that the model waits for, as a content of their own where none of the person's follows."""
        owed = [answer for answer in self._answers if answer is not None]
        self._answers = []
        return [write_json({"role": "user", "parts": owed})] if owed else []

    def _concerns(self, content: bytes) -> bool:
        if self._reader.has_lines and OURS in content:
            return True
        return bool(self._edits.changed_calls) and any(mark in content for mark in _CALL_MARKS)

    def _restored(self, fields: RawObject, parts: list[msgspec.Raw]) -> list[bytes]:
        """The contents that one reply stands for; none when it is just that."""
        runs = list(_runs(parts))
        found = [self._pieces(raws, value) for raws, value in runs]
        if any(isinstance(piece, Mark) for pieces in found for piece in pieces):
            return self._parted(fields, zip(found, runs, strict=True))
        if all(pieces is raws for pieces, (raws, _) in zip(found, runs, strict=True)):
            return []
        return [write_json({**fields, "parts": [piece for pieces in found for piece in pieces]})]

    def _pieces(self, raws: list[msgspec.Raw], value: Json) -> list[Any]:
        """What a part, or the pieces of one text, stand for; the same list where that is it."""
        text = spoken_text(value)
        if text:
            return self._text(raws, value, text)
        if not _is_call(value):
            return raws
        fields = open_object(raws[0])
        changed = self._as_made(fields, self._calls)
        self._calls += 1
        return raws if changed is fields else [changed]

    def _text(self, raws: list[msgspec.Raw], value: Json, text: str) -> list[Any]:
        parted = text.removeprefix(GAP) if self._is_parted else text
        pieces = self._reader.pieces(parted) if self._reader.has_lines else [parted]
        last = pieces[-1]
        self._is_parted = isinstance(last, Mark)
        for piece in pieces:
            if isinstance(piece, Mark):
                self._moved = None if piece.ends_round else self._moved or _signature(piece.entry)
        if pieces == [text]:
            return raws
        members = {name: member for name, member in value.items() if name != "text"}
        texts: list[Any] = [piece if isinstance(piece, Mark) else {"text": piece} for piece in pieces]
        first = next((place for place, piece in enumerate(texts) if not isinstance(piece, Mark)), None)
        if members and first is None:
            return [{"text": "", **members}, *texts]
        if members and first is not None:
            texts[first] = {**texts[first], **members}
        return texts

    def _as_made(self, fields: RawObject, ordinal: int) -> RawObject:
        """A call as the model made it; the same object where that is it."""
        made = fields
        if self._edits.changed_calls:
            call = read_call(fields, ordinal)
            original = self._edits.original(call.call_id, call.arguments)
            made = fields if original is None else with_own_arguments(fields, original, ordinal)
        moved, self._moved = self._moved, None
        if moved is None or value_of(member(fields, SIGNATURE)) != moved:
            return made
        return {name: raw for name, raw in made.items() if name not in SIGNATURE}

    def _parted(
        self, fields: RawObject, found: Iterable[tuple[list[Any], tuple[list[msgspec.Raw], Json]]]
    ) -> list[bytes]:
        """A content with lines of ours, in pieces where a reply of the model ended."""
        contents: list[bytes] = []
        said: list[Any] = []
        for pieces, (raws, value) in found:
            is_text = pieces is raws and grows(value) is not None
            self._answers += [None] * _is_call(value)
            for piece in [value] if is_text else pieces:
                if not isinstance(piece, Mark):
                    said.append(piece)
                    continue
                said += [] if piece.entry is None else [piece.entry]
                self._answers.append(_heard(piece.entry, piece.answer))
                if piece.ends_round:
                    contents += [write_json({**fields, "parts": said})] if said else []
                    contents += self.between()
                    said = []
        return [*contents, write_json({**fields, "parts": said})] if said else contents


def gone_on(
    sent: bytes, reply: JsonObject, answers: Sequence[tuple[RefusedCall, str]], nudge: str | None
) -> bytes | None:
    """The body that was `sent`, the model's `reply`, and what answers it; None when the API would not take that."""
    candidates = reply.get("candidates")
    if not isinstance(candidates, list) or len(candidates) != 1:
        return None
    said = joined(parts_of(candidates[0]))
    if all(isinstance(part, dict) and part.get("thought") is True for part in said):
        return None
    if [part for part in said if proposes(part)] != [refused.entry for refused, _ in answers]:
        return None

    heard = [_heard(refused.entry, text) for refused, text in answers]
    heard += [] if nudge is None else [_heard(None, nudge)]
    top = open_body(sent, arguments="args")
    top |= _let_go(top) if answers else {}
    contents = [*open_array(top.get("contents")), {"role": "model", "parts": said}, {"role": "user", "parts": heard}]
    return write_json({**top, "contents": contents})


def _let_go(top: RawObject) -> RawObject:
    """The member that says how tools may be used, without its force: a refused call must not be asked for again."""
    for key in TOOL_CONFIG:
        config = value_of(top.get(key))
        for name in CALLING if isinstance(config, dict) else ():
            calling = config.get(name)
            if isinstance(calling, dict) and calling.get("mode") == "ANY":
                return {key: msgspec.Raw(write_json({**config, name: {"mode": "AUTO"}}))}
    return {}


def texts_of(contents: Iterable[Json]) -> Iterator[str]:
    """The texts of the model's contents that may have a line of ours."""
    for content in contents:
        parts = content.get("parts") if isinstance(content, dict) and content.get("role") == "model" else None
        for part in parts if isinstance(parts, list) else ():
            text = spoken_text(part)
            if _OURS in text:
                yield text


def _runs(parts: list[msgspec.Raw]) -> Iterator[tuple[list[msgspec.Raw], Json]]:
    """Each part that says something, and what; the pieces of one text or thought together."""
    read = ((part, value) for part in parts if not is_empty(value := value_of(part)))
    for kind, group in groupby(read, key=lambda pair: grows(pair[1])):
        run = list(group)
        if kind is None:
            yield from (([part], value) for part, value in run)
            continue
        yield [part for part, _ in run], {**run[0][1], "text": "".join(value["text"] for _, value in run)}


def _answered(answers: list[Json], parts: list[msgspec.Raw]) -> Iterator[Any]:
    """The parts of a content with the answers that it lacks, in the order of the calls, since not all have ids."""
    waiting = list(answers)
    left = sum(_is_response(part) for part in parts)
    if not left:
        yield from (answer for answer in waiting if answer is not None)
        yield from parts
        return
    for part in parts:
        if not _is_response(part):
            yield part
            continue
        while waiting and (answer := waiting.pop(0)) is not None:
            yield answer
        yield part
        left -= 1
        if not left:
            yield from (answer for answer in waiting if answer is not None)


def _is_response(raw: msgspec.Raw) -> bool:
    part = value_of(raw)
    return isinstance(part, dict) and member(part, RESPONSE) is not None


def _is_call(part: Json) -> bool:
    return isinstance(part, dict) and member(part, CALL) is not None


def _signature(entry: Json) -> Json:
    return None if entry is None else member(entry, SIGNATURE)


def _heard(entry: Json, answer: str) -> Json:
    """What the model is told of a refused call, or the nudge where there is none."""
    return {"text": answer} if entry is None else answer_of(entry, answer)
