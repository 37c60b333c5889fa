"""The contract of whatever asks for consent.

Knows: what a consent handler is. Does not know: how one asks.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from interpose.contracts.errors import InterposeError

ConsentHandler: TypeAlias = Callable[[str, dict[str, Any]], bool | Awaitable[bool]]
"""Called with the tool's name and exactly the arguments that will run. Only `True` allows.

A coroutine function is awaited, and serves async lists alone."""


class ConsentError(InterposeError):
    """The consent handler itself failed, so the tool did not run. The handler's exception is the cause."""

    retry_helps = False


class SupportsConsent(ABC):
    """Asks for consent, through a handler that may be set and replaced at any time, from any thread."""

    CAPABILITY = "consent"

    @abstractmethod
    def set_consent_handler(self, handler: ConsentHandler | None) -> None:
        """Replaces the handler for calls from now on; None takes it away.

        Raises MisuseError for what cannot be called.
        """
