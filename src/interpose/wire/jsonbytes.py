"""JSON of peers, read as their other readers do, and written without changing what was not meant.

Knows: how lenient common parsers are. Does not know: what the values mean.
"""

import json

import msgspec

from interpose.contracts.json import Json


def read_json(data: bytes) -> Json:
    """The value, read as leniently as common clients read it (NaN, half surrogate pairs, repeated keys: the last).

    Bytes that are not UTF-8 become the replacement character, as clients in JavaScript read them.
    Raises ValueError when it is not JSON, or nested so deep that it cannot be read.
    """
    try:
        return msgspec.json.decode(data)
    except msgspec.MsgspecError:
        pass
    except RecursionError:
        raise ValueError("nested too deep to be read") from None
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deep to be read") from None


def write_json(value: Json) -> bytes:
    """The value in one line of UTF-8, key order kept; parts given as `msgspec.Raw` keep their bytes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def tidied(data: bytes) -> bytes:
    """The same JSON, such that a strict reader takes it; the very bytes when it does already.

    Half a surrogate pair becomes a question mark: no provider takes one, and agents that cut texts send them. Raises
    ValueError when it is not JSON.
    """
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError:
        pass
    except RecursionError:
        raise ValueError("nested too deep to be read") from None
    else:
        return data
    return json.dumps(read_json(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        "utf-8", "replace"
    )
