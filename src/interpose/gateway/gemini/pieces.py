"""A call whose arguments come in pieces, over several parts: put together, and held as it came.

Knows: partial arguments and where they belong. Does not know: candidates, verdicts.
Source: https://ai.google.dev/api/caching#FunctionCall and
https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/Content#PartialArg.
"""

import re
from typing import Any, Final

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import HELD_BYTES_MAX, ProposedCall
from interpose.gateway.bodies import RawObject, open_object, value_of
from interpose.gateway.gemini.parts import CALL, SIGNATURE, call_id_of, member
from interpose.gateway.proposed import name_in, with_name
from interpose.wire.jsonbytes import write_json
from interpose.wire.strictjson import read_object

_PARTIAL: Final = ("partialArgs", "partial_args")
_GOES_ON: Final = ("willContinue", "will_continue")
_PATH: Final = ("jsonPath", "json_path")
_NULL: Final = ("nullValue", "null_value")
_VALUES: Final = (("stringValue", "string_value"), ("numberValue", "number_value"), ("boolValue", "bool_value"))

_STEP: Final = re.compile(r"""\.([A-Za-z_$][\w$-]*)|\[(\d+)\]|\['([^'\\]*)'\]|\["([^"\\]*)"\]""")
_UNFIT: Final = "the pieces of the arguments do not fit together"


class _Unfit(ValueError):  # noqa: N818 - says what the pieces are
    """Pieces that add up to no arguments, or to several."""


class Pieces:
    """The parts of one call so far. Not for several threads."""

    def __init__(self) -> None:
        self.parts: list[msgspec.Raw] = []
        """All of them as they came; none once they are too large to be kept."""
        self._first: JsonObject = {}
        self._signature: Json = None
        self._arguments: dict[str, Any] = {}
        self._open: set[str] = set()
        """Paths whose text goes on."""
        self._size = 0
        self._problem: str | None = None

    @property
    def name(self) -> str:
        """The tool, as the first part names it."""
        return name_in(self._first.get("name"))

    @property
    def call_id(self) -> str:
        """The id that the provider gave the call; "" for none."""
        given = self._first.get("id")
        return given if isinstance(given, str) else ""

    def belongs(self, call: JsonObject) -> bool:
        """Whether a call in a part is one more piece of this one: those that follow name no tool or id, or the same."""
        is_named = call.get("name") in (None, "", self.name)
        return not self.parts or (is_named and (not self.call_id or call.get("id") in (None, "", self.call_id)))

    def add(self, raw: msgspec.Raw, call: JsonObject, signature: Json) -> bool:
        """Takes one part; whether the call is complete."""
        self._first = self._first or call
        self._signature = self._signature or signature
        self._size += len(bytes(raw))
        self.parts.append(raw)
        if self._size > HELD_BYTES_MAX:
            self.parts = []
            self._problem = f"it is larger than {HELD_BYTES_MAX} bytes"
        try:
            self._put(call)
        except _Unfit as error:
            self._problem = self._problem or str(error)
        return not member(call, _GOES_ON)

    def proposed(self, ordinal: int, problem: str | None = None) -> ProposedCall:
        """The call that all parts propose; `problem` says why there will be no more of them."""
        problem = problem or self._problem or (_UNFIT if self._open else read_object(self._arguments)[1])
        signature = self._signature
        call_id = call_id_of({**self._first, "args": self._arguments}, signature, ordinal)
        arguments = {} if problem is not None else self._arguments
        return with_name(ProposedCall(call_id, self.name, arguments, problem), CALL[0])

    def signature(self) -> msgspec.Raw | None:
        """The thought's signature that one of the parts carries."""
        return msgspec.Raw(write_json(self._signature)) if self._signature is not None else None

    def whole(self, arguments: JsonObject) -> RawObject:
        """One part with these arguments in the place of all."""
        fields: RawObject = open_object(self.parts[0]) if self.parts else {}
        key = next((name for name in CALL if name in fields), CALL[0])
        members = {name: value for name, value in self._first.items() if name not in (*_PARTIAL, *_GOES_ON)}
        signature = self.signature()
        signed = {} if signature is None else {SIGNATURE[0]: signature}
        rest = {name: raw for name, raw in fields.items() if name != key and name not in SIGNATURE}
        return {**rest, key: msgspec.Raw(write_json({**members, "args": arguments})), **signed}

    def _put(self, call: JsonObject) -> None:
        if call.get("args"):
            raise _Unfit("the arguments come whole and in pieces")
        partial = member(call, _PARTIAL)
        for piece in partial if isinstance(partial, list) else [partial] if partial else ():
            if not isinstance(piece, dict):
                raise _Unfit(_UNFIT)
            self._put_piece(piece)

    def _put_piece(self, piece: JsonObject) -> None:
        path = member(piece, _PATH)
        steps = _steps(path)
        where, last = self._holder(steps[:-1], steps), steps[-1]
        known = _at(where, last)
        said = _said(piece)
        goes_on = path in self._open and isinstance(known, str) and isinstance(said, str)
        if known is not None and not goes_on:
            raise _Unfit(_UNFIT)
        _set(where, last, f"{known}{said}" if goes_on else said)
        self._open.discard(path)
        if member(piece, _GOES_ON):
            self._open.add(path)

    def _holder(self, steps: list[str | int], path: list[str | int]) -> Any:
        """What holds the last step of a path; objects and lists on the way are made."""
        where: Any = self._arguments
        for step, following in zip(steps, path[1:], strict=True):
            inner = _at(where, step)
            if inner is None:
                inner = [] if isinstance(following, int) else {}
                _set(where, step, inner)
            where = inner
        return where


def piece_of(fields: RawObject) -> JsonObject | None:
    """The call in a part where it may be one of several pieces; None for a part that is no call, or no plain one."""
    found = [name for name in CALL if name in fields]
    call = value_of(fields[found[0]]) if len(found) == 1 else None
    return call if isinstance(call, dict) else None


def begins(call: JsonObject) -> bool:
    """Whether the call in a part is not complete in it, or says its arguments in pieces."""
    return bool(member(call, _GOES_ON) or member(call, _PARTIAL))


def signature_in(fields: RawObject) -> Json:
    """The thought's signature of a part, or None."""
    return value_of(member(fields, SIGNATURE))


def _steps(path: Json) -> list[str | int]:
    if not isinstance(path, str) or not path.startswith("$"):
        raise _Unfit(_UNFIT)
    steps: list[str | int] = []
    place = 1
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None:
            raise _Unfit(_UNFIT)
        name, index, *quoted = found.groups()
        steps.append(int(index) if index is not None else next(one for one in (name, *quoted) if one is not None))
        place = found.end()
    if not steps or isinstance(steps[0], int):
        raise _Unfit(_UNFIT)
    return steps


def _at(where: Any, step: str | int) -> Any:
    if isinstance(where, dict) and isinstance(step, str):
        return where.get(step)
    if isinstance(where, list) and isinstance(step, int) and step <= len(where):
        return where[step] if step < len(where) else None
    raise _Unfit(_UNFIT)


def _set(where: Any, step: Any, value: Any) -> None:
    if isinstance(where, list) and step == len(where):
        where.append(value)
        return
    where[step] = value


def _said(piece: JsonObject) -> Json:
    given = [value for names in _VALUES if (value := member(piece, names)) is not None]
    if len(given) == 1:
        return given[0]
    if not given and any(name in piece for name in _NULL):
        return None
    raise _Unfit(_UNFIT)
