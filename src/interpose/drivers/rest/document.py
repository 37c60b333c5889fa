"""An API description, read into plain values.

Knows: where it may come from, JSON and YAML, and what no description may be (endless, enormous). Does not know: what
is in it.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from interpose.contracts.errors import ConfigError
from interpose.drivers.rest.deadline import Lifeline, within

DOCUMENT_BYTES_MOST: Final = 20_000_000
NODES_MOST: Final = 3_000_000
"""Values in a document, repeated aliases counted each time."""
DEPTH_MOST: Final = 150


def load_document(
    source: Mapping[str, Any] | str | Path, *, client: httpx.Client | None = None, timeout_s: float = 30.0
) -> dict[str, Any]:
    """The description as plain dicts with string keys: a mapping, the path of a file, or an http(s) URL.

    A URL is fetched with `client`, or with one of our own, for `timeout_s` at most. Raises ConfigError that names the
    source and, where there is one, the line.
    """
    if isinstance(source, Mapping):
        return _plain_document(source, "the document")

    given: Any = source
    if not isinstance(given, str | Path):
        raise ConfigError("the document", f"is of type {type(given).__name__}", "give a mapping, a path, or a URL")
    where = str(source)
    text = _fetched(where, client, timeout_s) if is_url(where) else _read(Path(source))
    return _plain_document(_parsed(text, where), where)


def is_url(source: object) -> bool:
    """Whether it is an http(s) URL rather than a path or a mapping."""
    return isinstance(source, str) and source.startswith(("http://", "https://"))


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(DOCUMENT_BYTES_MOST + 1)
    except OSError as error:
        raise ConfigError(str(path), error.strerror or str(error), "give the path of a document, or a URL") from error
    return _text(data, str(path))


def _fetched(url: str, client: httpx.Client | None, timeout_s: float) -> str:
    lifeline = Lifeline()
    try:
        if client is not None:
            return _text(within(timeout_s, lambda: _body(client, url, lifeline), lifeline), url)
        with httpx.Client(timeout=timeout_s, follow_redirects=True) as own:
            return _text(within(timeout_s, lambda: _body(own, url, lifeline), lifeline), url)
    except TimeoutError as error:
        raise ConfigError(url, f"it could not be fetched within {timeout_s:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ConfigError(url, f"it could not be fetched: {error}") from error


def _body(client: httpx.Client, url: str, lifeline: Lifeline) -> bytes:
    with client.stream("GET", url, extensions={"trace": lifeline.trace}) as response:
        response.raise_for_status()
        data = bytearray()
        for piece in response.iter_bytes():
            data += piece
            if len(data) > DOCUMENT_BYTES_MOST:
                break
    return bytes(data)


def _text(data: bytes, where: str) -> str:
    if len(data) > DOCUMENT_BYTES_MOST:
        raise ConfigError(where, f"it has more than {DOCUMENT_BYTES_MOST:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(where, f"it is not UTF-8 (byte 0x{data[error.start]:02x} at {error.start:,})") from error


def _parsed(text: str, where: str) -> Any:
    try:
        if text.lstrip().startswith("{"):
            return json.loads(text)
        return yaml.load(text, Loader=_YamlLoader)  # noqa: S506 - made from the safe loader
    except RecursionError as error:
        raise ConfigError(where, "it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}, line {error.lineno}", f"it is not JSON: {error.msg}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise ConfigError(f"{where}{line}", f"it is not YAML: {problem}") from error


def _plain_document(value: Any, where: str) -> dict[str, Any]:
    plain = _Plain(where).of(value, 0)
    if not isinstance(plain, dict):
        raise ConfigError(where, f"it is {type(value).__name__}, not an object", "give an OpenAPI or Swagger document")
    return plain


class _Plain:
    """Copies values with string keys; what is there twice by an alias is copied once and counted each time."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._done: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()

    def of(self, value: Any, depth: int) -> Any:
        return self._copied(value, depth)[0]

    def _copied(self, value: Any, depth: int) -> tuple[Any, int]:
        if not isinstance(value, Mapping | list | tuple):
            return value, 1
        known = self._done.get(id(value))
        if known is not None:
            return known
        if id(value) in self._open:
            raise ConfigError(self._where, "an alias contains itself", "use $ref for what is recursive")
        if depth > DEPTH_MOST:
            raise ConfigError(self._where, f"it is nested more than {DEPTH_MOST} levels")

        self._open.add(id(value))
        copy, size = self._entered(value, depth)
        self._open.discard(id(value))
        if size > NODES_MOST:
            raise ConfigError(self._where, f"its aliases multiply to more than {NODES_MOST:,} values")
        self._done[id(value)] = copy, size
        return copy, size

    def _entered(self, value: Any, depth: int) -> tuple[Any, int]:
        size = 1
        if isinstance(value, Mapping):
            copied: dict[str, Any] = {}
            for key, inner in value.items():
                copied[_key(key)], inner_size = self._copied(inner, depth + 1)
                size += inner_size
            return copied, size
        items: list[Any] = []
        for inner in value:
            item, inner_size = self._copied(inner, depth + 1)
            items.append(item)
            size += inner_size
        return items, size


def _key(key: Any) -> str:
    """As JSON would write it: `200:` is a response and `true:` a word, not a number and a truth."""
    return key if isinstance(key, str) else json.dumps(key, default=str).strip('"')


class _YamlLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C one where it was built
    """YAML as OpenAPI wants it, the JSON schema of YAML 1.2: `no` is a country, `2026-01-01` a text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - filled right below, then left alone


_YamlLoader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""])
_YamlLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), ["t", "f"])
_YamlLoader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^-?(?:0|[1-9]\d*)$"), list("-0123456789"))
_YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$"),
    list("-0123456789"),
)
_YamlLoader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"^<<$"), ["<"])
