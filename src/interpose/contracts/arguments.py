"""The forms of a call's arguments: read-only for whoever looks, a copy of its own for whoever may change it.

Knows: what must be copied so that nobody's change reaches anybody else. Does not know: layers, tools, policies.

Copied are dicts, lists, tuples and sets, and other *data* (see `is_data`). What is no data, such as a connection or a
callback, may be alive and is shared; so is data that cannot be copied.
"""

import copy
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from interpose.contracts.errors import MisuseError

_ATOMS = frozenset({str, int, float, bool, type(None), bytes})
_ATOM_KINDS = (str, bytes, int, float)
_MAPPINGS = (dict, Mapping)  # nearly all are dicts, and asking an abstract class takes long
_COPIES_ITSELF = ("__deepcopy__", "__dataclass_fields__", "__attrs_attrs__")


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


def read_only(arguments: Any, giver: str) -> ReadOnlyDict:
    """Unchangeable all the way down through dicts, lists, tuples and sets; other data is copied.

    What is read-only already is returned as it is. Raises MisuseError naming `giver` when `arguments` is not a
    mapping, or holds itself.
    """
    kind = type(arguments)
    if kind is dict and _ATOMS.issuperset(map(type, arguments.values())):
        flat = dict.__new__(FlatDict)
        dict.update(flat, arguments)
        return flat
    if isinstance(arguments, ReadOnlyDict):
        return arguments

    return _of_mapping(arguments, giver, _copied_object)


def snapshot(arguments: Any, giver: str) -> ReadOnlyDict:
    """As `read_only`, for looking only: all that is no dict, list, tuple or set is shared."""
    return _of_mapping(arguments, giver, _itself)


def owned(arguments: Any, giver: str) -> dict[str, Any]:
    """A plain dict of its own, and so are all dicts, lists, tuples and sets in it; other data is copied.

    Raises MisuseError naming `giver` when `arguments` is not a mapping, or holds itself.
    """
    kind = type(arguments)
    if kind is FlatDict or (kind is dict and _ATOMS.issuperset(map(type, arguments.values()))):
        return {**arguments}

    _demand_mapping(arguments, giver)
    try:
        return {key: copied(value) for key, value in arguments.items()}
    except RecursionError:
        raise MisuseError(_too_deep(giver)) from None


def copied(value: Any) -> Any:
    """A copy of one value: dicts, lists, tuples and sets plain and apart all the way down, and other data copied.

    Raises RecursionError when it holds itself.
    """
    if type(value) in _ATOMS:
        return value
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    if type(value) is tuple:
        return tuple([copied(item) for item in value])
    return {*value} if type(value) in (set, ReadOnlySet) else _copied_object(value)


def is_data(value: object) -> bool:
    """Whether a value is copied: a collection, a dataclass, an attrs class, or of a type that says how it is copied.

    A class says so by `__deepcopy__`, as those of pydantic do. Numbers, texts and bytes need no copy.
    """
    if isinstance(value, _ATOM_KINDS):
        return False
    return isinstance(value, Collection) or any(hasattr(type(value), name) for name in _COPIES_ITSELF)


def _of_mapping(arguments: Any, giver: str, other: Callable[[Any], Any]) -> ReadOnlyDict:
    _demand_mapping(arguments, giver)
    try:
        return _read_only_dict(arguments, other)
    except RecursionError:
        raise MisuseError(_too_deep(giver)) from None


def _demand_mapping(arguments: Any, giver: str) -> None:
    if not isinstance(arguments, _MAPPINGS):
        kind = type(arguments).__name__
        raise MisuseError(f"{giver} gave arguments of type {kind}: expected a mapping of names to values")


def _too_deep(giver: str) -> str:
    return f"{giver} gave arguments that hold themselves, or nest too deep to be copied"


def _read_only(value: Any, other: Callable[[Any], Any]) -> Any:
    kind = type(value)
    if kind in _ATOMS or kind in READ_ONLY:
        return value
    if isinstance(value, dict):
        return _read_only_dict(value, other)
    if isinstance(value, list):
        made = list.__new__(ReadOnlyList)
        list.extend(made, [_read_only(item, other) for item in value])
        return made
    if kind is tuple:
        return tuple([_read_only(item, other) for item in value])
    return _read_only_set(value) if kind is set else other(value)


def _read_only_dict(values: Mapping[str, Any], other: Callable[[Any], Any]) -> ReadOnlyDict:
    made = dict.__new__(ReadOnlyDict)
    dict.update(made, {key: _read_only(value, other) for key, value in values.items()})
    return made


def _read_only_set(values: set[Any]) -> ReadOnlySet:
    made = set.__new__(ReadOnlySet)
    set.update(made, values)
    return made


def _copied_object(value: Any) -> Any:
    if not is_data(value):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - the copying is the object's own code; what it cannot copy is shared
        return value


def _itself(value: Any) -> Any:
    return value
