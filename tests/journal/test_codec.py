"""journal.codec."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.journal import Record, StoredRecord
from interpose.journal.codec import (
    FIELDS,
    from_row,
    masked,
    pack,
    to_json,
    to_line,
    to_record,
    to_row,
    without_secrets,
)
from interpose.kernel.frozen import freeze
from interpose.secrets.masking import may_hold_secrets

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwx"

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda text: not may_hold_secrets(f'"{text}":')  # neither as a text nor as a key
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
records = st.builds(
    Record,
    at=st.floats(0, 1e10),
    action=text,
    step=st.sampled_from(["enter", "answer", "verdict"]),
    reason=text,
    tool=text,
    duration_ms=st.floats(0, 1e6),
    data=st.dictionaries(text, json_values, max_size=3),
)
secret_records = records.flatmap(
    lambda record: st.sampled_from(
        [
            replace(record, reason=f"with {KEY}"),
            replace(record, session=KEY),
            replace(record, data={"input": {"command": f"curl -H {KEY}"}}),
            replace(record, data={KEY: 1}),
            replace(record, data={"headers": [{"API-Key": "hunter2"}], "at": "postgres://me:hunter2@db"}),
        ]
    )
)


@given(records)
def test_a_record_comes_back_from_bytes_and_from_a_row(record: Record) -> None:
    """Without secrets nothing is lost or changed, neither in the queue nor in the table."""
    assert to_record(pack(record)) == record
    assert masked(record) == record
    assert from_row((7, *to_row(pack(record)))) == StoredRecord(7, record)


@given(records)
def test_a_packed_record_is_the_line_that_is_printed(record: Record) -> None:
    """With its number in front it says what `--json` says."""
    assert json.loads(to_line(pack(record), 7)) == to_json(StoredRecord(7, record))


@settings(max_examples=30)
@given(st.lists(records | secret_records, max_size=4))
def test_many_are_masked_as_each_alone_would_be(batch: list[Record]) -> None:
    """Whatever stands beside a record, its secrets are found, and no other record changes for them."""
    lines = [pack(record) for record in batch]

    found = without_secrets(lines)
    assert [to_record(one.line) for one in found] == [masked(record) for record in batch]
    assert [one.row for one in found] == [to_row(one.line) for one in found]
    assert all(KEY not in str(one) and "hunter2" not in str(one) for one in found)


def test_a_text_that_is_none_costs_no_other_record() -> None:
    """An id that is a number, or missing, is kept as text; the table refuses neither."""
    odd: dict[str, Any] = {"call_id": 5, "tool": None}
    line = pack(replace(Record(1.0, "a", "enter"), **odd))

    stored = from_row((7, *to_row(line))).record

    assert (stored.call_id, stored.tool, stored.action) == ("5", "", "a")


def test_a_frozen_payload_is_an_ordinary_one_in_the_journal() -> None:
    """Frozen dicts and lists, read-only views and tuples are stored as JSON objects and lists."""
    record = Record(1.0, "a", "enter", data=MappingProxyType({"input": freeze({"list": [1, {"x": (2,)}]})}))

    assert to_record(pack(record)).data == {"input": {"list": [1, {"x": [2]}]}}


class _Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def _circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["again"] = circle
    return circle


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ({"half": "a\ud800b"}, {"half": "a\\ud800b"}),
        ({"nan": float("nan"), "set": {1}}, {"nan": None, "set": [1]}),
        ({"object": _Rude()}, {"object": "<_Rude>"}),
        ({"half": "\udcff", "object": _Rude(), "view": MappingProxyType({"a": 1})}, None),
        ({1: "a"}, {"1": "a"}),
    ],
)
def test_what_json_cannot_say_is_said_in_its_place(data: dict[str, Any], kept: Mapping[str, Any] | None) -> None:
    """A strange value never loses the record, nor raises into the caller."""
    record = to_record(pack(Record(1.0, "a", "enter", reason="x\ud800", data=data)))

    assert record.action == "a"
    assert record.reason == "x\\ud800"
    if kept is not None:
        assert record.data == kept


def test_a_circle_costs_the_data_and_not_the_record() -> None:
    """Data that never ends is replaced by the reason."""
    record = to_record(pack(Record(1.0, "a", "enter", tool="shell", data=_circle())))

    assert record.tool == "shell"
    assert "circle" in record.data["unreadable"]


def test_data_that_is_too_deep_to_mask_is_not_stored() -> None:
    """What cannot be looked through for secrets does not reach the file."""
    deep: Any = KEY
    for _ in range(900):
        deep = [deep]

    record = masked(Record(1.0, "a", "enter", data={"deep": deep}))

    assert KEY not in str(record)
    assert record.action == "a"


def test_infinite_numbers_become_zero() -> None:
    """Times are finite in the journal, whatever the caller measured."""
    record = to_record(pack(Record(float("nan"), "a", "enter", duration_ms=float("inf"))))

    assert (record.at, record.duration_ms) == (0.0, 0.0)


def test_secrets_are_masked_in_texts_and_data() -> None:
    """A copy without secrets: the record that was given keeps its own."""
    record = Record(1.0, "a", "enter", reason=f"with {KEY}", data={"input": {"command": [f"curl -H {KEY}"]}})

    copy = masked(record)

    assert copy.reason == "with sk-ant-api03-abcd…"
    assert copy.data == {"input": {"command": ["curl -H sk-ant-api03-abcd…"]}}
    assert KEY in record.reason


def test_the_json_form_has_every_field_of_the_contract() -> None:
    """`--json` prints the number and the contract's own names, empty ones too."""
    printed = to_json(StoredRecord(3, Record(1.0, "a", "enter")))

    assert list(printed) == ["seq", *(field.name for field in fields(Record))]
    assert list(FIELDS) == [field.name for field in fields(Record)]
