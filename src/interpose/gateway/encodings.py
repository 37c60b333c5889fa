"""Compressed request bodies, undone within a bound.

Knows: gzip and deflate. Does not know: who sent them.
"""

import zlib

_WINDOWS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}  # deflate comes with and without zlib's frame


class UndecodableError(ValueError):
    """A body that cannot be decoded; `status` is what to answer."""

    def __init__(self, status: int, problem: str) -> None:
        self.status = status
        super().__init__(problem)


def decoded(body: bytes, encoding: str | None, limit: int) -> bytes:
    """The plain body. Raises UndecodableError for an encoding that is not known, broken data, or more than `limit`."""
    name = (encoding or "identity").strip().lower()
    if name in ("", "identity"):
        return body
    windows = _WINDOWS.get(name)
    if windows is None:
        raise UndecodableError(415, f"its content-encoding is {name!r}; send it as it is, or as gzip or deflate")
    for window in windows:
        plain = _inflated(body, window, limit)
        if plain is not None:
            return plain
    raise UndecodableError(400, f"it is not what its content-encoding {name!r} says")


def _inflated(body: bytes, window: int, limit: int) -> bytes | None:
    inflater = zlib.decompressobj(window)
    try:
        plain = inflater.decompress(body, limit + 1)
    except zlib.error:
        return None
    if len(plain) > limit:
        raise UndecodableError(413, f"it expands to more than {limit} bytes")
    return plain if inflater.eof and not inflater.unused_data else None
