"""Tool calls written as JSON objects in a model's text.

Knows: where such an object starts and ends, which fields make it a call, why its arguments cannot be trusted.
Does not know: which tools exist, APIs. Nothing is guessed: what two parsers may read differently is a problem.
"""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.naming import not_a_name
from interpose.drivers.prompts import PromptStrategy
from interpose.wire.strictjson import read_arguments

_LOOKS = 20
"""How often each character may be looked at, on average, in openings that turn out to be no objects."""
_LOOKS_LEAST = 100_000
_BEHIND_CHARS = 20_000
"""How much text may stand before an opening: an error of the decoder counts the lines of all of it."""
_DEEP_CHARS = 5_000
"""What is looked at, about, in an object that nests too deep."""

_OBJECT = re.compile(r'\{\s*"')
_AT_THE_END = re.compile(r"\s*+(?:tru|tr|t|fals|fal|fa|f|nul|nu|n|[eE][+-]?|-|\.)?+\s*+\Z")
"""What is left of a text that was cut off inside of a value which is no string."""
_BEGUN = re.compile(r'\{\s*(?:"\w{0,40})?\Z')
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """One call as a model wrote it.

    Attributes:
        call_id: the model's own id, or None where its protocol has none.
        tool_name: "" when it gives none.
        arguments: empty when there is a problem.
        problem: in words why the call cannot run as it was written, else None.
    """

    call_id: str | None
    tool_name: str
    arguments: JsonObject
    problem: str | None = None


def proposed(call_id: object, tool_name: object, arguments: Json) -> ProposedCall:
    """A call from the parts of a message: arguments as an object or as JSON text, an id and a name of any kind."""
    own_id = call_id if isinstance(call_id, str) and call_id else None
    if tool_name is None:
        return ProposedCall(own_id, "", {}, "the call names no tool")
    if (problem := not_a_name(tool_name)) is not None:
        return ProposedCall(own_id, "", {}, f"the call has {problem}")

    read, problem = _read(arguments)
    return ProposedCall(own_id, str(tool_name), read or {}, problem)


def with_last_cut_off(calls: tuple[ProposedCall, ...]) -> tuple[ProposedCall, ...]:
    """The calls of a reply that ended because it was too long: the last one may be the beginning of what was meant."""
    if not calls:
        return calls
    return (*calls[:-1], replace(calls[-1], arguments={}, problem="the reply was cut off at its longest length"))


def call_in(found: JsonObject, prompts: PromptStrategy) -> ProposedCall | None:
    """The call that an object is, or None."""
    argument_field = next((field for field in prompts.argument_fields if field in found), None)
    fields = prompts.tool_fields if argument_field is None else _all_fields(prompts)
    tool_field = next((field for field in fields if isinstance(found.get(field), str) and found[field]), None)
    if tool_field is None:
        return None
    if argument_field is not None:
        return proposed(None, found[tool_field], found[argument_field])
    if len(found) == 1 or not_a_name(found[tool_field]) is not None:
        return proposed(None, found[tool_field], {})

    others = ", ".join(repr(key) for key in found if key != tool_field)
    problem = f"arguments belong into {prompts.argument_fields[0]!r}, and it has {others} instead"
    return ProposedCall(None, found[tool_field], {}, problem)


def calls_in_text(text: str, prompts: PromptStrategy) -> tuple[ProposedCall, ...]:
    """Every call in a text, in order; objects inside of other objects are no calls.

    One that the end of the text cuts off, or that cannot be read and stands before another one, is a call with a
    problem, and so is a text with so many broken objects that a call in it could be missed.
    """
    for form in dict.fromkeys((text, prompts.healed(text))):
        if calls := _calls(form, prompts):
            return calls
    return _broken(prompts.healed(text), prompts)


def might_be_call(partial: str, prompts: PromptStrategy) -> bool:
    """Whether the text so far holds a call, or may be the beginning of one; cheap."""
    if partial.lstrip().startswith("`") or _BEGUN.search(partial):
        return True
    fields = (*_all_fields(prompts), *prompts.argument_fields)
    return "{" in partial and any(f'"{field}"' in partial for field in fields)


def is_whole_call(text: str, prompts: PromptStrategy) -> bool:
    """Whether the whole text is one closed object that is a call. More calls may follow while it is being received."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and call_in(found, prompts) is not None


def _all_fields(prompts: PromptStrategy) -> tuple[str, ...]:
    return (*prompts.tool_fields, *prompts.tool_fields_next_to_arguments)


def _read(arguments: Json) -> tuple[dict[str, Any] | None, str | None]:
    if isinstance(arguments, Mapping):
        return dict(arguments), None
    if isinstance(arguments, str):
        return read_arguments(arguments)
    return None, f"the arguments are {_shown(arguments)}, not an object"


def _shown(value: Json) -> str:
    return "null" if value is None else f"a value of type {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """Where a JSON object opens in a text, and what became of reading it.

    Attributes:
        text: the text from some place before the object.
        start: of the object in that text.
        source: the text that it was written as.
        value: the object; None when it cannot be read.
        cut_off: whether it cannot be read because the text ends.
        given_up: from here on nothing was looked at.
    """

    text: str
    start: int
    source: str = ""
    value: dict[str, Any] | None = None
    cut_off: bool = False
    given_up: bool = False


def _calls(text: str, prompts: PromptStrategy) -> tuple[ProposedCall, ...]:
    calls: list[ProposedCall] = []
    unread: ProposedCall | None = None
    for piece in _pieces(text):
        if piece.given_up:
            return (*calls, _OVERLOOKED) if _mentions_call(piece.text[piece.start :], prompts) else tuple(calls)
        if piece.value is None:
            begun = _begun_call(piece.text, piece.start, prompts)
            if begun is not None and piece.cut_off:
                return (*calls, begun)
            unread = unread or begun
            continue
        call = call_in(piece.value, prompts)
        if call is None:
            continue
        if unread is not None:  # this one may be a part of it
            return (*calls, unread)
        _, problem = read_arguments(piece.source)
        calls.append(call if problem is None else ProposedCall(None, call.tool_name, {}, problem))
    return tuple(calls)


def _pieces(text: str) -> Iterator[_Piece]:
    """Each JSON object that is not inside of another one, in time that grows with the text alone."""
    position, looks = 0, _LOOKS * len(text) + _LOOKS_LEAST
    while (opening := _OBJECT.search(text, position)) is not None:
        start = opening.start()
        if start > _BEHIND_CHARS:
            text, start = text[start:], 0
        if looks < 0:
            yield _Piece(text, start, given_up=True)
            return
        try:
            found, position = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            cut_off = _is_cut_off(text, error)
            looks -= (len(text) if cut_off else error.pos) - start
            position = start + 1
            yield _Piece(text, start, cut_off=cut_off)
        except (ValueError, RecursionError):
            looks -= min(len(text) - start, _DEEP_CHARS)
            position = start + 1
            yield _Piece(text, start)
        else:
            yield _Piece(text, start, text[start:position], found)


def _is_cut_off(text: str, error: json.JSONDecodeError) -> bool:
    return error.msg.startswith(("Unterminated string", "Invalid \\uXXXX")) or bool(_AT_THE_END.match(text, error.pos))


def _mentions_call(text: str, prompts: PromptStrategy) -> bool:
    named = any(f'"{field}"' in text for field in prompts.tool_fields)
    may_be_named = any(f'"{field}"' in text for field in prompts.tool_fields_next_to_arguments)
    return named or (may_be_named and any(f'"{field}"' in text for field in prompts.argument_fields))


def _begun_call(text: str, start: int, prompts: PromptStrategy) -> ProposedCall | None:
    """The call that an object which cannot be read was to be, judged by its first field."""
    named = _begins_as(prompts.tool_fields).match(text, start)
    return None if named is None else ProposedCall(None, named[1], {}, _UNREAD)


@functools.lru_cache(maxsize=64)
def _begins_as(fields: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, fields))
    return re.compile(rf'\{{\s*"(?:{names})"\s*:\s*"([^"\\]+)"')


def _broken(text: str, prompts: PromptStrategy) -> tuple[ProposedCall, ...]:
    """A text that begins as a call and cannot be read is a call with a problem, not an answer for the person."""
    begun = _begun_call(text, len(text) - len(text.lstrip()), prompts)
    return () if begun is None else (begun,)


_UNREAD = "it is not JSON, or not complete"
_OVERLOOKED = ProposedCall(None, "", {}, "there are too many broken JSON objects in the text to find the call")
