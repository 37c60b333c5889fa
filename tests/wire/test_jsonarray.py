"""wire.jsonarray: a stream that is one array, wherever it was cut."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.wire.jsonarray import ITEM_BYTES_MAX, ArrayReader, ItemTooLong, Piece

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\[]{},é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\]', max_size=3), inner, max_size=3),
    max_leaves=8,
)
ITEMS = st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3) | st.lists(VALUES, max_size=2), max_size=4)


def read(chunks: list[bytes]) -> tuple[list[Piece], bytes, bool]:
    """All pieces, what is left, and whether the array was closed."""
    reader = ArrayReader()
    pieces = [piece for chunk in chunks for piece in reader.feed(chunk)]
    return pieces, reader.finish(), reader.is_over


@given(items=ITEMS, space=st.sampled_from(["", " ", "\r\n", "\n,"[:1]]), data=st.data())
@settings(max_examples=150, deadline=None)
def test_items_come_whole_and_all_bytes_come_out(items: list[Any], space: str, data: st.DataObject) -> None:
    """Any cuts: the items are those of a whole reading, and the pieces joined are the stream."""
    stream = f"{space}[{space}{f'{space},{space}'.join(map(json.dumps, items))}{space}]{space}".encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    pieces, rest, is_over = read(chunks)

    assert [json.loads(piece.raw) for piece in pieces if piece.is_item] == items
    assert b"".join(piece.raw for piece in pieces) == stream
    assert (rest, is_over) == (b"", True)


def test_what_stands_around_items_is_given_at_once() -> None:
    """Only an item waits for its end; plain values count as what stands around."""
    reader = ArrayReader()

    assert reader.feed(b'[ 1, "{", ') == [Piece(b'[ 1, "{", ', is_item=False)]
    assert reader.feed(b'{"a": "\\"}') == []
    assert reader.feed(b'"}, ') == [Piece(b'{"a": "\\"}"}', is_item=True), Piece(b", ", is_item=False)]
    assert not reader.is_over


def test_an_item_that_does_not_end() -> None:
    """It is what is left; one that is too long is not waited for."""
    assert read([b'[{"a": [1'])[1:] == (b'{"a": [1', False)
    with pytest.raises(ItemTooLong, match="does not end"):
        ArrayReader().feed(b'[{"a": "' + b"x" * ITEM_BYTES_MAX)


@pytest.mark.parametrize("behind", [b"[1]", b"\n{}", b" ,", b"]", b'"'])
def test_what_stands_behind_the_array_is_no_piece(behind: bytes) -> None:
    """The reader says that there is more, wherever the cut falls, and gives nothing of it."""
    body = b'[{"a": 1}] ' + behind
    for cut in range(len(body)):
        reader = ArrayReader()
        pieces = reader.feed(body[:cut]) + reader.feed(body[cut:])

        assert reader.is_over
        assert reader.has_more
        assert b"".join(piece.raw for piece in pieces).rstrip() == b'[{"a": 1}]'
