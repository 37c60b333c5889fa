"""A description, OpenAPI 3 or Swagger 2, as operations.

Knows: paths, methods, ids, tags, servers, and which version it is. Does not know: how parameters of a version are
written (`openapi`, `swagger`), HTTP.
"""

import fnmatch
import functools
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from interpose.contracts.errors import ConfigError
from interpose.contracts.settings import each_checked, of_kind, texts
from interpose.drivers.naming import argument_name, tool_name
from interpose.drivers.rest.openapi import openapi_body, openapi_parameter, openapi_servers
from interpose.drivers.rest.operation import Body, Operation, Parameter
from interpose.drivers.rest.references import References
from interpose.drivers.rest.swagger import swagger_body, swagger_parameter, swagger_servers

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

_IGNORED_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""Header parameters that a description cannot set; OpenAPI 3 says so."""


@dataclass(frozen=True, slots=True)
class Select:
    """Operations by shell patterns over their tool names, or by tags; one that fits either is selected.

    Raises ConfigError naming the field for what are no texts.
    """

    operations: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check = functools.partial(texts, expected='a tuple of texts, such as ("get*",)')
        each_checked(self, {"operations": check, "tags": check})

    def holds(self, name: str, tags: Collection[str]) -> bool:
        """Whether an operation is selected."""
        return any(fnmatch.fnmatchcase(name, each) for each in self.operations) or not set(self.tags).isdisjoint(tags)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one description.

    Attributes:
        references: those of the document.
        base_url: where the API is, whatever the document says; "" for what it says.
        document_url: where the document was, for servers that are relative to it; "" when nowhere.
        include: only these operations; None for all.
        exclude: not these.
    """

    references: References
    base_url: str = ""
    document_url: str = ""
    include: Select | None = None
    exclude: Select = Select()

    def operations(self, document: Mapping[str, Any]) -> tuple[Operation, ...]:
        """The selected operations in the order of the document. Raises ConfigError naming the place of a mistake."""
        is_swagger = self._is_swagger(document)
        found: dict[str, Operation] = {}
        tags_of: dict[str, tuple[str, ...]] = {}
        for path, method, item, node in self._nodes(document):
            place = f"{method.upper()} {path}"
            name = tool_name(str(node.get("operationId") or f"{method}{path}"), tags_of)
            tags = tuple(str(tag) for tag in self.references.list_in(node, "tags", place))
            tags_of[name] = tags
            if not self._is_wanted(name, tags):
                continue
            inputs = _Inputs(self.references, place, document, item, node, is_swagger=is_swagger)
            parameters, body = inputs.read()
            found[name] = Operation(
                name,
                method.upper(),
                path,
                self._where(inputs.servers(), place),
                place,
                str(node.get("summary") or ""),
                str(node.get("description") or ""),
                tags,
                parameters,
                body,
            )
        self._check_include(tags_of)
        return tuple(found.values())

    def _is_swagger(self, document: Mapping[str, Any]) -> bool:
        if str(document.get("openapi", "")).startswith("3."):
            return False
        if str(document.get("swagger", "")) == "2.0":
            return True
        raise ConfigError(
            self.references.where, "it says neither openapi: 3.x nor swagger: 2.0", "give an API description"
        )

    def _nodes(self, document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
        paths = document.get("paths")
        if not isinstance(paths, Mapping):
            raise ConfigError(f"{self.references.where}, paths", "there are no paths, so there is nothing to call")
        for path, item in paths.items():
            if not path.startswith("/"):
                continue  # an extension, x-...
            resolved = self.references.resolved(item, f"paths {path}")
            for method in METHODS:
                if isinstance(resolved.get(method), Mapping):
                    yield path, method, resolved, resolved[method]

    def _is_wanted(self, name: str, tags: tuple[str, ...]) -> bool:
        included = self.include is None or self.include.holds(name, tags)
        return included and not self.exclude.holds(name, tags)

    def _check_include(self, tags_of: Mapping[str, tuple[str, ...]]) -> None:
        for kind, wanted in (
            (("operation", self.include.operations), ("tag", self.include.tags)) if self.include else ()
        ):
            for each in wanted:
                only = Select(**{f"{kind}s": (each,)})
                if not any(only.holds(name, tags) for name, tags in tags_of.items()):
                    raise ConfigError(
                        f"{self.references.where}, include", f"{each!r} is no {kind} of it, only {', '.join(tags_of)}"
                    )

    def _where(self, servers: tuple[str, ...], place: str) -> str:
        if self.base_url:
            return self.base_url.rstrip("/")
        server = servers[0] if servers else ""
        with suppress(ValueError):  # what is wrong with it is said below
            server = urljoin(self.document_url, server)
        if problem := _problem_of(server):
            shown = f" {server!r}" if server else ""
            raise ConfigError(f"{self.references.where}, {place}", f"its server{shown} {problem}", "give base_url")
        return server.rstrip("/")


def check_base_url(base_url: str) -> None:
    """Raises ConfigError when paths cannot be put behind it; "" is none and well."""
    of_kind("base_url", base_url, str, "a URL, such as https://pets.example/v1")
    problem = _problem_of(base_url) if base_url else None
    if problem:
        raise ConfigError(f"base_url {base_url!r}", f"it {problem}", "give one such as https://pets.example/v1")


def _problem_of(url: str) -> str | None:
    if not url:
        return "is not given"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"is no URL: {error}"
    if parts.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if not parts.hostname or port == 0:
        return "names no host"
    if "?" in url or "#" in url:
        return "has a query or a fragment, and paths are put behind it"
    if not url.isprintable() or " " in url:
        return "has white space or control characters in it"
    return None


class _Inputs:
    """The parameters and the body of one operation, with an argument name for each."""

    def __init__(
        self,
        references: References,
        place: str,
        document: Mapping[str, Any],
        item: Mapping[str, Any],
        node: Mapping[str, Any],
        *,
        is_swagger: bool,
    ) -> None:
        self._references = references
        self._place = place
        self._document = document
        self._item = item
        self._node = node
        self._is_swagger = is_swagger

    def servers(self) -> tuple[str, ...]:
        if self._is_swagger:
            return swagger_servers(self._document, self._node, self._references, self._place)
        for holder, place in (
            (self._node, self._place),
            (self._item, self._place),
            (self._document, "at its top"),
        ):
            if urls := openapi_servers(holder, self._references, place):
                return urls
        return ()

    def read(self) -> tuple[tuple[Parameter, ...], Body | None]:
        nodes = self._parameter_nodes()
        if self._is_swagger:
            parameters = [
                swagger_parameter(node, self._at(node)) for node in nodes if node.get("in") not in ("body", "formData")
            ]
            body = swagger_body(nodes, self._references, self._document, self._node, self._place)
        else:
            parameters = [openapi_parameter(node, self._references, self._at(node)) for node in nodes]
            body = openapi_body(self._node.get("requestBody"), self._references, self._place)
        return self._named(parameters, body)

    def _parameter_nodes(self) -> list[Mapping[str, Any]]:
        """Those of the path and then those of the operation, which take the place of the path's of the same name."""
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for holder in (self._item, self._node):
            for number, each in enumerate(self._references.list_in(holder, "parameters", self._place)):
                node = self._references.resolved(each, f"{self._place}, parameter {number}")
                where, name = node.get("in"), node.get("name")
                if not isinstance(where, str) or not isinstance(name, str):
                    raise ConfigError(
                        f"{self._references.where}, {self._place}, parameter {number}", "it needs a name and an in"
                    )
                if where != "header" or name.lower() not in _IGNORED_HEADERS:
                    found[where, name] = node
        return list(found.values())

    def _at(self, node: Mapping[str, Any]) -> str:
        return f"{self._references.where}, {self._place}, parameter {node['name']!r}"

    def _named(self, parameters: list[Parameter], body: Body | None) -> tuple[tuple[Parameter, ...], Body | None]:
        taken: set[str] = set()
        named: list[Parameter] = []
        for parameter in parameters:
            wanted = parameter.name if parameter.name not in taken else f"{parameter.place}_{parameter.name}"
            argument = argument_name(wanted, taken)
            taken.add(argument)
            named.append(replace(parameter, argument=argument))
        return tuple(named), None if body is None else replace(body, argument=argument_name("body", taken))
