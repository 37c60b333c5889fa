"""The front of the gateway: tokens stay here, trailers are no headers, nobody is left waiting for an upgrade."""

import json
from typing import Any

import pytest

from interpose.gateway.connection import Limits
from interpose.kernel.ids import digest_of_secret
from interpose.testing.upstream import RawBody, Reply, Text
from tests.e2e.house import House

pytestmark = pytest.mark.e2e

CLIENT = "a-token-of-32-characters-or-more"
GOOD = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
HEAD = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {"x-api-key": CLIENT, "authorization": f"Bearer {CLIENT}", "x-goog-api-key": CLIENT}),
        ("", {"x-interpose-token": CLIENT, "x-api-key": CLIENT}),
        (f"?key={CLIENT}", {"x-interpose-token": CLIENT}),
        (f"?key={CLIENT}&alt=sse", {}),
        (f"?%6bey={CLIENT}", {}),
    ],
)
@pytest.mark.parametrize("path", ["/v1beta/models/g:countTokens", "/l/{0}/v1beta/models/g:countTokens"])
def test_a_token_is_never_sent_on(query: str, headers: dict[str, str], path: str) -> None:
    """Not from any place that a client put it, whichever of them told who it is."""
    settings: Any = {"clients": {"ci": digest_of_secret(CLIENT)}, "demands_token": True}
    with House([RawBody(b"{}", "application/json")], strict=False, **settings) as house:
        status, _, _ = house.raw("POST", path.format(CLIENT) + query, GOOD, headers)
        (request,) = house.upstream.requests

    assert status == 200
    assert CLIENT not in request.path + repr(request.headers) + repr(house.journal.records)


def test_a_trailer_is_not_a_header() -> None:
    """What stands behind a chunked body is dropped, whatever it claims to be."""
    trailer = b"x-api-key: smuggled\r\nx-interpose-session: smuggled\r\nhost: evil.example\r\n\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n" % (len(GOOD), GOOD)
    with House([Reply(Text("x"))]) as house:
        answer = house.wire(b"POST /v1/messages" + HEAD + chunked + trailer)
        (request,) = house.upstream.requests

    assert answer.startswith(b"HTTP/1.1 200")
    assert request.body == GOOD
    assert "smuggled" not in repr(request.headers) + repr(house.journal.records)


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: %d\r\n\r\n%s" % (len(GOOD), GOOD),
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD),
    ],
)
def test_an_offer_of_another_protocol_is_overlooked(body: bytes) -> None:
    """A client that would speak HTTP/2 in clear text is answered in HTTP/1.1; its offer does not go on."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    request = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n" + offer + body
    with House([Reply(Text("x"))] * 2) as house:
        answer = house.wire(request * 2, timeout_s=1)
        seen = [{name.lower() for name in asked.headers} for asked in house.upstream.requests]
        bodies = [asked.body for asked in house.upstream.requests]

    assert answer.count(b"HTTP/1.1 200") == 2
    assert bodies == [GOOD] * 2
    assert not set.union(*seen) & {"upgrade", "http2-settings"}


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"Sec-Fetch-Site: cross-site", b"403"),
        (b"Sec-Fetch-Site: same-site", b"403"),
        (b"Sec-Fetch-Site: none", b"200"),
        (b"Sec-Fetch-Site: same-origin", b"200"),
    ],
)
def test_pages_of_other_sites_are_refused(header: bytes, status: bytes) -> None:
    """Also where they send no Origin, as an image does."""
    with House([]) as house:
        answer = house.wire(b"GET /healthz" + HEAD + header + b"\r\n\r\n")

    assert answer.split(b" ")[1] == status


@pytest.mark.parametrize("host", [b"[::1]evil.com", b"localhost:1:evil.com", b"[::1"])
def test_hosts_that_only_begin_well_are_refused(host: bytes) -> None:
    """A name counts as a whole."""
    with House([]) as house:
        answer = house.wire(b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: " + host + b"\r\n\r\n")

    assert answer.split(b" ")[1] == b"400"


def test_a_request_for_no_path() -> None:
    """`OPTIONS *` is for the server as a whole, which has nothing to say."""
    with House([]) as house:
        assert house.wire(b"OPTIONS *" + HEAD + b"\r\n").split(b" ")[1] == b"400"


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        (b"/v1/messages", {"type", "message"}),
        (b"/l/abc/v1/chat/completions", {"message", "type", "param", "code"}),
        (b"/v1beta/models/g:generateContent", {"code", "message", "status"}),
    ],
)
@pytest.mark.parametrize(
    ("rest", "status"), [(b"X: a\0b\r\n\r\n", 400), (b"X: slow", 408), (b"X: " + b"x" * 3_000 + b"\r\n\r\n", 431)]
)
def test_errors_of_the_server_have_the_shape_of_the_api(path: bytes, keys: set[str], rest: bytes, status: int) -> None:
    """Where the path has arrived, the client can read why it was refused."""
    with House([], limits=Limits(header_s=0.2, header_bytes=2_000)) as house:
        answer = house.wire(b"POST " + path + HEAD + rest)

    assert int(answer.split(b" ")[1]) == status
    assert set(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]) == keys
