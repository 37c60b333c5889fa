"""The contract of whatever turns an `AuthChallenge` into a result.

Knows: that there is one. Does not know: its text.
"""

from abc import ABC


class SupportsAuth(ABC):  # noqa: B024 - a mark: the challenge itself is the whole contract
    """Catches `AuthChallenge` from the tool and answers with it in band."""

    CAPABILITY = "auth"
