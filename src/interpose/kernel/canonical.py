"""One byte form for equal JSON values, and its hash."""

import hashlib
import json

from interpose.contracts.json import Json

_PIECE_BYTES = 2_047
"""For more at once hashlib lets other threads run meanwhile, and waiting for them costs more than the hash."""

_LONG_BYTES = 64 * 1024
"""From here on it is worth it."""

_LENIENT = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Json) -> str:
    """Sorted keys, no spaces, no escapes beyond JSON's own.

    Raises ValueError for NaN, infinity and cycles, TypeError for what JSON cannot say.
    """
    return _ENCODER.encode(value)


def canonical_hash(value: Json) -> str:
    """SHA-256 in hex over the canonical form; raises as `canonical_json` does."""
    return hash_of(canonical_json(value))


def lenient_hash(value: Json) -> str:
    """As `canonical_hash`, also of NaN and infinity, which peers send and lenient readers read."""
    return hash_of(_LENIENT.encode(value))


def hash_of(text: str) -> str:
    """SHA-256 in hex of what is in its canonical form already."""
    data = text.encode("utf-8", "surrogatepass")
    if not _PIECE_BYTES < len(data) <= _LONG_BYTES:
        return hashlib.sha256(data).hexdigest()
    digest = hashlib.sha256()
    for start in range(0, len(data), _PIECE_BYTES):
        digest.update(data[start : start + _PIECE_BYTES])
    return digest.hexdigest()
