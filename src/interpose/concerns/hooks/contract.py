"""The contract of whatever takes observers.

Knows: the three phases and their signatures. Does not know: how observers are called.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

PreHook: TypeAlias = Callable[[str, dict[str, Any]], object]
"""Called with the tool's name and arguments before it runs."""
PostHook: TypeAlias = Callable[[str, dict[str, Any], Any], object]
"""Called with name, arguments and result after it ran."""
FailureHook: TypeAlias = Callable[[str, dict[str, Any], BaseException], object]
"""Called with name, arguments and exception when it failed."""

OnHookError: TypeAlias = Literal["log", "raise"]


class SupportsHooks(ABC):
    """Takes observers at any time, from any thread. What an observer returns is ignored."""

    CAPABILITY = "hooks"

    @abstractmethod
    def add_pre_hook(self, hook: PreHook) -> None:
        """Appends an observer of calls about to run; calls on their way do not see it. Raises MisuseError for a
        coroutine function or what cannot be called.
        """

    @abstractmethod
    def add_post_hook(self, hook: PostHook) -> None:
        """Appends an observer of calls that returned; raises as `add_pre_hook`."""

    @abstractmethod
    def add_failure_hook(self, hook: FailureHook) -> None:
        """Appends an observer of calls that raised; raises as `add_pre_hook`."""

    @abstractmethod
    def remove_pre_hook(self, hook: PreHook) -> None:
        """Takes the first such observer out; raises ValueError when there is none."""

    @abstractmethod
    def remove_post_hook(self, hook: PostHook) -> None:
        """Takes the first such observer out; raises ValueError when there is none."""

    @abstractmethod
    def remove_failure_hook(self, hook: FailureHook) -> None:
        """Takes the first such observer out; raises ValueError when there is none."""
