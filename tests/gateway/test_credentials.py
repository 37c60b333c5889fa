"""gateway.credentials: tokens of ours stay here, the gateway's own key takes the place of all others."""

import pytest

from interpose.gateway.credentials import key_in, with_key, without_tokens
from interpose.gateway.routes import Headers
from interpose.gateway.settings import Target

CLIENT = "a-token-of-32-characters-or-more"
OTHERS = ((b"x-api-key", b"sk-ant"), (b"user-agent", b"x y"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-api-key", CLIENT),
        ("x-goog-api-key", f" {CLIENT} "),
        ("api-key", CLIENT),
        ("authorization", f"Bearer {CLIENT}"),
        ("authorization", f"bearer   {CLIENT}"),
        ("authorization", CLIENT),
        ("x-api-key", f"other, {CLIENT}"),
        ("x-interpose-token", CLIENT),
        ("proxy-authorization", f"Bearer {CLIENT}"),
        ("x-odd", CLIENT),
    ],
)
def test_a_header_with_a_token_goes(name: str, value: str) -> None:
    """Whatever it is called, each time it comes; other headers stay in their order."""
    held = (name.encode(), value.encode())

    headers, query = without_tokens(Headers((held, *OTHERS, held)), b"a=1", CLIENT.__eq__)

    assert (headers.raw, query) == (OTHERS, b"a=1")


@pytest.mark.parametrize(
    "field",
    [f"key={CLIENT}", f"%6bey={CLIENT}", f"other={CLIENT}", f"key=%61{CLIENT[1:]}", f"x=1;key={CLIENT}"],
)
def test_a_query_field_with_a_token_goes(field: str) -> None:
    """However it is escaped, each time it comes; other fields stay as they were sent."""
    _, query = without_tokens(Headers(()), f"a=%20&{field}&key=mine&{field}".encode(), CLIENT.__eq__)

    assert query == b"a=%20&key=mine"


@pytest.mark.parametrize(
    ("query", "key"),
    [(b"alt=sse&key=k%31", "k1"), (b"%6bey=k", "k"), (b"", None), (b"monkey=k", None), (b"a=1;key=k", "k")],
)
def test_keys_in_query_strings(query: bytes, key: str | None) -> None:
    """Name and value are read as a server reads them."""
    assert key_in(query) == key


@pytest.mark.parametrize("field", [b"key=k", b"%6bey=k", b"KEY=k", b"access_token=k", b"b=1;key=k"])
def test_an_own_key_replaces_those_of_query_strings(field: bytes) -> None:
    """A client's key beside the gateway's own would be another way to pay."""
    target = Target("g", "gemini", "https://h", key="own")

    headers, query = with_key([(b"x-goog-api-key", b"k"), (b"a", b"1")], b"alt=sse&" + field, target)

    assert headers == [(b"a", b"1"), (b"x-goog-api-key", b"own")]
    assert query == b"alt=sse"
