"""What Swagger 2 says about the server, parameters and bodies.

Knows: specification 2.0, and that collection formats are styles under other names. Does not know: other versions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from interpose.contracts.errors import ConfigError
from interpose.drivers.rest.operation import Body, FieldEncoding, Parameter, Place, Style
from interpose.drivers.rest.references import References

_COLLECTIONS: Final[Mapping[str, tuple[Style, bool]]] = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_PLACES: Final[Mapping[str, Place]] = {"path": "path", "query": "query", "header": "header"}
_NO_SCHEMA: Final = frozenset({"name", "in", "required", "description", "collectionFormat", "allowEmptyValue"})


def swagger_servers(
    document: Mapping[str, Any], node: Mapping[str, Any], references: References, place: str
) -> tuple[str, ...]:
    """The one server: scheme, host and base path; https when there is a choice; relative when there is no host."""
    base_path = str(document.get("basePath") or "/")
    host = document.get("host")
    if not isinstance(host, str) or not host:
        return (base_path,)
    schemes = (
        references.list_in(node, "schemes", place) or references.list_in(document, "schemes", "at its top") or ["https"]
    )
    scheme = "https" if "https" in schemes else str(schemes[0])
    return (f"{scheme}://{host}{base_path}",)


def swagger_parameter(node: Mapping[str, Any], where: str) -> Parameter:
    """One parameter outside of the body. Raises ConfigError naming `where` when it has no place."""
    place = _PLACES.get(node["in"])
    if place is None:
        raise ConfigError(
            where, f"in: {node['in']!r} is no place of a parameter", "path, query, header, body and formData are"
        )
    style, explode = _COLLECTIONS.get(str(node.get("collectionFormat", "csv")), ("form", False))
    return Parameter(
        argument="",
        name=node["name"],
        place=place,
        style="simple" if place in ("path", "header") else style,
        explode=explode,
        required=place == "path" or node.get("required") is True,
        schema=_schema(node),
        description=str(node.get("description") or ""),
    )


def swagger_body(
    nodes: Sequence[Mapping[str, Any]],
    references: References,
    document: Mapping[str, Any],
    operation: Mapping[str, Any],
    place: str,
) -> Body | None:
    """The body: the parameter in `body`, or those in `formData` together."""
    own = references.list_in(operation, "consumes", place)
    consumes = [str(each) for each in own or references.list_in(document, "consumes", "at its top")]
    whole = next((node for node in nodes if node["in"] == "body"), None)
    if whole is not None:
        schema = whole.get("schema", {})
        references.resolved(schema, f"{place}, body")
        return Body(
            argument="",
            content_type=next((each for each in consumes if "json" in each), "application/json"),
            schema=schema,
            required=whole.get("required") is True,
            description=str(whole.get("description") or ""),
        )

    fields = [node for node in nodes if node["in"] == "formData"]
    if not fields:
        return None
    files = frozenset(node["name"] for node in fields if node.get("type") == "file")
    is_multipart = files or "multipart/form-data" in consumes
    return Body(
        argument="",
        content_type="multipart/form-data" if is_multipart else "application/x-www-form-urlencoded",
        schema={
            "type": "object",
            "properties": {node["name"]: _described(node) for node in fields},
            "required": [node["name"] for node in fields if node.get("required") is True],
        },
        required=any(node.get("required") is True for node in fields),
        fields={
            node["name"]: FieldEncoding(*_COLLECTIONS.get(str(node.get("collectionFormat", "csv")), ("form", False)))
            for node in fields
        },
        files=files,
    )


def _schema(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in _NO_SCHEMA}


def _described(node: Mapping[str, Any]) -> dict[str, Any]:
    words = node.get("description")
    return {**_schema(node), **({"description": words} if isinstance(words, str) else {})}
