"""Parameter values in the styles of OpenAPI 3, which hold those of Swagger 2 as well.

Knows: RFC 3986 characters, separators, exploding. Does not know: documents, HTTP. Pure functions.
"""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from interpose.drivers.rest.operation import Parameter, Style

_SEPARATORS: Final[Mapping[str, str]] = {
    "form": ",",
    "simple": ",",
    "spaceDelimited": "%20",
    "pipeDelimited": "%7C",
    "tabDelimited": "%09",
}
_RESERVED: Final = ":/?[]@!$'()*,;"
"""Left alone when a parameter allows reserved characters; never `&`, `=`, `+` and `#`, which would end the value."""


def text_of(value: Any) -> str:
    """A single value as text: numbers and truths as JSON has them, structures as JSON."""
    match value:
        case str():
            return value
        case None:
            return ""
        case _:
            return json.dumps(value, ensure_ascii=False)


def path_text(parameter: Parameter, value: Any) -> str:
    """What takes the place of `{name}` in the path, percent-encoded; a slash in a value stays inside its segment."""
    match parameter.style:
        case "label":
            return "." + _joined(value, "." if parameter.explode else ",", explode=parameter.explode)
        case "matrix":
            return _matrix(parameter, value)
        case _:
            return _joined(value, ",", explode=parameter.explode)


def query_pairs(name: str, value: Any, style: Style, *, explode: bool, reserved: bool = False) -> list[str]:
    """`name=value` pairs for a query string or a form body, percent-encoded."""
    safe = _RESERVED if reserved else ""
    key = _encoded(name)
    if style == "json":
        return [f"{key}={_encoded(json.dumps(value, ensure_ascii=False), safe)}"]
    if style == "deepObject" and isinstance(value, Mapping):
        return [pair for inner, each in value.items() for pair in _deep(f"{name}[{inner}]", each, safe)]

    separator = _SEPARATORS.get(style, ",")
    if isinstance(value, list | tuple):
        words = [_encoded(text_of(item), safe) for item in value]
        return [f"{key}={word}" for word in words] if explode else [f"{key}={separator.join(words)}"]
    if isinstance(value, Mapping):
        pairs = [(_encoded(str(inner)), _encoded(text_of(each), safe)) for inner, each in value.items()]
        if explode:
            return [f"{inner}={each}" for inner, each in pairs]
        return [f"{key}={separator.join(word for pair in pairs for word in pair)}"]
    return [f"{key}={_encoded(text_of(value), safe)}"]


def header_text(parameter: Parameter, value: Any) -> str:
    """The value of a header, not encoded."""
    if parameter.style == "json":
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return ",".join(text_of(item) for item in value)
    if isinstance(value, Mapping):
        between = "=" if parameter.explode else ","
        return ",".join(f"{key}{between}{text_of(each)}" for key, each in value.items())
    return text_of(value)


def cookie_text(parameter: Parameter, value: Any) -> str:
    """`name=value` for the Cookie header."""
    pairs = query_pairs(parameter.name, value, parameter.style, explode=False)
    return "; ".join(pairs)


def _matrix(parameter: Parameter, value: Any) -> str:
    name = _encoded(parameter.name)
    if not parameter.explode or not isinstance(value, Mapping | list | tuple):
        return f";{name}={_joined(value, ',', explode=False)}"
    if isinstance(value, Mapping):
        return "".join(f";{_encoded(str(key))}={_encoded(text_of(each))}" for key, each in value.items())
    return "".join(f";{name}={_encoded(text_of(item))}" for item in value)


def _joined(value: Any, separator: str, *, explode: bool) -> str:
    if isinstance(value, list | tuple):
        return separator.join(_encoded(text_of(item)) for item in value)
    if isinstance(value, Mapping):
        between = "=" if explode else ","
        return separator.join(f"{_encoded(str(key))}{between}{_encoded(text_of(each))}" for key, each in value.items())
    return _encoded(text_of(value))


def _deep(name: str, value: Any, safe: str) -> list[str]:
    if isinstance(value, Mapping):
        return [pair for inner, each in value.items() for pair in _deep(f"{name}[{inner}]", each, safe)]
    if isinstance(value, list | tuple):
        return [pair for each in value for pair in _deep(name, each, safe)]
    return [f"{_encoded(name)}={_encoded(text_of(value), safe)}"]


def _encoded(text: str, safe: str = "") -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe=safe)
