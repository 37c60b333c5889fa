"""gateway.paths: what may be read in two ways is refused, what is plain is not."""

import pytest

from interpose.gateway.paths import decoded_path, oddity_of, plain_front, raw_path_of


@pytest.mark.parametrize(
    "path",
    [
        b"*",
        b"v1/messages",
        b"@evil.example/v1/messages",
        b"/v1/./messages",
        b"/v1/x/../messages",
        b"/v1/x/%2e%2E/messages",
        b"/v1/x/.%2e",
        b"/v1/x/..;/messages",
        b"/v1/messages;a=1",
        b"/v1/messages%3ba=1",
        b"/v1\\messages",
        b"/v1%5Cmessages",
        b"/v1%2fmessages",
        b"/v1/messages%00",
        b"/v1/mess%0aages",
        b"/v1/messages%7f",
        b"/v1/messages%3fx",
        b"/v1/messages%23",
        b"/v1/%256dessages",
        b"/v1/messages%",
        b"/v1/messages%zz",
        b"/v1/%ff",
        b"//v1/messages",
        b"/v1//messages",
        b"/v1/messages//",
        b"//l/SECRET/v1/messages",
        b"/%6c/SECRET/v1/messages",
        b"/%6C/SECRET",
        b"/L/SECRET/v1/messages",
        b"/./l/SECRET/v1/messages",
        b"/v1/l/SECRET",
    ],
)
def test_a_path_that_can_be_read_in_two_ways(path: bytes) -> None:
    """It is refused, for a reason that does not repeat it."""
    reason = oddity_of(path)

    assert reason is not None
    assert "SECRET/v1" not in reason
    assert "messages" not in reason


@pytest.mark.parametrize(
    "path",
    [
        b"/",
        b"/v1/messages",
        b"/v1/messages/",
        b"/v1/%6dessages",
        b"/v1beta/models/gemini-2.5-pro:streamGenerateContent",
        b"/v1beta/models/a%3AgenerateContent",
        b"/v1/files/caf%C3%A9%20menu.txt",
        b"/v1/models/...",
    ],
)
def test_a_plain_path(path: bytes) -> None:
    """Ordinary escapes, dots in names and one slash at the end are no reason to refuse."""
    assert oddity_of(path) is None


def test_escapes_are_undone_once() -> None:
    """A server that tells only the decoded path gets it escaped again."""
    assert decoded_path(b"/v1/%6dessages%2541") == "/v1/messages%41"
    assert raw_path_of(None, "/a b/%41") == b"/a%20b/%2541"
    assert raw_path_of(b"/a%20b", "/a b") == b"/a%20b"


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        (b"/v1/messages", b"/v1/messages"),
        (b"//v1/messages", b"/v1/messages"),
        (b"////v1//messages//", b"/v1//messages//"),
        (b"//", b"/"),
        (b"/", b"/"),
        (b"v1//x", b"v1//x"),
        (b"/%2f/v1", b"/%2f/v1"),
    ],
)
def test_slashes_at_the_front_are_one(path: bytes, plain: bytes) -> None:
    """A base URL that ends in a slash makes them; anywhere else they stay, and are refused."""
    assert plain_front(path) == plain
