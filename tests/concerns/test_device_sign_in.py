"""The device authorization grant against a real server on loopback."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from interpose.concerns.auth.authority import OAuthClient, SignInError
from interpose.concerns.auth.device import DeviceCodeCredentials
from interpose.concerns.auth.stores import FileTokenStore, MemoryTokenStore
from interpose.contracts.auth import AuthChallenge, CredentialProvider, TokenStore
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
    """Credentials with a clock that stands still, and the challenge or token of each call."""

    def __init__(self, client: OAuthClient, store: TokenStore | None = None) -> None:
        self.clock = FakeClock()
        self.store = store or MemoryTokenStore()
        self.credentials = DeviceCodeCredentials(client, store=self.store, now=self.clock.now)

    def get(self, *, after_s: float = 0.0, scope: str = "mail") -> str | AuthChallenge:
        """What one call gives, some seconds later."""
        self.clock.advance(after_s)
        try:
            return self.credentials.get_token(scope)
        except AuthChallenge as challenge:
            return challenge

    def code(self, *, after_s: float = 0.0) -> str | None:
        """The code of a challenge, which must come."""
        challenge = self.get(after_s=after_s)
        assert isinstance(challenge, AuthChallenge), challenge
        return challenge.code


def test_the_first_call_begins_and_a_later_one_has_the_token(server: OAuthServer) -> None:
    """The challenge says where to go and what to enter; afterwards the kept token is given without asking."""
    server.polls = ["authorization_pending", "granted"]
    sign_in = SignIn(server.client(extra={"audience": "api"}))
    assert isinstance(sign_in.credentials, CredentialProvider)
    challenge = sign_in.get()
    assert isinstance(challenge, AuthChallenge)
    assert challenge.message == "Sign in to go on: open https://login.example/device and enter the code WDJB-MJHT."
    assert (challenge.url, challenge.code, challenge.scope) == ("https://login.example/device", "WDJB-MJHT", "mail")
    assert server.forms == [{"client_id": "cli", "scope": "mail", "audience": "api"}]

    assert isinstance(sign_in.get(after_s=5), AuthChallenge)
    assert sign_in.get(after_s=5) == "access-1"
    assert sign_in.get(after_s=3000) == "access-1"
    assert server.forms[1:] == 2 * [
        {
            "client_id": "cli",
            "device_code": "device-1",
            "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        }
    ]


def test_a_whole_address_is_preferred(server: OAuthServer) -> None:
    """With the code in it, so that the person types nothing."""
    server.device["verification_uri_complete"] = "https://login.example/device?code=WDJB-MJHT"
    challenge = SignIn(server.client()).get()
    assert isinstance(challenge, AuthChallenge)
    assert challenge.url == "https://login.example/device?code=WDJB-MJHT"


def test_the_server_is_never_asked_more_often_than_it_allows(server: OAuthServer) -> None:
    """Too early, the same challenge is raised without a request; slow_down makes the wait longer by five seconds."""
    server.polls = ["authorization_pending", "slow_down", "authorization_pending", "granted"]
    sign_in = SignIn(server.client())
    sign_in.code()
    sign_in.code(after_s=4.9)
    assert len(server.polls) == 4
    sign_in.code(after_s=0.1)
    sign_in.code(after_s=4)
    assert len(server.polls) == 3
    sign_in.code(after_s=1)
    assert len(server.polls) == 2
    sign_in.code(after_s=9.9)
    assert len(server.polls) == 2
    sign_in.code(after_s=0.1)
    assert len(server.polls) == 1
    sign_in.code(after_s=9.9)
    assert len(server.polls) == 1
    assert sign_in.get(after_s=0.1) == "access-1"


def test_an_interval_that_is_not_given_is_five_seconds(server: OAuthServer) -> None:
    """As the standard says; one that is given counts, as text too."""
    del server.device["interval"]
    server.polls = ["granted"]
    sign_in = SignIn(server.client())
    sign_in.code()
    sign_in.code(after_s=4.9)
    assert sign_in.get(after_s=0.1) == "access-1"

    server.device["interval"] = "2"
    server.polls = ["granted"]
    other = SignIn(server.client())
    other.code()
    assert other.get(after_s=2) == "access-2"


def test_a_person_who_refuses_is_told_once_and_may_begin_anew(server: OAuthServer) -> None:
    """The refusal is an error with the server's code; the next call has a new code."""
    server.polls = ["access_denied"]
    sign_in = SignIn(server.client())
    sign_in.code()
    with pytest.raises(SignInError, match=r"/token answered access_denied: 'because access_denied'") as caught:
        sign_in.get(after_s=5)
    assert caught.value.error == "access_denied"
    server.device["user_code"] = "NEW"
    assert sign_in.code() == "NEW"


@pytest.mark.parametrize("how", ["the server says so", "its time is over"])
def test_a_sign_in_that_ran_out_begins_anew_at_once(server: OAuthServer, how: str) -> None:
    """The dead session is dropped and never asked about again."""
    server.polls = ["expired_token", "granted"]
    sign_in = SignIn(server.client())
    sign_in.code()
    server.device["user_code"] = "NEW"
    if how == "its time is over":
        server.polls.pop(0)
    assert sign_in.code(after_s=900 if how == "its time is over" else 5) == "NEW"
    assert sign_in.get(after_s=5) == "access-1"
    assert server.forms[-1]["device_code"] == "device-2"


def test_a_code_that_the_server_does_not_know_any_more_is_dropped(server: OAuthServer) -> None:
    """An error, and the next call begins anew instead of asking about it forever."""
    server.polls = ["invalid_grant"]
    sign_in = SignIn(server.client())
    sign_in.code()
    with pytest.raises(SignInError, match="invalid_grant"):
        sign_in.get(after_s=5)
    sign_in.code()
    assert sum("grant_type" not in form for form in server.forms) == 2


def test_a_server_that_is_away_loses_nothing(server: OAuthServer) -> None:
    """An error this time; the sign-in goes on where it was."""
    server.polls = ["granted"]
    sign_in = SignIn(server.client())
    sign_in.code()
    server.raw = web.Response(status=503, text="later")
    with pytest.raises(SignInError, match="/token answered with status 503") as caught:
        sign_in.get(after_s=5)
    assert caught.value.error == "unreachable"
    server.raw = None
    assert sign_in.get() == "access-1"


def test_a_server_that_is_not_there_is_named() -> None:
    """A refused connection is an error of the sign-in, not of the network library."""
    client = OAuthClient("cli", "http://127.0.0.1:1/token", device_authorization_endpoint="http://127.0.0.1:1/device")
    with pytest.raises(SignInError, match=r"http://127.0.0.1:1/device cannot be reached: ConnectError"):
        SignIn(client).get()


@pytest.mark.parametrize(
    "answer", [{}, {"device_code": "d"}, {"device_code": 1, "user_code": "u", "verification_uri": "v", "expires_in": 9}]
)
def test_an_answer_that_is_no_device_code_is_refused(server: OAuthServer, answer: dict[str, Any]) -> None:
    """Nothing of it is kept."""
    server.raw = web.json_response(answer)
    sign_in = SignIn(server.client())
    with pytest.raises(SignInError, match="/device answered without a device code") as caught:
        sign_in.get()
    assert caught.value.error == "unreadable"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (lambda: web.Response(text="<html>"), "status 200 and no OAuth answer"),
        (lambda: web.Response(status=404, text="[]"), "status 404 and no OAuth answer"),
        (lambda: web.json_response({"token_type": "Bearer"}), "answered without an access token"),
        (lambda: web.json_response({"access_token": "a", "token_type": "DPoP"}), "gave a token of type 'DPoP'"),
    ],
)
def test_an_answer_that_is_no_token_is_refused(server: OAuthServer, raw: Any, text: str) -> None:
    """The sign-in is over; the next call begins anew."""
    sign_in = SignIn(server.client())
    sign_in.code()
    server.raw = raw()
    with pytest.raises(SignInError, match=text):
        sign_in.get(after_s=5)
    server.raw = None
    assert sign_in.code() == "WDJB-MJHT"


def signed_in(server: OAuthServer, store: TokenStore | None = None, **fields: Any) -> SignIn:
    """Credentials that have their first token."""
    server.polls = ["granted"]
    sign_in = SignIn(server.client(**fields), store)
    sign_in.code()
    assert sign_in.get(after_s=5) == "access-1"
    return sign_in


def test_a_token_is_renewed_before_its_end(server: OAuthServer) -> None:
    """A minute ahead, without the person; a renewal token that is not replaced is used again."""
    sign_in = signed_in(server)
    del server.token["refresh_token"]
    assert sign_in.get(after_s=3539) == "access-1"
    assert sign_in.get(after_s=1) == "access-2"
    assert sign_in.get(after_s=3540) == "access-3"
    assert server.grants() == ["device_code", "refresh_token", "refresh_token"]
    assert {form["refresh_token"] for form in server.forms if "refresh_token" in form} == {"refresh-1"}


def test_a_token_that_was_refused_is_renewed(server: OAuthServer) -> None:
    """After `invalidate_token` the next call asks for another one."""
    sign_in = signed_in(server)
    sign_in.credentials.invalidate_token("mail")
    assert sign_in.get() == "access-2"
    sign_in.credentials.invalidate_token("never had")


def test_a_renewal_that_is_refused_asks_the_person_again(server: OAuthServer) -> None:
    """What the server no longer takes is dropped."""
    sign_in = signed_in(server)
    server.refresh_error = "invalid_grant"
    assert sign_in.code(after_s=3600) == "WDJB-MJHT"
    assert sign_in.code(after_s=1) == "WDJB-MJHT"
    assert server.grants().count("refresh_token") == 1


def test_a_renewal_that_fails_otherwise_keeps_what_there_is(server: OAuthServer) -> None:
    """A server that is away, or a client that is set wrongly, does not cost the person a sign-in."""
    sign_in = signed_in(server)
    server.refresh_error = "invalid_client"
    with pytest.raises(SignInError, match="invalid_client"):
        sign_in.get(after_s=3600)
    server.refresh_error = None
    assert sign_in.get() == "access-2"


def test_a_renewal_token_that_another_process_used_up_is_no_loss(server: OAuthServer) -> None:
    """Its successor is in the store by then, and is taken."""
    shared = MemoryTokenStore()

    class Late(MemoryTokenStore):
        """Shows the old token once more, as a process that read it just before the other wrote."""

        def __init__(self) -> None:
            super().__init__()
            self.stale: list[Any] = []

        def read(self, key: str) -> Any:
            """The stale value while there is one."""
            return self.stale.pop(0) if self.stale and key.startswith("tokens") else shared.read(key)

        def write(self, key: str, value: Any) -> None:
            """Through."""
            shared.write(key, value)

        def delete(self, key: str) -> None:
            """Through."""
            shared.delete(key)

    store = Late()
    sign_in = signed_in(server, store)
    key = f"tokens {server.url}/token cli mail"
    old = shared.read(key)
    assert old is not None
    shared.write(key, {"access_token": "theirs", "refresh_token": "refresh-2", "expires_at": 9e12})
    store.stale = [{**old, "expires_at": 0.0}]
    server.refresh_error = "invalid_grant"
    assert sign_in.get() == "theirs"


def test_a_token_without_an_end_or_a_renewal(server: OAuthServer) -> None:
    """It is good until somebody says otherwise; then the person signs in again."""
    server.token = {"token_type": "bearer"}
    sign_in = signed_in(server)
    assert sign_in.get(after_s=1e8) == "access-1"
    sign_in.credentials.invalidate_token("mail")
    sign_in.code()

    server.token = {"token_type": "bearer", "expires_in": 100}
    other = SignIn(server.client())
    server.polls = ["granted"]
    other.code()
    assert other.get(after_s=5) == "access-2"
    other.code(after_s=100)


def test_another_process_may_carry_on(server: OAuthServer, tmp_path: Path) -> None:
    """A sign-in on its way and the tokens are in the store; scopes and clients do not share."""
    server.polls = ["granted"]
    store = FileTokenStore(tmp_path)
    SignIn(server.client(), store).code()
    later = SignIn(server.client(), store)
    assert later.get(after_s=5) == "access-1"
    assert SignIn(server.client(), store).get() == "access-1"
    assert isinstance(later.get(scope="files"), AuthChallenge)


def test_a_store_that_another_version_wrote_begins_anew(server: OAuthServer) -> None:
    """Fields that are missing are not guessed."""
    store = MemoryTokenStore()
    store.write(f"device {server.url}/token cli mail", {"device_code": "d"})
    assert SignIn(server.client(), store).code() == "WDJB-MJHT"


@pytest.mark.parametrize(
    ("fields", "header", "in_form"),
    [
        ({}, None, {"client_id": "cli"}),
        ({"client_secret": "s3"}, "Basic Y2xpOnMz", {}),
        ({"client_secret": "s3", "authentication": "client_secret_post"}, None, {"client_secret": "s3"}),
    ],
)
def test_a_client_says_who_it_is(
    server: OAuthServer, fields: dict[str, Any], header: str | None, in_form: dict[str, str]
) -> None:
    """By its id, by HTTP Basic, or in the form; a secret is in no representation."""
    signed_in(server, **fields)
    assert server.headers[-1].get("Authorization") == header
    assert in_form.items() <= server.forms[-1].items()
    assert "s3" not in repr(server.client(**fields))


def test_many_threads_begin_one_sign_in(server: OAuthServer) -> None:
    """16 at once: one device code, and one renewal later."""
    server.polls = ["granted"]
    sign_in = SignIn(server.client())
    results: list[str | AuthChallenge] = []

    def everybody() -> None:
        barrier = threading.Barrier(16)

        def work() -> None:
            barrier.wait(10)
            results.append(sign_in.get())

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    everybody()
    assert {result.code for result in results if isinstance(result, AuthChallenge)} == {"WDJB-MJHT"}
    assert len(server.forms) == 1
    sign_in.get(after_s=5)
    results.clear()
    sign_in.clock.advance(3600)
    everybody()
    assert set(results) == {"access-2"}


def test_a_client_that_is_set_wrongly_is_named() -> None:
    """An endpoint that is missing, in the clear, or no address."""
    with pytest.raises(ConfigError, match=r"OAuthClient.device_authorization_endpoint: is not set"):
        DeviceCodeCredentials(OAuthClient("cli", "https://a.example/token"), store=MemoryTokenStore())
    for url in ("http://a.example/token", "a.example/token", "https:///token", ""):
        with pytest.raises(ConfigError, match=r"OAuthClient.token_endpoint: .*\(expected an https:// address"):
            OAuthClient("cli", url)
    assert OAuthClient("cli", "http://localhost:1/token").token_endpoint
    assert OAuthClient("cli", "http://[::1]:1/token").token_endpoint
