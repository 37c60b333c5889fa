"""wire.jsonbytes."""

import math

import msgspec
import pytest

from interpose.contracts.json import Json
from interpose.wire.jsonbytes import read_json, tidied, write_as_read, write_json


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
    mixed: Json = {"\udfff": [msgspec.Raw(b'{ "x" :1}'), "é\ud800", 1.5, None], "a": {}, "b": []}
    assert write_json(mixed) == b'{"\\udfff":[{ "x" :1},"\\u00e9\\ud800",1.5,null],"a":{},"b":[]}'


def test_tidied_changes_only_what_a_strict_reader_refuses() -> None:
    """Valid JSON stays the very bytes; half a pair becomes a question mark; NaN stays refused."""
    body = b'{"b" : 1,  "a":"\\ud83d\\ude00"}'

    assert tidied(body) is body
    assert tidied(b'{"b":"x\\ud83d","a":1}') == b'{"b":"x?","a":1}'
    with pytest.raises(ValueError, match="JSON"):
        tidied(b'{"a": NaN}')


def test_a_number_that_python_does_not_read_is_what_a_double_makes_of_it() -> None:
    """As `JSON.parse` reads it; shorter ones stay as they are."""
    assert read_json(b'{"a": ' + b"9" * 5000 + b', "b": -' + b"1" * 4301 + b"}") == {"a": math.inf, "b": -math.inf}
    assert read_json(b"1" * 4300) == int("1" * 4300)


@pytest.mark.parametrize(
    ("number", "words"),
    [("NaN", "NaN, which JSON"), ("-Infinity", "-Infinity, which"), ("1e999", "beyond a"), ("9" * 5000, "beyond a")],
)
def test_a_number_that_json_cannot_say_is_named_with_its_place(number: str, words: str) -> None:
    """A body that must be written anew for a strict reader says where it cannot be, in words of ours."""
    body = f'{{"a": "\\ud800", "b": [1, {{"c": {number}}}]}}'
    with pytest.raises(ValueError, match=rf"^the number at b\[1\]\.c is {words}"):
        tidied(body.encode())


def test_of_numbers_that_json_cannot_say_the_one_that_nobody_may_write_is_named() -> None:
    """A number beyond a double goes on where the rest can be read strictly; NaN never does."""
    body = b'{"a": 1e400}'

    assert tidied(body) is body
    with pytest.raises(ValueError, match=r"^the number at b is Infinity, which JSON cannot say$"):
        tidied(b'{"a": 1e400, "b": Infinity}')
    with pytest.raises(ValueError, match=r"^the number is NaN"):
        tidied(b"NaN")


def test_what_json_cannot_say_is_written_as_a_number_that_no_reader_takes_for_another() -> None:
    """Not as null, which would be judged as something else."""
    written = write_as_read({"a": [math.nan, -math.inf, 1.5], "b": "x"})
    assert written == b'{"a":[1e999,-1e999,1.5],"b":"x"}'
    assert read_json(written) == {"a": [math.inf, -math.inf, 1.5], "b": "x"}
