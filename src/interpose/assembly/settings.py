"""Settings: defaults, then the user's `config.toml`, then the environment. Keys are strict.

A project's file is not read here (`project.py`): a repository must not be able to send a user's key elsewhere.
"""

import math
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from interpose.assembly.folders import Folders
from interpose.assembly.source import Source
from interpose.assembly.upstreams import UpstreamTable, check_base_url, read_table
from interpose.contracts.errors import ConfigError

DEFAULT_PORT = 4747
TABLES = "and tables such as [upstreams.local]"
DRAIN_MAX_S = 86_400
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class GatewaySection(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[gateway]`: where the gateway listens, for whom, and what it bears."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    workers: int = 1
    unjudged_paths: str = "pass"
    on_refusal: str = "continue"
    body_bytes: int = 32 * 1024 * 1024
    body_timeout_s: float = 120.0
    streams_max: int = 1_000
    drain_s: float = 30.0
    ask_timeout_s: float = 120.0
    traces: bool = False
    clients: dict[str, str] = {}


class UpstreamSection(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[upstreams]`: the base URL that each API's requests go on to, without the version folder."""

    anthropic: str = "https://api.anthropic.com"
    openai: str = "https://api.openai.com"
    gemini: str = "https://generativelanguage.googleapis.com"


class GuardSection(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[guards]`: which of our own rules and guards are left out, by id (`interpose hooks list` names them)."""

    off: list[str] = []


class HandlerSection(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[handlers]`: Python files of the user's own whose shape handlers judge in every workspace."""

    files: list[str] = []


class File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole of `config.toml`, but for the tables under `[upstreams]`."""

    gateway: GatewaySection = msgspec.field(default_factory=GatewaySection)
    upstreams: UpstreamSection = msgspec.field(default_factory=UpstreamSection)
    guards: GuardSection = msgspec.field(default_factory=GuardSection)
    handlers: HandlerSection = msgspec.field(default_factory=HandlerSection)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force; `origins` says for each dotted key where its value came from.

    `tables` are the upstreams with a table, by name; `source` is the file that they stand in.
    """

    file: File
    origins: Mapping[str, str]
    tables: Mapping[str, UpstreamTable] = field(default_factory=dict)
    source: Source = field(default_factory=lambda: Source("config.toml"))

    def rows(self) -> list[tuple[str, Any, str]]:
        """Each key, its value, and where it came from, in the order of the file."""
        tree = msgspec.to_builtins(self.file)
        tree["upstreams"] |= {name: msgspec.to_builtins(table) for name, table in self.tables.items()}
        return [(key, value, self.origins.get(key, "default")) for key, value in _leaves(tree)]


_ENVIRONMENT = {
    "INTERPOSE_HOST": ("gateway", "host"),
    "INTERPOSE_PORT": ("gateway", "port"),
    "INTERPOSE_ASK_TIMEOUT_S": ("gateway", "ask_timeout_s"),
    "INTERPOSE_UPSTREAM_ANTHROPIC": ("upstreams", "anthropic"),
    "INTERPOSE_UPSTREAM_OPENAI": ("upstreams", "openai"),
    "INTERPOSE_UPSTREAM_GEMINI": ("upstreams", "gemini"),
}


def load_settings(folders: Folders, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force. Raises ConfigError that names the file or variable, the key, and what is possible."""
    tree, source = _read_file(folders)
    where = source.path
    origins = {key: where for key, _ in _leaves(tree)}
    tables = _split_tables(tree, source)
    source.read(tree, File, also=TABLES)
    for variable, (section, key) in _ENVIRONMENT.items():
        if not environ.get(variable):
            continue
        tree.setdefault(section, {})[key] = _environment_value(variable, key, environ[variable])
        origins[f"{section}.{key}"] = variable
        if section == "upstreams" and key in tables:  # it says where to; the table keeps its key and its times
            tables[key] = msgspec.structs.replace(tables[key], base_url=environ[variable])
            origins[f"upstreams.{key}.base_url"] = variable
    file = Source("the environment").read(tree, File)

    def place(key: str) -> str:
        origin = origins.get(key, "default")
        return source.place(key) if origin == where else f"{origin}: {key}"

    _check_gateway(file.gateway, place)
    for key, url in msgspec.to_builtins(file.upstreams).items():
        check_base_url(place(f"upstreams.{key}"), url)
    return Settings(file, origins, tables, source)


def _read_file(folders: Folders) -> tuple[dict[str, Any], Source]:
    path = folders.config_file
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text), Source(str(path), text)
    except FileNotFoundError:
        return {}, Source(str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"cannot be read: {error}", "mend or remove the file") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(path), f"is not TOML: {error}", "mend the line named") from error


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every dotted key that holds something other than a table of settings, with what it holds."""
    for key, value in tree.items():
        dotted = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{dotted}.")
        elif isinstance(value, dict):
            yield dotted, "none"
        else:
            yield dotted, value


def _split_tables(tree: dict[str, Any], source: Source) -> dict[str, UpstreamTable]:
    """Takes the tables out of `[upstreams]`, whose names are free."""
    upstreams = tree.get("upstreams")
    if not isinstance(upstreams, dict):
        return {}
    tables = {name: value for name, value in upstreams.items() if isinstance(value, dict)}
    tree["upstreams"] = {name: value for name, value in upstreams.items() if name not in tables}
    return {name: read_table(name, table, source) for name, table in tables.items()}


def _environment_value(variable: str, key: str, text: str) -> str | int | float:
    try:
        match key:
            case "port":
                expected, way_out = "a port number", "give a number from 0 to 65535"
                return int(text)
            case "ask_timeout_s":
                expected, way_out = "a number of seconds", "give a number from 1 to 600"
                return float(text)
            case _:
                return text
    except ValueError as error:
        raise ConfigError(variable, f"{text!r} is not {expected}", way_out) from error


def _check_gateway(gateway: GatewaySection, place: Callable[[str], str]) -> None:
    def wrong(key: str, problem: str, way_out: str) -> ConfigError:
        return ConfigError(place(f"gateway.{key}"), problem, way_out)

    if not 0 <= gateway.port <= 65535:
        raise wrong("port", f"{gateway.port} is not a port", "0 to 65535")
    if not 1 <= gateway.workers <= 64:
        raise wrong("workers", f"{gateway.workers} is no number of workers", "1 to 64")
    if gateway.unjudged_paths not in ("pass", "refuse"):
        raise wrong("unjudged_paths", f"{gateway.unjudged_paths!r} is not possible", 'use "pass" or "refuse"')
    if gateway.on_refusal not in ("continue", "tell"):
        raise wrong("on_refusal", f"{gateway.on_refusal!r} is not possible", 'use "continue" or "tell"')
    for key in ("body_bytes", "body_timeout_s", "streams_max"):
        value = getattr(gateway, key)
        if not 0 < value < math.inf:
            raise wrong(key, f"{value} is not possible", "give a number above 0")
    if not 0 <= gateway.drain_s <= DRAIN_MAX_S:
        way_out = f"0 to {DRAIN_MAX_S} seconds"
        raise wrong("drain_s", f"{gateway.drain_s:g} is no time for running replies to end in", way_out)
    if not 1 <= gateway.ask_timeout_s <= 600:
        raise wrong("ask_timeout_s", f"{gateway.ask_timeout_s:g} is no time to wait for a person", "1 to 600 seconds")
    _check_clients(gateway, wrong)


def _check_clients(gateway: GatewaySection, wrong: Callable[[str, str, str], ConfigError]) -> None:
    for name, digest in gateway.clients.items():
        text = digest.removeprefix("sha256:").lower()
        if not digest.startswith("sha256:") or len(text) != 64 or set(text) - set("0123456789abcdef"):
            way_out = 'give "sha256:" and the 64 hex digits of `printf %s TOKEN | sha256sum`'
            raise wrong(f"clients.{name}", "is not the digest of a token", way_out)
    if gateway.host not in LOOPBACK and not gateway.clients:
        raise wrong(
            "host",
            f"{gateway.host!r} is not a loopback address, and no client has a token",
            'use 127.0.0.1, or name each client in [gateway.clients] as NAME = "sha256:…"',
        )
