"""What the bodies of all requests together take of memory, within a bound.

Knows: how many bytes each request holds. Does not know: what is in them.
"""

import threading

HELD_BYTES_MAX = 512 * 1024 * 1024
"""So much all bodies that are read may take at once, as they came and unpacked."""


class TooMuchAtOnce(Exception):  # noqa: N818 - an event, told to the client
    """Other requests' bodies leave no room for this one; the text is made for its client."""


class Load:
    """What all requests of one gateway hold. Any thread may use it."""

    def __init__(self, limit: int = HELD_BYTES_MAX) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self.held = 0

    def change(self, size: int) -> None:
        """Adds `size` bytes, or takes them away. Raises TooMuchAtOnce where there is no room for them."""
        with self._lock:
            if size > 0 and self.held + size > self._limit:
                raise TooMuchAtOnce("interpose holds as many request bodies as it has room for; try again")
            self.held += size


class Share:
    """What one request holds of a load. Any thread may use it: one may still unpack what nobody waits for any more."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._size = 0
        self._is_over = False
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        """It holds so many bytes more. Raises TooMuchAtOnce where there is no room for them, or it is over."""
        with self._lock:
            if self._is_over:
                raise TooMuchAtOnce("the request is over")
            self._load.change(size)
            self._size += size

    def end(self) -> None:
        """It holds nothing any more."""
        with self._lock:
            self._is_over = True
            size, self._size = self._size, 0
            self._load.change(-size)
