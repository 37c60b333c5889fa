"""What a tool returned, as the text that stands for it.

Knows: how to say any value, and when nobody can. Does not know: tools, who reads it.
"""

import json
from typing import Any, NamedTuple

from interpose.contracts.copying import beyond


class Shown(NamedTuple):
    """A result as text. `problem` says why the text does not tell what is in the result; None where it does."""

    text: str
    problem: str | None = None


def result_text(result: Any) -> str:
    """The text alone, see `shown`. Never raises."""
    return shown(result).text


def shown(result: Any) -> Shown:
    """A string as it is, else its JSON, and what JSON cannot say by its repr. Never raises.

    Of a value that nests too deep or repeats too much, see `contracts.copying.beyond`, it says so and shows nothing.
    """
    if isinstance(result, str):
        return Shown(result)
    problem = beyond(result)
    if problem is not None:
        return Shown(f"{_unshown(result)}: {problem}", problem)

    mute: list[Any] = []
    try:
        text = json.dumps(result, ensure_ascii=False, default=lambda value: _said(value, mute))
    except Exception:  # noqa: BLE001 - values are the tool's own code; what JSON cannot say is shown otherwise
        mute.clear()
        text = _said(result, mute)
    if not mute:
        return Shown(text)
    return Shown(text, "it cannot be shown" if mute[0] is result else f"it holds {_unshown(mute[0])}")


def _said(value: Any, mute: list[Any]) -> str:
    """Its repr; `mute` gets one that has none."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - the value's own code; what cannot be shown is said so
        mute.append(value)
        return _unshown(value)


def _unshown(value: Any) -> str:
    return f"a {type(value).__name__} that cannot be shown"
