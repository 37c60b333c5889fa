"""The REST driver: one tool for each operation of an API description.

Knows: how operations become tools, how a call is sent and its answer read. Does not know: prompts, policy.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any, Unpack

import httpx

from interpose.contracts.drivers import Tool, ToolDriver
from interpose.contracts.errors import ConfigError, ToolError
from interpose.contracts.settings import a_count, a_function, a_table, each_checked, headers, of_kind, seconds
from interpose.contracts.sheet import DriverBinding, DriverMeta
from interpose.drivers.hosted import DriverOptions, HostedDriver, limits_of
from interpose.drivers.rest.deadline import Lifeline, within
from interpose.drivers.rest.document import is_url, load_document
from interpose.drivers.rest.operation import Operation
from interpose.drivers.rest.reading import Reader, Select, check_base_url
from interpose.drivers.rest.references import References
from interpose.drivers.rest.request import Prepared, prepare
from interpose.drivers.rest.response import ApiResponse, told
from interpose.drivers.rest.tools import check_call, tool_of

_ACCEPT = "application/json, text/*;q=0.9, */*;q=0.5"


@dataclass(frozen=True, slots=True)
class RestSettings:
    """How requests are sent and answers shaped. Raises ConfigError naming the field for what none of them can be.

    Attributes:
        headers: sent with every request; a parameter of the same name is not offered to the model.
        query: the same for the query string.
        auth: signs each request, see httpx.Auth; what it raises reaches the caller as it is.
        timeout_s: seconds for a whole call, from connecting to the last byte, however slowly a server drips.
        response_bytes: read of an answer, decompressed; the rest is left.
        shape: what a call returns of an answer; `told` makes text for a model and raises ToolError for a failure.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    auth: httpx.Auth | None = None
    timeout_s: float = 30.0
    response_bytes: int = 262_144
    shape: Callable[[ApiResponse], Any] = told

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[str, Any], object]] = {
            "headers": headers,
            "query": a_table,
            "timeout_s": seconds,
            "response_bytes": a_count,
            "shape": a_function,
        }
        each_checked(self, checks)
        auth: Any = self.auth
        if auth is not None and not isinstance(auth, httpx.Auth):
            kind = type(auth).__name__
            raise ConfigError(
                "RestSettings.auth", f"is of type {kind}", "expected an httpx.Auth, as httpx.BasicAuth(…)"
            )


class RestTools(ToolDriver):
    """The operations of an API as tools.

    `document` is an OpenAPI 3 or Swagger 2 description: a mapping, the path of a file or a URL, read once. `base_url`
    says where the API is in place of the document's own servers, so that credentials go nowhere else. `include` and
    `exclude` select operations. `client` and `async_client` are used instead of our own, and stay open: for proxies,
    certificates, redirects (ours follow none) and, in an event loop, connections that are kept.

    A call returns what `settings.shape` makes of the answer. It raises ToolError for wrong arguments, a failing status
    and a server that cannot be reached, ValueError for an unknown tool. Building it raises ConfigError that names the
    place in the document. Any thread and any event loop may call, many at once. `close` releases connections.
    """

    meta = DriverMeta(
        "interpose.rest",
        "REST",
        "1.0",
        bindings=(DriverBinding("rest", "http", "openapi-3"), DriverBinding("rest", "http", "swagger-2")),
        supported_llms=None,
    )

    def __init__(
        self,
        document: Mapping[str, Any] | str | Path,
        *,
        base_url: str = "",
        include: Select | None = None,
        exclude: Select | None = None,
        settings: RestSettings | None = None,
        client: httpx.Client | None = None,
        async_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._settings = limits_of("RestTools", settings, RestSettings, "settings")
        for name, given in (("include", include), ("exclude", exclude)):
            of_kind(f"RestTools({name}=…)", given, Select | None, "Select(…)")
        of_kind("RestTools(client=…)", client, httpx.Client | None, "an httpx.Client")
        of_kind("RestTools(async_client=…)", async_client, httpx.AsyncClient | None, "an httpx.AsyncClient")
        loaded = load_document(document, client=client)
        references = References(loaded, "the document" if isinstance(document, Mapping) else str(document))
        document_url = str(document) if is_url(document) else ""
        check_base_url(base_url)
        reader = Reader(references, base_url, document_url, include, exclude or Select())
        operations = reader.operations(loaded)
        self._operations = {operation.name: operation for operation in operations}
        self._tools = {each.name: tool_of(each, references, self._is_fixed) for each in operations}
        self._tls = httpx.create_ssl_context()
        self._client = client or httpx.Client(verify=self._tls, cookies=_no_cookies())
        self._owns_client = client is None
        self._async_client = async_client

    def list_tools(self) -> Sequence[Tool]:
        """One tool for each selected operation, in the order of the document."""
        return tuple(self._tools.values())

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Calls the API and returns the shaped answer."""
        operation, prepared = self._prepared(tool_name, arguments)
        lifeline = Lifeline()
        with _Told(operation, prepared):
            try:
                answer = within(self._settings.timeout_s, lambda: self._ask(operation, prepared, lifeline), lifeline)
            except TimeoutError as error:
                raise httpx.ReadTimeout("the answer took too long") from error
        return self._settings.shape(answer)

    async def execute_tool_async(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """As `execute_tool`, from an event loop."""
        operation, prepared = self._prepared(tool_name, arguments)
        if self._async_client is not None:
            answer = await self._ask_async(self._async_client, operation, prepared)
        else:
            # A client belongs to one event loop, and nobody says which loops there are: one client for one call.
            async with httpx.AsyncClient(verify=self._tls, cookies=_no_cookies()) as client:
                answer = await self._ask_async(client, operation, prepared)
        return self._settings.shape(answer)

    def close(self) -> None:
        """Releases the connections of our own client; may be called again."""
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> "RestTools":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, operation: Operation, prepared: Prepared, lifeline: Lifeline) -> ApiResponse:
        until = time.monotonic() + self._settings.timeout_s
        with self._client.stream(**self._sent(prepared), extensions={"trace": lifeline.trace}) as response:
            body = bytearray()
            for piece in response.iter_bytes():
                body += piece
                if len(body) > self._settings.response_bytes:
                    break
                if time.monotonic() > until:
                    raise httpx.ReadTimeout("the answer took too long")
            return self._answer(operation, prepared, response, bytes(body))

    async def _ask_async(self, client: httpx.AsyncClient, operation: Operation, prepared: Prepared) -> ApiResponse:
        deadline = asyncio.timeout(self._settings.timeout_s)
        with _Told(operation, prepared):
            try:
                async with deadline, client.stream(**self._sent(prepared)) as response:
                    body = bytearray()
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) > self._settings.response_bytes:
                            break
                    return self._answer(operation, prepared, response, bytes(body))
            except TimeoutError as error:
                if not deadline.expired():
                    raise
                raise httpx.ReadTimeout("the answer took too long") from error

    def _is_fixed(self, place: str, name: str) -> bool:
        """Whether the settings give this parameter, so that it is not the model's to give."""
        if place == "header":
            return name.lower() in {each.lower() for each in self._settings.headers}
        return place == "query" and name in self._settings.query

    def _prepared(self, tool_name: str, arguments: Mapping[str, Any]) -> tuple[Operation, Prepared]:
        operation = self._operations.get(tool_name)
        if operation is None:
            raise ValueError(f"there is no tool {tool_name!r} here")
        check_call(self._tools[tool_name], arguments)
        return operation, prepare(operation, arguments, self._settings.query)

    def _sent(self, prepared: Prepared) -> dict[str, Any]:
        settings = self._settings
        headers = httpx.Headers({"Accept": _ACCEPT})
        headers.update(prepared.headers)
        headers.update(settings.headers)
        auth = {} if settings.auth is None else {"auth": settings.auth}
        return {
            "method": prepared.method,
            "url": prepared.url,
            "headers": headers,
            "content": prepared.content,
            "files": prepared.parts,
            "timeout": settings.timeout_s,
            **auth,
        }

    def _answer(self, operation: Operation, prepared: Prepared, response: httpx.Response, body: bytes) -> ApiResponse:
        most = self._settings.response_bytes
        return ApiResponse(
            operation.name,
            _request(prepared),
            response.status_code,
            response.reason_phrase,
            dict(response.headers),
            body[:most],
            len(body) > most,
            response.charset_encoding or "utf-8",
        )


class RestDriver(HostedDriver):
    """`RestTools` with prompts, extraction and a middleware list.

    `base_url`, `include`, `exclude`, `settings` and the clients are those of `RestTools`, the further options those of
    `BaseDriver`.
    """

    meta = replace(RestTools.meta, supported_llms=("*",))

    def __init__(
        self,
        document: Mapping[str, Any] | str | Path,
        *,
        base_url: str = "",
        include: Select | None = None,
        exclude: Select | None = None,
        settings: RestSettings | None = None,
        client: httpx.Client | None = None,
        async_client: httpx.AsyncClient | None = None,
        **options: Unpack[DriverOptions],
    ) -> None:
        self._rest = RestTools(
            document,
            base_url=base_url,
            include=include,
            exclude=exclude,
            settings=settings,
            client=client,
            async_client=async_client,
        )
        super().__init__(self._rest, options)

    def close(self) -> None:
        """Releases the connections of the driver's own client; may be called again."""
        self._rest.close()

    def __enter__(self) -> "RestDriver":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Told:
    """Makes a ToolError of what httpx raises, with the words a model needs: was anything done, what would work."""

    def __init__(self, operation: Operation, prepared: Prepared) -> None:
        self._operation = operation
        self._prepared = prepared

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if not isinstance(error, httpx.HTTPError | httpx.InvalidURL):
            return

        where = _request(self._prepared)
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
            raise ToolError(f"{where}: the server could not be reached: {_words(error)}") from error
        if isinstance(error, httpx.TimeoutException):
            done = "" if self._operation.method in ("GET", "HEAD") else "; it may have been done all the same"
            raise ToolError(f"{where}: no answer in time{done}") from error
        raise ToolError(f"{where}: {_words(error)}") from error


def _no_cookies() -> CookieJar:
    """A jar that stays empty: one call must not change what the next one sends."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _request(prepared: Prepared) -> str:
    """Method and URL without the query, which may hold a key."""
    return f"{prepared.method} {prepared.url.partition('?')[0]}"
