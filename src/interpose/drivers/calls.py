"""Tool calls written as JSON objects in a model's text.

Knows: where such an object starts and ends, which fields make it a call, why its arguments cannot be trusted.
Does not know: which tools exist, APIs. Nothing is guessed: what two parsers may read differently is a problem.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from interpose.contracts.json import Json, JsonObject
from interpose.drivers.prompts import PromptStrategy
from interpose.wire.strictjson import read_arguments

_CANDIDATES_MAX = 1000
"""Openings of objects that are looked at in one text."""

_OBJECT = re.compile(r'\{\s*"')
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
    if not isinstance(tool_name, str) or not tool_name:
        return ProposedCall(own_id, "", {}, "the call names no tool")

    read, problem = _read(arguments)
    return ProposedCall(own_id, tool_name, read or {}, problem)


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
    if len(found) == 1:
        return ProposedCall(None, found[tool_field], {})

    others = ", ".join(repr(key) for key in found if key != tool_field)
    problem = f"arguments belong into {prompts.argument_fields[0]!r}, and it has {others} instead"
    return ProposedCall(None, found[tool_field], {}, problem)


def calls_in_text(text: str, prompts: PromptStrategy) -> tuple[ProposedCall, ...]:
    """Every call in a text, in order; objects inside of other objects are no calls."""
    for form in dict.fromkeys((text, prompts.healed(text))):
        if calls := tuple(_calls(form, prompts)):
            return calls
    return _broken(prompts.healed(text), prompts)


def might_be_call(partial: str, prompts: PromptStrategy) -> bool:
    """Whether the text so far holds a call, or may be the beginning of one; cheap."""
    if partial.lstrip().startswith("`") or _BEGUN.search(partial):
        return True
    fields = (*_all_fields(prompts), *prompts.argument_fields)
    return "{" in partial and any(f'"{field}"' in partial for field in fields)


def is_whole_call(text: str, prompts: PromptStrategy) -> bool:
    """Whether the whole text is one closed object that is a call: nothing could continue it."""
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


def _calls(text: str, prompts: PromptStrategy) -> Iterator[ProposedCall]:
    for source, found in _objects(text):
        call = call_in(found, prompts)
        if call is None:
            continue
        _, problem = read_arguments(source)
        yield call if problem is None else ProposedCall(None, call.tool_name, {}, problem)


def _objects(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each JSON object that is not inside of another one, with the text it was written as."""
    position = 0
    for _ in range(_CANDIDATES_MAX):
        opening = _OBJECT.search(text, position)
        if opening is None:
            return
        try:
            found, end = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            position = opening.start() + 1
            continue
        yield text[opening.start() : end], found
        position = end


def _broken(text: str, prompts: PromptStrategy) -> tuple[ProposedCall, ...]:
    """A text that begins as a call and cannot be read is a call with a problem, not an answer for the person."""
    fields = "|".join(re.escape(field) for field in prompts.tool_fields)
    named = re.match(rf'\s*\{{\s*"(?:{fields})"\s*:\s*"([^"\\]+)"', text)
    if named is None:
        return ()

    return (ProposedCall(None, named[1], {}, "it is not JSON, or not complete"),)
