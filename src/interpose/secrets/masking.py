"""Masks secrets in text and in JSON values, before anything is written down.

Knows: the published shapes of provider keys, bearer tokens, JWTs, private key blocks, passwords in URLs, launch
prefixes, and the names of fields that hold secrets.
Does not know: secrets without a shape or a telling name; those it cannot find.

Shapes: the providers' own pages on key formats (OpenAI, Anthropic, GitHub, AWS, Google, Slack), RFC 7519 for JWTs,
RFC 7468 for PEM, RFC 3986 for user information in URLs.
"""

import re
from collections.abc import Mapping

from interpose.contracts.json import Json

MASK = "…"
"""What stands in place of the rest of a secret."""

_KEPT = 4

_SHAPES = re.compile(
    r"""
      (?P<pem>-----BEGIN\ [A-Z0-9 ]*PRIVATE\ KEY(?:\ BLOCK)?-----) .*?
        (?:-----END\ [A-Z0-9 ]*PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)
    | (?P<anthropic>sk-ant-(?:[a-z]+[0-9]{2}-)?) [A-Za-z0-9_-]{12,}
    | (?<![A-Za-z0-9]) (?P<openai>sk-(?:proj-|svcacct-|admin-|or-v1-)?) [A-Za-z0-9_-]{16,}
    | (?P<github>gh[pousr]_|github_pat_) [A-Za-z0-9_]{16,}
    | (?P<aws>AKIA|ASIA) [A-Z0-9]{16,}
    | (?P<google>AIza) [A-Za-z0-9_-]{20,}
    | (?P<slack>xox[a-z]-|xapp-) [A-Za-z0-9-]{10,}
    | (?<![A-Za-z0-9_-]) (?P<jwt>eyJ) [A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)*
    | (?P<bearer>\b(?i:bearer)[ ]+) [A-Za-z0-9._~+/=-]{8,}
    | (?P<launch>/l/) [A-Za-z0-9_-]{24,}
    | (?P<url>://[^\s/?\#:@"'<>]*:) [^\s/?\#"'<>]+ (?=@)
    | (?P<variable>\b[A-Z0-9_]{0,40}(?:API_KEY|APIKEY|SECRET|TOKEN|PASSWORD|PASSWD)[A-Z0-9_]{0,40}=["']?)
        (?![$"'…]) [^\s"';&|]{6,}
    """,
    re.VERBOSE | re.DOTALL,
)

_HINTS = re.compile(
    r"PRIVATE KEY|sk-|gh[pousr]_|github_pat_|AKIA|ASIA|AIza|xox|xapp-|eyJ|bearer|/l/|://|KEY|SECRET|TOKEN|PASSW"
    r"|authorization|cookie",
    re.IGNORECASE,
)
"""Cheap and generous: a text without any of these holds nothing that `_SHAPES` or `_FIELDS` would find."""

_FIELDS = frozenset(
    {
        "access_token",
        "api-key",
        "api_key",
        "apikey",
        "authorization",
        "client_secret",
        "cookie",
        "password",
        "passwd",
        "private_key",
        "proxy-authorization",
        "refresh_token",
        "secret",
        "secret_key",
        "set-cookie",
        "x-api-key",
        "x-goog-api-key",
    }
)


def may_hold_secrets(text: str) -> bool:
    """Whether masking could change a value whose JSON is `text`; False is certain, True is a guess."""
    return _HINTS.search(text) is not None


def mask_text(text: str) -> str:
    """`text` with the body of every secret replaced by its first characters and `…`.

    Masking what is masked changes nothing. Pure: any thread may call it.
    """
    if not may_hold_secrets(text):
        return text
    return _SHAPES.sub(_masked, text)


def mask_json(value: Json) -> Json:
    """A copy of `value` with every string in it masked, keys too; fields with telling names lose their whole value.

    Raises RecursionError for a value that is nested deeper than the interpreter allows. Pure: any thread may call it.
    """
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, Mapping):
        return _mask_object(value)
    if isinstance(value, list | tuple):
        return [mask_json(item) for item in value]
    return value


def _mask_object(value: Mapping[str, Json]) -> dict[str, Json]:
    masked: dict[str, Json] = {}
    for key, item in value.items():
        name = mask_text(key)
        while name in masked:  # two secrets may look the same when they are masked
            name += MASK
        masked[name] = _mask_told(item) if key.lower() in _FIELDS else mask_json(item)
    return masked


def _mask_told(value: Json) -> Json:
    if isinstance(value, list | tuple):
        return [_mask_told(item) for item in value]
    if not isinstance(value, str):
        return mask_json(value)
    if value.endswith(MASK) and len(value) <= _KEPT + len(MASK):
        return value
    return _head(value) + MASK


def _masked(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    prefix = match.group(kind)
    if kind in ("pem", "url"):
        return prefix + MASK
    return prefix + _head(match.group()[len(prefix) :]) + MASK


def _head(secret: str) -> str:
    return secret[:_KEPT] if len(secret) >= 4 * _KEPT else ""
