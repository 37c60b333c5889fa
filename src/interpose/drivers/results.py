"""What a tool returned or raised, as text that is always there.

Knows: how to say any exception, and what no message can hold. Does not know: tools, models, what is said around it.
"""

from collections.abc import Callable
from typing import Any

from interpose.contracts.errors import InterposeError
from interpose.contracts.results import result_text
from interpose.kernel.boundary import guarded

_ERROR_CHARS = 2000


def told(result: Any) -> str:
    """The text of a result, see `contracts.results`. Never raises. It is always sendable, see `sendable`."""
    return sendable(result_text(result))


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
    """`text` without secrets; a redactor that fails, or gives no text, withholds the whole text."""
    answer: Any = guarded(lambda: redact(text), failure=lambda _: None)
    return answer if isinstance(answer, str) else "the text of the failure is withheld: it may hold secrets"
