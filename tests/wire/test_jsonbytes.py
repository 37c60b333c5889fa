"""wire.jsonbytes."""

import math

import msgspec
import pytest

from interpose.wire.jsonbytes import read_json, tidied, write_json


def test_reads_as_leniently_as_clients_do() -> None:
    """Half a pair, NaN and repeated keys are read as common clients read them."""
    assert read_json(b'{"a": "\\ud800"}') == {"a": "\ud800"}
    assert math.isnan(read_json(b'{"a": NaN}')["a"])
    assert read_json(b'{"a": 1, "a": 2}') == {"a": 2}


@pytest.mark.parametrize("data", [b"", b"{", b"<html>", b"\xff", b"[" * 200_000 + b"]" * 200_000])
def test_what_nobody_reads_is_a_value_error(data: bytes) -> None:
    """One kind of exception for all that is not JSON."""
    with pytest.raises(ValueError, match=r".+"):
        read_json(data)
    with pytest.raises(ValueError, match=r".+"):
        tidied(data)


def test_writes_raw_parts_as_they_are_and_keeps_order() -> None:
    """Raw members keep their spaces; half a pair is escaped again."""
    assert write_json({"b": msgspec.Raw(b'{ "x" :1}'), "a": 2}) == b'{"b":{ "x" :1},"a":2}'
    assert write_json({"a": "\ud800"}) == b'{"a":"\\ud800"}'


def test_tidied_changes_only_what_a_strict_reader_refuses() -> None:
    """Valid JSON stays the very bytes; half a pair becomes a question mark; NaN stays refused."""
    body = b'{"b" : 1,  "a":"\\ud83d\\ude00"}'

    assert tidied(body) is body
    assert tidied(b'{"b":"x\\ud83d","a":1}') == b'{"b":"x?","a":1}'
    with pytest.raises(ValueError, match="JSON"):
        tidied(b'{"a": NaN}')
