"""The one codec of the journal: a record to bytes, a row, a JSON object, and back.

Knows: every field of `contracts.journal.Record`, taken from the dataclass itself, so no list of names is kept twice.
Does not know: where rows are stored.

A record is packed as the line of JSON that `--json` prints, less its number. Everything later works on such lines:
many are searched for secrets at once, and nearly all become rows without being looked at one by one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple

import msgspec

from interpose.contracts.journal import Record, StoredRecord
from interpose.contracts.json import Json
from interpose.kernel.boundary import fault_line, guarded
from interpose.kernel.db import Row
from interpose.secrets.masking import mask_json, may_hold_secrets

FIELDS = tuple(field.name for field in fields(Record))
"""The record's fields, in the order of the contract; the columns after `seq` and `writer` have the same names."""

_TEXTS = tuple(field.name for field in fields(Record) if field.name != "data" and field.type is not float)
_DEEPEST = 64


def _column_type(name: str, kind: object) -> object:
    if name == "data":
        return msgspec.Raw
    return float if kind is float else str


def _said_otherwise(value: object) -> Json:
    if isinstance(value, Mapping):
        return dict(value)
    return guarded(lambda: repr(value), failure=lambda _: f"<{type(value).__name__}>")


_ENCODER = msgspec.json.Encoder(enc_hook=_said_otherwise)
_Columns = msgspec.defstruct(
    "_Columns", [(field.name, _column_type(field.name, field.type)) for field in fields(Record)]
)
_DECODER = msgspec.json.Decoder(_Columns)


class Masked(NamedTuple):
    """A packed record without secrets, and the same as the values of the columns `FIELDS`."""

    line: bytes
    row: Row


def pack(record: Record) -> bytes:
    """The record as a line of JSON, cut loose from values that may change later. Never raises.

    What JSON cannot say is said in its place: half a surrogate pair as its escape, other objects as their repr.
    """
    try:
        if math.isfinite(record.at) and math.isfinite(record.duration_ms):
            return _ENCODER.encode(record)
    except Exception as error:  # noqa: BLE001 - anybody's values; open: the record is kept in words that JSON has
        return _encode_leniently(record, fault_line(error))
    return _encode_leniently(record, "a time is not finite")


def without_secrets(lines: Sequence[bytes]) -> list[Masked]:
    """The packed records with every secret in their texts and their data masked, as the journal stores them."""
    found = [Masked(line, to_row(line)) for line in lines]
    # Most texts of a batch are the same, and each is looked through once.
    columns: set[object] = set().union(*[one.row for one in found])
    if not may_hold_secrets("\n".join([column for column in columns if type(column) is str])):
        return found
    return [_masked(one) if may_hold_secrets(one.line.decode()) else one for one in found]


def to_record(line: bytes) -> Record:
    """The record that was packed."""
    return Record(**msgspec.json.decode(line))


def masked(record: Record) -> Record:
    """A copy of the record with every secret masked, as the journal would store it. Never raises."""
    return to_record(without_secrets([pack(record)])[0].line)


def to_row(line: bytes) -> Row:
    """The values of the columns `FIELDS`, of a packed record without secrets."""
    try:
        *texts, data = msgspec.structs.astuple(_DECODER.decode(line))
    except msgspec.ValidationError:
        return _odd_row(line)
    return (*texts, str(data, "utf-8"))


def to_line(line: bytes, seq: int = 0) -> bytes:
    """What `--json` prints for a packed record without secrets, less the line's end."""
    return b'{"seq":%d,%b' % (seq, line[1:])


def from_row(row: Row) -> StoredRecord:
    """The record of a row whose columns are `seq` and `FIELDS`. Raises ValueError when its data is no JSON object."""
    seq, *columns = row
    values = dict(zip(FIELDS, columns, strict=True))
    values["data"] = msgspec.json.decode(values["data"], type=dict[str, Any])
    return StoredRecord(int(seq), Record(**values))


def to_json(stored: StoredRecord) -> dict[str, Json]:
    """The object that `--json` prints: `seq`, then every field of the record, empty ones too."""
    return {"seq": stored.seq} | {name: getattr(stored.record, name) for name in FIELDS}


def _odd_row(line: bytes) -> Row:
    """Somebody gave a text that is none: that must not keep the records of others from the disk."""
    values: dict[str, Any] = msgspec.json.decode(line)
    texts = {name: value if isinstance(value := values[name], str) else str(value or "") for name in _TEXTS}
    data = msgspec.json.encode(values["data"]).decode()
    return tuple((values | texts | {"data": data})[name] for name in FIELDS)


def _encode_leniently(record: Record, because: str) -> bytes:
    texts: dict[str, Any] = {name: _plain(str(getattr(record, name))) for name in _TEXTS}
    data = guarded(
        lambda: _plain(record.data),
        failure=lambda failure: {"unreadable": _plain(fault_line(failure)), "because": _plain(because)},
    )
    return _ENCODER.encode(
        replace(record, at=_number(record.at), duration_ms=_number(record.duration_ms), data=data, **texts)
    )


def _plain(value: Any, depth: int = 0) -> Json:
    if depth > _DEEPEST:
        raise ValueError(f"nested deeper than {_DEEPEST}, or in a circle")
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth + 1) for item in value]
    return _plain(_said_otherwise(value))


def _masked(one: Masked) -> Masked:
    values: dict[str, Any] = msgspec.json.decode(one.line)
    line = msgspec.json.encode(
        {name: guarded(partial(mask_json, value), failure=_hidden) for name, value in values.items()}
    )
    return Masked(line, to_row(line))


def _hidden(error: Exception) -> Json:
    # Only data can nest too deep to be looked through; what cannot be masked is not stored.
    return {"unreadable": fault_line(error)}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
