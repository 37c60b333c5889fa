"""How often Python looks for circles in memory.

Knows: the collector. Does not know: who makes objects.
"""

import gc

_YOUNG_MAX = 20_000
_ROUNDS = 20


def settle() -> None:
    """For a process that serves from now on: what is there stays, and is never looked through again.

    New objects are looked through by the ten thousand: a request makes hundreds, of which hardly any is left behind,
    and a full look would hold all streams up.
    """
    gc.set_threshold(_YOUNG_MAX, _ROUNDS, _ROUNDS)
    gc.freeze()
