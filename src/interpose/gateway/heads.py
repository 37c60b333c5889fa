"""The heads of clients' requests: which are refused before anybody looks at them, and in what words.

Knows: the limits of a connection, what two servers may read differently, whose API a path is.
Does not know: sockets, what is served.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal, NamedTuple, TypeAlias

import httptools

from interpose.gateway.api import ApiName
from interpose.gateway.asgi import HeaderList
from interpose.gateway.faults import error_body
from interpose.gateway.paths import decoded_path
from interpose.gateway.routes import Headers, route_of, split_launch

RefusalKind: TypeAlias = Literal["malformed", "ambiguous", "too_large", "slow", "crowded", "stalled", "broken"]
"""Why a connection was ended: not HTTP; HTTP with two readings; a head too large or too slow; too many connections; a
reply left unread; a fault of our own."""


_VERSIONS = ("1.0", "1.1")

_REFUSED_METHODS = (b"CONNECT", b"TRACE")

_AUTHORITY = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[^\x00-\x20\x7f:/?#@,\\\"<>\[\]]*)(?::[0-9]*)?")
"""What a Host header names: a host, and perhaps a port (RFC 9110, section 7.2)."""

_LENGTH_DIGITS_MAX = 20
_TELLING = frozenset({b"host", b"transfer-encoding", b"content-length"})
_FRAMING = frozenset({b"transfer-encoding", b"content-length"})

_FAULTS = {
    "Expected space after method": "its first line is not METHOD PATH VERSION, with one space between them",
    "Invalid characters in url": "its first line is not METHOD PATH VERSION, with one space between them",
    "Expected HTTP/, RTSP/ or ICE/": "its first line is not METHOD PATH VERSION, with one space between them",
    "Duplicate Content-Length": "it has two lengths",
    "Transfer-Encoding can't be present with Content-Length": "it has a length and chunks",
    "Content-Length can't be present with Transfer-Encoding": "it has a length and chunks",
    "Unexpected whitespace after header value": "a header field goes on in a second line",
    "Invalid header value char": "a header has a character that cannot be in one, such as a zero byte",
    "Expected CRLF after version": "a line of its head ends without a carriage return",
    "Invalid character in chunk size": "the size of a chunk is no number",
    "Chunk size overflow": "a chunk is larger than any number says",
    "Invalid character in Content-Length": "its Content-Length is no number",
    "Content-Length overflow": "its Content-Length is larger than any number says",
}
"""What the parser, llhttp, says, in our words."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection may take.

    Attributes:
        idle_s: how long it may stay open without a request.
        header_s: how long a request's head may take, from its first byte on.
        header_bytes: the largest head, and `headers` the most fields in it.
        stall_s: how long a client may leave a reply unread.
        connections: how many there may be at once; further ones are closed unheard.
    """

    idle_s: float = 75.0
    header_s: float = 15.0
    header_bytes: int = 65_536
    headers: int = 256
    stall_s: float = 300.0
    connections: int = 8_192


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a connection was ended below the application. `status` is what its client was told, 0 for nothing."""

    kind: RefusalKind
    status: int
    reason: str
    api: ApiName = "anthropic"


class Head(NamedTuple):
    """A request's head as it was parsed; names of headers in lower case. `most_bytes` is what it came with, or more.

    `has_plain_line` says that one space stands between the parts of its first line, and nothing else.
    """

    method: bytes
    target: bytes
    version: str
    headers: HeaderList
    keeps_alive: bool
    upgrades: bool
    expects: bool
    most_bytes: int
    has_plain_line: bool = True

    @property
    def asks_websocket(self) -> bool:
        """Whether its client goes on as a WebSocket, or not at all."""
        return self.upgrades and _offered(self.headers) == [b"websocket"]

    @property
    def offers_protocol(self) -> bool:
        """Whether it offers another protocol, which a server may overlook (RFC 9110, section 7.8)."""
        return self.upgrades and _offered(self.headers) != [b"websocket"]


def refused(head: Head, limits: Limits) -> Refusal | None:
    """What the parser lets pass and another one may read differently, and what is too large."""
    headers = head.headers
    if head.most_bytes > limits.header_bytes and _size(head) > limits.header_bytes:
        return too_large(limits, head.target, headers)
    if len(headers) > limits.headers:
        reason = f"this request has more than {limits.headers} header fields"
        return Refusal("too_large", 431, reason, api_of(head.target, headers))
    if head.method in _REFUSED_METHODS:
        reason = f"{head.method.decode('ascii')} is not served here"
        return Refusal("malformed", 405, reason, api_of(b"", headers))
    problem = _problem(head)
    return None if problem is None else Refusal("ambiguous", 400, problem, api_of(head.target, headers))


def too_large(limits: Limits, target: bytes, headers: HeaderList) -> Refusal:
    """For a head that is over the limit, or does not end."""
    reason = f"the head of this request is larger than {limits.header_bytes} bytes"
    return Refusal("too_large", 431, reason, api_of(target, headers))


def too_slow(limits: Limits, target: bytes, headers: HeaderList) -> Refusal:
    """For a head that does not come."""
    reason = f"the head of this request did not arrive within {limits.header_s:g} s"
    return Refusal("slow", 408, reason, api_of(target, headers))


def malformed(target: bytes, headers: HeaderList, fault: str = "") -> Refusal:
    """For what the parser does not take, with the `fault` that it names."""
    reason = "this is not a valid HTTP request"
    said = _FAULTS.get(fault)
    return Refusal("malformed", 400, f"{reason}: {said}" if said else reason, api_of(target, headers))


def of_tls() -> Refusal:
    """For a client that speaks TLS, which is told so in the journal."""
    return Refusal("malformed", 400, "this is not a valid HTTP request: this is plain HTTP: use http://")


def answer_to(refusal: Refusal) -> bytes:
    """What the client is told, head and body, in the shape of its API. The connection closes behind it."""
    body = error_body(refusal.api, refusal.status, f"interpose: {refusal.reason}")
    lines = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    return status_line(refusal.status) + lines % len(body) + body


def status_line(status: int, phrase: bytes = b"") -> bytes:
    """The first line of a reply; with `phrase` where the status has no words of its own."""
    return _STATUS_LINES.get(status) or b"HTTP/1.1 %d %b\r\n" % (status, phrase)


def api_of(target: bytes, headers: HeaderList) -> ApiName:
    """Whose shape an error has: by as much of the path as has arrived."""
    if not target:
        return "anthropic"
    path, _, query = target.partition(b"?")
    _, raw_path = split_launch(path)
    return route_of("POST", decoded_path(raw_path), Headers.of(headers), None, query).api


def plain_head(head: Head) -> bytes:
    """A head that says how long the body behind `head` is, and nothing else: for a parser that has left off there."""
    framing = [b"%b: %b\r\n" % header for header in head.headers if header[0] in _FRAMING]
    return b"".join([b"POST / HTTP/1.1\r\nhost: x\r\n", *(framing or [b"content-length: 0\r\n"]), b"\r\n"])


def path_and_query(target: bytes) -> tuple[bytes, bytes]:
    """The path and the query string of a request's target, which may be absolute. Raises ValueError for no path."""
    if target.startswith(b"/"):
        path, _, query = target.partition(b"?")
        return path, query
    try:
        url = httptools.parse_url(target)
    except httptools.HttpParserInvalidURLError as error:
        raise ValueError(target) from error
    return url.path or b"/", url.query or b""


def _offered(headers: HeaderList) -> list[bytes]:
    return [value.lower() for name, value in headers if name == b"upgrade"]


def _size(head: Head) -> int:
    return len(head.target) + sum(len(name) + len(value) + 4 for name, value in head.headers)


def _problem(head: Head) -> str | None:
    found: dict[bytes, list[bytes]] = {}
    for name, value in head.headers:
        if name in _TELLING:
            found.setdefault(name, []).append(value.lower())
    encodings = found.get(b"transfer-encoding")
    if head.version not in _VERSIONS:
        return f"this request is HTTP/{head.version}; HTTP/1.1 is spoken here"
    if not head.has_plain_line:
        return "the first line of this request is not its method, its path and its version, with one space between them"
    if encodings is not None and (encodings != [b"chunked"] or head.version != "1.1"):
        return "the transfer-encoding of this request is not plain chunked"
    if any(len(length) > _LENGTH_DIGITS_MAX for length in found.get(b"content-length", ())):
        return "the Content-Length of this request has more digits than any length"
    return _problem_of_place(head, found.get(b"host", []))


def _problem_of_place(head: Head, hosts: list[bytes]) -> str | None:
    if len(hosts) > 1 or (not hosts and head.version == "1.1"):
        return f"this request has {len(hosts)} Host headers; one is needed"
    if hosts and _AUTHORITY.fullmatch(hosts[0]) is None:
        return "the Host header of this request is not the name of one host"
    if not head.target.startswith((b"/", b"http://", b"https://")):
        return "this request asks for no path"
    if b"#" in head.target:
        return "the path of this request has a # in it, which belongs to a reader and not to a request"
    if not head.target.startswith(b"/") and not _is_host(head):
        return "the address that this request asks for names another host than its Host header"
    return None


def _is_host(head: Head) -> bool:
    """Whether an absolute target is one of the host that the header names, which is what is looked at later."""
    authority = head.target.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    return all(value.strip().lower() == authority.lower() for name, value in head.headers if name == b"host")


_STATUS_LINES = {status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus}
