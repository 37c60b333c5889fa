"""Behaviour of the REST tools on odd documents, odd addresses and servers that never come to an end."""

import asyncio
import copy
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interpose.contracts.errors import ConfigError, ToolError
from interpose.drivers.rest import RestSettings, RestTools, load_document
from tests.drivers.web import web_server

DATA = Path(__file__).with_name("data")
ODD: list[Any] = [None, True, 5, 1.5, "", "text", [], [1], [{}], [None], {}, {"a": 1}, {"$ref": "#/paths"}, {"$ref": 5}]

OPENAPI: dict[str, Any] = {
    "openapi": "3.0.0",
    "servers": [{"url": "http://{host}/", "variables": {"host": {"default": "h"}}}],
    "paths": {
        "/a/{id}": {
            "servers": [{"url": "http://item"}],
            "parameters": [{"name": "id", "in": "path", "schema": {"type": "string"}}],
            "post": {
                "tags": ["one"],
                "operationId": "make",
                "servers": [{"url": "http://own", "variables": {}}],
                "parameters": [
                    {"name": "q", "in": "query", "style": "form", "explode": True, "schema": {"type": "array"}},
                    {"name": "j", "in": "query", "content": {"application/json": {"schema": {}}}},
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "required": ["f"],
                                "properties": {
                                    "f": {"type": "string", "format": "binary"},
                                    "g": {"minimum": 1, "exclusiveMinimum": True, "nullable": True, "enum": [1]},
                                    "h": {"allOf": [{"readOnly": True}], "items": {"not": {}}},
                                },
                            },
                            "encoding": {"f": {"style": "form", "contentType": "image/png"}},
                        }
                    },
                },
            },
        }
    },
}
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "host": "h",
    "basePath": "/v1",
    "schemes": ["http"],
    "consumes": ["application/json"],
    "paths": {
        "/a": {
            "put": {
                "schemes": ["https"],
                "consumes": ["multipart/form-data"],
                "tags": ["one"],
                "parameters": [
                    {
                        "name": "q",
                        "in": "query",
                        "type": "array",
                        "collectionFormat": "csv",
                        "items": {"type": "string"},
                    },
                    {"name": "f", "in": "formData", "type": "file", "required": True},
                ],
            },
            "post": {"parameters": [{"name": "b", "in": "body", "schema": {"required": ["x"]}}]},
        }
    },
}


def api(**operation: object) -> dict[str, Any]:
    """A description with one GET operation at /a with these keys."""
    return {"openapi": "3.0.0", "servers": [{"url": "http://h"}], "paths": {"/a": {"get": operation}}}


def swagger(**operation: object) -> dict[str, Any]:
    """The same, of version 2."""
    return {"swagger": "2.0", "host": "h", "paths": {"/a": {"get": operation}}}


def schema(**keys: object) -> dict[str, Any]:
    """A description with one parameter of this schema."""
    return api(parameters=[{"name": "q", "in": "query", "schema": keys}])


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (api(tags=5), "the document, GET /a, tags: expected a list, got int"),
        (api(tags={"a": 1}), "the document, GET /a, tags: expected a list, got dict"),
        (api(parameters=5), "the document, GET /a, parameters: expected a list, got int"),
        (api(parameters={"a": 1}), "the document, GET /a, parameters: expected a list, got dict"),
        (api(servers=5), "the document, GET /a, servers: expected a list, got int"),
        (api(servers=[5]), "the document, GET /a, servers 0: expected an object, got int"),
        (api(servers=[{}]), "the document, GET /a, servers 0: it needs a url"),
        (
            api(servers=[{"url": "http://h", "variables": [1]}]),
            "the document, GET /a, servers 0, variables: expected an object, got list",
        ),
        (
            {**api(), "servers": [{"url": "http://h", "variables": {"v": 1}}]},
            "the document, at its top, servers 0, variables, v: expected an object, got int",
        ),
        (api(requestBody={"content": 5}), "the document, GET /a, requestBody, content: expected an object, got int"),
        (swagger(consumes=5), "the document, GET /a, consumes: expected a list, got int"),
        (swagger(schemes=5), "the document, GET /a, schemes: expected a list, got int"),
        (schema(required=[{}]), "the document, GET /a, required of a schema: expected names, got [{}]"),
        (schema(required=5), "the document, GET /a, required of a schema: expected names, got 5"),
        ({**api(), "servers": [{"url": "ftp://h"}]}, "its server 'ftp://h' does not begin with http:// or https://"),
        ({**api(), "servers": [{"url": "http://h?a=1"}]}, "has a query or a fragment"),
        ({**api(), "servers": [{"url": "http://[h"}]}, "its server 'http://[h' is no URL"),
    ],
)
def test_an_odd_value_is_named_with_its_place(document: dict[str, Any], words: str) -> None:
    """What is not of the kind it must be is a configuration error that says where it stands and what it is."""
    with pytest.raises(ConfigError) as failed:
        RestTools(document).close()

    assert words in str(failed.value)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every way into a document."""
    if path:
        yield path
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        yield from places(value, (*path, key))


def with_odd(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy with one value replaced."""
    changed = copy.deepcopy(document)
    holder: Any = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return changed


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """One client for many objects: building one is slow."""
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json={}))) as made:
        yield made


@pytest.mark.parametrize("document", [OPENAPI, SWAGGER], ids=["openapi", "swagger"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_odd_value_is_read_or_named(data: st.DataObject, client: httpx.Client, document: dict[str, Any]) -> None:
    """Whatever stands where something else is meant, the document is read or refused with a place."""
    path = data.draw(st.sampled_from(sorted(places(document), key=repr)))
    changed = with_odd(document, path, data.draw(st.sampled_from(ODD)))

    try:
        tools = RestTools(changed, client=client)
    except ConfigError as refused:
        assert "the document" in str(refused)  # noqa: PT017 - refusing is one of two good ends
        return
    assert all(tool.name and tool.input_schema()["type"] == "object" for tool in tools.list_tools())


@pytest.mark.parametrize(
    ("base_url", "words"),
    [
        ("pets.example/v1", "does not begin with http:// or https://"),
        ("//pets.example", "does not begin with http:// or https://"),
        ("ftp://pets.example", "does not begin with http:// or https://"),
        ("https://pets.example/v1?key=1", "has a query or a fragment"),
        ("https://pets.example/#a", "has a query or a fragment"),
        ("https://", "names no host"),
        ("https://:80", "names no host"),
        ("https://pets.example:x", "is no URL"),
        ("https://[1", "is no URL"),
        ("https://pets.example/a b", "white space"),
        ("https://pets.example/\x00", "control characters"),
    ],
)
def test_a_base_url_that_paths_cannot_follow_is_refused(base_url: str, words: str) -> None:
    """An address that no call could use is refused when the object is built, with one that would do."""
    with pytest.raises(ConfigError) as failed:
        RestTools(api(), base_url=base_url)

    assert words in str(failed.value)
    assert "give one such as https://pets.example/v1" in str(failed.value)


@contextmanager
def dripping_server() -> Iterator[str]:
    """A server that sends a header without end, a byte at a time."""
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection:
            connection.recv(65_536)
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
                while not stop.wait(0.02):
                    connection.sendall(b"x")
            except OSError:
                pass  # the client has gone, as it should

    def serve() -> None:
        while True:
            connection, _ = listening.accept()
            if stop.is_set():
                connection.close()
                return
            threads.append(threading.Thread(target=drip, args=(connection,)))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threads = [threading.Thread(target=serve)]
        threads[0].start()
        address = cast("tuple[str, int]", listening.getsockname())
        try:
            yield f"http://127.0.0.1:{address[1]}"
        finally:
            stop.set()
            socket.create_connection(address).close()
            for thread in threads:
                thread.join(10)


def calls_left() -> int:
    """How many calls still wait for a server."""
    return sum(thread.name == "rest-call" for thread in threading.enumerate())


def test_a_server_that_drips_headers_is_left_in_time() -> None:
    """The time limit bounds the whole call, sync and async, and no thread stays behind."""
    with (
        dripping_server() as url,
        RestTools(api(operationId="get"), base_url=url, settings=RestSettings(timeout_s=0.3)) as tools,
    ):
        started = time.monotonic()
        with pytest.raises(ToolError, match=r"no answer in time$"):
            tools.execute_tool("get", {})
        with pytest.raises(ToolError, match=r"no answer in time$"):
            asyncio.run(tools.execute_tool_async("get", {}))
        with pytest.raises(ConfigError, match=r"could not be fetched within 0\.3 s"):
            load_document(url, timeout_s=0.3)

        assert time.monotonic() - started < 3
        until = time.monotonic() + 3
        while calls_left() and time.monotonic() < until:
            time.sleep(0.01)
        assert calls_left() == 0


def test_a_call_after_a_lost_one_works() -> None:
    """Giving up a call leaves the object usable, and a kept connection is used again."""
    with web_server() as web, RestTools(api(operationId="get"), base_url=web.url) as tools:
        assert tools.execute_tool("get", {}) == '{"ok":true}'
        assert tools.execute_tool("get", {}) == '{"ok":true}'
    assert calls_left() == 0
