"""What is asked of an upstream: the request's way on, its headers, its address.

Knows: hop-by-hop headers, base URLs, proxies of the environment. Does not know: connections, APIs, policy.
"""

from base64 import b64encode
from collections.abc import AsyncIterator, Collection, Mapping
from typing import NamedTuple, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from interpose.gateway.settings import Target

HeaderList: TypeAlias = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"expect",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_OURS = frozenset({b"host", b"x-interpose-session", b"x-interpose-token"})
_LEFT_OUT = _HOP_BY_HOP | _OURS
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Question(NamedTuple):
    """A request to an upstream.

    `body` is bytes when it was read, an iterator when it streams through, None for no body. `is_judged` asks for a
    reply that can be read: not compressed, or decompressed on arrival.
    """

    method: str
    target: Target
    url: str
    headers: HeaderList
    body: bytes | AsyncIterator[bytes] | None
    is_judged: bool


def passed_on(headers: Collection[tuple[bytes, bytes]], *, drop: Collection[bytes] = ()) -> HeaderList:
    """The headers that go on: all but those of the connection, those it names, our own, and `drop`."""
    named = [value for name, value in headers if name == b"connection"]
    if named:
        drop = {*drop, *[token.strip().lower() for value in named for token in value.split(b",")]}
    return [header for header in headers if header[0] not in _LEFT_OUT and header[0] not in drop]


def joined_url(base: str, raw_path: bytes, query: bytes) -> str:
    """`base`, which may have a path, and the client's path; a version that both name stands once."""
    base = base.rstrip("/")
    path = raw_path.decode("latin-1")
    for version in ("/v1", "/v1beta"):
        if base.endswith(version) and path.startswith(f"{version}/"):
            path = path.removeprefix(version)
    return f"{base}{path}" + (f"?{query.decode('latin-1')}" if query else "")


def proxy_for(url: str, proxies: Mapping[str, str]) -> tuple[str, dict[str, str]] | None:
    """The proxy for `url` and the headers that it is sent, or None. `proxies` are those of the environment.

    This machine is never reached through a proxy.
    """
    parts = urlsplit(url)
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None or parts.hostname in _LOOPBACK or _goes_direct(parts, proxies.get("no", "")):
        return None
    found = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    login, _, place = found.netloc.rpartition("@")
    if not login:
        return found.geturl(), {}
    user, _, password = login.partition(":")
    encoded = b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    return found._replace(netloc=place).geturl(), {"Proxy-Authorization": f"Basic {encoded}"}


def proxy_fault(url: str, proxies: Mapping[str, str]) -> str | None:
    """Why `url` cannot be reached through the proxy that `proxies` name for it, in a line for people; None if it can.

    To a proxy HTTP is spoken, and nothing else.
    """
    found = proxy_for(url, proxies)
    if found is None or found[0].startswith(("http://", "https://")):
        return None
    scheme = urlsplit(url).scheme
    variable = f"{scheme if scheme in proxies else 'all'}_proxy".upper()
    proxy = urlsplit(found[0]).scheme
    kind = "a SOCKS proxy" if proxy.startswith("socks") else f"a proxy that speaks {proxy}"
    way_out = "give one at http://, or name the host in NO_PROXY"
    return f"{variable} names {kind}, and interpose speaks HTTP to proxies; {way_out}"


def _goes_direct(parts: SplitResult, no_proxy: str) -> bool:
    """Whether NO_PROXY names the host: by name, by the end of its name, with or without a port, or all by `*`."""
    hosts = (parts.hostname or "", f"{parts.hostname}:{parts.port or {'http': 80, 'https': 443}.get(parts.scheme)}")
    names = [name.strip().lower().removeprefix("*").lstrip(".") for name in no_proxy.split(",")]
    if "*" in (entry.strip() for entry in no_proxy.split(",")):
        return True
    return any(host == name or host.endswith(f".{name}") for name in names if name for host in hosts)
