"""One tool as it is described to a model.

Knows: its name, its words and the schema of its arguments, and what none of them can be. Does not know: who has it,
how it is called.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from interpose.contracts.json import JsonObject
from interpose.contracts.naming import not_a_name


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """One named argument of a tool; without a JSON Schema of its own it is a string.

    Raises TypeError or ValueError naming it for what none of the fields can be.
    """

    name: str
    description: str = ""
    required: bool = False
    schema: JsonObject | None = None

    def __post_init__(self) -> None:
        where = f"the parameter {self.name!r:.80}"
        given: tuple[Any, ...] = (self.name, self.description, self.required)
        if not isinstance(given[0], str) or not given[0]:
            raise ValueError(f"{where}: expected a name")
        if not isinstance(given[1], str) or not isinstance(given[2], bool):
            raise TypeError(f"{where}: expected a text for its description, and True or False for required")
        _check_schema(where, self.schema)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as a model sees it.

    `schema` is a JSON Schema of the whole arguments object and stands in place of the one made from `parameters`.
    Raises ValueError for what can be no name (`contracts.naming`), and with neither title nor description; TypeError or
    ValueError naming the tool for what no other field can be. A missing description is the title.
    """

    name: str
    title: str = ""
    description: str = ""
    parameters: tuple[ToolParameter, ...] = ()
    schema: JsonObject | None = None

    def __post_init__(self) -> None:
        if (problem := not_a_name(self.name)) is not None:
            raise ValueError(f"a Tool has {problem}")
        if not (self.title or self.description):
            raise ValueError(f"the tool {self.name!r} needs a title or a description: a model chooses by it")
        texts: tuple[Any, ...] = (self.title, self.description)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"the tool {self.name!r}: expected texts for its title and its description")
        object.__setattr__(self, "description", self.description or self.title)
        object.__setattr__(self, "parameters", _parameters(f"the tool {self.name!r}", self.parameters))
        _check_schema(f"the tool {self.name!r}", self.schema)

    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments object; a new dict each time, its inner values shared."""
        if self.schema is not None:
            return dict(self.schema)

        properties: dict[str, Any] = {}
        for parameter in self.parameters:
            own = {"type": "string"} if parameter.schema is None else dict(parameter.schema)
            properties[parameter.name] = {"description": parameter.description, **own} if parameter.description else own
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        required = [parameter.name for parameter in self.parameters if parameter.required]
        return {**schema, "required": required} if required else schema


def named_twice(tools: Iterable[Tool]) -> str:
    """The names that more than one of the tools has, for people; "" for none."""
    names = [tool.name for tool in tools]
    if len(set(names)) == len(names):
        return ""
    return ", ".join(sorted({repr(name) for name in names if names.count(name) > 1}))


def _parameters(where: str, given: Any) -> tuple[ToolParameter, ...]:
    parameters = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(each, ToolParameter) for each in parameters):
        raise TypeError(f"{where}: expected ToolParameter values for its parameters, not {given!r:.80}")
    names = [each.name for each in parameters]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{where}: the parameter {twice[0]!r} is there more than once")
    return parameters


def _check_schema(where: str, schema: Any) -> None:
    if schema is None:
        return
    if not isinstance(schema, Mapping):
        raise TypeError(f"{where}: expected a JSON Schema, an object, not {schema!r:.80}")
    try:
        json.dumps(dict(schema))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{where}: its schema is no JSON: {error}") from error
