"""A middleware that asks for consent before a tool runs.

Knows: what counts as a yes, and that it holds for one digest. Does not know: who is asked, and how.
"""

import inspect
import json
import logging
from collections.abc import Generator
from typing import Any, TypeAlias

from interpose.concerns.driving import Act, driven, driven_async
from interpose.concerns.permission.asking import Question, asked, asked_async, handler_name
from interpose.concerns.permission.contract import ConsentError, ConsentHandler, SupportsConsent
from interpose.contracts.arguments import owned
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import ConfigError, MisuseError
from interpose.contracts.stopping import stop_of
from interpose.contracts.tools import Arguments, Call, CallNext, CallNextAsync, ToolMiddleware, Withheld

CONSENTS = "consents"
"""The key in `Call.facts`: which handler said yes to which digest, as a tuple of pairs."""

_log = logging.getLogger(__name__)


_Steps: TypeAlias = Generator[Question | Act, Any, Any]
"""Yields what is to be asked or run, receives the answer or the result, returns what the caller gets."""

_Asking: TypeAlias = Generator[Question, Any, str | None]
"""Yields what is to be asked, receives the answer, returns the denial or None."""

_LateAsking: TypeAlias = Generator[Question, Any, Withheld | None]
"""As `_Asking`; the denial is in place of a result."""


class PermissionMiddleware(ToolMiddleware, SupportsConsent):
    """Asks `consent` about each call, with the name and arguments that the rest of the list will get.

    Only `True` allows. Any other value denies: the tool does not run and the result is the JSON text
    `{"permission_denied": true, "tool": …, "message": …}`. A handler that raises denies too, by ConsentError. Without a
    handler each call raises ConfigError.

    A yes holds for the digest of that name and those arguments within one call: the same handler is not asked about it
    twice, be it in the lists of two drivers that the call goes through, and is asked anew when anything differs. That
    includes a middleware further in that changes the call: a driver then asks once more before the tool runs (unless it
    is told to allow late rewrites). So put it inside of whatever rewrites calls.

    In an async list a plain handler is asked in a thread of its own, and a coroutine function is awaited. One instance
    may serve many drivers and threads at once; the handler is then asked from many threads. `consent_handler` is
    another name for `consent`. Raises MisuseError for both at once, and for what cannot be called.
    """

    def __init__(self, *, consent: ConsentHandler | None = None, consent_handler: ConsentHandler | None = None) -> None:
        if consent is not None and consent_handler is not None:
            raise MisuseError("PermissionMiddleware(consent=…, consent_handler=…): they are one parameter, give one")
        self._handler: ConsentHandler | None = None
        self.set_consent_handler(consent if consent is not None else consent_handler)

    def set_consent_handler(self, handler: ConsentHandler | None) -> None:
        """Replaces; see `SupportsConsent`."""
        if handler is not None and not callable(handler):
            raise MisuseError(f"{handler!r} is no consent handler: expected a function of (tool_name, arguments)")
        self._handler = handler

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """Asks in the thread of the call."""
        return driven(self._steps(tool_name, arguments, call_next.call), asked, call_next)

    async def on_execute_tool_async(self, tool_name: str, arguments: Arguments, call_next: CallNextAsync) -> Any:
        """Asks while the loop goes on."""
        return await driven_async(self._steps(tool_name, arguments, call_next.call), asked_async, call_next)

    def _steps(self, tool_name: str, arguments: Arguments, call: Call) -> _Steps:
        handler = self._handler
        if handler is None:
            raise ConfigError(
                "PermissionMiddleware",
                f"no consent handler is set, so {tool_name} was not run",
                "PermissionMiddleware(consent=…) or set_consent_handler(…)",
            )

        final = owned(arguments, "the list")
        denial = yield from _consented(handler, tool_name, final, call)
        if denial is not None:
            return denial
        call.judged(self, call_digest(tool_name, final), _LateConsent(self, handler, call))
        return (yield Act(tool_name, final))


class _LateConsent:
    """Of one call: asks about what a middleware further in has made of it."""

    def __init__(self, by: PermissionMiddleware, handler: ConsentHandler, call: Call) -> None:
        self._by = by
        self._handler = handler
        self._call = call

    def judge(self, tool_name: str, arguments: Arguments) -> Withheld | None:
        return driven(self._asking(tool_name, arguments), asked)

    async def judge_async(self, tool_name: str, arguments: Arguments) -> Withheld | None:
        return await driven_async(self._asking(tool_name, arguments), asked_async)

    def _asking(self, tool_name: str, arguments: Arguments) -> _LateAsking:
        denial = yield from _consented(self._handler, tool_name, arguments, self._call)
        if denial is not None:
            return Withheld(denial)
        self._call.judged(self._by, call_digest(tool_name, arguments), self)
        return None


def _consented(handler: ConsentHandler, tool_name: str, arguments: Arguments, call: Call) -> _Asking:
    consent = (handler, call_digest(call.known_as(tool_name), arguments))
    if consent in call.facts.get(CONSENTS, ()):
        return None

    try:
        answer = yield Question(handler, tool_name, owned(arguments, "the list"))
    except ConfigError:
        raise
    except Exception as error:
        _log.exception("the consent handler %s failed at %s: denied", handler_name(handler), tool_name)
        kind = type(stop_of(error) or error).__name__
        raise ConsentError(
            f"{tool_name} was not run: its consent handler {handler_name(handler)} failed with {kind}"
        ) from error

    if answer is not True:
        if inspect.iscoroutine(answer):
            answer.close()  # else Python warns that nobody awaited it
        return _denial(handler, tool_name, answer)
    call.facts[CONSENTS] = (*call.facts.get(CONSENTS, ()), consent)
    return None


def _denial(handler: ConsentHandler, tool_name: str, answer: Any) -> str:
    if answer is not False:
        name = handler_name(handler)
        _log.warning(
            "the consent handler %s answered %s with %.80r, not True or False: denied", name, tool_name, answer
        )
    message = f"{tool_name} was not run: permission was not given."
    return json.dumps({"permission_denied": True, "tool": tool_name, "message": message}, ensure_ascii=False)
