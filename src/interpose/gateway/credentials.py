"""Keys in headers: whose they are, and what the upstream gets to see of them.

Knows: where clients put keys, where providers look for them. Does not know: what a key is worth.
"""

import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote_plus

from interpose.gateway.asgi import HeaderList
from interpose.gateway.routes import Headers
from interpose.gateway.settings import Provider, Target

TOKEN_HEADER = b"x-interpose-token"
"""Where a client may put its token when its key headers carry a provider's key; never passed on."""

_KEY_HEADERS = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")
_KEY_FIELDS = ("key", "access_token")
"""Fields of a query string that Google's APIs read a key from."""

_BETWEEN_KEYS = re.compile(r"[\s,;]+")
_BETWEEN_FIELDS = re.compile(r"[&;]")


def offered_keys(headers: Headers) -> Iterator[tuple[bytes, str]]:
    """The header names and the keys that a request carries where clients put keys."""
    for name, value in headers.raw:
        if name in _KEY_HEADERS:
            text = value.decode("latin-1").strip()
            yield name, text[7:].strip() if text[:7].lower() == "bearer " else text


def key_in(query: bytes) -> str | None:
    """The key in a query string, where clients of Gemini may put it; None where there is none."""
    return next((value for name, value in _pairs(query) if name.casefold() == "key"), None)


def without_tokens(headers: Headers, query: bytes, is_token: Callable[[str], bool]) -> tuple[Headers, bytes]:
    """Headers and query string without whatever holds a token of ours, wherever the client put it."""
    kept = tuple((name, value) for name, value in headers.raw if not any(map(is_token, _words(name, value))))
    parts = [part for part in query.split(b"&") if not any(is_token(value) for _, value in _pairs(part))]
    return Headers(kept), b"&".join(parts)


def with_key(headers: HeaderList, query: bytes, target: Target) -> tuple[HeaderList, bytes]:
    """Headers and query string as the upstream gets them: a key of its own takes the place of all others."""
    if target.key is None:
        return headers, query
    kept = [(name, value) for name, value in headers if name not in _KEY_HEADERS]
    parts = [part for part in query.split(b"&") if not any(name.casefold() in _KEY_FIELDS for name, _ in _pairs(part))]
    return [*kept, _key_header(target.api, target.key)], b"&".join(parts)


def _words(name: bytes, value: bytes) -> list[str]:
    """What a header may hold a token as: all of it, and each word of a header that is made for keys."""
    text = value.decode("latin-1").strip()
    is_for_keys = name in _KEY_HEADERS or name == TOKEN_HEADER
    return [text, *(_BETWEEN_KEYS.split(text) if is_for_keys else [text.rpartition(" ")[2]])]


def _pairs(query: bytes) -> Iterator[tuple[str, str]]:
    """The names and values of a query string, decoded; a semicolon parts them too, as for some servers."""
    for part in _BETWEEN_FIELDS.split(query.decode("latin-1")):
        name, _, value = part.partition("=")
        yield unquote_plus(name), unquote_plus(value)


def _key_header(api: Provider, key: str) -> tuple[bytes, bytes]:
    match api:
        case "anthropic":
            return b"x-api-key", key.encode("latin-1")
        case "openai":
            return b"authorization", f"Bearer {key}".encode("latin-1")
        case "gemini":
            return b"x-goog-api-key", key.encode("latin-1")
