"""A Python call as named arguments, and back."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from interpose.contracts.errors import MisuseError


class Binding:
    """The parameters of one callable. Immutable; any thread may use it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Raises MisuseError when `function` is not callable or has no signature that can be read."""
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
