"""Compressed request bodies, undone within a bound.

Knows: gzip and deflate; br and zstd where their packages are installed. Does not know: who sent them.
"""

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

LAYERS_MAX = 3
"""So many encodings, one around the other, are undone; more is not a client but an attack."""

ZSTD_WINDOW_LOG = 23
"""The largest window that HTTP allows (RFC 9659): 8 MB."""

_Undo: TypeAlias = Callable[[bytes, int], bytes | None]
"""The plain body, cut off behind `limit` bytes; None when it is not what its encoding says."""


class UndecodableError(ValueError):
    """A body that cannot be decoded; `status` is what to answer."""

    def __init__(self, status: int, problem: str) -> None:
        self.status = status
        super().__init__(problem)


def decoded(body: bytes, encoding: str | None, limit: int) -> bytes:
    """The plain body. Raises UndecodableError for an encoding that is not known, broken data, or more than `limit`."""
    names = [name for name in (part.strip().lower() for part in (encoding or "").split(",")) if name]
    names = [name for name in names if name != "identity"]
    if len(names) > LAYERS_MAX:
        raise UndecodableError(415, f"it is encoded {len(names)} times over; at most {LAYERS_MAX} are undone")
    for name in reversed(names):
        plain = _undo_for(name)(body, limit)
        if plain is None:
            raise UndecodableError(400, f"it is not what its content-encoding {name!r} says")
        if len(plain) > limit:
            raise UndecodableError(413, f"it expands to more than {limit} bytes")
        body = plain
    return body


def _undo_for(name: str) -> _Undo:
    match name:
        case "gzip" | "x-gzip":
            return _gzip
        case "deflate":
            return _deflate
        case "br":
            return _brotli
        case "zstd":
            return _zstd
        case _:
            known = "gzip, deflate, br or zstd"
            raise UndecodableError(415, f"its content-encoding is {name!r}; send it as it is, or as {known}")


def _gzip(body: bytes, limit: int) -> bytes | None:
    return _inflated(body, 31, limit)


def _deflate(body: bytes, limit: int) -> bytes | None:
    """It comes with zlib's frame and without."""
    framed = _inflated(body, 15, limit)
    return framed if framed is not None else _inflated(body, -15, limit)


def _inflated(body: bytes, window: int, limit: int) -> bytes | None:
    inflater = zlib.decompressobj(window)
    try:
        plain = inflater.decompress(body, limit + 1)
    except zlib.error:
        return None
    is_whole = inflater.eof and not inflater.unused_data
    return plain if is_whole or len(plain) > limit else None


def _brotli(body: bytes, limit: int) -> bytes | None:
    brotli = _package("brotli", "br", "brotli")
    inflater = brotli.Decompressor()
    pieces: list[bytes] = []
    size = 0
    data = body
    try:
        while not inflater.is_finished() and size <= limit:
            piece = inflater.process(data, output_buffer_limit=limit + 1 - size)
            if not piece and inflater.can_accept_more_data():
                return b"".join(pieces) if inflater.is_finished() else None
            data = b""
            pieces.append(piece)
            size += len(piece)
    except brotli.error:
        return None
    return b"".join(pieces)


def _zstd(body: bytes, limit: int) -> bytes | None:
    zstd = _package("backports.zstd", "zstd", "backports.zstd")
    inflater = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG})
    try:
        plain: bytes = inflater.decompress(body, limit + 1)
    except zstd.ZstdError:
        return None
    is_whole = inflater.eof and not inflater.unused_data
    return plain if is_whole or len(plain) > limit else None


def _package(module: str, encoding: str, package: str) -> Any:
    """The module that undoes an encoding; Python has zstd of its own from 3.14 on."""
    names = ("compression.zstd", module) if encoding == "zstd" else (module,)
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise UndecodableError(
        415, f"its content-encoding is {encoding!r}, for which the package {package} is not installed; send it plain"
    )
