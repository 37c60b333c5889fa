"""A middleware that asks for consent before a tool runs.

Knows: what counts as a yes, and that it holds for one digest. Does not know: who is asked.
"""

import asyncio
import contextvars
import inspect
import json
import logging
import threading
from collections.abc import Awaitable, Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from interpose.concerns.permission.contract import ConsentError, ConsentHandler, SupportsConsent
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import ConfigError, MisuseError
from interpose.contracts.tools import Arguments, Call, CallNext, CallNextAsync, ToolMiddleware

CONSENTS = "consents"
"""The key in `Call.facts`: which handler said yes to which digest, as a tuple of pairs."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Ask:
    """Wanted: what the handler says to this call; the arguments are its own copy."""

    handler: ConsentHandler
    tool_name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Act:
    """Wanted: the rest of the list, with these."""

    tool_name: str
    arguments: Arguments


_Steps: TypeAlias = Generator[_Ask | _Act, Any, Any]
"""Yields what is to be asked or run, receives the answer or the result, returns what the caller gets."""


class PermissionMiddleware(ToolMiddleware, SupportsConsent):
    """Asks `consent` about each call, with the name and arguments that the rest of the list will get.

    Only `True` allows. Any other value denies: the tool does not run and the result is the JSON text
    `{"permission_denied": true, "tool": …, "message": …}`. A handler that raises denies too, by ConsentError. Without a
    handler each call raises ConfigError. A yes holds for the digest of that name and those arguments within one call:
    the same handler is not asked about it twice, and is asked anew when anything differs.

    Put it inside of whatever rewrites calls. In an async list a plain handler is asked in a thread of its own, and a
    coroutine function is awaited. One instance may serve many drivers and threads at once; the handler is then asked
    from many threads.
    """

    def __init__(self, *, consent: ConsentHandler | None = None) -> None:
        self._handler: ConsentHandler | None = None
        self.set_consent_handler(consent)

    def set_consent_handler(self, handler: ConsentHandler | None) -> None:
        """Replaces; see `SupportsConsent`."""
        if handler is not None and not callable(handler):
            raise MisuseError(f"{handler!r} is no consent handler: expected a function of (tool_name, arguments)")
        self._handler = handler

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Asks in the thread of the call."""
        steps = self._steps(tool_name, arguments, call_next.call)
        try:
            wanted = next(steps)
            while True:
                try:
                    answer = (
                        call_next(wanted.tool_name, wanted.arguments) if isinstance(wanted, _Act) else _asked(wanted)
                    )
                except BaseException as error:  # noqa: BLE001 - handed to the steps, which deny or raise it on
                    wanted = steps.throw(error)
                else:
                    wanted = steps.send(answer)
        except StopIteration as stop:
            return stop.value

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Asks in a thread of its own, so that the loop goes on."""
        steps = self._steps(tool_name, arguments, call_next.call)
        try:
            wanted = next(steps)
            while True:
                try:
                    answer = (
                        await call_next(wanted.tool_name, wanted.arguments)
                        if isinstance(wanted, _Act)
                        else await _asked_async(wanted)
                    )
                except BaseException as error:  # noqa: BLE001 - handed to the steps, which deny or raise it on
                    wanted = steps.throw(error)
                else:
                    wanted = steps.send(answer)
        except StopIteration as stop:
            return stop.value

    def _steps(self, tool_name: str, arguments: Arguments, call: Call) -> _Steps:
        handler = self._handler
        if handler is None:
            raise ConfigError(
                "PermissionMiddleware",
                f"no consent handler is set, so {tool_name} was not run",
                "PermissionMiddleware(consent=…) or set_consent_handler(…)",
            )

        final = _own(arguments)
        consent = (handler, call_digest(tool_name, final))
        if consent not in call.facts.get(CONSENTS, ()):
            try:
                answer = yield _Ask(handler, tool_name, _own(final))
            except ConfigError:
                raise
            except Exception as error:
                _log.exception("the consent handler %s failed at %s: denied", _name(handler), tool_name)
                raise ConsentError(
                    f"{tool_name} was not run: its consent handler {_name(handler)} failed with {type(error).__name__}"
                ) from error
            if answer is not True:
                return _denied(tool_name, handler, answer)
            call.facts[CONSENTS] = (*call.facts.get(CONSENTS, ()), consent)

        return (yield _Act(tool_name, final))


def _denied(tool_name: str, handler: ConsentHandler, answer: Any) -> str:
    if answer is not False:
        _log.warning(
            "the consent handler %s answered %s with %.80r, not True or False: denied",
            _name(handler),
            tool_name,
            answer,
        )
    message = f"{tool_name} was not run: permission was not given."
    return json.dumps({"permission_denied": True, "tool": tool_name, "message": message}, ensure_ascii=False)


def _asked(wanted: _Ask) -> Any:
    if _is_async(wanted.handler):
        raise ConfigError(
            "PermissionMiddleware",
            f"the consent handler {_name(wanted.handler)} is async and {wanted.tool_name} was called in a sync list",
            "give a plain function, or call the tool from an event loop",
        )
    return wanted.handler(wanted.tool_name, wanted.arguments)


async def _asked_async(wanted: _Ask) -> Any:
    if _is_async(wanted.handler):
        return await cast("Awaitable[bool]", wanted.handler(wanted.tool_name, wanted.arguments))

    return await asyncio.wrap_future(_in_thread(wanted))


def _in_thread(wanted: _Ask) -> Future[Any]:
    """A thread of its own: a person may think for long, and a pool's few threads are needed for other things."""
    answer: Future[Any] = Future()
    answer.set_running_or_notify_cancel()  # from here on a waiter that is cancelled leaves it alone
    context = contextvars.copy_context()

    def work() -> None:
        try:
            answer.set_result(context.run(wanted.handler, wanted.tool_name, wanted.arguments))
        except StopIteration as error:
            # A loop's future does not take a StopIteration, and would never be done.
            answer.set_exception(RuntimeError(f"the handler raised {error!r}"))
        except BaseException as error:  # noqa: BLE001 - handed over whole to whoever awaits, who denies
            answer.set_exception(error)

    threading.Thread(target=work, name="interpose-consent", daemon=True).start()
    return answer


def _is_async(handler: object) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004 - asked about the method, not whether it is there


def _own(value: Any) -> Any:
    """Plain and its own all the way down, so that what was asked about is what runs."""
    if isinstance(value, Mapping):
        return {key: _own(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_own(item) for item in value]
    return tuple(_own(item) for item in value) if type(value) is tuple else value


def _name(handler: object) -> str:
    return str(getattr(handler, "__qualname__", None) or type(handler).__name__)
