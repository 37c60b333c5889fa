"""An exception in words, whatever it is.

Knows: that the text of an exception is its own code, which may fail. Does not know: who raised it.
"""


def error_words(error: BaseException) -> str:
    """Its text, its type's name where it has none, and that it cannot be read where that fails. Never raises."""
    name = type(error).__name__
    try:
        return str(error) or name
    except Exception:  # noqa: BLE001 - the exception's own code; what cannot be read is said to be so
        return f"{name}: its text cannot be read"
