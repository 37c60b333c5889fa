"""Copies of a call's arguments, one for each layer.

Knows: what must be copied so that a change in place stays where it is made. Does not know: layers, tools.
"""

from collections.abc import Mapping
from typing import Any

from interpose.contracts.errors import MisuseError

_ATOMS = frozenset({str, int, float, bool, type(None)})


def owned(arguments: Any, giver: str) -> dict[str, Any]:
    """A plain dict of its own, all the way down through dicts, lists and tuples; other objects are shared.

    Raises MisuseError naming `giver` when `arguments` is not a mapping, or holds itself.
    """
    if not isinstance(arguments, Mapping):
        kind = type(arguments).__name__
        raise MisuseError(f"{giver} gave arguments of type {kind}: expected a mapping of names to values")

    try:
        return {key: value if type(value) in _ATOMS else _copied(value) for key, value in arguments.items()}
    except RecursionError:
        raise MisuseError(f"{giver} gave arguments that hold themselves, or nest too deep to be copied") from None


def is_flat(arguments: Any) -> bool:
    """Whether it is a plain dict in which no value holds other values, so that a shallow copy is a whole one."""
    return type(arguments) is dict and _ATOMS.issuperset(map(type, arguments.values()))


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item if type(item) in _ATOMS else _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if type(item) in _ATOMS else _copied(item) for item in value]
    if type(value) is tuple:
        return tuple(_copied(item) for item in value)
    return value
