"""References inside one document, and the schemas a model is shown.

Knows: JSON pointers, what refers to what, how an API's schema becomes plain JSON Schema. Does not know: operations.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from interpose.contracts.errors import ConfigError

INLINED_MOST: Final = 2_000
"""Schema objects written out in one tool; what comes after is written once and referred to."""

_CHAIN_MOST: Final = 50
_KEPT: Final = frozenset(
    {
        *("type", "enum", "const", "description", "format", "default", "required"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
        *("minProperties", "maxProperties"),
    }
)
_MAPS: Final = ("properties", "patternProperties")
_SINGLES: Final = ("items", "additionalProperties", "not")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")

FILE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "A file: its content as text, or as base64 when it is not text.",
    "properties": {
        "filename": {"type": "string"},
        "text": {"type": "string"},
        "base64": {"type": "string"},
        "content_type": {"type": "string"},
    },
}


class References:
    """The references of one document. Reads only, except for a memory of what refers to what; for one thread."""

    def __init__(self, document: Mapping[str, Any], where: str) -> None:
        self.where = where
        self._document = document
        self._recursive: dict[str, bool] = {}

    def resolved(self, node: Any, place: str) -> Mapping[str, Any]:
        """The object that `node` is or refers to, through any chain of references.

        Raises ConfigError naming `place` when it leads nowhere, in a circle, out of the document or to no object.
        """
        seen: list[str] = []
        while isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
            pointer = node["$ref"]
            if pointer in seen or len(seen) > _CHAIN_MOST:
                raise ConfigError(f"{self.where}, {place}", f"{pointer} refers to itself")
            seen.append(pointer)
            node = self.target(pointer, place)
        if not isinstance(node, Mapping):
            raise self._unfit(place, "an object", node)
        return node

    def list_in(self, holder: Mapping[str, Any], key: str, place: str) -> list[Any]:
        """The list at `key`, empty when there is none. Raises ConfigError naming `place` and key for anything else."""
        value = holder.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._unfit(f"{place}, {key}", "a list", value)
        return value

    def object_in(self, holder: Mapping[str, Any], key: str, place: str) -> Mapping[str, Any]:
        """The object at `key`, as `list_in`."""
        value = holder.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self._unfit(f"{place}, {key}", "an object", value)
        return value

    def target(self, pointer: str, place: str) -> Any:
        """What a pointer such as `#/components/schemas/Pet` points at; ConfigError naming `place` when nothing."""
        if not pointer.startswith("#"):
            raise ConfigError(
                f"{self.where}, {place}", f"{pointer!r} is in another document", "bundle it into one document first"
            )
        node: Any = self._document
        for part in pointer.lstrip("#").split("/")[1:]:
            step = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and step in node:
                node = node[step]
            elif isinstance(node, list) and step.isdecimal() and int(step) < len(node):
                node = node[int(step)]
            else:
                raise ConfigError(f"{self.where}, {place}", f"{pointer!r} is not in the document")
        return node

    def is_recursive(self, pointer: str, place: str) -> bool:
        """Whether what it points at refers, on any way, to itself."""
        known = self._recursive.get(pointer)
        if known is None:
            known = self._recursive[pointer] = self._reaches_itself(pointer, place)
        return known

    def _unfit(self, place: str, expected: str, value: Any) -> ConfigError:
        return ConfigError(f"{self.where}, {place}", f"expected {expected}, got {type(value).__name__}")

    def _reaches_itself(self, pointer: str, place: str) -> bool:
        todo, seen = [pointer], {pointer}
        while todo:
            for inner in pointers_in(self.target(todo.pop(), place)):
                if inner == pointer:
                    return True
                if inner not in seen:
                    seen.add(inner)
                    todo.append(inner)
        return False


def pointers_in(node: Any) -> Iterator[str]:
    """The references that stand anywhere inside `node`."""
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, Mapping):
            if isinstance(current.get("$ref"), str):
                yield current["$ref"]
            todo.extend(current.values())
        elif isinstance(current, list):
            todo.extend(current)


class SchemaWriter:
    """Writes the schemas of one tool: references written out, recursive ones once under `definitions`.

    What servers set themselves (`readOnly`) is left out, and so is what says nothing to a model.
    """

    def __init__(self, references: References, place: str) -> None:
        self.definitions: dict[str, Any] = {}
        self._references = references
        self._place = place
        self._names: dict[str, str] = {}
        self._written = 0

    def write(self, schema: Any) -> Any:
        """The schema as plain JSON Schema, references to `#/$defs/...` of `definitions` only."""
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, Mapping):
            return {}

        pointer = schema.get("$ref")
        if isinstance(pointer, str):
            return self._reference(pointer, schema)
        self._written += 1
        return self._object(schema)

    def _reference(self, pointer: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        words = schema.get("description")
        beside = {"description": words} if isinstance(words, str) else {}
        if self._written < INLINED_MOST and not self._references.is_recursive(pointer, self._place):
            return {**self.write(self._references.target(pointer, self._place)), **beside}
        return {"$ref": f"#/$defs/{self._definition(pointer)}", **beside}

    def _definition(self, pointer: str) -> str:
        known = self._names.get(pointer)
        if known is not None:
            return known

        wanted = "".join(each if each.isalnum() or each in "._-" else "_" for each in pointer.rpartition("/")[2])
        name, number = wanted, 2
        while name in self.definitions:
            name, number = f"{wanted}_{number}", number + 1
        self._names[pointer] = name
        self.definitions[name] = {}
        self.definitions[name] = self.write(self._references.target(pointer, self._place))
        return name

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        if schema.get("type") == "file":
            return dict(FILE_SCHEMA)

        hidden = self._hidden(schema)
        written = {key: value for key, value in schema.items() if key in _KEPT}
        for key in _MAPS:
            if isinstance(schema.get(key), Mapping):
                written[key] = {name: self.write(inner) for name, inner in schema[key].items() if name not in hidden}
        for key in _SINGLES:
            if isinstance(schema.get(key), Mapping | bool):
                written[key] = schema[key] if isinstance(schema[key], bool) else self.write(schema[key])
        for key in _LISTS:
            if isinstance(schema.get(key), list):
                written[key] = [self.write(inner) for inner in schema[key]]
        self._read_required(written, hidden)
        _read_exclusive(written, "minimum", "exclusiveMinimum")
        _read_exclusive(written, "maximum", "exclusiveMaximum")
        return _with_null(written) if schema.get("nullable") is True else written

    def _hidden(self, schema: Mapping[str, Any]) -> set[str]:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return set()
        return {
            name for name, inner in properties.items() if isinstance(inner, Mapping) and inner.get("readOnly") is True
        }

    def _read_required(self, written: dict[str, Any], hidden: set[str]) -> None:
        """A list of names; Swagger documents in the wild also have a truth value here."""
        names = written.pop("required", None)
        if names is None or isinstance(names, bool):
            return
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ConfigError(
                f"{self._references.where}, {self._place}, required of a schema", f"expected names, got {names!r:.80}"
            )
        if kept := [name for name in names if name not in hidden]:
            written["required"] = kept


def _read_exclusive(written: dict[str, Any], bound: str, exclusive: str) -> None:
    """`exclusiveMinimum: true` beside `minimum`, as OpenAPI 3.0 has it, as the number that JSON Schema wants."""
    if not isinstance(written.get(exclusive), bool):
        return
    if written.pop(exclusive) and bound in written:
        written[exclusive] = written.pop(bound)


def _with_null(written: dict[str, Any]) -> dict[str, Any]:
    named = written.get("type")
    if not isinstance(named, str):
        return {"anyOf": [written, {"type": "null"}]}
    written["type"] = [named, "null"]
    if isinstance(written.get("enum"), list) and None not in written["enum"]:
        written["enum"] = [*written["enum"], None]
    return written
