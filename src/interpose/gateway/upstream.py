"""The way out: the one module that knows the HTTP client.

Knows: connections, hop-by-hop headers, timeouts. Does not know: APIs, policy.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self, TypeAlias

import aiohttp
from yarl import URL

from interpose.contracts.errors import MisuseError
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
_OURS = frozenset({b"host", b"x-interpose-session"})
_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_FAULTS = (aiohttp.ClientError, TimeoutError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class UpstreamDown:
    """The upstream could not be reached, or its answer broke off; `reason` is one line for people."""

    reason: str
    was_reached: bool = True


@dataclass(frozen=True, slots=True)
class Question:
    """A request to an upstream.

    `body` is bytes when it was read, an iterator when it streams through, None for no body. `is_judged` asks for a
    reply that can be read: not compressed, or decompressed on arrival.
    """

    method: str
    url: str
    headers: HeaderList
    body: bytes | AsyncIterator[bytes] | None
    is_judged: bool


class UpstreamReply:
    """An upstream's answer whose head has arrived."""

    def __init__(self, response: aiohttp.ClientResponse, *, is_judged: bool) -> None:
        self._response = response
        self.status = response.status
        drop = {b"content-encoding", b"content-length"} if is_judged and _is_encoded(response) else set()
        self.headers: HeaderList = passed_on(((name.lower(), value) for name, value in response.raw_headers), drop=drop)

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; "" when the upstream names none."""
        return self._response.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    async def chunks(self) -> AsyncIterator[bytes | UpstreamDown]:
        """The body as it arrives; UpstreamDown is the last item when the upstream died. Read it once."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except _FAULTS as error:
            yield UpstreamDown(fault_line(error))


class Upstream:
    """The connections to all upstreams. Belongs to the event loop that `open` ran on."""

    def __init__(self, *, connect_timeout_s: float, trust_env: bool) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._trust_env = trust_env
        self._plain: aiohttp.ClientSession | None = None
        self._judged: aiohttp.ClientSession | None = None

    async def open(self) -> Self:
        """Makes the connection pool; idempotent."""
        if self._plain is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
            self._plain = self._session(connector, auto_decompress=False)
            self._judged = self._session(connector, auto_decompress=True)
        return self

    async def close(self) -> None:
        """Closes all connections; idempotent."""
        sessions = (self._judged, self._plain)
        self._judged = self._plain = None
        for session in sessions:
            if session is not None:
                await session.close()

    @asynccontextmanager
    async def ask(self, question: Question) -> AsyncIterator[UpstreamReply | UpstreamDown]:
        """Sends `question`; gives the answer once its head is there, or why there is none.

        On leaving, a reply that was not read to its end is cut off. Raises MisuseError when `open` was not called.
        """
        session = self._judged if question.is_judged else self._plain
        if session is None:
            raise MisuseError("the gateway's connections are not open: run it with a server that sends lifespan events")
        try:
            response = await session.request(
                question.method,
                URL(question.url, encoded=True),
                headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in question.headers],
                data=question.body,
                allow_redirects=False,
                skip_auto_headers=_AUTOMATIC,
            )
        except _FAULTS as error:
            yield UpstreamDown(fault_line(error), was_reached=isinstance(error, aiohttp.ClientResponseError))
            return

        try:
            yield UpstreamReply(response, is_judged=question.is_judged)
        finally:
            response.close() if not response.content.at_eof() else response.release()

    def _session(self, connector: aiohttp.TCPConnector, *, auto_decompress: bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            connector_owner=not auto_decompress,
            auto_decompress=auto_decompress,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout_s),
            trust_env=self._trust_env,
            read_bufsize=2**18,
            max_line_size=65536,
            max_field_size=65536,
        )


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


def _is_encoded(response: aiohttp.ClientResponse) -> bool:
    return response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity")
