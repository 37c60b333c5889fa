"""The authorization code grant with PKCE: a real server, a real callback address, and browsers that misbehave."""

import http.client
import socket
import struct
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

import pytest
from aiohttp import web

from interpose.concerns.auth.authority import OAuthClient, SignInError
from interpose.concerns.auth.browser import BrowserCredentials
from interpose.concerns.auth.stores import MemoryTokenStore
from interpose.contracts.auth import AuthChallenge, CredentialProvider
from interpose.contracts.errors import ConfigError
from interpose.testing.fakes import FakeClock
from tests.concerns.oauth_server import OAuthServer, oauth_server


@pytest.fixture(scope="module")
def running() -> Iterator[OAuthServer]:
    """The server of this file."""
    with oauth_server() as server:
        yield server


@pytest.fixture
def server(running: OAuthServer) -> OAuthServer:
    """The server as it begins."""
    url = running.url
    running.__init__()  # type: ignore[misc]
    running.url = url
    return running


class SignIn:
    """Credentials with a clock that stands still."""

    def __init__(self, client: OAuthClient, **options: Any) -> None:
        self.clock = FakeClock()
        self.credentials = BrowserCredentials(client, store=MemoryTokenStore(), now=self.clock.now, **options)

    def query(self) -> dict[str, str]:
        """What the address of a challenge, which must come, asks for."""
        with pytest.raises(AuthChallenge) as caught:
            self.credentials.get_token("mail")
        assert caught.value.url is not None
        assert caught.value.message == f"Sign in to go on: open {caught.value.url}"
        return {name: values[0] for name, values in parse_qs(urlsplit(caught.value.url).query).items()}


@pytest.fixture
def sign_in(server: OAuthServer) -> Iterator[SignIn]:
    """One that is closed in the end."""
    sign_in = SignIn(server.client())
    yield sign_in
    sign_in.credentials.close()


def visit(url: str) -> tuple[int, str]:
    """Status and page."""
    try:
        with urlopen(url, timeout=10) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_browser_comes_back_and_the_next_call_has_the_token(server: OAuthServer, sign_in: SignIn) -> None:
    """The address carries state and challenge; the exchange carries the verifier and the same redirect address."""
    assert isinstance(sign_in.credentials, CredentialProvider)
    query = sign_in.query()
    assert (query["response_type"], query["client_id"], query["scope"]) == ("code", "cli", "mail")
    assert query["code_challenge_method"] == "S256"
    assert query["redirect_uri"].startswith("http://127.0.0.1:")
    assert sign_in.query() == query

    status, page = visit(server.authorize(query))
    assert (status, "You have signed in" in page) == (200, True)
    assert sign_in.credentials.get_token("mail") == "access-1"
    assert sign_in.credentials.get_token("mail") == "access-1"
    assert server.grants() == ["authorization_code"]
    assert server.forms[0]["redirect_uri"] == query["redirect_uri"]
    assert len(server.forms[0]["code_verifier"]) >= 43


def test_each_sign_in_has_its_own_state_and_verifier(server: OAuthServer) -> None:
    """Nothing of one is good for another."""
    first, second = SignIn(server.client()), SignIn(server.client())
    one, other = first.query(), second.query()
    for name in ("state", "code_challenge", "redirect_uri"):
        assert one[name] != other[name]
    first.credentials.close()
    second.credentials.close()


def test_an_answer_with_another_state_does_not_leave_it_stuck(server: OAuthServer, sign_in: SignIn) -> None:
    """It is turned away, whatever it brings, and the right one still counts."""
    query = sign_in.query()
    back = query["redirect_uri"]
    for wrong in (
        {"code": "evil", "state": "other"},
        {"code": "evil"},
        {"error": "access_denied", "state": "other"},
        {},
    ):
        assert visit(f"{back}?{urlencode(wrong)}")[0] == 400
    assert visit(f"{back}?state={query['state']}&state=other&code=evil")[0] == 400
    assert visit(f"{back}?state={query['state']}")[0] == 400
    assert sign_in.query() == query
    assert visit(server.authorize(query))[0] == 200
    assert sign_in.credentials.get_token("mail") == "access-1"


def test_browsers_ask_for_more_than_the_answer(server: OAuthServer, sign_in: SignIn) -> None:
    """An icon, a connection that is never used, one that breaks off, another method: the right answer counts."""
    query = sign_in.query()
    port = urlsplit(query["redirect_uri"]).port
    assert port is not None
    broken = socket.create_connection(("127.0.0.1", port), timeout=10)
    broken.send(b"GET /callback")
    broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close resets the connection
    broken.close()
    idle = socket.create_connection(("127.0.0.1", port), timeout=10)
    assert visit(f"http://127.0.0.1:{port}/favicon.ico")[0] == 404
    posting = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    posting.request("POST", "/callback", body="code=evil")
    assert posting.getresponse().status == 501
    posting.close()
    assert visit(server.authorize(query))[0] == 200
    idle.close()
    assert sign_in.credentials.get_token("mail") == "access-1"


def test_the_address_is_gone_after_the_answer(server: OAuthServer, sign_in: SignIn) -> None:
    """One answer, then nobody listens."""
    query = sign_in.query()
    visit(server.authorize(query))
    sign_in.credentials.get_token("mail")
    port = urlsplit(query["redirect_uri"]).port
    assert port is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)


def test_a_person_who_refuses_is_told_once_and_may_begin_anew(server: OAuthServer, sign_in: SignIn) -> None:
    """The refusal is an error with the server's code; the next call has a new address."""
    query = sign_in.query()
    status, page = visit(f"{query['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': query['state']})}")
    assert (status, "You have not signed in" in page) == (200, True)
    with pytest.raises(SignInError, match="the sign-in for 'mail' ended with access_denied") as caught:
        sign_in.credentials.get_token("mail")
    assert caught.value.error == "access_denied"
    assert sign_in.query()["state"] != query["state"]


def test_a_sign_in_that_is_too_old_begins_anew(sign_in: SignIn) -> None:
    """After ten minutes the old address is closed and another is given."""
    query = sign_in.query()
    sign_in.clock.advance(599)
    assert sign_in.query() == query
    sign_in.clock.advance(1)
    assert sign_in.query()["state"] != query["state"]


def test_nobody_listens_longer_than_the_sign_in_lives(server: OAuthServer) -> None:
    """Even when no further call comes."""
    sign_in = SignIn(server.client(), lifetime_s=0.0)
    with pytest.raises(AuthChallenge):
        sign_in.credentials.get_token("mail")
    sign_in.credentials.close()


def test_a_code_that_the_server_refuses_begins_anew(server: OAuthServer, sign_in: SignIn) -> None:
    """The error has the server's words; nothing is stuck."""
    query = sign_in.query()
    visit(f"{query['redirect_uri']}?{urlencode({'code': 'unknown', 'state': query['state']})}")
    with pytest.raises(SignInError, match="invalid_grant"):
        sign_in.credentials.get_token("mail")
    assert sign_in.query()["state"] != query["state"]


def test_a_server_that_is_away_loses_no_code(server: OAuthServer, sign_in: SignIn) -> None:
    """The exchange is tried again at the next call."""
    visit(server.authorize(sign_in.query()))
    server.raw = web.Response(status=502)
    with pytest.raises(SignInError, match="status 502"):
        sign_in.credentials.get_token("mail")
    server.raw = None
    assert sign_in.credentials.get_token("mail") == "access-1"


def test_tokens_are_renewed_and_refused_ones_replaced(server: OAuthServer, sign_in: SignIn) -> None:
    """Without the person."""
    visit(server.authorize(sign_in.query()))
    sign_in.credentials.get_token("mail")
    sign_in.clock.advance(3600)
    assert sign_in.credentials.get_token("mail") == "access-2"
    sign_in.credentials.invalidate_token("mail")
    assert sign_in.credentials.get_token("mail") == "access-3"
    assert server.grants() == ["authorization_code", "refresh_token", "refresh_token"]


def test_a_browser_is_opened_once_where_wanted(server: OAuthServer, caplog: pytest.LogCaptureFixture) -> None:
    """With the address of the challenge; one that cannot be opened is only logged."""
    opened: list[str] = []
    sign_in = SignIn(server.client(extra={"prompt": "consent"}), open_browser=opened.append)
    query = sign_in.query()
    sign_in.query()
    assert len(opened) == 1
    assert (query["prompt"], query["state"] in opened[0]) == ("consent", True)
    sign_in.credentials.close()

    def broken(url: str) -> None:
        raise OSError("no display")

    other = SignIn(server.client(), open_browser=broken)
    other.query()
    assert "no browser could be opened" in caplog.text
    other.credentials.close()
    other.credentials.close()


def test_a_port_that_is_taken_is_named(server: OAuthServer) -> None:
    """With the way out; the next call may try again."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sign_in = SignIn(server.client(), port=port)
        with pytest.raises(ConfigError, match=rf"port {port}: cannot be listened on: .*port=0 takes any"):
            sign_in.credentials.get_token("mail")
    assert sign_in.query()["redirect_uri"] == f"http://127.0.0.1:{port}/callback"
    sign_in.credentials.close()


def test_a_client_without_the_endpoint_is_named() -> None:
    """At once, not at the first call."""
    with pytest.raises(ConfigError, match=r"OAuthClient.authorization_endpoint: is not set"):
        BrowserCredentials(OAuthClient("cli", "https://a.example/token"), store=MemoryTokenStore())
