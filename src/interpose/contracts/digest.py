"""The digest of a call, by which what was judged and what runs are compared.

Knows: one text form of a name and arguments, equal for a value and its copy. Does not know: who compares.
"""

import hashlib
import json
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType
from typing import Any

from interpose.contracts.copying import is_data
from interpose.contracts.json import JsonObject

_PICKLE_PROTOCOL = 4
_SHORT_CHARS = 64
"""A longer text stands as its own digest."""
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
        text = _Making().of((tool_name, arguments))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _unsayable(value: Any) -> Any:
    if not is_data(value):
        return {"repr": repr(value), "type": _kind(value)}
    try:
        return {"made_of": _Making().of(value)}
    except RecursionError:  # nor can it be copied
        return {"repr": object.__repr__(value)}


_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=_unsayable)


class _Making:
    """What a value is made of, as a short text without addresses. For one use.

    Each value in it is taken apart once, however many places it is in. `_known` has, by id, the value, which keeps its
    id from being taken by others, and its text: of one that is on its way, how deep it is.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}

    def of(self, value: Any, depth: int = 0) -> str:
        """Equal for a value and its copy. Texts of others' making stand in quotes, so that none can pass for two."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]

        self._known[id(value)] = (value, f"above {depth}")
        text = f"{_kind(value)}({', '.join(self._parts(value, depth + 1))})"
        if len(text) > _SHORT_CHARS:
            text = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        self._known[id(value)] = (value, text)
        return text

    def _parts(self, value: Any, depth: int) -> Iterable[str]:
        match value:
            case int():
                return (hex(value),)  # in tens a long one cannot be said
            case str() | bytes() | float() | None:
                return (repr(repr(value)),)
            case dict():
                return sorted(f"{self.of(key, depth)}: {self.of(item, depth)}" for key, item in value.items())
            case set() | frozenset():
                return sorted(self.of(item, depth) for item in value)
            case list() | tuple():
                return [self.of(item, depth) for item in value]
        return self._taken_apart(value, depth)

    def _taken_apart(self, value: Any, depth: int) -> Iterable[str]:
        """What an object would be copied from; its repr where it cannot be copied."""
        if isinstance(value, _NAMED):
            return (repr(repr(value)),)
        try:
            parts = value.__reduce_ex__(_PICKLE_PROTOCOL)
            if isinstance(parts, str):
                return (repr(parts),)
            made, given, state, items, pairs = (*parts, None, None, None)[:5]
            return [self.of(part, depth) for part in (made, given, state, [*(items or ())], [*(pairs or ())])]
        except RecursionError:
            raise
        except Exception:  # noqa: BLE001 - taking apart is the object's own code; it counts by its repr then
            return (repr(repr(value)),)


def _kind(value: object) -> str:
    if isinstance(value, (dict, list, set)):  # read-only ones are equal to plain ones
        return next(kind.__name__ for kind in (dict, list, set) if isinstance(value, kind))
    return f"{type(value).__module__}.{type(value).__qualname__}"
