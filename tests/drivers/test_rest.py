"""Behaviour of the REST tools on three OpenAPI documents and one Swagger document, against a real server."""

import asyncio
import gzip
import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from interpose.contracts.drivers import Tool
from interpose.contracts.errors import ConfigError, ToolError
from interpose.drivers.rest import ApiResponse, RestSettings, RestTools, Select, load_document
from tests.drivers.web import Answer, Asked, Web, as_json, fields_of, web_server

DATA = Path(__file__).with_name("data")
DOCUMENTS = sorted(DATA.glob("*.yaml")) + sorted(DATA.glob("*.json"))


@pytest.fixture
def web() -> Iterator[Web]:
    """A server that remembers what it was asked."""
    with web_server() as server:
        yield server


def always(answer: Answer) -> Callable[[Asked], Answer]:
    """The same answer to everything."""
    return lambda _: answer


def tool(tools: RestTools, name: str) -> Tool:
    """The tool of that name."""
    return next(each for each in tools.list_tools() if each.name == name)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_document_becomes_valid_tools(path: Path) -> None:
    """Each operation is a tool whose name, arguments and schema any model's API takes."""
    with RestTools(path, base_url="http://127.0.0.1:1") as tools:
        listed = tools.list_tools()

    assert len(listed) == sum(
        method in ("get", "put", "post", "delete") for item in load_document(path)["paths"].values() for method in item
    )
    for each in listed:
        schema = each.input_schema()
        jsonschema.Draft202012Validator.check_schema(schema)
        for name in (each.name, *schema["properties"]):
            assert name.replace(".", "").replace("_", "").replace("-", "").isalnum()
            assert len(name) <= 64


def test_sync_and_async_send_the_same(web: Web) -> None:
    """Both ways make the same request, byte for byte, and return the same."""
    with RestTools(DATA / "petstore.yaml", base_url=f"{web.url}/v2") as tools:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("listPets", {"kind": ["dog", "no"], "pageSize": 5}),
            ("addPet", {"body": {"name": "Ö"}}),
            ("order", {"body": {"petId": "7", "notes": ["a", "b"]}}),
            ("removePet", {"petId": "7", "X-Reason": "sold"}),
        ]
        for name, arguments in calls:
            assert tools.execute_tool(name, arguments) == '{"ok":true}'
            assert asyncio.run(tools.execute_tool_async(name, arguments)) == '{"ok":true}'
            first, second = web.asked[-2:]
            assert first == second


def test_query_path_and_header_parameters_of_openapi(web: Web) -> None:
    """Arrays are repeated unless told otherwise, a slash stays inside its segment, no header of the model's is auth."""
    with RestTools(DATA / "petstore.yaml", base_url=f"{web.url}/v2") as tools:
        tools.execute_tool("listPets", {"kind": ["dog", "no"], "bornBefore": "2026-01-31", "pageSize": None})
        assert web.last.target == "/v2/pets?kind=dog&kind=no&bornBefore=2026-01-31"

        tools.execute_tool("removePet", {"petId": "a/b c?&", "X-Reason": "sold"})
        assert (web.last.method, web.last.target) == ("DELETE", "/v2/pets/a%2Fb%20c%3F%26")
        assert web.last.headers["x-reason"] == "sold"
        assert "Authorization" not in tool(tools, "removePet").input_schema()["properties"]


def test_json_body_and_what_servers_set_themselves(web: Web) -> None:
    """A JSON body is sent as it is; a read-only field is neither offered nor required; recursion has a definition."""
    with RestTools(DATA / "petstore.yaml", base_url=web.url) as tools:
        tools.execute_tool("addPet", {"body": {"name": "Ö", "kind": "no", "born": None}})

        assert web.last.headers["content-type"] == "application/json"
        assert json.loads(web.last.body) == {"name": "Ö", "kind": "no", "born": None}
        schema = tool(tools, "addPet").input_schema()
    assert schema["required"] == ["body"]
    assert schema["properties"]["body"] == {"$ref": "#/$defs/Pet", "description": "The new pet."}
    pet = schema["$defs"]["Pet"]
    assert (pet["required"], set(pet["properties"])) == (["name"], {"name", "kind", "born", "parents"})
    assert pet["properties"]["born"] == {"type": ["string", "null"], "format": "date"}
    assert pet["properties"]["kind"]["enum"] == ["dog", "cat", "no"]
    assert pet["properties"]["parents"]["items"] == {"$ref": "#/$defs/Pet"}
    jsonschema.validate({"body": {"name": "a", "parents": [{"name": "b"}]}}, schema)


def test_form_bodies(web: Web) -> None:
    """Fields of a form follow their encoding: exploded or not, deep objects, truths in lower case."""
    with RestTools(DATA / "petstore.yaml", base_url=web.url) as tools:
        body = {
            "petId": "1&2",
            "gift": True,
            "notes": ["a,b", "c"],
            "address": {"street": "Oslo gate", "country": "NO"},
        }
        tools.execute_tool("order", {"body": body})

        assert web.last.headers["content-type"] == "application/x-www-form-urlencoded"
        assert web.last.body.decode() == (
            "petId=1%262&gift=true&notes=a%2Cb,c&address%5Bstreet%5D=Oslo%20gate&address%5Bcountry%5D=NO"
        )
        assert tool(tools, "order").input_schema()["properties"]["body"]["properties"]["quantity"] == {
            "type": "integer",
            "exclusiveMinimum": 0,
        }
        with pytest.raises(ToolError, match="'body' must be an object with the form's fields"):
            tools.execute_tool("order", {"body": "petId=1"})


def test_multipart_bodies(web: Web) -> None:
    """Files have names and kinds, structures are JSON, lists are repeated."""
    with RestTools(DATA / "petstore.yaml", base_url=web.url) as tools:
        photo = {"filename": "a.png", "base64": "iVBORw=="}
        body = {"photo": photo, "caption": "sits", "crop": {"width": 3}, "labels": ["x", "y"]}
        tools.execute_tool("addPhoto", {"petId": "1", "body": body})

        parts = fields_of(web.last)
        assert [head["content-disposition"] for head, _ in parts] == [
            'form-data; name="photo"; filename="a.png"',
            'form-data; name="caption"',
            'form-data; name="crop"',
            'form-data; name="labels"',
            'form-data; name="labels"',
        ]
        assert [content for _, content in parts] == [b"\x89PNG", b"sits", b'{"width": 3}', b"x", b"y"]
        assert (parts[0][0]["content-type"], parts[2][0]["content-type"]) == ("image/png", "application/json")
        offered = tool(tools, "addPhoto").input_schema()["properties"]["body"]["properties"]["photo"]
        assert (offered["description"], "base64" in offered["properties"]) == ("The picture.", True)
        with pytest.raises(ToolError, match="the file 'photo' needs a text, or base64 that is valid"):
            tools.execute_tool("addPhoto", {"petId": "1", "body": {"photo": {"base64": "?"}}})


def test_openapi_31_with_shared_parts(web: Web) -> None:
    """Parameters and bodies by reference, names that collide, reserved characters, deep objects, JSON parameters."""
    with RestTools(DATA / "issues.json", base_url=web.url) as tools:
        assert [each.name for each in tools.list_tools()] == [
            "issues_list-for-repo",
            "issues_create",
            "repos_get-content",
            "search_issues",
            "post_markdown",
        ]
        tools.execute_tool("issues_list-for-repo", {"owner": "o", "repo": "r", "labels": ["bug", "good first"]})
        assert web.last.target == "/repos/o/r/issues?labels=bug,good%20first"

        tools.execute_tool("repos_get-content", {"owner": "o", "repo": "r", "path": "a/b", "query_owner": "me"})
        assert web.last.target == "/repos/o/r/contents/a%2Fb?owner=me"

        tools.execute_tool(
            "search_issues",
            {
                "q": "is:open/x&page=2",
                "filter": {"author": "ada", "label": ["a", "b"], "created": {"after": "2026"}},
                "sort_by": {"date": 1},
            },
        )
        assert web.last.target == (
            "/search/issues?q=is:open/x%26page%3D2&filter%5Bauthor%5D=ada&filter%5Blabel%5D=a&filter%5Blabel%5D=b"
            "&filter%5Bcreated%5D%5Bafter%5D=2026&sort%5Bby%5D=%7B%22date%22%3A%201%7D"
        )

        tools.execute_tool("post_markdown", {"body": "*hi*"})
        assert (web.last.headers["content-type"], web.last.body) == ("text/plain", b"*hi*")
        created = tool(tools, "issues_create").input_schema()
    comment = created["properties"]["body"]["properties"]["first_comment"]
    assert comment == {"$ref": "#/$defs/Comment", "description": "Shown below the issue."}
    assert created["properties"]["body"]["properties"]["assignee"]["oneOf"][0]["pattern"] == "^[a-z0-9-]+$"


def test_styles_and_servers_of_openapi(web: Web) -> None:
    """Matrix, label, pipes, spaces, cookies and header lists; server variables; an operation's own server."""
    with RestTools(DATA / "weather.yaml", settings=RestSettings(query={"appid": "k3y"}), base_url=web.url) as tools:
        assert set(tool(tools, "forecast").input_schema()["properties"]) == {"coordinates", "fields", "hours", "units"}
        tools.execute_tool(
            "forecast", {"coordinates": {"lat": 1.5, "lon": -2}, "fields": ["rain", "wind"], "hours": [1, 2]}
        )
        assert web.last.target == "/forecast/;lat=1.5;lon=-2?fields=rain%7Cwind&hours=1%202&appid=k3y"

        tools.execute_tool("history", {"ids": [1, 2], "format": "csv", "X-Trace": ["a", "b"], "session": "s; x"})
        assert web.last.target == "/stations/1,2/history.csv?appid=k3y"
        assert (web.last.headers["x-trace"], web.last.headers["cookie"]) == ("a,b", "session=s%3B%20x")

        tools.execute_tool("uploadReadings", {"body": {"base64": "AAE="}})
        assert (web.last.headers["content-type"], web.last.body) == ("application/octet-stream", b"\0\1")

    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, text="fine")

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        own = RestTools(DATA / "weather.yaml", client=client)
        assert own.execute_tool("history", {"ids": [1], "format": "json"}) == "fine"
        own.execute_tool("forecast", {"coordinates": {"lat": 1}, "appid": "k"})
    assert asked == [
        "https://eu.weather.example:8443/data/stations/1/history.json",
        "https://forecast.weather.example/forecast/;lat=1?appid=k",
    ]


def test_swagger_2(web: Web) -> None:
    """Collection formats, bodies, forms and files of Swagger 2; https is chosen where both are offered."""
    with RestTools(DATA / "library.json", base_url=f"{web.url}/api/v1") as tools:
        tools.execute_tool("findBooks", {"author": ["a", "b"], "subject": ["x", "y"], "year": [1, 2], "limit": 3})
        assert web.last.target == "/api/v1/books?author=a&author=b&subject=x%7Cy&year=1,2&limit=3"

        tools.execute_tool("addBook", {"body": {"isbn": "1", "title": "t"}})
        assert json.loads(web.last.body) == {"isbn": "1", "title": "t"}
        book = tool(tools, "addBook").input_schema()
        assert (book["required"], set(book["$defs"]["Book"]["properties"])) == (["body"], {"isbn", "title", "sequel"})

        tools.execute_tool("addCover", {"isbn": "1", "body": {"cover": {"text": "pic"}, "side": "front"}})
        assert fields_of(web.last)[0] == (
            {
                "content-disposition": 'form-data; name="cover"; filename="cover"',
                "content-type": "application/octet-stream",
            },
            b"pic",
        )

        tools.execute_tool("lend", {"X-Card": "c", "body": {"isbn": "1", "days": 3, "extras": ["a", "b"]}})
        assert web.last.body == b"isbn=1&days=3&extras=a,b"

    asked: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        return httpx.Response(204)

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        assert RestTools(DATA / "library.json", client=client).execute_tool("findBooks", {}) == "HTTP 204 No Content"
    assert asked == [httpx.URL("https://library.example/api/v1/books")]


def test_a_document_from_a_url_knows_its_server(web: Web) -> None:
    """A relative server is where the document was fetched from."""
    document = (DATA / "petstore.yaml").read_bytes()
    web.answer = lambda asked: Answer(body=document) if asked.target == "/docs/api.yaml" else as_json({"id": "1"})

    with RestTools(f"{web.url}/docs/api.yaml") as tools:
        assert tools.execute_tool("getPet", {"petId": "1"}) == '{"id":"1"}'
    assert web.last.target == "/v2/pets/1"


def test_include_and_exclude_select_operations() -> None:
    """By shell pattern over names and by tag; an entry that selects nothing is a mistake that is named."""
    document = DATA / "petstore.yaml"

    def names(include: Select | None = None, exclude: Select | None = None) -> list[str]:
        with RestTools(document, base_url="http://h", include=include, exclude=exclude) as tools:
            return [each.name for each in tools.list_tools()]

    assert names(Select(operations=("*Pet",))) == ["addPet", "getPet", "removePet"]
    assert names(Select(operations=("getPet",), tags=("orders",))) == ["getPet", "order"]
    assert names(exclude=Select(operations=("remove*",), tags=("orders",))) == [
        "listPets",
        "addPet",
        "getPet",
        "addPhoto",
    ]
    with pytest.raises(ConfigError, match=r"include: 'getpet' is no operation of it, only listPets, addPet"):
        names(Select(operations=("getpet",)))


@pytest.mark.parametrize("value", [".", "..", ""])
def test_no_argument_leads_to_another_path(web: Web, value: str) -> None:
    """Segments that clients and servers resolve are refused before anything is sent."""
    with RestTools(DATA / "petstore.yaml", base_url=web.url) as tools:
        with pytest.raises(ToolError, match="must not be"):
            tools.execute_tool("getPet", {"petId": value})
        tools.execute_tool("getPet", {"petId": "%2e%2e/..%2f"})

    assert [asked.target for asked in web.asked] == ["/pets/%252e%252e%2F..%252f"]


def test_no_argument_adds_a_header(web: Web) -> None:
    """A line break in a header's value is refused."""
    with (
        RestTools(DATA / "petstore.yaml", base_url=web.url) as tools,
        pytest.raises(ToolError, match="printable ASCII"),
    ):
        tools.execute_tool("removePet", {"petId": "1", "X-Reason": "a\r\nX-Admin: yes"})
    assert web.asked == []


def test_headers_and_auth_are_the_clients(web: Web) -> None:
    """Given headers win over arguments and are not offered; auth signs each request; cookies are not kept."""
    web.answer = lambda _: Answer(headers={"Set-Cookie": "a=b", "Content-Type": "application/json"})
    settings = RestSettings(headers={"x-reason": "audit"}, auth=httpx.BasicAuth("me", "pw"))

    with RestTools(DATA / "petstore.yaml", base_url=web.url, settings=settings) as tools:
        assert "X-Reason" not in tool(tools, "removePet").input_schema()["properties"]
        for _ in range(2):
            tools.execute_tool("removePet", {"petId": "1"})

    assert web.last.headers["x-reason"] == "audit"
    assert web.last.headers["authorization"] == "Basic bWU6cHc="
    assert "cookie" not in web.last.headers


def test_what_auth_raises_reaches_the_caller(web: Web) -> None:
    """A challenge raised by the client's own auth is not made a failure of the request."""

    class ChallengeError(Exception):
        pass

    class Auth(httpx.Auth):
        def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
            yield request
            raise ChallengeError

    with RestTools(DATA / "petstore.yaml", base_url=web.url, settings=RestSettings(auth=Auth())) as tools:
        with pytest.raises(ChallengeError):
            tools.execute_tool("getPet", {"petId": "1"})
        with pytest.raises(ChallengeError):
            asyncio.run(tools.execute_tool_async("getPet", {"petId": "1"}))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            Answer(404, b'{"problem": "no such pet"}'),
            'GET http://HOST/pets/1: HTTP 404 Not Found\n{"problem":"no such pet"}',
        ),
        (Answer(500, b""), "GET http://HOST/pets/1: HTTP 500 Internal Server Error"),
        (
            Answer(302, b"", {"Location": "http://elsewhere.example/"}),
            "GET http://HOST/pets/1: HTTP 302 Found to http://elsewhere.example/, which was not followed",
        ),
    ],
)
def test_a_failing_status_is_an_error_with_the_body(web: Web, answer: Answer, words: str) -> None:
    """The model reads method, address, status and what the server said, and not the query."""
    web.answer = lambda _: answer

    with (
        RestTools(DATA / "petstore.yaml", base_url=web.url, settings=RestSettings(query={"key": "s3"})) as tools,
        pytest.raises(ToolError) as failed,
    ):
        tools.execute_tool("getPet", {"petId": "1"})

    assert str(failed.value) == words.replace("HOST", web.url.removeprefix("http://"))


def test_kinds_of_answers(web: Web) -> None:
    """JSON loses white space, text stays, another kind is named, what is not JSON is shown as it is."""
    with RestTools(DATA / "petstore.yaml", base_url=web.url, settings=RestSettings(response_bytes=50)) as tools:
        for body, kind, words in (
            (b'{"a": "\xc3\xb6", "n": 1.0}', "application/vnd.x+json", '{"a":"ö","n":1.0}'),
            (b"{oops", "application/json", "{oops"),
            ("Ö".encode("latin-1"), "text/plain; charset=latin-1", "Ö"),
            (b"Ok", "text/plain; charset=no-such-one", "Ok"),
            (b"\x89PNG", "image/png", "[image/png, 4 bytes, not shown]"),
            (b"x" * 51, "text/plain", "x" * 50 + "\n[cut here: the answer has more than 50 bytes]"),
            (b"", "text/plain", "HTTP 200 OK"),
        ):
            web.answer = always(Answer(body=body, headers={"Content-Type": kind}))
            assert tools.execute_tool("getPet", {"petId": "1"}) == words


def test_an_answer_without_end_is_cut(web: Web) -> None:
    """Neither an endless body nor one that unpacks to gigabytes is read beyond the bound."""
    endless = Answer(headers={"Content-Type": "text/plain"}, pieces=lambda: itertools.repeat(b"x" * 65_536))
    packed = gzip.compress(b"\0" * 30_000_000)
    bomb = Answer(body=packed, headers={"Content-Type": "text/plain", "Content-Encoding": "gzip"})

    with RestTools(DATA / "petstore.yaml", base_url=web.url) as tools:
        for answer in (endless, bomb):
            web.answer = always(answer)
            said = tools.execute_tool("getPet", {"petId": "1"})
            assert said.endswith("[cut here: the answer has more than 262,144 bytes]")
            assert len(asyncio.run(tools.execute_tool_async("getPet", {"petId": "1"}))) == len(said)


def test_a_silent_or_absent_server_is_told(web: Web) -> None:
    """A call ends at its time limit, a drip included; a refused connection says so; a write may have been done."""
    go_on = threading.Event()

    def drip() -> Iterator[bytes]:
        while not go_on.wait(0.05):
            yield b"x"

    silent = Answer(pieces=lambda: iter([b""] if go_on.wait(30) else []))
    settings = RestSettings(timeout_s=0.3)
    with RestTools(DATA / "petstore.yaml", base_url=web.url, settings=settings) as tools:
        web.answer = lambda _: silent
        with pytest.raises(ToolError, match=r"no answer in time$"):
            tools.execute_tool("getPet", {"petId": "1"})
        with pytest.raises(ToolError, match="no answer in time; it may have been done all the same"):
            asyncio.run(tools.execute_tool_async("addPet", {"body": {}}))
        web.answer = lambda _: Answer(pieces=drip)
        with pytest.raises(ToolError, match="no answer in time"):
            tools.execute_tool("getPet", {"petId": "1"})
        with pytest.raises(ToolError, match="no answer in time"):
            asyncio.run(tools.execute_tool_async("getPet", {"petId": "1"}))
        go_on.set()
    with (
        RestTools(DATA / "petstore.yaml", base_url="http://127.0.0.1:1") as nobody,
        pytest.raises(ToolError, match=r"GET http://127\.0\.0\.1:1/pets/1: the server could not be reached"),
    ):
        nobody.execute_tool("getPet", {"petId": "1"})


def test_shape_returns_what_a_program_wants(web: Web) -> None:
    """A shape of one's own sees every answer, failing ones too."""
    web.answer = lambda _: Answer(418, b'{"tea": 1}')

    def shape(response: ApiResponse) -> tuple[str, int, object]:
        return response.operation, response.status, response.json()

    with RestTools(DATA / "petstore.yaml", base_url=web.url, settings=RestSettings(shape=shape)) as tools:
        assert tools.execute_tool("getPet", {"petId": "1"}) == ("getPet", 418, {"tea": 1})


def test_many_threads_share_one_object(web: Web) -> None:
    """Calls from many threads do not get each other's answers."""
    web.answer = lambda asked: as_json(asked.target)

    with RestTools(DATA / "petstore.yaml", base_url=web.url) as tools, ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda number: tools.execute_tool("getPet", {"petId": str(number)}), range(64)))

    assert answers == [f'"/pets/{number}"' for number in range(64)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "getPet: the argument 'petId' is missing (it takes petId)"),
        ({"petId": "1", "pet": 2}, "getPet: there is no argument 'pet' (it takes petId)"),
        ({"petId": None}, "getPet: the path needs 'petId'"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], words: str) -> None:
    """Nothing is sent and the argument is named; an unknown tool is a ValueError."""
    with RestTools(DATA / "petstore.yaml", base_url="http://127.0.0.1:1") as tools:
        with pytest.raises(ToolError) as failed:
            tools.execute_tool("getPet", arguments)
        with pytest.raises(ValueError, match="no tool 'getDog'"):
            tools.execute_tool("getDog", {})
    assert str(failed.value) == words


def api(**paths: object) -> dict[str, object]:
    """A description with one GET operation at /a with these keys."""
    return {"openapi": "3.0.0", "servers": [{"url": "http://h"}], "paths": {"/a": {"get": paths}}}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"paths": {}}, "the document: it says neither openapi: 3.x nor swagger: 2.0"),
        ({"openapi": "3.0.0"}, "the document, paths: there are no paths"),
        ({**api(), "servers": []}, "the document, GET /a: its server is not given (give base_url)"),
        (api(parameters=[{"$ref": "#/nowhere"}]), "GET /a, parameter 0: '#/nowhere' is not in the document"),
        (api(parameters=[{"$ref": "b.yaml#/x"}]), "is in another document (bundle it into one document first)"),
        (api(parameters=[{"name": "q"}]), "GET /a, parameter 0: it needs a name and an in"),
        (api(parameters=[{"name": "q", "in": "body"}]), "parameter 'q': in: 'body' is no place of a parameter"),
        (api(parameters=[{"name": "q", "in": "query", "style": "odd"}]), "parameter 'q': style: 'odd' is unknown"),
        (api(parameters=[3]), "GET /a, parameter 0: expected an object, got int"),
        ({**api(parameters=[{"$ref": "#/x"}]), "x": {"$ref": "#/x"}}, "#/x refers to itself"),
        (
            api(parameters=[{"name": "q", "in": "query", "schema": {"$ref": "#/gone"}}]),
            "GET /a: '#/gone' is not in the document",
        ),
    ],
)
def test_a_wrong_document_is_a_configuration_error(document: dict[str, object], words: str) -> None:
    """The error names the place in the document and what is wrong there."""
    with pytest.raises(ConfigError) as failed:
        RestTools(document)

    assert words in str(failed.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", b'{"openapi": "3.0.0",\n}', "a.json, line 2: it is not JSON"),
        ("a.yaml", b"openapi: 3.0.0\n  paths: [", "a.yaml, line 2: it is not YAML"),
        ("a.yaml", b"\xff", "it is not UTF-8 (byte 0xff at 0)"),
        ("a.yaml", b"- a", "it is list, not an object"),
        ("a.yaml", b"a: &a {b: *a}", "an alias contains itself"),
        ("a.yaml", b"a: " + b"[" * 400 + b"]" * 400, "nested"),
        ("a.json", b'{"a": ' + b"[" * 400 + b"]" * 400 + b"}", "it is nested more than 150 levels"),
        (
            "a.yaml",
            b"a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
            + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 20)),
            "its aliases multiply",
        ),
    ],
)
def test_a_document_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: bytes, words: str) -> None:
    """The error names the file, where there is one the line, and endless aliases end in an error."""
    (tmp_path / name).write_bytes(text)

    with pytest.raises(ConfigError) as failed:
        RestTools(tmp_path / name)

    assert words in str(failed.value)


def test_a_missing_document_is_named(tmp_path: Path, web: Web) -> None:
    """A file that is not there and a URL that answers 404 are configuration errors."""
    web.answer = lambda _: Answer(404)

    nothing: Any = 5
    with pytest.raises(ConfigError, match=r"the document: is of type int \(give a mapping, a path, or a URL"):
        load_document(nothing)
    with pytest.raises(ConfigError, match="No such file or directory"):
        RestTools(tmp_path / "gone.yaml")
    with pytest.raises(ConfigError, match="it could not be fetched: Client error '404 Not Found'"):
        RestTools(f"{web.url}/gone.yaml")


def test_yaml_words_stay_words(tmp_path: Path) -> None:
    """`no`, `on`, dates, octal numbers and response codes mean what OpenAPI means by them."""
    (tmp_path / "a.yaml").write_text("no: no\non: 2026-01-01\n200: 010\ntrue: [1, -2.5, 1e3, null, ~, true]\nv: 1_0\n")

    assert load_document(tmp_path / "a.yaml") == {
        "no": "no",
        "on": "2026-01-01",
        "200": "010",
        "true": [1, -2.5, 1000.0, None, None, True],
        "v": "1_0",
    }


def test_schemas_that_multiply_stay_small() -> None:
    """A schema that would be written out a million times is written once and referred to."""
    schemas: dict[str, object] = {"S0": {"type": "string"}}
    for number in range(1, 21):
        inner = {"$ref": f"#/components/schemas/S{number - 1}"}
        schemas[f"S{number}"] = {"type": "object", "properties": {"a": inner, "b": inner}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S20"}}}}

    with RestTools({**api(requestBody=body), "components": {"schemas": schemas}}) as tools:
        schema = tools.list_tools()[0].input_schema()

    assert len(json.dumps(schema)) < 500_000
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"body": {"a": {"b": {}}}})
    assert not validator.is_valid({"body": {"a": {"b": "text"}}})


@pytest.mark.parametrize(("package", "extra"), [("httpx", "rest"), ("mcp", "mcp")])
def test_a_missing_package_names_its_extra(package: str, extra: str) -> None:
    """Without the third party the import says which extra brings it; the other drivers do not need it."""
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "import interpose.drivers, interpose.drivers.filesystem, interpose.drivers.shell\n"
        f"import interpose.drivers.{extra}"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert f"interpose.drivers.{extra} needs {package}: pip install 'interpose[{extra}]'" in done.stderr


def test_the_room_itself_loads_no_third_party() -> None:
    """Importing the drivers that need nothing loads neither httpx nor the MCP SDK."""
    program = (
        "import sys, interpose.drivers, interpose.drivers.filesystem, interpose.drivers.shell\n"
        "print([name for name in ('httpx', 'mcp', 'yaml') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_operations_with_the_same_id_are_numbered() -> None:
    """Two operations of one id are two tools, as are names too long for a model's API."""
    operation = {"operationId": "x" * 70, "responses": {}}
    document = {**api(), "paths": {"/a": {"get": operation, "post": operation}, "/b": {"get": {"operationId": "ä b"}}}}

    with RestTools(document) as tools:
        assert [each.name for each in tools.list_tools()] == ["x" * 64, "x" * 62 + "_2", "b"]
