"""gateway.encodings: compressed bodies, undone within a bound."""

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.gateway.encodings import UndecodableError, Unpacking, decoded, encodings_of

PLAIN = b'{"a": 1}' * 50
LIMIT = 1000


def bare_deflate(data: bytes) -> bytes:
    """Deflate without zlib's frame, as some clients send it."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def module(name: str) -> Any:
    """An optional codec, or None where it is not installed."""
    try:
        return import_module(name) if find_spec(name) else None
    except ModuleNotFoundError:
        return None


BROTLI, ZSTD = module("brotli"), module("backports.zstd")
PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZIP", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "bare": ("deflate", bare_deflate),
    **({"br": ("br", BROTLI.compress)} if BROTLI else {}),
    **({"zstd": ("zstd", ZSTD.compress)} if ZSTD else {}),
}


@pytest.mark.parametrize("name", PACKERS)
def test_each_encoding_is_undone(name: str) -> None:
    """The body comes back; in the middle of it nothing ends."""
    encoding, packed = PACKERS[name]

    assert decoded(packed(PLAIN), encoding, LIMIT) == PLAIN
    assert decoded(packed(PLAIN), encoding, len(PLAIN)) == PLAIN
    assert decoded(packed(b""), encoding, LIMIT) == b""


@pytest.mark.parametrize("name", PACKERS)
def test_what_is_broken_or_too_large_says_so(name: str) -> None:
    """Cut off, followed by more, or not compressed at all: 400; a bomb is 413 and is never held as a whole."""
    encoding, packed = PACKERS[name]
    for body in (
        packed(PLAIN)[:-1],
        packed(PLAIN) + b"x",
        packed(PLAIN)[: len(packed(PLAIN)) // 2],
        b"\xff" + PLAIN,
        b"",
    ):
        with pytest.raises(UndecodableError) as caught:
            decoded(body, encoding, LIMIT)
        assert caught.value.status == 400, body
    for size in (LIMIT + 1, 50_000_000):
        with pytest.raises(UndecodableError, match="expands") as caught:
            decoded(packed(b"0" * size), encoding, LIMIT)
        assert caught.value.status == 413


@given(st.sampled_from(sorted(PACKERS)), st.binary(max_size=3_000), st.binary(max_size=3_000))
def test_any_body(name: str, plain: bytes, noise: bytes) -> None:
    """What was packed comes back or is too large; noise is an error of ours and nothing else."""
    encoding, packed = PACKERS[name]
    if len(plain) <= LIMIT:
        assert decoded(packed(plain), encoding, LIMIT) == plain
    with suppress(UndecodableError):
        assert len(decoded(noise, encoding, LIMIT)) <= LIMIT


def test_several_layers() -> None:
    """The last one named is undone first; each layer has the same bound, and their number one of its own."""
    twice = gzip.compress(zlib.compress(PLAIN))

    assert decoded(twice, "deflate, gzip", LIMIT) == PLAIN
    assert decoded(PLAIN, None, LIMIT) is PLAIN
    assert decoded(PLAIN, " identity ,", LIMIT) is PLAIN
    with pytest.raises(UndecodableError, match="expands"):
        decoded(gzip.compress(gzip.compress(b"0" * 50_000_000)), "gzip, gzip", LIMIT)
    with pytest.raises(UndecodableError, match="4 times"):
        decoded(PLAIN, "gzip, gzip, gzip, gzip", LIMIT)


def test_an_encoding_that_nobody_knows() -> None:
    """It is a 415 that names what is possible."""
    with pytest.raises(UndecodableError, match="gzip, deflate, br or zstd") as caught:
        decoded(PLAIN, "lzma", LIMIT)

    assert caught.value.status == 415


@pytest.mark.parametrize(("encoding", "package"), [("br", BROTLI), ("zstd", ZSTD)])
def test_a_codec_that_is_not_installed(encoding: str, package: Any) -> None:
    """Without its package the encoding is a 415 that names it; with it a broken body is a 400."""
    with pytest.raises(UndecodableError) as caught:
        decoded(b"\xff\xff\xff", encoding, LIMIT)

    assert caught.value.status == (400 if package else 415)
    assert package or "not installed" in str(caught.value)


SEVERAL = [name for name in ("gzip", "zstd") if name in PACKERS]


@pytest.mark.parametrize("name", SEVERAL)
def test_members_and_frames_may_follow_each_other(name: str) -> None:
    """Both formats say so; half a second one is not whole."""
    encoding, packed = PACKERS[name]

    assert decoded(packed(b"a") + packed(b"") + packed(b"b"), encoding, LIMIT) == b"ab"
    with pytest.raises(UndecodableError):
        decoded(packed(b"a") + packed(b"b")[:-1], encoding, LIMIT)


@given(st.sampled_from(sorted(PACKERS)), st.binary(min_size=1, max_size=600_000), st.integers(1, 50_000))
def test_a_body_is_undone_as_it_arrives(name: str, plain: bytes, size: int) -> None:
    """Wherever it is cut, in pieces; what breaks off is told at its end, and a body without a byte is whole."""
    encoding, packed = PACKERS[name]
    body = packed(plain)
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    unpacking, broken = Unpacking(encodings_of([encoding])), Unpacking(encodings_of([encoding]))

    assert b"".join(piece for chunk in chunks for piece in unpacking.feed(chunk)) == plain
    unpacking.finish()
    Unpacking(encodings_of([encoding])).finish()
    assert plain.startswith(b"".join(broken.feed(body[:-1])))
    with pytest.raises(UndecodableError, match=encoding.lower()):
        broken.finish()


def test_the_lines_of_the_header_are_one_list() -> None:
    """However many lines there are, in the order they were applied."""
    assert encodings_of(["GZIP, identity", "br ,", ""]) == ["gzip", "br"]
