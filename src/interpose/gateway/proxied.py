"""The other way out, by aiohttp's client: through proxies, and to upstreams whose addresses are odd.

Knows: the HTTP client library. Does not know: APIs, policy. Imported only where it is needed: it takes long to load.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import aiohttp
from yarl import URL

from interpose.gateway.answers import NOT_HTTP, NOT_WHOLE, HeaderList
from interpose.gateway.client import CUT_OFF, IDEMPOTENT, NO_ANSWER, Fault, silent, undialled
from interpose.gateway.question import Question
from interpose.gateway.settings import Target
from interpose.kernel.boundary import fault_line

_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_FAULTS = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
_PIECEWISE_BYTES = 256 * 1024


class ProxiedAnswer:
    """An answer whose head is there; as `client.Answer`."""

    def __init__(
        self, response: aiohttp.ClientResponse, target: Target, on_left: Callable[["ProxiedAnswer"], None]
    ) -> None:
        self._response = response
        self._target = target
        self._on_left = on_left
        self._chunks = response.content.iter_any()
        self.status = response.status
        self.phrase = (response.reason or "").encode("latin-1", "replace")
        self.headers: HeaderList = [(name.lower(), value) for name, value in response.raw_headers]

    async def read(self) -> bytes:
        """What has come of the body; b"" at its end. Raises Fault when it breaks off."""
        try:
            return await anext(self._chunks, b"")
        except _FAULTS as error:
            raise _fault(error, self._target) from error

    def leave(self) -> None:
        """Gives the connection back, or cuts off what was not read."""
        self._on_left(self)
        self._response.close() if not self._response.content.at_eof() else self._response.release()

    def cut(self) -> None:
        """Who reads the body is told that it was cut off."""
        self._response.content.set_exception(Fault(CUT_OFF, is_cut=True))


class Proxied:
    """The connections that aiohttp makes. Belongs to the event loop that it was made on."""

    def __init__(self) -> None:
        self._answers: set[ProxiedAnswer] = set()
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_reuseconn.append(_note_reuse)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=2**18,
            max_line_size=65536,
            max_field_size=65536,
            trace_configs=[tracing],
        )

    def cut(self) -> None:
        """Who reads an answer is told that it was cut off."""
        for answer in tuple(self._answers):
            answer.cut()

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()

    async def send(self, question: Question, *, proxy: tuple[str, dict[str, str]] | None, tls: Any) -> ProxiedAnswer:
        """Sends `question`, through `proxy` if there is one: its URL and the headers it is sent. Raises Fault."""
        connection = SimpleNamespace(is_reused=False)
        body: bytes | AsyncIterator[bytes] | BytesIO | None = question.body
        if isinstance(body, bytes) and len(body) > _PIECEWISE_BYTES:
            body = BytesIO(body)  # written piece by piece, so that the loop is not held up
        options: dict[str, Any] = {} if proxy is None else {"proxy": proxy[0], "proxy_headers": proxy[1]}
        if tls is not None:
            options["ssl"] = tls
        target = question.target
        try:
            response = await self._session.request(
                question.method,
                URL(question.url, encoded=True),
                headers=_texts(question.headers),
                data=body,
                allow_redirects=False,
                skip_auto_headers=_AUTOMATIC,
                # `connect` bounds the proxy's answer to CONNECT and TLS behind it as well; `sock_connect` would not.
                timeout=aiohttp.ClientTimeout(
                    total=None, connect=target.connect_timeout_s, sock_read=target.read_timeout_s
                ),
                trace_request_ctx=connection,
                **options,
            )
        except _FAULTS as error:
            is_whole = question.body is None or isinstance(question.body, bytes)
            may_repeat = connection.is_reused and is_whole and question.method in IDEMPOTENT
            if proxy is not None and isinstance(error, aiohttp.ConnectionTimeoutError):
                raise undialled(target.connect_timeout_s, "the proxy did not connect to it") from error
            raise _fault(error, target, may_repeat=may_repeat) from error
        answer = ProxiedAnswer(response, target, self._answers.discard)
        self._answers.add(answer)
        return answer


async def _note_reuse(_session: aiohttp.ClientSession, context: SimpleNamespace, _details: object) -> None:
    context.trace_request_ctx.is_reused = True


def _texts(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), _header_text(value)) for name, value in headers]


def _header_text(value: bytes) -> str:
    """A header's value as the library wants it, which writes UTF-8: other bytes than that are told in it."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _fault(error: Exception, target: Target, *, may_repeat: bool = False) -> Fault:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return undialled(target.connect_timeout_s)
    if isinstance(error, TimeoutError):
        return silent(target.read_timeout_s)
    is_refused = isinstance(error, aiohttp.ClientConnectorError)
    is_cut = may_repeat and isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
    return Fault(
        _words(error),
        was_reached=not isinstance(error, aiohttp.ClientConnectorError),
        may_repeat=is_refused or is_cut,
    )


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
        case aiohttp.ClientPayloadError():
            return NOT_WHOLE
        case aiohttp.ServerDisconnectedError():
            return NO_ANSWER
        case aiohttp.ClientHttpProxyError():
            return f"the proxy refused: {error.status} {error.message}"
        case aiohttp.ClientResponseError():
            return NOT_HTTP
        case OSError():
            return f"the connection broke off: {error.strerror or error}"
        case _:
            return fault_line(error)
