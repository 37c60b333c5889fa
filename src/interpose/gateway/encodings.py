"""Compressed bodies, undone within a bound or as they arrive.

Knows: gzip and deflate; br and zstd where their packages are installed. Does not know: who sent them.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Protocol

LAYERS_MAX = 3
"""So many encodings, one around the other, are undone; more is not a client but an attack."""

ZSTD_WINDOW_LOG = 23
"""The largest window that HTTP allows (RFC 9659): 8 MB."""

_PIECE_BYTES = 256 * 1024
"""A small body may stand for a large one: it is undone in pieces of this size."""


class UndecodableError(ValueError):
    """A body that cannot be decoded; `status` is what to answer."""

    def __init__(self, status: int, problem: str) -> None:
        self.status = status
        super().__init__(problem)


def encodings_of(values: Iterable[str]) -> list[str]:
    """The encodings that the Content-Encoding lines name, in the order they were applied, in lower case."""
    names = (name.strip().lower() for value in values for name in value.split(","))
    return [name for name in names if name and name != "identity"]


def decoded(body: bytes, encoding: str | None, limit: int, take: Callable[[int], None] | None = None) -> bytes:
    """The plain body. Raises UndecodableError for an encoding that is not known, broken data, or more than `limit`.

    `take` is told of each piece's size before it is kept; what it raises is raised.
    """
    for layer in _layers(encodings_of([encoding or ""])):
        pieces: list[bytes] = []
        size = 0
        for piece in layer.feed(body):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise UndecodableError(413, f"it expands to more than {limit} bytes")
            if take is not None:
                take(len(piece))
        layer.finish()
        body = b"".join(pieces)
    return body


class Unpacking:
    """One body that is undone while it arrives. Not for several threads."""

    def __init__(self, names: list[str]) -> None:
        """Raises UndecodableError for an encoding that is not known, or too many."""
        self._layers = _layers(names)
        self._has_begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` makes readable, in pieces. Raises UndecodableError when it is not what its encoding says."""
        self._has_begun = self._has_begun or bool(data)
        yield from _through(self._layers, data)

    def finish(self) -> None:
        """At the end of the body: raises UndecodableError when it breaks off. A body without a byte is whole."""
        if not self._has_begun:
            return
        for layer in self._layers:
            layer.finish()


class _Inflater(Protocol):
    """What the libraries have in common, in its smallest form."""

    @property
    def is_whole(self) -> bool: ...

    def pieces(self, data: bytes) -> Iterator[bytes]: ...


class _Layer:
    """One encoding; what goes wrong is told with its name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._inflater = _inflater_for(name)

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            yield from self._inflater.pieces(data)
        except _BrokenError:
            raise UndecodableError(400, f"it is not what its content-encoding {self._name!r} says") from None

    def finish(self) -> None:
        if not self._inflater.is_whole:
            raise UndecodableError(400, f"it breaks off: it is not what its content-encoding {self._name!r} says")


class _BrokenError(Exception):
    """The library cannot read on."""


class _Zlib:
    """gzip, where several members may follow each other, and deflate, which comes with zlib's frame and without."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._inflater: Any = zlib.decompressobj(31) if is_gzip else None

    @property
    def is_whole(self) -> bool:
        return self._inflater is not None and self._inflater.eof

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self._inflater is None and data:
            self._inflater = zlib.decompressobj(15 if data[0] & 0x0F == 8 else -15)
        is_full = False
        while data or is_full:
            piece, data = self._next(data)
            is_full = len(piece) == _PIECE_BYTES and not self._inflater.eof
            if piece:
                yield piece

    def _next(self, data: bytes) -> tuple[bytes, bytes]:
        if self._inflater.eof:
            if not self._is_gzip:
                raise _BrokenError
            self._inflater = zlib.decompressobj(31)
        try:
            piece = self._inflater.decompress(data, _PIECE_BYTES)
        except zlib.error:
            raise _BrokenError from None
        return piece, self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail


class _Brotli:
    def __init__(self) -> None:
        self._brotli = _package("brotli", "br", "brotli")
        self._inflater = self._brotli.Decompressor()

    @property
    def is_whole(self) -> bool:
        return bool(self._inflater.is_finished())

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data or not (self._inflater.is_finished() or self._inflater.can_accept_more_data()):
            if self._inflater.is_finished():
                raise _BrokenError
            try:
                piece = self._inflater.process(data, output_buffer_limit=_PIECE_BYTES)
            except self._brotli.error:
                raise _BrokenError from None
            data = b""
            if piece:
                yield piece


class _Zstd:
    """zstd, where several frames may follow each other."""

    def __init__(self) -> None:
        self._zstd = _package("backports.zstd", "zstd", "backports.zstd")
        self._inflater = self._new()

    @property
    def is_whole(self) -> bool:
        return bool(self._inflater.eof)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data or not (self._inflater.eof or self._inflater.needs_input):
            if self._inflater.eof:
                self._inflater = self._new()
            try:
                piece = self._inflater.decompress(data, _PIECE_BYTES)
            except self._zstd.ZstdError:
                raise _BrokenError from None
            data = self._inflater.unused_data if self._inflater.eof else b""
            if piece:
                yield piece

    def _new(self) -> Any:
        options = {self._zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG}
        return self._zstd.ZstdDecompressor(options=options)


def _layers(names: list[str]) -> list[_Layer]:
    """The outermost first."""
    if len(names) > LAYERS_MAX:
        raise UndecodableError(415, f"it is encoded {len(names)} times over; at most {LAYERS_MAX} are undone")
    return [_Layer(name) for name in reversed(names)]


def _inflater_for(name: str) -> _Inflater:
    match name:
        case "gzip" | "x-gzip":
            return _Zlib(is_gzip=True)
        case "deflate":
            return _Zlib(is_gzip=False)
        case "br":
            return _Brotli()
        case "zstd":
            return _Zstd()
        case _:
            known = "gzip, deflate, br or zstd"
            raise UndecodableError(415, f"its content-encoding is {name!r}; send it as it is, or as {known}")


def _through(layers: list[_Layer], data: bytes) -> Iterator[bytes]:
    if not layers:
        yield data
        return
    for piece in layers[0].feed(data):
        yield from _through(layers[1:], piece)


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
