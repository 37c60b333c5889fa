"""Containers that cannot be changed, and still are `dict`, `list` and `set`.

Knows: whom a change in place is told to. Does not know: who makes one of them.
"""

import inspect
from typing import Any, NoReturn

from interpose.contracts.errors import MisuseError


def _refuse(self: object, *_args: Any, **_kwargs: Any) -> NoReturn:
    frame = inspect.currentframe()
    who = frame.f_back.f_code.co_qualname if frame is not None and frame.f_back is not None else "this"
    raise MisuseError(
        f"the arguments of a call are read-only, and {who} changes a {type(self).__mro__[-2].__name__} in place: "
        'pass a changed copy on, such as {**arguments, "name": value}; '
        "for what lies deeper change what copy.deepcopy(arguments) gives"
    )


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
