"""Which conversations a session holds, and when one of them is begun anew.

A client that sends a request again means the same turn; one that begins with the same words later means another.
Knows: places in a conversation, moments. Does not know: any API, what is judged.
"""

import threading
from typing import NamedTuple

from interpose.gateway.recent import Recent

AGAIN_S = 60.0
"""So long after a reply its request counts as sent again; later somebody asks anew."""

CONVERSATIONS_MAX = 1_000


class Begun(NamedTuple):
    """How often the conversation was begun anew so far, and whether this request did that."""

    number: int = 0
    is_anew: bool = False


class Place(NamedTuple):
    """Where in its conversation a request stands: the newest prompt's position, and whether the model went on from it.

    `generation` is the policy's: what it says of the same words may differ from then on.
    """

    position: int
    went_on: bool
    generation: int = 0


class Conversations:
    """The conversations of one session, by what the person said first. Any thread may use it."""

    def __init__(self) -> None:
        """None is known yet."""
        self._lock = threading.Lock()
        self._known: Recent[str, tuple[int, Place, float]] = Recent(CONVERSATIONS_MAX)

    def replied(self, root: str, now_s: float) -> None:
        """Takes the end of a reply at `now_s`, also one that broke off: whoever tries again does so from then on."""
        with self._lock:
            known = self._known.get(root)
            if known is not None:
                self._known.put(root, (known[0], known[1], now_s))

    def request(self, root: str, place: Place, now_s: float) -> Begun:
        """Takes a request at `now_s` (seconds, monotonic); says whether it begins the conversation anew.

        It does when it asks for a turn that others went on from, or that was asked for too long ago to be a retry, or
        under another policy.
        """
        with self._lock:
            known = self._known.get(root)
            if known is None:
                self._known.put(root, (0, place, now_s))
                return Begun(0, is_anew=True)
            number, before, at = known
            is_anew = not place.went_on and (
                place.generation != before.generation
                or now_s - at > AGAIN_S
                or (place.position, place.went_on) < (before.position, before.went_on)
            )
            number += is_anew
            farthest = place if is_anew else max(place, before, key=lambda one: (one.position, one.went_on))
            self._known.put(root, (number, Place(farthest.position, farthest.went_on, place.generation), now_s))
            return Begun(number, is_anew)
