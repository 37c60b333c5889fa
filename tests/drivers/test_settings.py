"""Settings of the shipped drivers, checked when they are given: each that cannot be is named and told."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from interpose.contracts.errors import ConfigError, MisuseError
from interpose.drivers.extraction import TextExtraction
from interpose.drivers.filesystem import FilesystemDriver, FilesystemLimits, FilesystemTools
from interpose.drivers.mcp import HttpServer, McpDriver, McpLimits, McpTools, StdioServer
from interpose.drivers.orchestrator import Orchestrator
from interpose.drivers.rest import RestDriver, RestSettings, RestTools, Select
from interpose.drivers.shell import ShellDriver, ShellLimits, ShellTools
from tests.drivers.making import Leaf

API: dict[str, Any] = {"openapi": "3.1.0", "paths": {"/a": {"get": {"operationId": "a", "summary": "A"}}}}
SERVER = StdioServer("true")

NO_SECONDS: list[Any] = [-1, -0.1, math.nan, math.inf, 1e300, "5", None, True, [1]]
NO_COUNTS: list[Any] = [0, -1, 1.5, "5", None, True]
NO_TEXTS: list[Any] = ["text", b"text", None, 5, ["a", 5], ["a\0b"], {"a": "b"}]
NO_TABLES: list[Any] = ["text", [("a", "b")], 5, {"a": 1}, {1: "a"}, {"": "a"}, {"a": None}]


def fields(kind: Callable[..., Any], names: str, values: list[Any]) -> list[Any]:
    """Each of those fields with each of these values."""
    name = getattr(kind, "__name__", "")
    return [
        pytest.param(kind, {field: value}, rf"^{name}\.{field}", id=f"{name}.{field}={value!r:.20}")
        for field in names.split()
        for value in values
    ]


LIMITS = [
    *fields(FilesystemLimits, "read_bytes scan_bytes write_bytes results entries depth line_chars", NO_COUNTS),
    *fields(FilesystemLimits, "search_s", NO_SECONDS),
    *fields(ShellLimits, "timeout_s timeout_most_s", [0, *NO_SECONDS]),
    *fields(ShellLimits, "output_bytes", NO_COUNTS),
    *fields(ShellLimits, "timeout_s", [601]),
    *fields(RestSettings, "timeout_s", [0, *NO_SECONDS]),
    *fields(RestSettings, "response_bytes", NO_COUNTS),
    *fields(RestSettings, "headers", [*NO_TABLES, {"a b": "c"}, {"a": "b\r\nc"}, {"a": "é"}]),
    *fields(RestSettings, "query", NO_TABLES),
    *fields(RestSettings, "auth", ["user", ("user", "word")]),
    *fields(RestSettings, "shape", [None, "text"]),
    *fields(Select, "operations tags", NO_TEXTS),
    *fields(McpLimits, "timeout_s connect_timeout_s", [0, *NO_SECONDS]),
    *fields(McpLimits, "relist_s", NO_SECONDS),
    *fields(McpLimits, "result_chars", NO_COUNTS),
]


@pytest.mark.parametrize(("kind", "given", "named"), LIMITS)
def test_a_field_that_cannot_be_is_named(kind: Callable[..., Any], given: dict[str, Any], named: str) -> None:
    """With what it is and what was expected, when the value is made."""
    with pytest.raises(ConfigError, match=rf"{named}.*\(expected "):
        kind(**given)


@pytest.mark.parametrize("tools", [FilesystemTools, FilesystemDriver, ShellTools, ShellDriver])
@pytest.mark.parametrize("root", ["", None, 5, b".", "a\0b", ["."]])
def test_a_root_that_is_no_path_is_refused(tools: Callable[..., Any], root: Any) -> None:
    """An empty one does not mean where the program happens to stand; that is `.`."""
    with pytest.raises(ConfigError, match=r"^root: is .* \(expected the path of a folder, such as '\.'"):
        tools(root)
    assert tools(Path()).root if hasattr(tools, "root") else tools(".")


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: FilesystemTools(".", read_only="no"), r"FilesystemTools\(read_only"),  # type: ignore[arg-type]
        (lambda: FilesystemTools(".", limits={"results": 1}), r"FilesystemTools\(limits"),  # type: ignore[arg-type]
        (lambda: FilesystemDriver(".", limits=5), r"FilesystemTools\(limits"),  # type: ignore[arg-type]
        (lambda: ShellTools(".", limits=FilesystemLimits()), r"ShellTools\(limits"),  # type: ignore[arg-type]
        (lambda: ShellTools(".", pass_env="HOME"), r"ShellTools\(pass_env"),  # noqa: S106 - a name
        (lambda: ShellTools(".", pass_env=[1]), r"ShellTools\(pass_env"),  # type: ignore[list-item]
        (lambda: ShellTools(".", env={"A": 1}), r"ShellTools\(env=…\)\['A'\]"),  # type: ignore[dict-item]
        (lambda: ShellTools(".", env={"A=B": "1"}), r"ShellTools\(env=…\)\['A=B'\]"),
        (lambda: ShellTools(".", env={"A": "\0"}), r"ShellTools\(env=…\)\['A'\]"),
        (lambda: ShellTools(".", env=[("A", "1")]), r"ShellTools\(env"),  # type: ignore[arg-type]
        (lambda: ShellDriver(".", command_strings=None), r"ShellTools\(command_strings"),  # type: ignore[arg-type]
        (lambda: RestTools(API, settings={"timeout_s": 1}), r"RestTools\(settings"),  # type: ignore[arg-type]
        (lambda: RestTools(API, include="a*"), r"RestTools\(include"),  # type: ignore[arg-type]
        (lambda: RestTools(API, exclude=("a*",)), r"RestTools\(exclude"),  # type: ignore[arg-type]
        (lambda: RestTools(API, client=httpx), r"RestTools\(client"),  # type: ignore[arg-type]
        (lambda: RestTools(API, async_client=httpx.Client()), r"RestTools\(async_client"),  # type: ignore[arg-type]
        (lambda: RestDriver(API, base_url=5), "base_url"),  # type: ignore[arg-type]
        (lambda: McpTools(5, SERVER), "the MCP server 5"),  # type: ignore[arg-type]
        (lambda: McpTools("a", "server"), r"McpTools\('a', server\)"),  # type: ignore[arg-type]
        (lambda: McpTools("a", SERVER, results="xml"), r"McpTools\(results"),  # type: ignore[arg-type]
        (lambda: McpDriver("a", SERVER, limits=5), r"McpTools\(limits"),  # type: ignore[arg-type]
        (lambda: StdioServer(""), r"StdioServer\.command"),
        (lambda: StdioServer(["python"]), r"StdioServer\.command"),  # type: ignore[arg-type]
        (lambda: StdioServer("python", "-m"), r"StdioServer\.args"),  # type: ignore[arg-type]
        (lambda: StdioServer("python", (1,)), r"StdioServer\.args"),  # type: ignore[arg-type]
        (lambda: StdioServer("python", env={"A": 1}), r"StdioServer\.env\['A'\]"),  # type: ignore[dict-item]
        (lambda: StdioServer("python", cwd=""), r"StdioServer\.cwd"),
        (lambda: HttpServer("http://a", headers={"a": 1}), r"HttpServer\.headers\['a'\]"),  # type: ignore[dict-item]
        (lambda: HttpServer("http://a", headers={"a": "b\n"}), r"HttpServer\.headers\['a'\]"),
        (lambda: Leaf(prompts="text"), r"Leaf\(prompts"),
        (lambda: Leaf(redact="text"), r"Leaf\(redact"),
        (lambda: Leaf(late_rewrite=1), r"Leaf\(late_rewrite"),
        (lambda: Leaf(extraction=[TextExtraction]), r"Leaf\(extraction"),
        (lambda: Leaf(extraction=()), r"Leaf\(extraction"),
        (lambda: Leaf(extraction=5), r"Leaf\(extraction"),
        (lambda: Orchestrator(prompts=5), r"Orchestrator\(prompts"),  # type: ignore[arg-type]
    ],
)
def test_a_setting_of_a_driver_that_cannot_be_is_named(make: Callable[[], Any], named: str) -> None:
    """When the driver is made, not when its first tool is called."""
    with pytest.raises(ConfigError, match=rf"^{named}"):
        make()


def test_what_may_be_a_secret_is_told_by_its_type() -> None:
    """Values of headers, queries and variables."""
    secret = b"sk-secret"
    for make in (
        lambda: RestSettings(headers={"authorization": secret}),  # type: ignore[dict-item]
        lambda: RestSettings(query={"key": secret}),  # type: ignore[dict-item]
        lambda: ShellTools(".", env={"KEY": secret}),  # type: ignore[dict-item]
        lambda: HttpServer("http://a", headers={"key": "sk-secret\n"}),
        lambda: RestSettings(headers=[("key", "sk-secret")]),  # type: ignore[arg-type]
        lambda: RestSettings(auth=("user", "sk-secret")),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError) as caught:
            make()
        assert "secret" not in str(caught.value)


def test_settings_are_kept_as_they_were_when_given() -> None:
    """What the caller does later to what it gave changes nothing; lists of texts are taken as tuples."""
    headers = {"a": "b"}
    settings = RestSettings(headers=headers)
    headers["a"] = "c"
    assert settings.headers == {"a": "b"}
    operations: Any = ["get*"]
    assert Select(operations=operations).operations == ("get*",)


def test_an_address_of_a_server_that_is_none_is_misuse() -> None:
    """As before its headers are looked at."""
    with pytest.raises(MisuseError, match="expected a URL that begins with http"):
        HttpServer("example.org")
