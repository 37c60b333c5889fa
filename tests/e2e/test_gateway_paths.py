"""Spellings of paths: none leads past the policy, none carries a launch's secret on."""

import json

import pytest

from interpose.gateway.settings import Upstreams
from interpose.testing.upstream import RawBody, Step
from tests.e2e.house import House

pytestmark = pytest.mark.e2e

CALL = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "rm -rf /"}}
ANSWER = json.dumps({"content": [CALL], "stop_reason": "tool_use"}).encode()
GOOD = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


def asked(house: House, method: str, path: str, body: bytes = GOOD) -> tuple[int, bytes]:
    """The status and the body of the answer to a path that no client library tidies up."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    answer = house.wire(head.encode() + body)
    return int(answer.split(b" ")[1]), answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/v1/MESSAGES", "/V1/messages/", "/v1/%6dessages", "/v1/messages%20", "/x/v1/messages"]
)
def test_other_spellings_of_a_judged_path_are_judged(path: str) -> None:
    """A call that the policy refuses stays refused."""
    with House([RawBody(ANSWER, "application/json")], strict=False) as house:
        status, body = asked(house, "POST", path)

    assert status == 200
    assert b"refused by no-rm" in body


@pytest.mark.parametrize("path", ["//v1/messages", "/l/{0}//v1/messages", "/l/{0}///v1/messages"])
def test_a_base_url_that_ends_in_a_slash(path: str) -> None:
    """The path behind it is the one that was meant, here and upstream."""
    with House([RawBody(ANSWER, "application/json")], strict=False) as house:
        status, body = asked(house, "POST", path.format(house.prefixed().rpartition("/")[2]))
        (request,) = house.upstream.requests

    assert (status, request.path) == (200, "/v1/messages")
    assert b"refused by no-rm" in body


@pytest.mark.parametrize(
    "path",
    [
        "/v1/x/../messages",
        "/v1/x/%2e%2e/messages",
        "/v1/x/..;/messages",
        "/v1%2fmessages",
        "/v1\\messages",
        "/v1//messages",
        "/v1/messages;x",
        "/v1/messages%00",
    ],
)
def test_paths_with_two_readings_are_refused(path: str) -> None:
    """A 400 in the API's shape, journalled; the upstream is not asked."""
    with House([], strict=False) as house:
        status, body = asked(house, "POST", path)
        outcomes = [record.outcome for record in house.journal.records]
        sent = list(house.upstream.requests)

    assert status == 400
    assert "two servers" in json.loads(body)["error"]["message"]
    assert (outcomes, sent) == (["turned_away"], [])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/models"),
        ("POST", "/v1/messages/models/x"),
        ("POST", "/v1/messages/count_tokens/x"),
        ("POST", "/x/v1/messages/count_tokens"),
        ("POST", "/"),
        ("DELETE", "/v1/models/m"),
    ],
)
@pytest.mark.parametrize("unjudged_paths", ["pass", "refuse"])
def test_what_only_looks_plain_is_unjudged(method: str, path: str, unjudged_paths: str) -> None:
    """It is journalled as unjudged, or refused."""
    script: list[Step] = [RawBody(b"{}", "application/json")]
    with House(script, strict=False, unjudged_paths=unjudged_paths) as house:
        status, _ = asked(house, method, path)
        outcomes = [record.outcome for record in house.journal.records]

    assert status == (200 if unjudged_paths == "pass" else 403)
    assert ("unjudged" if unjudged_paths == "pass" else "refused") in outcomes


def test_a_path_that_its_base_url_completes_is_judged() -> None:
    """`/messages` below a base URL that ends in `/v1` is the judged API."""
    headers = {"anthropic-version": "2023-06-01"}
    with House([RawBody(ANSWER, "application/json")], strict=False) as inner:
        own = Upstreams(anthropic=f"{inner.upstream.url}/v1")
        with House([], upstreams=own) as house:
            status, _, body = house.raw("POST", "/messages", GOOD, headers)
        (request,) = inner.upstream.requests

    assert (status, request.path) == (200, "/v1/messages")
    assert b"refused by no-rm" in body


@pytest.mark.parametrize("spelling", ["//l/{0}/x", "/%6c/{0}/x", "/./l/{0}/x", "/L/{0}/x", "/l/{0}/l/{0}/x"])
def test_a_launch_prefix_in_another_spelling_goes_nowhere(spelling: str) -> None:
    """Its secret is neither sent on nor journalled nor repeated."""
    with House([RawBody(b"{}", "application/json")], strict=False) as house:
        secret = house.prefixed().rpartition("/")[2]
        status, body = asked(house, "POST", spelling.format(secret))
        sent = list(house.upstream.requests)
        journal = repr(house.journal.records)

    assert (status, sent) == (400, [])
    assert secret not in body.decode() + journal
