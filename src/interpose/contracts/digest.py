"""The digest of a call, by which what was judged and what runs are compared.

Knows: one text form of a name and arguments, equal for a value and its copy. Does not know: who compares.
"""

import hashlib
import json
from types import BuiltinFunctionType, FunctionType
from typing import Any

from interpose.contracts.arguments import is_data
from interpose.contracts.json import JsonObject

_PICKLE_PROTOCOL = 4
_NAMED = (type, FunctionType, BuiltinFunctionType)
"""Never copied, so the repr of one is the same for all who have it."""


def call_digest(tool_name: str, arguments: JsonObject) -> str:
    """SHA-256 in hex over the tool's name and arguments; the order of keys does not count.

    Data that JSON cannot say counts by what it is made of, everything else by its repr, so for those a digest means
    something within one process only.
    """
    try:
        text = _ENCODER.encode([tool_name, arguments])
    except (TypeError, ValueError):  # keys that are no strings, circles
        text = repr(_made_of((tool_name, arguments), ()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _unsayable(value: Any) -> Any:
    if not is_data(value):
        return {"repr": repr(value), "type": _kind(value)}
    try:
        return {"made_of": repr(_made_of(value, ()))}
    except RecursionError:  # nor can it be copied
        return {"repr": object.__repr__(value)}


_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=_unsayable)


def _made_of(value: Any, above: tuple[int, ...]) -> Any:
    """The value in nested tuples of texts, without addresses; `above` are the ids of what it is in."""
    if id(value) in above:
        return ("above", above.index(id(value)))

    inside = (*above, id(value))
    match value:
        case str() | bytes() | int() | float() | None:
            return (_kind(value), repr(value))
        case dict():
            return ("dict", *sorted(repr(_made_of(item, inside)) for item in value.items()))
        case set():
            return ("set", *sorted(repr(_made_of(item, inside)) for item in value))
        case frozenset():
            return ("frozenset", *sorted(repr(_made_of(item, inside)) for item in value))
        case list():
            return ("list", *(_made_of(item, inside) for item in value))
        case tuple():
            return (_kind(value), *(_made_of(item, inside) for item in value))
    return (_kind(value), *_parts(value, inside))


def _parts(value: Any, inside: tuple[int, ...]) -> tuple[Any, ...]:
    """What an object would be copied from; its repr where it cannot be copied."""
    if isinstance(value, _NAMED):
        return (repr(value),)
    try:
        parts = value.__reduce_ex__(_PICKLE_PROTOCOL)
        if isinstance(parts, str):
            return (parts,)
        made, given, state, items, pairs = (*parts, None, None, None)[:5]
        return tuple(_made_of(part, inside) for part in (made, given, state, [*(items or ())], [*(pairs or ())]))
    except RecursionError:
        raise
    except Exception:  # noqa: BLE001 - taking apart is the object's own code; it counts by its repr then
        return (repr(value),)


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
