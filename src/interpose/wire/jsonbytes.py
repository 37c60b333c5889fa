"""JSON of peers, read as their other readers do, and written without changing what was not meant.

Knows: how lenient common parsers are. Does not know: what the values mean.
"""

import json
import math
from collections.abc import Iterator

import msgspec

from interpose.contracts.json import Json


class _Constant(str):
    """NaN or an infinity, by its name."""

    __slots__ = ()


def read_json(data: bytes) -> Json:
    """The value, read as leniently as common clients read it (NaN, half surrogate pairs, repeated keys: the last).

    Bytes that are not UTF-8 become the replacement character, as clients in JavaScript read them, and so do integers
    of more digits than Python reads become what a double makes of them: infinity.
    Raises ValueError when it is not JSON, or nested so deep that it cannot be read.
    """
    try:
        return msgspec.json.decode(data)
    except msgspec.MsgspecError:
        pass
    except RecursionError:
        raise ValueError("nested too deep to be read") from None
    try:
        return json.loads(data.decode("utf-8", "replace"), parse_int=integer_of)
    except RecursionError:
        raise ValueError("nested too deep to be read") from None


def integer_of(text: str) -> int | float:
    """The value of an integer as JSON writes it; a double's where it has more digits than Python reads."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def write_json(value: Json) -> bytes:
    """The value in one line of UTF-8, key order kept; parts given as `msgspec.Raw` keep their bytes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return _written(value)


def write_as_read(value: Json) -> bytes:
    """As `write_json`, with what JSON has no words for, NaN and infinity, as a number that no double can hold."""
    return write_json(_told_unfit(value))


def tidied(data: bytes) -> bytes:
    """The same JSON, such that a strict reader takes it; the very bytes when it does already.

    Half a surrogate pair becomes a question mark: no provider takes one, and agents that cut texts send them. Raises
    ValueError when it is not JSON, or has a number that JSON has no words for.
    """
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError:
        pass
    except RecursionError:
        raise ValueError("nested too deep to be read") from None
    else:
        return data
    value = read_json(data)
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise ValueError(_unfit(data)) from None
    except RecursionError:
        raise ValueError("nested too deep to be read") from None
    return text.encode("utf-8", "replace")


def _written(value: Json) -> bytes:
    """As `write_json`, with half surrogate pairs, which UTF-8 has no bytes for, as escapes."""
    match value:
        case dict():
            members = (_written(key) + b":" + _written(inner) for key, inner in value.items())
            return b"{" + b",".join(members) + b"}"
        case list() | tuple():
            return b"[" + b",".join(map(_written, value)) + b"]"
        case str():
            return json.dumps(value).encode()
        case _:
            return msgspec.json.encode(value)


def _told_unfit(value: Json) -> Json:
    match value:
        case dict():
            return {key: _told_unfit(inner) for key, inner in value.items()}
        case list():
            return [_told_unfit(inner) for inner in value]
        case float() if not math.isfinite(value):
            return msgspec.Raw(b"-1e999" if value < 0 else b"1e999")
        case _:
            return value


def _unfit(data: bytes) -> str:
    """Which number keeps the JSON from being written anew: one that is no JSON before one that is too large."""
    value = json.loads(data.decode("utf-8", "replace"), parse_int=integer_of, parse_constant=_Constant)
    numbers = list(_unfit_numbers(value, ""))
    place, name = next((number for number in numbers if number[1]), numbers[0])
    if name:
        return f"the number {place}is {name}, which JSON cannot say"
    return f"the number {place}is beyond a double, which cannot be where half a surrogate pair stands as well"


def _unfit_numbers(value: Json, path: str) -> Iterator[tuple[str, str]]:
    """The numbers that are not written anew: where each stands, and its name where it is no JSON."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from _unfit_numbers(inner, f"{path}.{key}" if path else key)
        case list():
            for place, inner in enumerate(value):
                yield from _unfit_numbers(inner, f"{path}[{place}]")
        case _Constant():
            yield (f"at {path} " if path else ""), str(value)
        case float() if not math.isfinite(value):
            yield (f"at {path} " if path else ""), ""
