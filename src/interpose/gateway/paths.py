"""Which paths mean one thing only.

Knows: the spellings that two servers may read differently. Does not know: which paths there are.
"""

import re
from urllib.parse import quote, unquote_to_bytes

_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_DOUBTFUL = re.compile(rb"%(?:2f|5c|3f|23)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SAFE = "/:@!$&'()*+,=~-._;\\"


def raw_path_of(raw_path: bytes | None, path: str) -> bytes:
    """The path as it was sent; a server that tells only the decoded one gets it escaped again."""
    return raw_path or quote(path, safe=_SAFE).encode()


def plain_front(raw_path: bytes) -> bytes:
    """The path with one slash where it begins with several, as behind a base URL that ends in one."""
    return b"/" + raw_path.lstrip(b"/") if raw_path.startswith(b"//") else raw_path


def decoded_path(raw_path: bytes) -> str:
    """The path with its escapes undone once. What is not UTF-8 becomes U+FFFD."""
    return unquote_to_bytes(raw_path).decode("utf-8", "replace")


def oddity_of(raw_path: bytes) -> str | None:
    """Why another server may read this path (without its launch prefix) differently; None for a plain one.

    The reason names the kind of the problem and never the path, which may hold a secret.
    """
    if not raw_path.startswith(b"/"):
        return "it does not begin with a slash"
    if b"%" in _ESCAPE.sub(b"", raw_path):
        return "it has a % that is no escape"
    if _DOUBTFUL.search(raw_path):
        return "it has an escaped slash, backslash, ? or #"
    path = decoded_path(raw_path)
    if _ESCAPE.search(path.encode()):
        return "it is escaped twice"
    if "\ufffd" in path:
        return "it is not UTF-8"
    if _CONTROL.search(path):
        return "it has a control character"
    if "\\" in path or ";" in path:
        return "it has a backslash or a semicolon"
    segments = path.casefold().split("/")[1:]
    if any(segment.strip() in (".", "..") for segment in segments):
        return "it has a segment . or .."
    if "" in segments[:-1]:
        return "it has an empty segment (//)"
    if "l" in (segment.strip() for segment in segments[:-1]):
        return "a launch prefix belongs at its very beginning, once, as /l/SECRET"
    return None
