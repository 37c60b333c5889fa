"""The way out: asking an upstream, over connections of our own or, through proxies, over those of a library.

Knows: which of the two, certificates, what may be asked again. Does not know: APIs, policy.
"""

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from interpose.contracts.errors import ConfigError, MisuseError
from interpose.gateway.client import CUT_OFF, Fault, Request
from interpose.gateway.encodings import UndecodableError, Unpacking, encodings_of
from interpose.gateway.pool import Origin, Pool
from interpose.gateway.question import HeaderList, Question, joined_url, passed_on, proxy_fault, proxy_for
from interpose.gateway.recent import Recent
from interpose.gateway.settings import PROVIDERS, Upstreams

if TYPE_CHECKING:
    from interpose.gateway.proxied import Proxied

__all__ = [
    "Asked",
    "Question",
    "Upstream",
    "UpstreamDown",
    "UpstreamReply",
    "joined_url",
    "passed_on",
    "proxy_faults",
    "tls_context",
]

_URL = re.compile(
    r"(https?)://([A-Za-z0-9.\-_]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?((?:/[!\"$->@-~]*)?(?:\?[!\"$-~]*)?)(?:#.*)?"
)
"""The addresses that our own connections reach: no login, no name that must be encoded first."""

PLACES_MAX = 256
"""Of so many URLs it is remembered where they are."""

_PORTS = {"http": 80, "https": 443}
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_RETRY_DELAY_S = 0.1


@dataclass(frozen=True, slots=True)
class UpstreamDown:
    """The upstream could not be reached, or its answer broke off; `reason` is one line for people."""

    reason: str
    was_reached: bool = True
    is_timeout: bool = False
    is_cut: bool = False
    """Whether nobody but interpose ended it, since it was stopped."""


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
        kind = next((value for name, value in answer.headers if name == b"content-type"), b"")
        self.content_type = kind.partition(b";")[0].decode("latin-1").strip().lower()
        """The media type in lower case, without parameters; "" when the upstream names none."""

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
        self._places: Recent[tuple[str, str | None], _Place] = Recent(PLACES_MAX)
        self._pool: Pool | None = None
        self._proxied: Proxied | None = None
        self._is_cut = False

    async def open(self) -> Self:
        """Makes the connection pool; idempotent."""
        if self._pool is None:
            self._pool = Pool()
        return self

    def cut(self) -> None:
        """Ends what is under way: who waits for an answer, for the rest of one, or asks later, is told so at once."""
        self._is_cut = True
        if self._pool is not None:
            self._pool.cut()
        if self._proxied is not None:
            self._proxied.cut()

    async def close(self) -> None:
        """Closes all connections; idempotent."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        proxied, self._proxied = self._proxied, None
        if proxied is not None:
            await proxied.close()

    @asynccontextmanager
    async def ask(self, question: Question) -> AsyncIterator[UpstreamReply | UpstreamDown]:
        """Sends `question`; gives the answer once its head is there, or why there is none.

        What cannot have arrived is sent again, as often as the target says: over a connection that was refused, or was
        closed before anything was written. So is what may be served twice and was not answered over a connection that
        was kept from an earlier request; a POST that may have been read never is. On leaving, a reply that was not read
        to its end is cut off. Raises MisuseError when `open` was not called, and what the body's own iterator raises
        before there is an answer.
        """
        asked = Asked(self)
        try:
            yield await asked.ask(question)
        finally:
            asked.leave()

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
        self._check_uncut()
        proxy = proxy_for(question.url, self._proxies) if self._proxies else None
        place = self._place(question.url, question.target.ca_file) if proxy is None else None
        if place is None:
            fault = proxy_fault(question.url, self._proxies)
            if fault is not None:
                raise Fault(fault, was_reached=False)
            tls = self._context(question.target.ca_file) if question.url.startswith("https:") else None
            return await self._other_way().send(question, proxy=proxy, tls=tls)
        request = _request(question, place.line)
        connection = pool.free(place.origin) if may_reuse else None
        if connection is None:
            connection = await pool.dial(place.origin, question.target.connect_timeout_s)
            self._check_uncut()
        return await connection.ask(request)

    def _check_uncut(self) -> None:
        if self._is_cut:
            raise Fault(CUT_OFF, is_cut=True)

    def _place(self, url: str, ca_file: str | None) -> "_Place | None":
        """Where a URL is, taken apart once; None where our own connections do not reach."""
        known = self._places.get((url, ca_file))
        if known is not None:
            return known
        found = _URL.fullmatch(url)
        if found is None:
            return None
        scheme, host, port, path = found.groups("")
        tls = self._context(ca_file) if scheme == "https" else None
        origin = Origin(host.strip("[]"), int(port[1:] or _PORTS[scheme]), tls)
        authority = host if origin.port == _PORTS[scheme] else f"{host}{port}"
        path = path if path.startswith("/") else f"/{path}"
        place = _Place(origin, f"{path} HTTP/1.1\r\nhost: {authority}\r\n".encode("ascii"))
        if "?" not in url:  # behind which a client may put its key
            self._places.put((url, ca_file), place)
        return place

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


class _Place(NamedTuple):
    """Where a URL is: which connections lead there, and what stands behind the method in a request's head."""

    origin: Origin
    line: bytes


class Asked:
    """The questions of one exchange, whose answers are left together. Used by one task."""

    __slots__ = ("_answers", "_upstream")

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._answers: list[Answer] = []

    async def ask(self, question: Question) -> UpstreamReply | UpstreamDown:
        """As `Upstream.ask` says of entering."""
        answer = await self._upstream.answered(question)
        if isinstance(answer, UpstreamDown):
            return answer
        self._answers.append(answer)
        return UpstreamReply(answer, is_judged=question.is_judged)

    def leave(self) -> None:
        """Ends the use of all answers; call it however the exchange ends."""
        for answer in self._answers:
            answer.leave()
        self._answers.clear()


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


def proxy_faults(upstreams: Upstreams) -> list[str]:
    """Why upstreams cannot be reached through the proxies of the environment, in lines for people, each once."""
    proxies = _proxies_of_environment()
    urls = [upstreams.own(provider).base_url for provider in PROVIDERS.values()]
    urls += [target.base_url for target in upstreams.targets]
    return list(dict.fromkeys(fault for url in urls if (fault := proxy_fault(url, proxies)) is not None))


def _proxies_of_environment() -> dict[str, str]:
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return {}
    from urllib.request import getproxies_environment  # noqa: PLC0415 - loads much, and few environments name one

    return getproxies_environment()


def _request(question: Question, line: bytes) -> Request:
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
    lines = [b"%b: %b\r\n" % header for header in headers]
    head = b"".join([question.method.encode("ascii"), b" ", line, *lines, b"\r\n"])
    count = len(lines) + 3
    if head.count(b"\n") != count or head.count(b"\r") != count or b"\0" in head:
        raise Fault("a header has a line break or a zero byte in it", was_reached=False)
    return Request(question.method, head, body or None, length, question.target.read_timeout_s)


def _unpacking(names: list[str]) -> Unpacking | None:
    try:
        return Unpacking(names)
    except UndecodableError:
        return None


def _down(fault: Fault) -> UpstreamDown:
    return UpstreamDown(fault.reason, was_reached=fault.was_reached, is_timeout=fault.is_timeout, is_cut=fault.is_cut)
