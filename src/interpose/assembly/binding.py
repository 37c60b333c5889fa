"""A Python call as named arguments, and back.

Knows: parameters, and that what is judged is a snapshot while the caller's own objects run. Does not know: policies.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from interpose.contracts.arguments import snapshot
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import MisuseError
from interpose.contracts.stopping import stop_of, stopped
from interpose.contracts.tools import Arguments, Call


class Binding:
    """The parameters of one callable. Immutable; any thread may use it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Raises MisuseError when `function` is not callable or has no signature that can be read."""
        self.function = function
        try:
            self._signature = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise MisuseError(f"{function!r} cannot be protected: {error}; wrap it in a plain function") from error

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The call by parameter name, defaults filled in, `**kwargs` spread out. Raises TypeError as the call would."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        named: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            match self._signature.parameters[name].kind:
                case inspect.Parameter.VAR_KEYWORD:
                    named |= value
                case inspect.Parameter.VAR_POSITIONAL:
                    named[name] = list(value)
                case _:
                    named[name] = value
        return named

    def run(self, arguments: Mapping[str, Any]) -> Any:
        """What the callable gives for these; raises what it raises, and what `call` does."""
        positional, named = self.call(arguments)
        return self.function(*positional, **named)

    def call(self, arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments that say the same; raises TypeError for a name the callable has not."""
        left = dict(arguments)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        spread = False
        for name, parameter in self._signature.parameters.items():
            match parameter.kind:
                case inspect.Parameter.VAR_KEYWORD:
                    spread = True
                case inspect.Parameter.VAR_POSITIONAL:
                    args += left.pop(name, [])
                case inspect.Parameter.KEYWORD_ONLY:
                    if name in left:
                        kwargs[name] = left.pop(name)
                case _:
                    if name in left:
                        args.append(left.pop(name))
        if left and not spread:
            raise TypeError(f"unexpected arguments after the policy's change: {', '.join(sorted(left))}")
        return tuple(args), kwargs | left


class CallJudged:
    """One call of a bound function, as the `call_next` of the one who judges it; belongs to that call alone.

    Attributes:
        call: what the one who judges keeps.
        arguments: what is judged: read-only, and apart from the caller's objects.
    """

    def __init__(self, binding: Binding, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raises TypeError as the call would, MisuseError for arguments that hold themselves."""
        self.call = Call("")
        self._binding = binding
        self._args = args
        self._kwargs = kwargs
        self._given = binding.arguments(args, kwargs)
        self.arguments: Arguments = snapshot(self._given, "the caller")

    def __call__(self, tool_name: str, arguments: Arguments) -> Any:
        """Runs the function as it was called, or with what was patched; of a coroutine function it gives the coroutine.

        Raises MisuseError when the caller's objects have changed since they were judged, RuntimeError that names the
        tool in place of a StopIteration.
        """
        if self.arguments != self._given:
            raise MisuseError(f"{tool_name} did not run: its arguments were changed while they were being judged")
        try:
            if arguments is self.arguments:
                return self._binding.function(*self._args, **self._kwargs)
            return self._binding.run({name: self._final(name, value) for name, value in arguments.items()})
        except (StopIteration, RuntimeError) as error:
            raise _named(tool_name, error)  # noqa: B904 - it has its cause

    def _final(self, name: str, patched: Any) -> Any:
        """The caller's own where the patch says the same."""
        if name not in self._given or not _says_the_same(patched, self.arguments[name]):
            return patched
        return self._given[name]


class CallJudgedAsync(CallJudged):
    """The same of a coroutine function."""

    async def __call__(self, tool_name: str, arguments: Arguments) -> Any:
        """As that of `CallJudged`, awaited."""
        try:
            return await super().__call__(tool_name, arguments)
        except RuntimeError as error:
            raise _named(tool_name, error)  # noqa: B904 - it has its cause


def _named(tool_name: str, error: Exception) -> Exception:
    """What tells who raised it, in place of a StopIteration; any other error is itself."""
    stop = stop_of(error)
    if stop is None:
        return error
    named = stopped(f"the tool {tool_name!r}", stop)
    named.__cause__ = stop
    return named


def _digest(value: Any) -> str:
    return call_digest("", {"": value})


_ENCODER = json.JSONEncoder(sort_keys=True, default=_digest)


def _says_the_same(patched: Any, seen: Any) -> bool:
    """Also as JSON, which a handler may have been given and have answered with: it has no tuples."""
    if _digest(patched) == _digest(seen):
        return True
    try:
        return _ENCODER.encode(patched) == _ENCODER.encode(seen)
    except (TypeError, ValueError, RecursionError):
        return False
