"""One operation of an API, the same whatever document it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Place: TypeAlias = Literal["path", "query", "header", "cookie"]
Style: TypeAlias = Literal[
    "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject", "tabDelimited", "json"
]
"""How a value that is no text is written; `json` is a parameter with a JSON `content`, `tabDelimited` Swagger's tsv."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a request.

    Attributes:
        argument: its name in the tool.
        name: its name in the request.
        place: where it goes.
        schema: as the document has it.
        reserved: whether reserved characters of a query value are left as they are.
    """

    argument: str
    name: str
    place: Place
    style: Style
    explode: bool
    required: bool
    schema: Any
    description: str = ""
    reserved: bool = False


@dataclass(frozen=True, slots=True)
class FieldEncoding:
    """How one field of a form is written; None leaves it to the kind of the value."""

    style: Style = "form"
    explode: bool = True
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request; `files` are the fields of a multipart form that are files."""

    argument: str
    content_type: str
    schema: Any
    required: bool
    description: str = ""
    fields: Mapping[str, FieldEncoding] = field(default_factory=dict)
    files: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `name` is the tool's, `base_url` where the API is, `place` where in the document it stands."""

    name: str
    method: str
    path: str
    base_url: str
    place: str
    title: str
    description: str
    tags: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    body: Body | None
