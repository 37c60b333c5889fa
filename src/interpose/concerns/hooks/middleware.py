"""A middleware that tells observers of a tool call.

Knows: the three phases, and that an observer changes nothing. Does not know: what observers do.
"""

import inspect
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from interpose.concerns.hooks.contract import FailureHook, OnHookError, PostHook, PreHook, SupportsHooks
from interpose.contracts.arguments import owned
from interpose.contracts.copying import copied
from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import Arguments, Flow, FlowMiddleware

_log = logging.getLogger(__name__)

_Hook = TypeVar("_Hook", bound=Callable[..., object])


class HooksMiddleware(FlowMiddleware, SupportsHooks):
    """Calls observers before a tool runs, after it returned, and when it raised.

    Observers of a phase are called in list order, each with its own copy of the arguments and the result (dicts,
    lists, tuples, sets and other data all the way down; what is no data, such as a connection, is shared). What they
    return is ignored. They are called in the thread of the call, in an async list on its event loop, so they should be
    quick.

    An observer that raises is logged and the next one is called: `on_hook_error="log"`. With "raise" a raising `pre`
    hook stops the call before the tool runs, and a raising `post` hook makes a failure of a result; neither reaches
    the failure hooks. What the tool raised goes on unchanged whatever a failure hook does. Interruptions and
    cancellations count as failures.

    One instance may serve many drivers and threads at once. Raises MisuseError for a hook that is a coroutine function
    or cannot be called, and for an unknown `on_hook_error`.
    """

    def __init__(
        self,
        *,
        pre: Iterable[PreHook] = (),
        post: Iterable[PostHook] = (),
        on_failure: Iterable[FailureHook] = (),
        on_hook_error: OnHookError = "log",
    ) -> None:
        if on_hook_error not in ("log", "raise"):
            raise MisuseError(f'HooksMiddleware(on_hook_error={on_hook_error!r}): expected "log" or "raise"')
        self._raises = on_hook_error == "raise"
        self._pre = _Hooks[PreHook]("pre", pre)
        self._post = _Hooks[PostHook]("post", post)
        self._failure = _Hooks[FailureHook]("failure", on_failure)

    def add_pre_hook(self, hook: PreHook) -> None:
        """Appends; see `SupportsHooks`."""
        self._pre.add(hook)

    def add_post_hook(self, hook: PostHook) -> None:
        """Appends; see `SupportsHooks`."""
        self._post.add(hook)

    def add_failure_hook(self, hook: FailureHook) -> None:
        """Appends; see `SupportsHooks`."""
        self._failure.add(hook)

    def remove_pre_hook(self, hook: PreHook) -> None:
        """Takes out; see `SupportsHooks`."""
        self._pre.remove(hook)

    def remove_post_hook(self, hook: PostHook) -> None:
        """Takes out; see `SupportsHooks`."""
        self._post.remove(hook)

    def remove_failure_hook(self, hook: FailureHook) -> None:
        """Takes out; see `SupportsHooks`."""
        self._failure.remove(hook)

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """Around one call."""
        self._pre.tell(tool_name, arguments, raises=self._raises)
        try:
            result = yield tool_name, arguments
        except GeneratorExit:  # the call is thrown away, not failed
            raise
        except BaseException as error:
            self._failure.tell(tool_name, arguments, error, raises=False)
            raise

        self._post.tell(tool_name, arguments, result, raises=self._raises)
        return result


class _Hooks(Generic[_Hook]):
    """The observers of one phase: a tuple that is replaced whole, so that a call keeps those it started with."""

    def __init__(self, phase: str, hooks: Iterable[_Hook]) -> None:
        self._phase = phase
        self._changing = threading.Lock()
        self._hooks: tuple[_Hook, ...] = ()
        given: Any = hooks
        if not isinstance(given, Iterable):
            raise MisuseError(f"HooksMiddleware: the {phase} hooks are {given!r:.100}, expected a list of functions")
        for hook in hooks:
            self.add(hook)

    def add(self, hook: _Hook) -> None:
        if not callable(hook):
            raise MisuseError(f"{hook!r} is no {self._phase} hook: expected a function")
        if inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(getattr(hook, "__call__", None)):  # noqa: B004
            raise MisuseError(
                f"the {self._phase} hook {_name(hook)} is a coroutine function: observers are called and not awaited, "
                "so give a plain function (it may start a task)"
            )
        with self._changing:
            self._hooks = (*self._hooks, hook)

    def remove(self, hook: _Hook) -> None:
        with self._changing:
            present = list(self._hooks)
            if hook not in present:
                raise ValueError(f"{_name(hook)} is not among the {self._phase} hooks")
            present.remove(hook)
            self._hooks = tuple(present)

    def tell(self, tool_name: str, arguments: Arguments, *outcome: Any, raises: bool) -> None:
        for hook in self._hooks:
            try:
                _refuse_coroutine(hook(tool_name, owned(arguments, "the list"), *map(copied, outcome)))
            except Exception as error:
                if raises:
                    error.add_note(f"raised by the {self._phase} hook {_name(hook)} at {tool_name}")
                    raise
                _log.exception("the %s hook %s failed at %s; the call goes on", self._phase, _name(hook), tool_name)


def _refuse_coroutine(answer: object) -> None:
    if inspect.iscoroutine(answer):
        answer.close()  # else Python warns that nobody awaited it
        raise MisuseError("it returned a coroutine, and observers are not awaited: give a plain function")


def _name(hook: object) -> str:
    return str(getattr(hook, "__qualname__", None) or repr(hook))
