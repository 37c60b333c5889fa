"""What OpenAPI 3 says about servers, parameters and bodies.

Knows: specification 3.0 and 3.1, sections Server, Parameter, Request Body, Media Type and Encoding. Does not know:
other versions, HTTP.
"""

from collections.abc import Mapping
from typing import Any, Final, get_args

from interpose.contracts.errors import ConfigError
from interpose.drivers.rest.operation import Body, FieldEncoding, Parameter, Place, Style
from interpose.drivers.rest.references import References

_DEFAULT_STYLES: Final[Mapping[str, Style]] = {
    "path": "simple",
    "query": "form",
    "header": "simple",
    "cookie": "form",
}
_PREFERRED: Final = ("json", "application/x-www-form-urlencoded", "multipart/form-data", "text/")


def openapi_servers(holder: Mapping[str, Any], references: References, place: str) -> tuple[str, ...]:
    """The URLs of `servers`, each variable with its default. Raises ConfigError naming what is no server."""
    urls: list[str] = []
    for number, each in enumerate(references.list_in(holder, "servers", place)):
        where = f"{place}, servers {number}"
        server = references.resolved(each, where)
        url = server.get("url")
        if not isinstance(url, str):
            raise ConfigError(f"{references.where}, {where}", "it needs a url")
        variables = references.object_in(server, "variables", where)
        for name in variables:
            variable = references.object_in(variables, name, f"{where}, variables")
            url = url.replace("{" + name + "}", str(variable.get("default", "")))
        urls.append(url)
    return tuple(urls)


def openapi_parameter(node: Mapping[str, Any], references: References, where: str) -> Parameter:
    """One parameter. Raises ConfigError naming `where` when it has no place or an unknown style."""
    place: Place = _place(node, where)
    schema, style = node.get("schema", {}), _style(node, place, where)
    content = references.object_in(node, "content", where)
    if content:
        media = references.resolved(next(iter(content.values())), where)
        schema, style = media.get("schema", {}), "json"
    return Parameter(
        argument="",
        name=node["name"],
        place=place,
        style=style,
        explode=bool(node.get("explode", style == "form")),
        required=place == "path" or node.get("required") is True,
        schema=schema,
        description=str(node.get("description") or ""),
        reserved=node.get("allowReserved") is True,
    )


def openapi_body(node: Any, references: References, place: str) -> Body | None:
    """The body in the content type that a model writes best: JSON, a form, text, then what stands first."""
    if node is None:
        return None

    body = references.resolved(node, f"{place}, requestBody")
    content = references.object_in(body, "content", f"{place}, requestBody")
    if not content:
        return None
    content_type = _preferred(tuple(content))
    media = references.resolved(content[content_type], f"{place}, requestBody {content_type}")
    schema = media.get("schema", {})
    return Body(
        argument="",
        content_type=content_type,
        schema=schema,
        required=body.get("required") is True,
        description=str(body.get("description") or ""),
        fields=_encodings(media, references, place),
        files=_files(schema, references, place) if content_type.startswith("multipart/") else frozenset(),
    )


def _place(node: Mapping[str, Any], where: str) -> Place:
    place = node["in"]
    if place not in get_args(Place):
        raise ConfigError(where, f"in: {place!r} is no place of a parameter", "path, query, header and cookie are")
    result: Place = place
    return result


def _style(node: Mapping[str, Any], place: Place, where: str) -> Style:
    style = node.get("style", _DEFAULT_STYLES[place])
    if style not in get_args(Style):
        raise ConfigError(where, f"style: {style!r} is unknown")
    result: Style = style
    return result


def _preferred(content_types: tuple[str, ...]) -> str:
    for wanted in _PREFERRED:
        for content_type in content_types:
            if wanted in content_type.lower():
                return content_type
    return content_types[0]


def _encodings(media: Mapping[str, Any], references: References, place: str) -> dict[str, FieldEncoding]:
    encodings = references.object_in(media, "encoding", f"{place}, requestBody")
    found: dict[str, FieldEncoding] = {}
    for name, each in encodings.items():
        node = references.resolved(each, f"{place}, encoding {name}")
        style = node.get("style", "form")
        content_type = node.get("contentType")
        found[name] = FieldEncoding(
            style if style in get_args(Style) else "form",
            bool(node.get("explode", style == "form")),
            content_type if isinstance(content_type, str) else None,
        )
    return found


def _files(schema: Any, references: References, place: str) -> frozenset[str]:
    properties = references.resolved(schema, f"{place}, requestBody").get("properties")
    if not isinstance(properties, Mapping):
        return frozenset()
    return frozenset(
        name
        for name, inner in properties.items()
        if _is_binary(references.resolved(inner, f"{place}, requestBody {name}"))
    )


def _is_binary(schema: Mapping[str, Any]) -> bool:
    """`format: binary` is 3.0, `contentMediaType` without an encoding is 3.1."""
    return schema.get("format") in ("binary", "base64") or (
        "contentMediaType" in schema and "contentEncoding" not in schema
    )
