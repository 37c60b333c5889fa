"""Settings, checked when they are given.

Knows: how a setting that cannot be is told: which one, what it is, what was expected. Does not know: whose it is.

Every function returns what it was given, or a copy in the type that is kept, and raises ConfigError naming the setting
`where`. Values that may be secrets, such as those of headers, are told by their type alone. Pure.
"""

import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Any, Final, TypeVar

from interpose.contracts.errors import ConfigError

T = TypeVar("T")

_SECONDS_MOST: Final = threading.TIMEOUT_MAX
_PORT_MOST: Final = 65_535
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token, RFC 9110 section 5.6.2
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")


def refused(where: str, value: object, expected: str) -> ConfigError:
    """The error that says what a setting is and what was expected, for the caller to raise."""
    return ConfigError(where, f"is {value!r:.80}", f"expected {expected}")


def of_kind(where: str, value: T, kind: type | UnionType, expected: str) -> T:
    """An instance of a type."""
    if not isinstance(value, kind):
        raise refused(where, value, expected)
    return value


def name_of(function: object) -> str:
    """What people call a function."""
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def a_function(where: str, value: T) -> T:
    """What can be called."""
    if not callable(value):
        raise refused(where, value, "a function")
    return value


def a_flag(where: str, value: bool) -> bool:
    """True or False."""
    return of_kind(where, value, bool, "True or False")


def a_count(where: str, value: int, *, least: int = 1) -> int:
    """A whole number."""
    if type(value) is not int or value < least:
        raise refused(where, value, f"a whole number, at least {least}")
    return value


def a_port(where: str, value: int) -> int:
    """A port of TCP, 0 for any."""
    if type(value) is not int or not 0 <= value <= _PORT_MOST:
        raise refused(where, value, f"a port, 0 to {_PORT_MOST}, 0 for any")
    return value


def seconds(where: str, value: float) -> float:
    """A time that can be waited."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= _SECONDS_MOST:
        raise refused(where, value, f"seconds, more than 0 and at most {_SECONDS_MOST:,.0f}")
    return value


def an_age(where: str, value: float) -> float:
    """A time that may be none."""
    return value if type(value) in (int, float) and value == 0 else seconds(where, value)


def a_text(where: str, value: str, expected: str = "a text that is not empty") -> str:
    """A text with something in it, and no NUL."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise refused(where, value, expected)
    return value


def a_path(where: str, value: str | os.PathLike[str], expected: str) -> str:
    """A path as text."""
    given: Any = value
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else given
    return a_text(where, path, expected)


def texts(where: str, value: Iterable[str], expected: str) -> tuple[str, ...]:
    """Several texts; one text in their place is none of them."""
    given: Any = value
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise refused(where, given, expected)
    several = tuple(given)
    for each in several:
        if not isinstance(each, str) or "\0" in each:
            raise ConfigError(where, f"holds {each!r:.80}", f"expected {expected}")
    return several


def a_table(where: str, value: Mapping[str, str], expected: str = "texts by name") -> dict[str, str]:
    """Texts by name."""
    given: Any = value
    if not isinstance(given, Mapping):
        raise ConfigError(where, f"is of type {type(given).__name__}", f"expected {expected}")
    for name, text in given.items():
        if not isinstance(name, str) or not name:
            raise ConfigError(where, f"has the name {name!r:.80}", f"expected {expected}")
        if not isinstance(text, str):
            raise ConfigError(f"{where}[{name!r:.80}]", f"is of type {type(text).__name__}", f"expected {expected}")
    return dict(given)


def an_environment(where: str, value: Mapping[str, str]) -> dict[str, str]:
    """Variables for a process."""
    expected = "texts by the names of variables, none with a NUL and no name with ="
    table = a_table(where, value, expected)
    for name, text in table.items():
        if "=" in name or "\0" in name or "\0" in text:
            raise ConfigError(f"{where}[{name!r:.80}]", "cannot be a variable", f"expected {expected}")
    return table


def headers(where: str, value: Mapping[str, str]) -> dict[str, str]:
    """Fields for the head of an HTTP request."""
    expected = "printable ASCII texts by the names of HTTP headers"
    table = a_table(where, value, expected)
    for name, text in table.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(text):
            raise ConfigError(f"{where}[{name!r:.80}]", "cannot be a header", f"expected {expected}")
    return table


def one_of(where: str, value: T, choices: Iterable[object]) -> T:
    """One of a closed set."""
    known = tuple(choices)
    if not any(type(value) is type(choice) and value == choice for choice in known):
        raise refused(where, value, " or ".join(map(repr, known)))
    return value


def each_checked(owner: object, checks: Mapping[str, Callable[[str, Any], object]]) -> None:
    """Checks the fields of a frozen dataclass, each by its own function, and keeps what that returns."""
    for name, check in checks.items():
        object.__setattr__(owner, name, check(f"{type(owner).__name__}.{name}", getattr(owner, name)))
