"""A blocking call with a deadline that holds whatever the other side sends.

Knows: threads, and how a connection is cut under a call that waits for it. Does not know: requests, answers.
"""

import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


class Lifeline:
    """The connections that one call opened; `trace` is its httpx extension of that name.

    A connection that was open before is not seen: a call on it that is given up ends when the other side does.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._is_cut = False
        self._changing = threading.Lock()

    def trace(self, _event: str, info: Mapping[str, Any]) -> None:
        """Takes note of a connection when there is one."""
        ask = getattr(info.get("return_value"), "get_extra_info", None)
        found = ask("socket") if callable(ask) else None
        if not isinstance(found, socket.socket):
            return
        with self._changing:
            self._sockets.append(found)
            is_cut = self._is_cut
        if is_cut:
            _shut(found)

    def cut(self) -> None:
        """Ends the connections, and with them whoever waits for one. Any thread may call it."""
        with self._changing:
            self._is_cut = True
            sockets = list(self._sockets)
        for each in sockets:
            _shut(each)


def within(seconds: float, work: Callable[[], T], lifeline: Lifeline) -> T:
    """What `work` returns or raises, done in a thread of its own with the caller's context variables.

    After `seconds`, or when the caller is interrupted, the lifeline is cut and nobody waits any more; the former raises
    TimeoutError. Any thread may call it, many at once.
    """
    done: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            result = context.run(work)
        except BaseException as error:  # noqa: BLE001 - another thread waits for it: raised there
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=run, name="rest-call", daemon=True).start()
    in_time = False
    try:
        in_time = bool(wait((done,), seconds).done)
    finally:
        if not in_time:  # what the work raises once it is cut off is no answer
            lifeline.cut()
    if not in_time:
        raise TimeoutError
    return done.result()


def _shut(found: socket.socket) -> None:
    with suppress(OSError):  # closed in the meantime
        found.shutdown(socket.SHUT_RDWR)
