"""Keys that an object has twice: two readers may take two different values for them.

Knows: JSON objects, wherever they stand in a text. Does not know: what the values mean.
"""

import json

import msgspec

from interpose.contracts.json import Json
from interpose.wire.jsonbytes import integer_of


def repeated_key(data: bytes, *, arguments: str = "") -> str | None:
    """A key that some object of the JSON text has twice, or None; None too for what is not JSON.

    What stands under the key `arguments` is left to whoever reads it. Raises ValueError when it is nested so deep that
    it cannot be read. Keeps no state; any thread may call it.
    """
    if _is_as_written(data):
        return None

    def seen(pairs: list[tuple[str, Json]]) -> "dict[str, Json] | _Repeat":
        found = dict(pairs)
        if len(found) != len(pairs):
            return _Repeat(_first_twice(pairs))
        inner = (_within(value) for key, value in pairs if key != arguments)
        return next((repeat for repeat in inner if repeat is not None), found)

    text = data.decode("utf-8", "replace")
    try:
        repeat = _within(json.loads(text, object_pairs_hook=seen, parse_int=integer_of))
    except RecursionError:
        raise ValueError("nested too deep to be read") from None
    except ValueError:
        return None
    return repeat.key if repeat else None


class _Repeat:
    """Stands in the place of an object that can be read in two ways."""

    def __init__(self, key: str) -> None:
        self.key = key


def _is_as_written(data: bytes) -> bool:
    """Whether reading and writing gives the same text: then nothing was in it twice. Most peers' texts pass here."""
    try:
        written = msgspec.json.encode(msgspec.json.decode(data))
        return written == data or written == msgspec.json.format(data, indent=-1)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False


def _within(value: object) -> _Repeat | None:
    """What stands for an object in a value of which all objects were read; lists alone are still to be searched."""
    level = [value]
    while level:
        for item in level:
            if isinstance(item, _Repeat):
                return item
        level = [inner for item in level if isinstance(item, list) for inner in item]
    return None


def _first_twice(pairs: list[tuple[str, Json]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return ""
