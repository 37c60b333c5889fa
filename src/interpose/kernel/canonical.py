"""One byte form for equal JSON values, and its hash."""

import hashlib
import json

from interpose.contracts.json import Json

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Json) -> str:
    """Sorted keys, no spaces, no escapes beyond JSON's own.

    Raises ValueError for NaN, infinity and cycles, TypeError for what JSON cannot say.
    """
    return _ENCODER.encode(value)


def canonical_hash(value: Json) -> str:
    """SHA-256 in hex over the canonical form; raises as `canonical_json` does."""
    return hash_of(canonical_json(value))


def hash_of(text: str) -> str:
    """SHA-256 in hex of what is in its canonical form already."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
