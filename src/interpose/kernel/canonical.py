"""One byte form for equal JSON values, and its hash."""

import hashlib
import json

from interpose.contracts.json import Json


def canonical_json(value: Json) -> str:
    """Sorted keys, no spaces, no escapes beyond JSON's own.

    Raises ValueError for NaN, infinity and cycles, TypeError for what JSON cannot say.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_hash(value: Json) -> str:
    """SHA-256 in hex over the canonical form; raises as `canonical_json` does."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
