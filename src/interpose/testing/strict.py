"""What a scripted model remembers and will not be deceived about: what it signed, and what it was told before.

Knows: tokens that can be recognised as its own, prefixes of prompts. Does not know: any API's shape.
"""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from interpose.contracts.json import Json

_MAKER = "scripted"
_TOKEN = re.compile(r"(\d+\.\d+)\.([0-9a-f]{16})")
CHARS_PER_TOKEN = 4
"""What is counted as one token."""


@dataclass(frozen=True, slots=True)
class PromptUse:
    """How many tokens one prompt had, and how many at its start were those of an earlier one."""

    tokens: int
    cached_tokens: int


class PromptCache:
    """The prompts of one upstream, for the longest unchanged prefix. Not for several threads by itself."""

    def __init__(self) -> None:
        self._prompts: dict[str, list[list[str]]] = {}

    def use(self, model: str, prompt: Sequence[Json]) -> PromptUse:
        """Counts a prompt, in its parts from first to last, and remembers it for this model."""
        parts = [json.dumps(part, sort_keys=True) for part in prompt]
        known = self._prompts.setdefault(model, [])
        cached = max((_common(parts, earlier) for earlier in known), default=0)
        known.append(parts)
        return PromptUse(_tokens(parts), _tokens(parts[:cached]))


def signature_of(text: str) -> str:
    """The signature of a thought: another one for every other text."""
    return base64.b64encode(hashlib.sha256(f"{_MAKER}:{text}".encode()).digest()).decode()


def token(number: int, index: int) -> str:
    """A token that nobody else can make, for the reply `number` and its part `index`."""
    named = f"{number}.{index}"
    return base64.b64encode(f"{named}.{_proof(named)}".encode()).decode()


def is_own_token(value: Json) -> bool:
    """Whether `token` made this, unedited."""
    if not isinstance(value, str):
        return False
    try:
        found = _TOKEN.fullmatch(base64.b64decode(value, altchars=b"-_").decode())
    except ValueError:
        return False
    return found is not None and found.group(2) == _proof(found.group(1))


def plain(value: Json, *, without: Sequence[str] = ("cache_control",)) -> Json:
    """The value without members that a model does not see."""
    if isinstance(value, dict):
        return {key: plain(item, without=without) for key, item in value.items() if key not in without}
    if isinstance(value, list):
        return [plain(item, without=without) for item in value]
    return value


def _proof(named: str) -> str:
    return hashlib.sha256(f"{_MAKER}:{named}".encode()).hexdigest()[:16]


def _common(parts: list[str], earlier: list[str]) -> int:
    """How many parts at the start are the same."""
    pairs = enumerate(zip(parts, earlier, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(parts), len(earlier)))


def _tokens(parts: Sequence[str]) -> int:
    return sum(len(part) for part in parts) // CHARS_PER_TOKEN
