"""gateway.handing: whose a request is, and how a connection changes its process."""

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.gateway.handing import Handed, hand_over, owner_of, take_over


def head(path: str, *headers: str) -> bytes:
    """The head of a request."""
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def test_a_launch_goes_before_a_session() -> None:
    """The same prefix or the same named session has the same owner, wherever it stands and however it is written."""
    launch = owner_of(head("/l/secret/v1/messages", "X-Session-Id: a"), 1_000)
    session = owner_of(head("/v1/messages", "X-Session-Id: a"), 1_000)

    assert launch == owner_of(head("/l/secret/v1/models?x=/l/other"), 1_000)
    assert session == owner_of(head("/v1/chat/completions", "Accept: */*", "x-session-id:a"), 1_000)
    assert session == owner_of(b"GET / HTTP/1.1\r\nx-SESSION-id:   a", 1_000)
    assert launch != session
    assert owner_of(head("/v1/messages", "x-session-id: a", "x-interpose-session: b"), 1_000) == owner_of(
        head("/v1/messages", "x-interpose-session: b"), 1_000
    )


@pytest.mark.parametrize("data", [head("/v1/messages"), b"", b"\r\n\r\n", b"GET", b"\x16\x03\x01 \xff", b": \r\n:"])
def test_what_names_nobody_may_go_anywhere(data: bytes) -> None:
    """Also what is no request at all; its worker answers it."""
    assert owner_of(data, 4) is None


@given(st.text(alphabet="abcdefghij0123456789-_", min_size=1, max_size=40), st.integers(1, 64))
def test_every_owner_exists(name: str, workers: int) -> None:
    """And it is the same each time."""
    owner = owner_of(head(f"/l/{name}/v1/messages"), workers)

    assert owner is not None
    assert 0 <= owner < workers
    assert owner == owner_of(head(f"/l/{name}"), workers)


def test_owners_share_the_load() -> None:
    """No worker has more than twice its part of many launches."""
    counts = [0] * 8
    for number in range(8_000):
        counts[owner_of(head(f"/l/{number}"), 8) or 0] += 1

    assert min(counts) > 500
    assert max(counts) < 2_000


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_a_connection_changes_its_process(size: int) -> None:
    """Its new owner has the connection and all that was read from it; the old one has let go."""
    near, far = socket.socketpair()
    client, served = socket.socketpair()
    data = bytes(range(256)) * (size // 256 + 1)
    with near, far, client:

        def send() -> None:
            hand_over(near, Handed(served, data[:size]))
            near.close()

        sender = threading.Thread(target=send)
        sender.start()
        taken = take_over(far)
        sender.join(10)
        assert taken is not None
        assert taken.data == data[:size]
        assert served.fileno() == -1
        with taken.connection:
            taken.connection.sendall(b"hello")
            assert client.recv(5) == b"hello"
        assert take_over(far) is None


def test_nobody_at_the_other_end() -> None:
    """The connection stays here, to be given to somebody else."""
    near, far = socket.socketpair()
    client, served = socket.socketpair()
    far.close()
    with near, client, served:
        with pytest.raises(OSError, match="pipe"):
            hand_over(near, Handed(served, b"x"))
        assert served.fileno() != -1


def test_a_frame_that_is_cut_off() -> None:
    """It is an error, and not a shorter connection."""
    near, far = socket.socketpair()
    client, served = socket.socketpair()
    with far, client, served:
        socket.send_fds(near, [b"\0\0\0\x09abc"], [served.fileno()])
        near.close()
        with pytest.raises(ConnectionError):
            take_over(far)


def test_an_absolute_target_has_the_owner_of_its_path() -> None:
    """A launch is found behind scheme and host too."""
    plain, absolute = (
        b"POST %s/l/abc/v1/messages HTTP/1.1\r\nsession-id: s\r\n\r\n" % origin for origin in (b"", b"HTTP://h:1")
    )

    assert owner_of(plain, 1_000_003) == owner_of(absolute, 1_000_003)
