"""What a tool returned or raised, as text that is always there.

Knows: how to say any value and any exception. Does not know: tools, models, what is said around it.
"""

import json
from collections.abc import Callable
from typing import Any

from interpose.contracts.errors import InterposeError
from interpose.kernel.boundary import guarded

_ERROR_CHARS = 2000


def result_text(result: Any) -> str:
    """The text of a result: a string as it is, else its JSON, and what JSON cannot say by its repr. Never raises.

    It is always sendable, see `sendable`.
    """
    if isinstance(result, str):
        return sendable(result)
    written = guarded(lambda: json.dumps(result, ensure_ascii=False, default=_shown), failure=lambda _: _shown(result))
    return sendable(written)


def error_text(error: BaseException) -> str:
    """`TypeName: text`, without the type where the text is made for people; at most 2000 characters. Never raises."""
    name = type(error).__name__
    own = guarded(lambda: str(error).strip(), failure=lambda _: "its text cannot be read")
    text = own if isinstance(error, InterposeError) and own else f"{name}: {own}" if own else name
    text = sendable(text)
    return text if len(text) <= _ERROR_CHARS else text[: _ERROR_CHARS - 1] + "…"


def sendable(text: str) -> str:
    r"""The text with each half of a surrogate pair written as `\udcff`: no message can hold one as it is.

    Names of files that are no text have them, and JSON may. Pure.
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def redacted(text: str, redact: Callable[[str], str]) -> str:
    """`text` without secrets; a redactor that fails withholds the whole text."""
    return guarded(lambda: redact(text), failure=lambda _: "the text of the failure is withheld: it may hold secrets")


def _shown(value: Any) -> str:
    return guarded(lambda: repr(value), failure=lambda _: f"a {type(value).__name__} that cannot be shown")
