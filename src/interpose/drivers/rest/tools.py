"""Operations as a model sees them.

Knows: names, descriptions, one schema for all arguments of a call. Does not know: HTTP.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from interpose.contracts.drivers import Tool
from interpose.drivers.arguments import check_arguments
from interpose.drivers.rest.operation import Body, Operation
from interpose.drivers.rest.references import FILE_SCHEMA, References, SchemaWriter

DESCRIPTION_CHARS_MOST: Final = 1_024


def tool_of(operation: Operation, references: References, is_fixed: Callable[[str, str], bool]) -> Tool:
    """The tool of an operation, without the parameters that `is_fixed(place, name)`.

    Raises ConfigError naming the place of a reference that leads nowhere.
    """
    writer = SchemaWriter(references, operation.place)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in operation.parameters:
        if is_fixed(parameter.place, parameter.name):
            continue
        properties[parameter.argument] = _described(writer.write(parameter.schema), parameter.description)
        if parameter.required:
            required.append(parameter.argument)
    body = operation.body
    if body is not None:
        properties[body.argument] = _described(_body_schema(body, references, writer, operation), body.description)
        if body.required:
            required.append(body.argument)

    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if writer.definitions:
        schema["$defs"] = writer.definitions
    return Tool(operation.name, operation.title, _description(operation), schema=schema)


def check_call(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raises ToolError for arguments that are missing or that nobody knows.

    Kinds are the API's to check: an answer with the field's name is better than a guess about a loose schema.
    """
    schema = tool.input_schema()
    names: dict[str, Any] = {name: {} for name in schema["properties"]}
    check_arguments(Tool(tool.name, tool.title, tool.description, schema={**schema, "properties": names}), arguments)


def _body_schema(body: Body, references: References, writer: SchemaWriter, operation: Operation) -> Any:
    kind = body.content_type.lower()
    if not body.files:
        return (
            dict(FILE_SCHEMA) if kind.startswith(("application/octet-stream", "image/")) else writer.write(body.schema)
        )

    resolved = references.resolved(body.schema, operation.place)
    written = writer.write({key: value for key, value in resolved.items() if key != "$ref"})
    for name in body.files & written.get("properties", {}).keys():
        words = written["properties"][name].get("description")
        written["properties"][name] = _described(dict(FILE_SCHEMA), words or "")
    return written


def _described(schema: Any, words: str) -> Any:
    return {**schema, "description": words} if words and isinstance(schema, Mapping) else schema


def _description(operation: Operation) -> str:
    words = [each for each in dict.fromkeys((operation.title, operation.description)) if each]
    text = "\n".join(words) or f"{operation.method} {operation.path}"
    return text if len(text) <= DESCRIPTION_CHARS_MOST else text[: DESCRIPTION_CHARS_MOST - 1] + "…"
