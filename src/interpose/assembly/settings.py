"""Settings: defaults, then the user's `config.toml`, then the environment. Keys are strict.

A project has no settings of its own here: a repository must not be able to send a user's key elsewhere.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec

from interpose.assembly.folders import Folders
from interpose.contracts.errors import ConfigError

DEFAULT_PORT = 4747


class GatewaySection(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[gateway]`: where the gateway listens."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT


class UpstreamSection(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[upstreams]`: the base URL that each API's requests go on to, without the version folder."""

    anthropic: str = "https://api.anthropic.com"
    openai: str = "https://api.openai.com"
    gemini: str = "https://generativelanguage.googleapis.com"


class File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole of `config.toml`."""

    gateway: GatewaySection = msgspec.field(default_factory=GatewaySection)
    upstreams: UpstreamSection = msgspec.field(default_factory=UpstreamSection)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force; `origins` says for each dotted key where its value came from."""

    file: File
    origins: Mapping[str, str]

    def rows(self) -> list[tuple[str, Any, str]]:
        """Each key, its value, and where it came from, in the order of the file."""
        values = msgspec.to_builtins(self.file)
        return [
            (f"{section}.{key}", value, self.origins.get(f"{section}.{key}", "default"))
            for section, keys in values.items()
            for key, value in keys.items()
        ]


_ENVIRONMENT = {
    "INTERPOSE_HOST": ("gateway", "host"),
    "INTERPOSE_PORT": ("gateway", "port"),
    "INTERPOSE_UPSTREAM_ANTHROPIC": ("upstreams", "anthropic"),
    "INTERPOSE_UPSTREAM_OPENAI": ("upstreams", "openai"),
    "INTERPOSE_UPSTREAM_GEMINI": ("upstreams", "gemini"),
}


def load_settings(folders: Folders, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force. Raises ConfigError that names the file or variable, the key, and what is possible."""
    tree = _read_file(folders)
    where = str(folders.config_file)
    origins = {f"{section}.{key}": where for section, keys in tree.items() if isinstance(keys, dict) for key in keys}
    _convert(tree, where)
    for variable, (section, key) in _ENVIRONMENT.items():
        if not environ.get(variable):
            continue
        tree.setdefault(section, {})[key] = _environment_value(variable, key, environ[variable])
        origins[f"{section}.{key}"] = variable
    file = _convert(tree, "the environment")
    _check_gateway(file.gateway, origins)
    _check_upstreams(file.upstreams, origins)
    return Settings(file, origins)


def _read_file(folders: Folders) -> dict[str, Any]:
    path = folders.config_file
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"cannot be read: {error}", "mend or remove the file") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(path), f"is not TOML: {error}", "mend the line named") from error


def _convert(tree: dict[str, Any], where: str) -> File:
    try:
        return msgspec.convert(tree, File)
    except msgspec.ValidationError as error:
        possible = "; possible: gateway.host, gateway.port, upstreams.anthropic, upstreams.openai, upstreams.gemini"
        raise ConfigError(where, f"{error}{possible}", "see `interpose config show`") from error


def _environment_value(variable: str, key: str, text: str) -> str | int:
    if key != "port":
        return text
    try:
        return int(text)
    except ValueError as error:
        raise ConfigError(variable, f"{text!r} is not a port number", "give a number from 0 to 65535") from error


def _check_gateway(gateway: GatewaySection, origins: Mapping[str, str]) -> None:
    if not 0 <= gateway.port <= 65535:
        raise ConfigError(
            f"{origins.get('gateway.port', 'default')}: gateway.port", f"{gateway.port} is not a port", "0 to 65535"
        )
    if gateway.host not in ("127.0.0.1", "::1", "localhost"):
        raise ConfigError(
            f"{origins.get('gateway.host', 'default')}: gateway.host",
            f"{gateway.host!r} is not a loopback address; the gateway listens on this machine only",
            "use 127.0.0.1",
        )


def _check_upstreams(upstreams: UpstreamSection, origins: Mapping[str, str]) -> None:
    for key, url in msgspec.to_builtins(upstreams).items():
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ConfigError(
                f"{origins.get(f'upstreams.{key}', 'default')}: upstreams.{key}",
                f"{url!r} is not a base URL",
                "such as https://api.anthropic.com",
            )
