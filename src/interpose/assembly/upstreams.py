"""The tables under `[upstreams]`: upstreams with a name, models, a key and certificates of their own."""

import math
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from interpose.assembly.source import Source
from interpose.contracts.errors import ConfigError
from interpose.gateway.settings import Provider, Target, Upstreams
from interpose.gateway.upstream import tls_context

OWN_NAMES: tuple[Provider, ...] = ("anthropic", "openai", "gemini")
"""The names of the upstreams that are there without a table."""


_SECONDS = "give a number of seconds above 0"


class UpstreamTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`[upstreams.NAME]`: one upstream, chosen by the beginning of the model's name.

    A table with a provider's name changes how that provider's own upstream is reached, and takes neither `api` nor
    `models`.
    """

    base_url: str | None = None
    api: str | None = None
    models: list[str] = []
    key_env: str | None = None
    ca_file: str | None = None
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 600.0
    retries: int = 1


def read_table(name: str, table: Mapping[str, Any], source: Source) -> UpstreamTable:
    """One table. Raises ConfigError that names the file, the line where it is known, the table and the key."""
    own = f"upstreams.{name}"
    read = source.read(table, UpstreamTable, own)
    if read.base_url is not None:
        check_base_url(source.place(f"{own}.base_url"), read.base_url)
    _check_choice(name, read, source)
    for key, seconds in (("connect_timeout_s", read.connect_timeout_s), ("read_timeout_s", read.read_timeout_s)):
        if not 0 < seconds < math.inf:
            raise ConfigError(source.place(f"{own}.{key}"), f"{seconds:g} is no time to wait", _SECONDS)
    if not 0 <= read.retries <= 10:
        raise ConfigError(source.place(f"{own}.retries"), f"{read.retries} is not possible", "0 to 10")
    return read


def check_base_url(place: str, url: str) -> None:
    """Raises ConfigError when `url` is not one that paths can be put behind."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ConfigError(place, f"{url!r} is not a base URL", "such as https://api.anthropic.com")


def targets(
    tables: Mapping[str, UpstreamTable], own: Upstreams, source: Source, environ: Mapping[str, str] = os.environ
) -> tuple[Target, ...]:
    """The upstreams of the tables, with their keys.

    Raises ConfigError for a key or a file that is not there; it names where in `source` the setting stands.
    """
    made = []
    for name, table in tables.items():
        api: Provider = next((known for known in OWN_NAMES if known == (table.api or name)), "openai")
        _check_certificates(name, table, source)
        made.append(
            Target(
                name=name,
                api=api,
                base_url=table.base_url or own.own(api).base_url,
                models=tuple(table.models),
                key=_key(name, table, source, environ),
                ca_file=table.ca_file,
                connect_timeout_s=table.connect_timeout_s,
                read_timeout_s=table.read_timeout_s,
                retries=table.retries,
            )
        )
    return tuple(made)


def _check_choice(name: str, table: UpstreamTable, source: Source) -> None:
    own = f"upstreams.{name}"
    if name in OWN_NAMES:
        key = "api" if table.api is not None else "models" if table.models else ""
        if key:
            problem = f"{name} is the provider's own upstream, which takes neither api nor models"
            raise ConfigError(source.place(f"{own}.{key}"), problem, "use another name, or remove it")
        return
    if table.base_url is None:
        raise ConfigError(source.place(f"{own}.base_url"), "is missing", "such as http://127.0.0.1:11434")
    if table.api not in OWN_NAMES:
        problem = "is missing" if table.api is None else f"{table.api!r} is not possible"
        raise ConfigError(source.place(f"{own}.api"), problem, f"use one of {', '.join(OWN_NAMES)}")
    if not table.models or not all(table.models):
        problem = "has an empty name" if table.models else "names no model"
        raise ConfigError(source.place(f"{own}.models"), problem, 'such as models = ["llama*"]')


def _check_certificates(name: str, table: UpstreamTable, source: Source) -> None:
    if table.ca_file is None:
        return
    try:
        tls_context(table.ca_file)
    except ConfigError as error:
        place = source.place(f"upstreams.{name}.ca_file")
        raise ConfigError(place, f"{table.ca_file} {error.problem}", error.way_out) from error


def _key(name: str, table: UpstreamTable, source: Source, environ: Mapping[str, str]) -> str | None:
    if table.key_env is None:
        return None
    key = environ.get(table.key_env, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(
            source.place(f"upstreams.{name}.key_env"),
            f"the variable {table.key_env} holds no key",
            "set it, or remove key_env",
        )
    return key
