"""Containers that cannot be changed, and still are `dict`, `list` and `set`.

Knows: whom a change in place is told to. Does not know: who makes one of them.
"""

import inspect
import sys
from types import FrameType
from typing import Any, NoReturn

from interpose.contracts.errors import MisuseError

_HOOKS = frozenset({"flow", "on_execute_tool", "on_execute_tool_async"})


def _refuse(self: object, *_args: Any, **_kwargs: Any) -> NoReturn:
    frame = inspect.currentframe()
    who = "this" if frame is None or frame.f_back is None else _changing(frame.f_back)
    raise MisuseError(
        f"the arguments of a call are read-only, and {who} changes a {type(self).__mro__[-2].__name__} in place: "
        'pass a changed copy on, such as {**arguments, "name": value}; '
        "for what lies deeper change what copy.deepcopy(arguments) gives"
    )


def _changing(innermost: FrameType) -> str:
    """Whose code changes it: not ours, nor the standard library's, unless it is all that there is up to the hook."""
    frame: FrameType | None = innermost
    while frame is not None:
        own = frame.f_code.co_name in _HOOKS and "self" in frame.f_locals
        if own or not _is_passed_through(frame):
            return (
                f"{type(frame.f_locals['self']).__name__}.{frame.f_code.co_name}" if own else frame.f_code.co_qualname
            )
        frame = frame.f_back
    return innermost.f_code.co_qualname


def _is_passed_through(frame: FrameType) -> bool:
    root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return root == __name__.partition(".")[0] or root in sys.stdlib_module_names


class ReadOnlyDict(dict[str, Any]):
    """A dict whose mutators raise MisuseError; every copy of it is a plain dict, and so is what calling its type gives.

    That many do who rebuild a value (`type(value)(…)`), with values of their own in it that could be changed.
    """

    __slots__ = ()

    def __new__(cls, *given: Any, **named: Any) -> dict[str, Any]:  # type: ignore[misc]
        """A plain one."""
        return dict(*given, **named)

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, ({**self},))


class FlatDict(ReadOnlyDict):
    """A ReadOnlyDict in which no value holds other values, so that a shallow copy is a whole one."""

    __slots__ = ()


class ReadOnlyList(list[Any]):
    """A list whose mutators raise MisuseError; every copy is a plain list, and so is what calling its type gives."""

    __slots__ = ()

    def __new__(cls, *given: Any) -> list[Any]:  # type: ignore[misc]
        """A plain one."""
        return list(*given)

    __setitem__ = __delitem__ = append = extend = insert = pop = remove = clear = sort = reverse = _refuse
    __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, ([*self],))


class ReadOnlySet(set[Any]):
    """A set whose mutators raise MisuseError; every copy is a plain set, and so is what calling its type gives."""

    __slots__ = ()

    def __new__(cls, *given: Any) -> set[Any]:  # type: ignore[misc]
        """A plain one."""
        return set(*given)

    add = discard = remove = pop = clear = update = _refuse
    difference_update = intersection_update = symmetric_difference_update = _refuse
    __ior__ = __iand__ = __ixor__ = __isub__ = _refuse

    def copy(self) -> set[Any]:
        """A plain one."""
        return {*self}

    def __reduce__(self) -> tuple[Any, ...]:
        return (set, ([*self],))


READ_ONLY = frozenset({ReadOnlyDict, FlatDict, ReadOnlyList, ReadOnlySet})
"""The read-only types."""
