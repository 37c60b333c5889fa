"""The way out: the one module that knows the HTTP client.

Knows: connections, hop-by-hop headers, timeouts, proxies, certificates. Does not know: APIs, policy.
"""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from types import SimpleNamespace
from typing import Any, Self, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies_environment

import aiohttp
from yarl import URL

from interpose.contracts.errors import ConfigError, MisuseError
from interpose.gateway.encodings import UndecodableError, Unpacking, encodings_of
from interpose.gateway.settings import Target
from interpose.kernel.boundary import fault_line

HeaderList: TypeAlias = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"expect",
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
_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_FAULTS = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
_PIECEWISE_BYTES = 256 * 1024
_RETRY_DELAY_S = 0.1
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class UpstreamDown:
    """The upstream could not be reached, or its answer broke off; `reason` is one line for people."""

    reason: str
    was_reached: bool = True
    is_timeout: bool = False


@dataclass(frozen=True, slots=True)
class Question:
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


class UpstreamReply:
    """An upstream's answer whose head has arrived."""

    def __init__(self, response: aiohttp.ClientResponse, *, is_judged: bool) -> None:
        self._response = response
        self.status = response.status
        names = encodings_of(response.headers.getall("Content-Encoding", []))
        self.encoding = ", ".join(names) or "identity"
        self._unpacking = _unpacking(names) if is_judged and names else None
        self.is_readable = self._unpacking is not None or not names
        """Whether `chunks` are what the upstream meant, and not a compressed form of it."""
        drop = {b"content-encoding", b"content-length"} if self._unpacking else set()
        self.headers: HeaderList = passed_on(((name.lower(), value) for name, value in response.raw_headers), drop=drop)

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; "" when the upstream names none."""
        return self._response.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    async def chunks(self) -> AsyncIterator[bytes | UpstreamDown]:
        """The body as it arrives; UpstreamDown is the last item when the upstream died. Read it once."""
        try:
            async for chunk in self._response.content.iter_any():
                if self._unpacking is None:
                    yield chunk
                    continue
                for piece in self._unpacking.feed(chunk):
                    yield piece
            if self._unpacking is not None:
                self._unpacking.finish()
        except UndecodableError as error:
            yield UpstreamDown(str(error))
        except _FAULTS as error:
            yield _down(error)


class Upstream:
    """The connections to all upstreams. Belongs to the event loop that `open` ran on."""

    def __init__(self, *, trust_env: bool) -> None:
        self._proxies = getproxies_environment() if trust_env else {}
        self._tls: dict[str | None, ssl.SSLContext] = {}
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> Self:
        """Makes the connection pool; idempotent."""
        if self._session is None:
            self._session = _session(aiohttp.TCPConnector(limit=0, keepalive_timeout=30))
        return self

    async def close(self) -> None:
        """Closes all connections; idempotent."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @asynccontextmanager
    async def ask(self, question: Question) -> AsyncIterator[UpstreamReply | UpstreamDown]:
        """Sends `question`; gives the answer once its head is there, or why there is none.

        What cannot have arrived is sent again, as often as the target says: a refused connection, and one that was
        kept from an earlier request and turns out to be closed. On leaving, a reply that was not read to its end is
        cut off. Raises MisuseError when `open` was not called.
        """
        response = await self._asked(question)
        if isinstance(response, UpstreamDown):
            yield response
            return
        try:
            yield UpstreamReply(response, is_judged=question.is_judged)
        finally:
            response.close() if not response.content.at_eof() else response.release()

    async def _asked(self, question: Question) -> aiohttp.ClientResponse | UpstreamDown:
        left = question.target.retries
        while True:
            connection = SimpleNamespace(is_reused=False)
            try:
                return await self._send(question, connection)
            except _FAULTS as error:
                if left <= 0 or not _may_repeat(error, question.body, is_reused=connection.is_reused):
                    return _down(error)
            left -= 1
            await asyncio.sleep(_RETRY_DELAY_S)

    async def _send(self, question: Question, connection: SimpleNamespace) -> aiohttp.ClientResponse:
        session = self._session
        if session is None:
            raise MisuseError("the gateway's connections are not open: run it with a server that sends lifespan events")
        target = question.target
        body: bytes | AsyncIterator[bytes] | BytesIO | None = question.body
        if isinstance(body, bytes) and len(body) > _PIECEWISE_BYTES:
            body = BytesIO(body)  # written piece by piece, so that the loop is not held up
        options: dict[str, Any] = {}
        proxy = proxy_for(question.url, self._proxies)
        if proxy is not None:
            options["proxy"], options["proxy_headers"] = proxy
        if question.url.startswith("https:"):
            options["ssl"] = self._context(target.ca_file)
        return await session.request(
            question.method,
            URL(question.url, encoded=True),
            headers=[(name.decode("latin-1"), _header_text(value)) for name, value in question.headers],
            data=body,
            allow_redirects=False,
            skip_auto_headers=_AUTOMATIC,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=target.connect_timeout_s, sock_read=target.read_timeout_s
            ),
            trace_request_ctx=connection,
            **options,
        )

    def _context(self, ca_file: str | None) -> ssl.SSLContext:
        """Made once for each file: it costs 20 ms, and connections are pooled by it."""
        if ca_file not in self._tls:
            self._tls[ca_file] = tls_context(ca_file)
        return self._tls[ca_file]


def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Trusts the system's certificates and those in `ca_file`. Raises ConfigError when that cannot be read."""
    context = ssl.create_default_context()
    if ca_file is None:
        return context
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(ca_file, f"cannot be read as certificates: {error}", "give a file in PEM form") from error
    return context


def proxy_for(url: str, proxies: Mapping[str, str]) -> tuple[str, dict[str, str]] | None:
    """The proxy for `url` and the headers that it is sent, or None. `proxies` are those of the environment.

    This machine is never reached through a proxy.
    """
    parts = urlsplit(url)
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None or parts.hostname in _LOOPBACK or _goes_direct(parts, proxies.get("no", "")):
        return None
    found = URL(proxy if "://" in proxy else f"http://{proxy}")
    if not found.user:
        return str(found), {}
    login = f"{unquote(found.raw_user or '')}:{unquote(found.raw_password or '')}"
    headers = {"Proxy-Authorization": f"Basic {b64encode(login.encode()).decode()}"}
    return str(found.with_user(None)), headers


def passed_on(headers: Iterable[tuple[bytes, bytes]], *, drop: Iterable[bytes] = ()) -> HeaderList:
    """The headers that go on: all but those of the connection, those it names, our own, and `drop`."""
    listed = list(headers)
    named = {token.strip().lower() for name, value in listed if name == b"connection" for token in value.split(b",")}
    left_out = _HOP_BY_HOP | _OURS | named | set(drop)
    return [(name, value) for name, value in listed if name not in left_out]


def joined_url(base: str, raw_path: bytes, query: bytes) -> str:
    """`base`, which may have a path, and the client's path; a version that both name stands once."""
    base = base.rstrip("/")
    path = raw_path.decode("latin-1")
    for version in ("/v1", "/v1beta"):
        if base.endswith(version) and path.startswith(f"{version}/"):
            path = path.removeprefix(version)
    return f"{base}{path}" + (f"?{query.decode('latin-1')}" if query else "")


def _goes_direct(parts: SplitResult, no_proxy: str) -> bool:
    """Whether NO_PROXY names the host: by name, by the end of its name, with or without a port, or all by `*`."""
    hosts = (parts.hostname or "", f"{parts.hostname}:{parts.port or {'http': 80, 'https': 443}.get(parts.scheme)}")
    names = [name.strip().lower().removeprefix("*").lstrip(".") for name in no_proxy.split(",")]
    if "*" in (entry.strip() for entry in no_proxy.split(",")):
        return True
    return any(host == name or host.endswith(f".{name}") for name in names if name for host in hosts)


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(_note_reuse)
    return aiohttp.ClientSession(
        connector=connector,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=2**18,
        max_line_size=65536,
        max_field_size=65536,
        trace_configs=[tracing],
    )


def _header_text(value: bytes) -> str:
    """A header's value as the client library wants it, which writes UTF-8: other bytes than that are told in it."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _unpacking(names: list[str]) -> Unpacking | None:
    try:
        return Unpacking(names)
    except UndecodableError:
        return None


async def _note_reuse(_session: aiohttp.ClientSession, context: SimpleNamespace, _details: object) -> None:
    context.trace_request_ctx.is_reused = True


def _may_repeat(error: Exception, body: object, *, is_reused: bool) -> bool:
    if isinstance(error, aiohttp.ClientConnectorError):
        return True
    is_whole = body is None or isinstance(body, bytes)
    return is_reused and is_whole and isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)


def _down(error: Exception) -> UpstreamDown:
    was_reached = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    return UpstreamDown(_words(error), was_reached=was_reached, is_timeout=isinstance(error, TimeoutError))


def _words(error: Exception) -> str:
    """What happened, for a person; the client library's own words only where it has something to add."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "the name of the host is not known"
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not trusted: {error.certificate_error}"
        case aiohttp.ClientConnectorError():
            whom = "the proxy" if isinstance(error, aiohttp.ClientProxyConnectionError) else "the host"
            return f"{whom} does not take the connection: {error.os_error.strerror or error.os_error}"
        case aiohttp.ConnectionTimeoutError():
            return "the host did not take the connection in time"
        case TimeoutError():
            return "it sent nothing for too long"
        case aiohttp.ClientPayloadError():
            return "the connection broke off before the answer was whole"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without an answer"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy refused: {error.status} {error.message}"
        case aiohttp.ClientResponseError():
            return "its answer is not HTTP"
        case OSError():
            return f"the connection broke off: {error.strerror or error}"
        case _:
            return fault_line(error)
