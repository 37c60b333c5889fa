"""The digest of a call, by which what was judged and what runs are compared.

Knows: one text form of a name and arguments. Does not know: who compares.
"""

import hashlib
import json
from typing import Any

from interpose.contracts.json import JsonObject


def call_digest(tool_name: str, arguments: JsonObject) -> str:
    """SHA-256 in hex over the tool's name and arguments; the order of keys does not count.

    Values that JSON cannot say count by their repr, so for those a digest means something within one process only.
    """
    try:
        text = _ENCODER.encode([tool_name, arguments])
    except (TypeError, ValueError):  # keys that are no strings, circles
        text = repr((tool_name, arguments))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _unsayable(value: Any) -> Any:
    return {"repr": repr(value), "type": f"{type(value).__module__}.{type(value).__qualname__}"}


_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=_unsayable)
