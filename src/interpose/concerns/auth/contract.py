"""The contract of whatever turns an `AuthChallenge` into a result."""

from abc import ABC


class SupportsAuth(ABC):  # noqa: B024 - a mark: the challenge itself is the whole contract
    """Catches `AuthChallenge` from the tool and answers with it in band."""

    CAPABILITY = "auth"
