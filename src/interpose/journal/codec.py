"""The one codec of the journal: a record to bytes, a row, a JSON object, and back.

Knows: every field of `contracts.journal.Record`, taken from the dataclass itself, so no list of names is kept twice.
Does not know: where rows are stored.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import msgspec

from interpose.contracts.journal import Record, StoredRecord
from interpose.contracts.json import Json
from interpose.kernel.boundary import fault_line, guarded
from interpose.kernel.db import Row
from interpose.secrets.masking import mask_json, may_hold_secrets

FIELDS = tuple(field.name for field in fields(Record))
"""The record's fields, in the order of the contract; the columns after `seq` and `writer` have the same names."""

_TEXTS = tuple(field.name for field in fields(Record) if field.type is str)
_DEEPEST = 64


def pack(record: Record) -> bytes:
    """The record as JSON, cut loose from values that may change later. Never raises.

    What JSON cannot say is said in its place: half a surrogate pair as its escape, other objects as their repr.
    """
    return guarded(lambda: _encode(record), failure=lambda error: _encode_leniently(record, error))


def unpack(packed: bytes) -> Record:
    """The record that was packed, with every secret in its texts and its data masked."""
    values: dict[str, Any] = msgspec.json.decode(packed)
    if may_hold_secrets(packed.decode()):
        values = {name: guarded(partial(mask_json, value), failure=_hidden) for name, value in values.items()}
    return _record(values)


def masked(record: Record) -> Record:
    """A copy of the record with every secret masked, as the journal would store it. Never raises."""
    return unpack(pack(record))


def to_row(record: Record) -> Row:
    """The values of the columns `FIELDS`, for a record without secrets."""
    return tuple(
        msgspec.json.encode(record.data).decode() if name == "data" else getattr(record, name) for name in FIELDS
    )


def from_row(row: Row) -> StoredRecord:
    """The record of a row whose columns are `seq` and `FIELDS`. Raises ValueError when its data is no JSON object."""
    seq, *columns = row
    values = dict(zip(FIELDS, columns, strict=True))
    values["data"] = msgspec.json.decode(values["data"], type=dict[str, Any])
    return StoredRecord(int(seq), _record(values))


def to_json(stored: StoredRecord) -> dict[str, Json]:
    """The object that `--json` prints: `seq`, then every field of the record, empty ones too."""
    return {"seq": stored.seq} | {name: getattr(stored.record, name) for name in FIELDS}


def _encode(record: Record) -> bytes:
    return msgspec.json.encode(record, enc_hook=_said_otherwise)


def _encode_leniently(record: Record, error: Exception) -> bytes:
    texts: dict[str, Any] = {name: _plain(str(getattr(record, name))) for name in _TEXTS}
    data = guarded(
        lambda: _plain(record.data),
        failure=lambda failure: {"unreadable": _plain(fault_line(failure)), "because": _plain(fault_line(error))},
    )
    return _encode(replace(record, at=_number(record.at), duration_ms=_number(record.duration_ms), data=data, **texts))


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


def _said_otherwise(value: object) -> Json:
    if isinstance(value, Mapping):
        return dict(value)
    return guarded(lambda: repr(value), failure=lambda _: f"<{type(value).__name__}>")


def _hidden(error: Exception) -> Json:
    # Only data can nest too deep to be looked through; what cannot be masked is not stored.
    return {"unreadable": fault_line(error)}


def _record(values: Mapping[str, Any]) -> Record:
    numbers = {"at": _number(values["at"]), "duration_ms": _number(values["duration_ms"])}
    return Record(**{**values, **numbers})


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
