"""The digest of a call, by which what was judged and what runs are compared.

Knows: one text form of a name and arguments, equal for a value and its copy. Does not know: who compares.
"""

import hashlib
import json
from collections.abc import Collection, Generator
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeAlias

from interpose.contracts.extent import is_data
from interpose.contracts.json import JsonObject

_PICKLE_PROTOCOL = 4
_SHORT_CHARS = 64
"""A longer text stands as its own digest."""
_NAMED = (type, FunctionType, BuiltinFunctionType)
"""Never copied, so the repr of one is the same for all who have it."""
_SCALARS = frozenset({str, int, float, bool, type(None)})
_TEXTS = frozenset({str})

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False)
_Steps: TypeAlias = Generator[tuple[Any, int, bool], str, str]
"""Yields what is to be told, how deep it is and whether it is in data; receives its text, returns its own."""


def call_digest(tool_name: str, arguments: JsonObject) -> str:
    """SHA-256 in hex over the tool's name and arguments; the order of keys does not count.

    Two calls that differ in a value, or in the kind of one, have two digests: 1 and "1", also as keys, and a list and a
    tuple. What JSON cannot say counts by what it is made of where that is copied, and else by its repr, so for those a
    digest means something within one process only.
    """
    return hashlib.sha256(_text(tool_name, arguments).encode("utf-8", "surrogatepass")).hexdigest()


def _text(tool_name: str, arguments: JsonObject) -> str:
    if _is_json(arguments):
        try:
            return _ENCODER.encode([tool_name, arguments])
        except (ValueError, RecursionError):  # circles, numbers too long to be said in tens, and what nests very deep
            pass
    return _Making().of((tool_name, arguments))


def _is_json(arguments: JsonObject) -> bool:
    """Whether JSON tells it from everything else: it would write keys as texts, and a tuple as a list."""
    left: list[Any] = [arguments]
    seen: set[int] = set()
    while left:
        value = left.pop()
        if isinstance(value, dict) and _TEXTS.issuperset(map(type, value)):
            held: Collection[Any] = value.values()
        elif isinstance(value, list):
            held = value
        else:
            return False
        if not _SCALARS.issuperset(map(type, held)) and id(value) not in seen:
            seen.add(id(value))
            left += [item for item in held if type(item) not in _SCALARS]
    return True


class _Making:
    """What a value is made of, as a short text without addresses. For one use.

    Each value in it is taken apart once, however many places it is in. `_known` has, by id and by whether it is in
    data, the value, which keeps its id from being taken by others, and its text: of one that is on its way, how deep it
    is. No call waits for another one's, so that values may nest however deep.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], tuple[Any, str]] = {}

    def of(self, value: Any) -> str:
        """Equal for a value and its copy. Texts of others' making stand in quotes, so that none can pass for two."""
        steps = [self._told(value, 0, in_data=False)]
        text: str | None = None
        while True:
            try:
                wanted, depth, in_data = steps[-1].send(text)  # type: ignore[arg-type]  # None starts it
            except StopIteration as stop:
                steps.pop()
                text = str(stop.value)
                if not steps:
                    return text
                continue
            known = self._known.get((id(wanted), in_data))
            text = None if known is None else known[1]
            if known is None:
                steps.append(self._told(wanted, depth, in_data=in_data))

    def _told(self, value: Any, depth: int, *, in_data: bool) -> _Steps:
        self._known[id(value), in_data] = (value, f"above {depth}")
        text = f"{_kind(value)}({', '.join((yield from self._parts(value, depth + 1, in_data=in_data)))})"
        if len(text) > _SHORT_CHARS:
            text = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        self._known[id(value), in_data] = (value, text)
        return text

    def _parts(self, value: Any, depth: int, *, in_data: bool) -> Generator[tuple[Any, int, bool], str, list[str]]:
        match value:
            case int():
                return [hex(value)]  # in tens a long one cannot be said
            case str():
                return [repr(str.__repr__(value))]
            case bytes():
                return [repr(bytes.__repr__(value))]
            case float():
                return [repr(float.__repr__(value))]
            case None:
                return []
            case dict():
                pairs = []
                for key, item in value.items():
                    told = yield key, depth, in_data
                    pairs.append(f"{told}: {(yield item, depth, in_data)}")
                return sorted(pairs)
            case list() | tuple():
                is_plain = isinstance(value, list) or type(value) is tuple
                return (yield from _each(value, depth, in_data=in_data or not is_plain))
            case set() | frozenset():
                return sorted((yield from _each(value, depth, in_data=True)))
        if in_data or is_data(value):
            return (yield from self._taken_apart(value, depth))
        return _by_repr(value)

    def _taken_apart(self, value: Any, depth: int) -> Generator[tuple[Any, int, bool], str, list[str]]:
        """What an object would be copied from; its repr where it cannot be copied."""
        if isinstance(value, _NAMED):
            return _by_repr(value)
        try:
            parts = value.__reduce_ex__(_PICKLE_PROTOCOL)
            if isinstance(parts, str):
                return [repr(parts)]
            made, given, state, items, pairs = (*parts, None, None, None)[:5]
            listed = [made, given, state, [*(items or ())], [*(pairs or ())]]
        except Exception:  # noqa: BLE001 - taking apart is the object's own code; it counts by its repr then
            return _by_repr(value)
        return (yield from _each(listed, depth, in_data=True))


def _each(values: Any, depth: int, *, in_data: bool) -> Generator[tuple[Any, int, bool], str, list[str]]:
    texts = []
    for value in values:
        texts.append((yield value, depth, in_data))  # noqa: PERF401 - a yield is no expression there
    return texts


def _by_repr(value: object) -> list[str]:
    try:
        return [repr(repr(value))]
    except Exception:  # noqa: BLE001 - the object's own code; it is nobody's copy, so it counts by who it is
        return [repr(object.__repr__(value))]


def _kind(value: object) -> str:
    if isinstance(value, (dict, list, set)):  # read-only ones are equal to plain ones
        return next(kind.__name__ for kind in (dict, list, set) if isinstance(value, kind))
    return f"{type(value).__module__}.{type(value).__qualname__}"
