"""Keys in headers: whose they are, and what the upstream gets to see of them.

Knows: where clients put keys, where providers look for them. Does not know: what a key is worth.
"""

from collections.abc import Iterator

from interpose.gateway.asgi import HeaderList
from interpose.gateway.routes import Headers
from interpose.gateway.settings import Provider, Target

TOKEN_HEADER = b"x-interpose-token"
"""Where a client may put its token when its key headers carry a provider's key; never passed on."""

_KEY_HEADERS = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")


def offered_keys(headers: Headers) -> Iterator[tuple[bytes, str]]:
    """The header names and the keys that a request carries where clients put keys."""
    for name, value in headers.raw:
        if name in _KEY_HEADERS:
            text = value.decode("latin-1").strip()
            yield name, text[7:].strip() if text[:7].lower() == "bearer " else text


def with_key(headers: HeaderList, query: bytes, target: Target) -> tuple[HeaderList, bytes]:
    """Headers and query string as the upstream gets them: a key of its own takes the place of all others."""
    if target.key is None:
        return headers, query
    kept = [(name, value) for name, value in headers if name not in _KEY_HEADERS]
    parts = b"&".join(part for part in query.split(b"&") if not part.startswith(b"key="))
    return [*kept, _key_header(target.api, target.key)], parts


def _key_header(api: Provider, key: str) -> tuple[bytes, bytes]:
    match api:
        case "anthropic":
            return b"x-api-key", key.encode("latin-1")
        case "openai":
            return b"authorization", f"Bearer {key}".encode("latin-1")
        case "gemini":
            return b"x-goog-api-key", key.encode("latin-1")
