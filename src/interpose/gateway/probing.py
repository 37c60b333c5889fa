"""Whether a client that sends nothing more is still there: who closed only its sending side reads on.

Knows: what a closed socket tells, and when. Does not know: requests, what follows.
"""

import asyncio
import socket
from collections.abc import Callable

from interpose.gateway.serving import CONTINUE

LOOKS_S = (0.05, 0.5, 2.0)
"""When it is looked for what the client's machine has answered to the sign of life."""


def probe(transport: asyncio.Transport, is_asked: Callable[[], bool], on_left: Callable[[], None]) -> None:
    """Shows life to a client once, and calls `on_left` when it has closed altogether, and `is_asked` still.

    Whose socket is closed answers anything with a reset; who still reads skips a 100 (RFC 9110, section 15.2), but some
    clients take only a few of them. Call it on the transport's loop, for a client that knows HTTP/1.1.
    """
    loop = asyncio.get_running_loop()

    def look() -> None:
        if is_asked() and not transport.is_closing() and _was_reset(transport):
            on_left()

    transport.write(CONTINUE)
    for after_s in LOOKS_S:
        loop.call_later(after_s, look)


def _was_reset(transport: asyncio.Transport) -> bool:
    found = transport.get_extra_info("socket")
    return found is not None and found.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
