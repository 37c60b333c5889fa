"""The way out: asking an upstream, over connections of our own or, through proxies, over those of a library.

Knows: which of the two, certificates, what may be asked again. Does not know: APIs, policy.
"""

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from interpose.contracts.errors import ConfigError, MisuseError
from interpose.gateway.client import Fault, Request
from interpose.gateway.encodings import UndecodableError, Unpacking, encodings_of
from interpose.gateway.pool import Origin, Pool
from interpose.gateway.question import HeaderList, Question, joined_url, passed_on, proxy_for

if TYPE_CHECKING:
    from interpose.gateway.proxied import Proxied

__all__ = [
    "Question",
    "Upstream",
    "UpstreamDown",
    "UpstreamReply",
    "joined_url",
    "passed_on",
    "tls_context",
]

_URL = re.compile(
    r"(https?)://([A-Za-z0-9.\-_]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?((?:/[!\"$->@-~]*)?(?:\?[!\"$-~]*)?)(?:#.*)?"
)
"""The addresses that our own connections reach: no login, no name that must be encoded first."""

_PORTS = {"http": 80, "https": 443}
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_RETRY_DELAY_S = 0.1


@dataclass(frozen=True, slots=True)
class UpstreamDown:
    """The upstream could not be reached, or its answer broke off; `reason` is one line for people."""

    reason: str
    was_reached: bool = True
    is_timeout: bool = False


class Answer(Protocol):
    """An answer whose head is there, whichever way it came."""

    status: int
    phrase: bytes
    headers: HeaderList

    async def read(self) -> bytes:
        """What has come of the body; b"" at its end. Raises Fault when it breaks off."""

    def leave(self) -> None:
        """Ends its use: what was not read to its end is cut off."""


class UpstreamReply:
    """An upstream's answer whose head has arrived."""

    def __init__(self, answer: Answer, *, is_judged: bool) -> None:
        self._answer = answer
        self.status = answer.status
        self.phrase = answer.phrase
        lines = [value.decode("latin-1") for name, value in answer.headers if name == b"content-encoding"]
        names = encodings_of(lines) if lines else []
        self.encoding = ", ".join(names) or "identity"
        self._unpacking = _unpacking(names) if is_judged and names else None
        self.is_readable = self._unpacking is not None or not names
        """Whether `chunks` are what the upstream meant, and not a compressed form of it."""
        drop = (b"content-encoding", b"content-length") if self._unpacking else ()
        self.headers: HeaderList = passed_on(answer.headers, drop=drop)

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; "" when the upstream names none."""
        for name, value in self._answer.headers:
            if name == b"content-type":
                return value.partition(b";")[0].decode("latin-1").strip().lower()
        return ""

    async def chunks(self) -> AsyncIterator[bytes | UpstreamDown]:
        """The body as it arrives; UpstreamDown is the last item when the upstream died. Read it once."""
        read = self._answer.read
        try:
            while chunk := await read():
                if self._unpacking is None:
                    yield chunk
                    continue
                for piece in self._unpacking.feed(chunk):
                    yield piece
            if self._unpacking is not None:
                self._unpacking.finish()
        except UndecodableError as error:
            yield UpstreamDown(str(error))
        except Fault as fault:
            yield _down(fault)


class Upstream:
    """The connections to all upstreams. Belongs to the event loop that `open` ran on."""

    def __init__(self, *, trust_env: bool) -> None:
        self._proxies = _proxies_of_environment() if trust_env else {}
        self._tls: dict[str | None, ssl.SSLContext] = {}
        self._pool: Pool | None = None
        self._proxied: Proxied | None = None

    async def open(self) -> Self:
        """Makes the connection pool; idempotent."""
        if self._pool is None:
            self._pool = Pool()
        return self

    async def close(self) -> None:
        """Closes all connections; idempotent."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        proxied, self._proxied = self._proxied, None
        if proxied is not None:
            await proxied.close()

    def ask(self, question: Question) -> AbstractAsyncContextManager[UpstreamReply | UpstreamDown]:
        """Sends `question`; gives the answer once its head is there, or why there is none.

        What cannot have arrived is sent again, as often as the target says: over a connection that was refused, or was
        closed before anything was written. So is what may be served twice and was not answered over a connection that
        was kept from an earlier request; a POST that may have been read never is. On leaving, a reply that was not read
        to its end is cut off. Raises MisuseError when `open` was not called, and what the body's own iterator raises
        before there is an answer.
        """
        return _Asking(self, question)

    async def answered(self, question: Question) -> "Answer | UpstreamDown":
        """The answer to `question`, which its asker must leave."""
        left = question.target.retries
        may_reuse = True
        while True:
            try:
                return await self._send(question, may_reuse=may_reuse)
            except Fault as fault:
                if left <= 0 or not fault.may_repeat:
                    return _down(fault)
            left -= 1
            may_reuse = False
            await asyncio.sleep(_RETRY_DELAY_S)

    async def _send(self, question: Question, *, may_reuse: bool) -> Answer:
        pool = self._pool
        if pool is None:
            raise MisuseError("the gateway's connections are not open: run it with a server that sends lifespan events")
        proxy = proxy_for(question.url, self._proxies) if self._proxies else None
        found = _URL.fullmatch(question.url) if proxy is None else None
        tls = self._context(question.target.ca_file) if question.url.startswith("https:") else None
        if found is None:
            return await self._other_way().send(question, proxy=proxy, tls=tls)
        scheme, host, port, path = found.groups("")
        origin = Origin(host.strip("[]"), int(port[1:] or _PORTS[scheme]), tls)
        authority = host if origin.port == _PORTS[scheme] else f"{host}{port}"
        request = _request(question, authority, path)
        connection = pool.free(origin) if may_reuse else None
        if connection is None:
            connection = await pool.dial(origin, question.target.connect_timeout_s)
        return await connection.ask(request)

    def _other_way(self) -> "Proxied":
        if self._proxied is None:
            from interpose.gateway.proxied import Proxied  # noqa: PLC0415 - takes long to load, and few need it

            self._proxied = Proxied()
        return self._proxied

    def _context(self, ca_file: str | None) -> ssl.SSLContext:
        """Made once for each file: it costs 20 ms, and connections are pooled by it."""
        if ca_file not in self._tls:
            self._tls[ca_file] = tls_context(ca_file)
        return self._tls[ca_file]


class _Asking(AbstractAsyncContextManager[UpstreamReply | UpstreamDown]):
    """One question from its sending to the end of its answer."""

    __slots__ = ("_answer", "_question", "_upstream")

    def __init__(self, upstream: Upstream, question: Question) -> None:
        self._upstream = upstream
        self._question = question
        self._answer: Answer | None = None

    async def __aenter__(self) -> UpstreamReply | UpstreamDown:
        answer = await self._upstream.answered(self._question)
        if isinstance(answer, UpstreamDown):
            return answer
        self._answer = answer
        return UpstreamReply(answer, is_judged=self._question.is_judged)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._answer is not None:
            self._answer.leave()


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


def _proxies_of_environment() -> dict[str, str]:
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return {}
    from urllib.request import getproxies_environment  # noqa: PLC0415 - loads much, and few environments name one

    return getproxies_environment()


def _request(question: Question, authority: str, path: str) -> Request:
    """As it is written to the wire. Raises Fault where a header would break out of its line."""
    body, headers = question.body, question.headers
    length: int | None = None
    if body is None or isinstance(body, bytes):
        length = len(body or b"")
        headers = [header for header in headers if header[0] != b"content-length"]
        if length or question.method not in _BODILESS:
            headers.append((b"content-length", b"%d" % length))
    else:
        said = next((value for name, value in headers if name == b"content-length"), None)
        length = None if said is None else int(said)
        if said is None:
            headers = [*headers, (b"transfer-encoding", b"chunked")]
    if not path.startswith("/"):
        path = f"/{path}"
    first = f"{question.method} {path} HTTP/1.1\r\nhost: {authority}\r\n".encode("ascii")
    head = b"".join([first, *[b"%b: %b\r\n" % header for header in headers], b"\r\n"])
    lines = len(headers) + 3
    if head.count(b"\n") != lines or head.count(b"\r") != lines or b"\0" in head:
        raise Fault("a header has a line break or a zero byte in it", was_reached=False)
    return Request(question.method, head, body or None, length, question.target.read_timeout_s)


def _unpacking(names: list[str]) -> Unpacking | None:
    try:
        return Unpacking(names)
    except UndecodableError:
        return None


def _down(fault: Fault) -> UpstreamDown:
    return UpstreamDown(fault.reason, was_reached=fault.was_reached, is_timeout=fault.is_timeout)
