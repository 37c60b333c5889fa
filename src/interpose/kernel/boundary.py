"""The isolation boundary: the one place where an exception of foreign code stops.

Knows: how to call something that may raise anything, and how to say in one line what it raised.
Does not know: what is called, or what a failure of it means; the caller declares that with `failure`.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_FAULT_CHARS = 500


def guarded(call: Callable[[], T], *, failure: Callable[[Exception], T]) -> T:
    """What `call` returns, or what `failure` makes of the exception it raised: the declared direction.

    KeyboardInterrupt, SystemExit and cancellation pass, since they are meant for the process and not for the caller.
    An exception of `failure` itself passes too. Keeps no state: any thread may call it, many at once.
    """
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the isolation boundary, direction declared by `failure`
        return failure(error)


async def guarded_async(call: Callable[[], Awaitable[T]], *, failure: Callable[[Exception], T]) -> T:
    """As `guarded`, for a call that is awaited."""
    try:
        return await call()
    except Exception as error:  # noqa: BLE001 - the isolation boundary, direction declared by `failure`
        return failure(error)


def fault_line(error: BaseException) -> str:
    """`TypeName: text` on one line of at most 500 characters; never raises, even when the exception's own text does."""
    name = type(error).__name__
    text = guarded(lambda: " ".join(str(error).split()), failure=lambda _: "its text cannot be read")
    line = f"{name}: {text}" if text else name
    return line if len(line) <= _FAULT_CHARS else line[: _FAULT_CHARS - 1] + "…"
