"""Isolation by immutability: JSON values that cannot be changed and still are `dict` and `list`.

`freeze` once per judgement, `thaw` once for whoever acts; every copy of a frozen value is a plain one. isinstance
checks, `json` and serialisers work on frozen values as on plain ones; every mutator raises TypeError.
"""

from typing import Any, NoReturn

from interpose.contracts.json import Json


def _refuse(self: object, *_args: Any, **_kwargs: Any) -> NoReturn:
    kind = type(self).__name__
    raise TypeError(f"this {kind} is frozen and cannot be changed in place: change what copy.deepcopy() of it gives")


class FrozenDict(dict[str, Any]):
    """A dict whose mutators raise."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __copy__(self) -> dict[str, Any]:
        return {**self}

    def __deepcopy__(self, _memo: object) -> Any:
        return thaw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),))


class FrozenList(list[Any]):
    """A list whose mutators raise."""

    __slots__ = ()
    __setitem__ = __delitem__ = append = extend = insert = pop = remove = clear = sort = reverse = _refuse
    __iadd__ = __imul__ = _refuse

    def __copy__(self) -> list[Any]:
        return [*self]

    def __deepcopy__(self, _memo: object) -> Any:
        return thaw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenList, (list(self),))


DEEPEST = 200
"""How deep a value may nest; deeper ones are no sensible arguments and would end in a RecursionError elsewhere."""


def freeze(value: Json, *, _depth: int = 0) -> Json:
    """The same JSON value, unchangeable all the way down; what is already frozen is returned as it is.

    Raises ValueError when it nests deeper than 200, or in a circle.
    """
    kind = type(value)
    if kind is FrozenDict or kind is FrozenList:
        return value
    if isinstance(value, dict):
        _refuse_depth(_depth)
        return FrozenDict({key: freeze(item, _depth=_depth + 1) for key, item in value.items()})
    if isinstance(value, list | tuple):
        _refuse_depth(_depth)
        return FrozenList([freeze(item, _depth=_depth + 1) for item in value])
    return value


def _refuse_depth(depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST} levels, or in a circle")


def thaw(value: Json) -> Json:
    """A plain, changeable copy all the way down."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value
