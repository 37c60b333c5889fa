"""One call as an HTTP request.

Knows: where each argument goes, and what must not get into a URL or a header. Does not know: sockets, answers.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from interpose.contracts.errors import ToolError
from interpose.drivers.rest.operation import Body, FieldEncoding, Operation, Parameter
from interpose.drivers.rest.styles import cookie_text, header_text, path_text, query_pairs, text_of

Part: TypeAlias = tuple[str, tuple[str | None, bytes, str | None]]
"""A field of a multipart form: its name, then file name, content and content type."""

_TEMPLATE: Final = re.compile(r"\{([^{}]+)\}")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that only has to be sent; `content` or `parts`, or neither."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    parts: list[Part] | None = None


def prepare(operation: Operation, arguments: Mapping[str, Any], fixed_query: Mapping[str, str]) -> Prepared:
    """The request for a call. Raises ToolError naming the argument that cannot be sent as it is.

    Arguments that are null count as left out, except in the body.
    """
    by_place: dict[str, list[tuple[Parameter, Any]]] = {"path": [], "query": [], "header": [], "cookie": []}
    for parameter in operation.parameters:
        if arguments.get(parameter.argument) is not None:
            by_place[parameter.place].append((parameter, arguments[parameter.argument]))

    url = operation.base_url + _path(operation, by_place["path"])
    pairs = [pair for parameter, value in by_place["query"] for pair in _query(parameter, value)]
    pairs += [pair for name, value in fixed_query.items() for pair in query_pairs(name, value, "form", explode=True)]
    headers = {parameter.name: _header(operation, parameter, value) for parameter, value in by_place["header"]}
    if by_place["cookie"]:
        headers["Cookie"] = "; ".join(cookie_text(parameter, value) for parameter, value in by_place["cookie"])
    content, parts = None, None
    if operation.body is not None and operation.body.argument in arguments:
        content, parts = _body(operation, operation.body, arguments[operation.body.argument])
        if parts is None:
            headers["Content-Type"] = operation.body.content_type
    return Prepared(operation.method, f"{url}?{'&'.join(pairs)}" if pairs else url, headers, content, parts)


def _path(operation: Operation, given: list[tuple[Parameter, Any]]) -> str:
    by_name = {parameter.name: (parameter, value) for parameter, value in given}

    def filled(found: re.Match[str]) -> str:
        if found[1] not in by_name:
            raise ToolError(f"{operation.name}: the path needs {found[1]!r}")
        parameter, value = by_name[found[1]]
        text = path_text(parameter, value)
        if not text:
            raise ToolError(f"{operation.name}: the argument {parameter.argument!r} must not be empty")
        return text

    path = _TEMPLATE.sub(filled, operation.path)
    # Clients and servers resolve such segments, so the request would be for another path than this operation's.
    if any(segment in (".", "..") for segment in path.split("/")):
        raise ToolError(f"{operation.name}: an argument in the path must not be '.' or '..'")
    return path


def _query(parameter: Parameter, value: Any) -> list[str]:
    return query_pairs(parameter.name, value, parameter.style, explode=parameter.explode, reserved=parameter.reserved)


def _header(operation: Operation, parameter: Parameter, value: Any) -> str:
    text = header_text(parameter, value)
    if _CONTROLS.search(text) or not text.isascii():
        raise ToolError(
            f"{operation.name}: the argument {parameter.argument!r} goes into a header: printable ASCII only"
        )
    return text


def _body(operation: Operation, body: Body, value: Any) -> tuple[bytes | None, list[Part] | None]:
    kind = body.content_type.lower()
    if "json" in kind:
        return _utf8(operation, json.dumps(value, ensure_ascii=False)), None
    if kind.startswith("multipart/"):
        return None, _parts(operation, body, _fields(operation, body, value))
    if kind.startswith("application/x-www-form-urlencoded"):
        fields = _fields(operation, body, value)
        pairs = [pair for name, each in fields.items() for pair in _form_pairs(name, each, body)]
        return "&".join(pairs).encode(), None
    return _file(operation, body.argument, value)[1], None


def _fields(operation: Operation, body: Body, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ToolError(f"{operation.name}: the argument {body.argument!r} must be an object with the form's fields")
    return {name: each for name, each in value.items() if each is not None}


def _form_pairs(name: str, value: Any, body: Body) -> list[str]:
    encoding = body.fields.get(name, FieldEncoding())
    return query_pairs(name, value, encoding.style, explode=encoding.explode)


def _parts(operation: Operation, body: Body, fields: Mapping[str, Any]) -> list[Part]:
    parts: list[Part] = []
    for name, value in fields.items():
        encoding = body.fields.get(name, FieldEncoding())
        for each in value if isinstance(value, list | tuple) else [value]:
            if name in body.files:
                filename, content, content_type = _file(operation, name, each)
                parts.append((name, (filename or name, content, content_type or encoding.content_type)))
            elif isinstance(each, Mapping | list | tuple):
                content_type = encoding.content_type or "application/json"
                parts.append((name, (None, _utf8(operation, text_of(each)), content_type)))
            else:
                parts.append((name, (None, _utf8(operation, text_of(each)), encoding.content_type)))
    return parts


def _file(operation: Operation, name: str, value: Any) -> tuple[str | None, bytes, str | None]:
    """A file as the tool's schema has it, or a plain text."""
    if isinstance(value, Mapping):
        filename, content_type = value.get("filename"), value.get("content_type")
        content = _file_content(operation, name, value)
        return (
            filename if isinstance(filename, str) else None,
            content,
            content_type if isinstance(content_type, str) else None,
        )
    return None, _utf8(operation, text_of(value)), None


def _file_content(operation: Operation, name: str, value: Mapping[str, Any]) -> bytes:
    if isinstance(value.get("text"), str):
        return _utf8(operation, value["text"])
    try:
        return base64.b64decode(value.get("base64", ""), validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ToolError(f"{operation.name}: the file {name!r} needs a text, or base64 that is valid") from error


def _utf8(operation: Operation, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(f"{operation.name}: a text has half a surrogate pair, which cannot be sent") from error
