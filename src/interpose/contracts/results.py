"""What a tool returned, as the text that stands for it.

Knows: how to say any value. Does not know: tools, who reads it.
"""

import json
from typing import Any

from interpose.contracts.copying import beyond


def result_text(result: Any) -> str:
    """A string as it is, else its JSON, and what JSON cannot say by its repr. Never raises.

    Of a value that nests too deep or repeats too much, see `contracts.copying.beyond`, it says so and shows nothing.
    """
    if isinstance(result, str):
        return result
    problem = beyond(result)
    if problem is not None:
        return f"a {type(result).__name__} that cannot be shown: {problem}"
    try:
        return json.dumps(result, ensure_ascii=False, default=_shown)
    except Exception:  # noqa: BLE001 - values are the tool's own code; what JSON cannot say is shown otherwise
        return _shown(result)


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - the value's own code; what cannot be shown is said so
        return f"a {type(value).__name__} that cannot be shown"
