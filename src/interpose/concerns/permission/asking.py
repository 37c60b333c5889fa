"""Asking a consent handler, from a thread or an event loop.

Knows: plain and async handlers, and that a person may think for long. Does not know: what an answer leads to.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, cast

from interpose.concerns.permission.contract import ConsentHandler
from interpose.contracts.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Question:
    """What a handler is asked; the arguments are its own copy."""

    handler: ConsentHandler
    tool_name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A handler raised a StopIteration; a loop's future does not take one, and would never be done."""

    error: StopIteration


def asked(question: Question) -> Any:
    """What the handler answers or raises; ConfigError for an async one, naming it."""
    if _is_async(question.handler):
        raise ConfigError(
            "PermissionMiddleware",
            f"the consent handler {handler_name(question.handler)} is async "
            f"and {question.tool_name} was called in a sync list",
            "give a plain function, or call the tool from an event loop",
        )
    return question.handler(question.tool_name, question.arguments)


async def asked_async(question: Question) -> Any:
    """As `asked`, while the loop goes on: an async handler is awaited, a plain one has a thread of its own."""
    if _is_async(question.handler):
        return await cast("Awaitable[bool]", question.handler(question.tool_name, question.arguments))

    answer = await asyncio.wrap_future(_in_thread(question))
    if isinstance(answer, _Stopped):
        raise answer.error
    return answer


def handler_name(handler: object) -> str:
    """What people call the handler."""
    return str(getattr(handler, "__qualname__", None) or type(handler).__name__)


def _in_thread(question: Question) -> Future[Any]:
    """Not one of a pool: a pool's few threads are needed for other things while a person thinks."""
    answer: Future[Any] = Future()
    answer.set_running_or_notify_cancel()  # from here on a waiter that is cancelled leaves it alone
    context = contextvars.copy_context()

    def work() -> None:
        try:
            answer.set_result(context.run(question.handler, question.tool_name, question.arguments))
        except StopIteration as error:
            answer.set_result(_Stopped(error))
        except BaseException as error:  # noqa: BLE001 - handed over whole to whoever awaits, who denies
            answer.set_exception(error)

    threading.Thread(target=work, name="interpose-consent", daemon=True).start()
    return answer


def _is_async(handler: object) -> bool:
    by_call = getattr(handler, "__call__", None)  # noqa: B004 - asked what it is, not whether it is there
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(by_call)
