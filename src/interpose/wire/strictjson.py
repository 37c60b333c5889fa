"""Tool arguments, read so that no second parser can read them otherwise.

Knows: what makes a JSON text ambiguous. Does not know: tools, policy.
"""

import json
import math
import re
from typing import Any, NoReturn

from interpose.contracts.json import Json

DEPTH_MAX = 200
"""Arguments nested deeper are not read."""

_LONG_DIGITS = 309
"""An integer of fewer digits is within a double's range."""

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class _AmbiguousError(ValueError):
    """Names what two parsers may read differently."""


def read_arguments(text: str | bytes) -> tuple[dict[str, Any] | None, str | None]:
    """The arguments, or None and in words why they cannot be trusted.

    Nothing but white space is `{}`: providers send that for a call without arguments. Refused: what is not JSON, not
    an object, has a key twice, NaN or Infinity, a number beyond a double's range, data behind the object, bytes that
    are not UTF-8, half a surrogate pair, or more than 200 levels. Keeps no state; any thread may call it.
    """
    try:
        words = text.decode() if isinstance(text, bytes) else text
        words.encode()
    except UnicodeError:
        return None, "the arguments are not valid UTF-8"
    if not words.strip():
        return {}, None

    try:
        value = _load(words)
    except _AmbiguousError as error:
        return None, str(error)
    except RecursionError:
        return None, f"the arguments are nested more than {DEPTH_MAX} levels"
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(words.rstrip()) or error.msg.startswith("Unterminated string")
        return None, f"the arguments are not JSON: {'they break off' if is_cut else error}"
    except ValueError as error:
        return None, f"the arguments are not JSON: {error}"
    return _checked(value, words)


def read_object(value: Json) -> tuple[dict[str, Any] | None, str | None]:
    """As `read_arguments`, of arguments that were read already, as leniently as it may be."""
    try:
        return read_arguments(json.dumps(value, allow_nan=False))
    except RecursionError:
        return None, f"the arguments are nested more than {DEPTH_MAX} levels"
    except ValueError:
        return None, "the arguments contain NaN, or a number that no double can hold"


def join_pieces(pieces: list[str]) -> str:
    """The pieces as one text; a surrogate pair that was cut in two is one character again."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


def _load(words: str) -> Json:
    return json.loads(
        words,
        object_pairs_hook=_without_repeats,
        parse_constant=_refuse_constant,
        parse_float=_finite_float,
        parse_int=_held_integer,
    )


def _checked(value: Json, words: str) -> tuple[dict[str, Any] | None, str | None]:
    if not isinstance(value, dict):
        return None, f"the arguments are {_kind(value)}, not an object"
    if _too_deep(value):
        return None, f"the arguments are nested more than {DEPTH_MAX} levels"
    if _SURROGATE_ESCAPE.search(words) and _has_half_pair(value):
        return None, "the arguments contain half a surrogate pair"
    return value, None


def _without_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found

    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _AmbiguousError(f"the arguments have the key {key!r} twice")
        seen.add(key)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _AmbiguousError(f"the arguments contain {name}, which is not JSON")


def _finite_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _AmbiguousError(f"the arguments contain the number {text[:40]}, which no double can hold")
    return number


def _held_integer(text: str) -> int:
    if len(text) >= _LONG_DIGITS:
        _finite_float(text)
    return int(text)


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case _:
            return "an array"


def _too_deep(value: Json) -> bool:
    level: list[Json] = [value]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _has_half_pair(value: Json) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
