"""Masks secrets in text and in JSON values, before anything is written down.

Knows: the published shapes of provider keys, bearer tokens, JWTs, private key blocks, passwords in URLs, launch
prefixes, and the names of fields that hold secrets.
Does not know: secrets without a shape or a telling name; those it cannot find.

Shapes: the providers' own pages on key formats (OpenAI, Anthropic, GitHub, AWS, Google, Slack), RFC 7519 for JWTs,
RFC 7468 for PEM, RFC 3986 for user information in URLs.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from interpose.contracts.json import Json

MASK = "…"
"""What stands in place of the rest of a secret."""

_KEPT = 4

_SHORTEST = 7
"""No text shorter than this holds a secret: `://u:p@`."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """One form of secret: a text without any of `hints` holds none. Group 1 stays, the rest goes.

    With `folds` the hints are looked for in the text in lower case. A hint costs least when it is long or rare.
    """

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    keeps_head: bool = True
    folds: bool = False

    def may_be_in(self, text: str, folded: str) -> bool:
        searched = folded if self.folds else text
        return any(hint in searched for hint in self.hints)


_SHAPES = (
    # What stands around a secret comes before the secrets themselves, so that each is masked once.
    _Shape(
        ("PRIVATE KEY",),
        re.compile(
            r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)(?!…).*?"
            r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
        keeps_head=False,
    ),
    _Shape(("@",), re.compile(r"""(://[^\s/?#:@"'<>]*:)[^\s/?#"'<>]+(?=@)"""), keeps_head=False),
    _Shape(("bearer",), re.compile(r"\b((?i:bearer) +)[A-Za-z0-9._~+/=-]{8,}"), folds=True),
    _Shape(
        ("API_KEY", "APIKEY", "SECRET", "TOKEN", "PASSW"),
        re.compile(
            r"""((?:API_KEY|APIKEY|SECRET|TOKEN|PASSWORD|PASSWD)[A-Z0-9_]{0,40}=["']?)"""
            r"""(?![$"'…])[^\s"';&|]{6,}"""
        ),
    ),
    _Shape(("sk-ant-",), re.compile(r"(sk-ant-(?:[a-z]{1,8}[0-9]{2}-)?)[A-Za-z0-9_-]{20,}")),
    _Shape(("sk-",), re.compile(r"(?<![A-Za-z0-9])(sk-(?!ant-)(?:proj-|svcacct-|admin-|or-v1-)?)[A-Za-z0-9_-]{16,}")),
    _Shape(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(r"(gh[pousr]_)[A-Za-z0-9]{16,}")),
    _Shape(("github_pat_",), re.compile(r"(github_pat_)[A-Za-z0-9_]{16,}")),
    _Shape(("AKIA", "ASIA"), re.compile(r"(A[KS]IA)[A-Z0-9]{16,}")),
    _Shape(("AIza",), re.compile(r"(AIza)[A-Za-z0-9_-]{20,}")),
    _Shape(("xox", "xapp-"), re.compile(r"(xox[a-z]-|xapp-)[A-Za-z0-9-]{10,}")),
    _Shape(("eyJ",), re.compile(r"(?<![A-Za-z0-9_-])(eyJ)[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)*")),
    _Shape(("/l/",), re.compile(r"(/l/)[A-Za-z0-9_-]{24,}")),
)

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


_HINTS = tuple(hint for shape in _SHAPES if not shape.folds for hint in shape.hints)
_FOLDED_HINTS = tuple(hint for shape in _SHAPES if shape.folds for hint in shape.hints)
_KEY_ENDINGS = ("key", "token", "secret", "password", "passwd", "authorization", "cookie")
"""JSON without any of the hints, and without a key that ends so in lower case, holds nothing to mask. Generous."""

_RAREST_FIRST = "@JKWCA_/-xb"
"""Characters of which every hint has one, by how seldom texts have them."""


def _searches(hints: Iterable[str]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """One search for all hints with the same rare character: a text without it is not searched at all."""
    groups: dict[str, list[str]] = {}
    for hint in hints:
        rare = next(character for character in _RAREST_FIRST if character in hint)
        before, _, after = hint.partition(rare)
        groups.setdefault(rare, []).append(f"(?<={re.escape(before + rare)}){re.escape(after)}")
    return tuple((rare, re.compile(f"{re.escape(rare)}(?:{'|'.join(found)})")) for rare, found in groups.items())


def _key_search() -> re.Pattern[str]:
    """Looks at the last two letters of a key first, which rule out nearly all."""
    letters = "|".join(sorted({ending[-2:] for ending in _KEY_ENDINGS}))
    endings = "|".join(f'(?<={ending}":)' for ending in _KEY_ENDINGS)
    return re.compile(f'":(?<=(?:{letters})":)(?:{endings})')


_SEARCHES = _searches(_HINTS)
_FOLDED_SEARCHES = _searches(_FOLDED_HINTS)
_KEY_SEARCH = _key_search()


def may_hold_secrets(text: str) -> bool:
    """Whether masking could change a value whose JSON is `text`; False is certain, True is a guess.

    Keys in it are followed by `":`, as every encoder writes them. Pure: any thread may call it.
    """
    if any(rare in text and pattern.search(text) for rare, pattern in _SEARCHES):
        return True
    folded = text.lower()
    if _KEY_SEARCH.search(folded):
        return True
    return any(rare in folded and pattern.search(folded) for rare, pattern in _FOLDED_SEARCHES)


def mask_text(text: str) -> str:
    """`text` with the body of every secret replaced by its first characters and `…`.

    Masking what is masked changes nothing. Pure: any thread may call it.
    """
    if len(text) < _SHORTEST or not may_hold_secrets(text):
        return text
    folded = text.lower()
    for shape in _SHAPES:
        if shape.may_be_in(text, folded):
            text = shape.pattern.sub(_with_head if shape.keeps_head else _without_head, text)
    return text


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
    if not value or (value.endswith(MASK) and len(value) <= _KEPT + len(MASK)):
        return value
    return _head(value) + MASK


def _with_head(match: re.Match[str]) -> str:
    return match.group(1) + _head(match.group()[len(match.group(1)) :]) + MASK


def _without_head(match: re.Match[str]) -> str:
    return match.group(1) + MASK


def _head(secret: str) -> str:
    return secret[:_KEPT] if len(secret) >= 4 * _KEPT else ""
