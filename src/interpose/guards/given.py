"""What guards ask of every hook input: session, turn, names, whether the model ended by itself.

Knows: the metadata keys that several guards read. Does not know: any guard. Everything here is pure.
"""

import hashlib
import math
import re
from typing import Final

from interpose.contracts.effects import HookInput

NO_TURN: Final = "no-turn"
"""The turn of a call whose mount knows none."""

_NORMAL_ENDS: Final = frozenset({"stop", "end_turn"})
_SEPARATORS: Final = re.compile(r"[ -]+")


def session_of(given: HookInput) -> str:
    """The session, "" when the mount knows none."""
    return given.session_id or ""


def tool_turn(given: HookInput) -> str:
    """The turn of a tool hook."""
    return given.turn_id or given.run_id or NO_TURN


def ended_turn(given: HookInput) -> str:
    """The turn that a turn_end closes, under the key that its tool hooks had."""
    user_turn = text_of(given, "userTurnId")
    return user_turn or given.turn_id or given.run_id or NO_TURN


def text_of(given: HookInput, key: str) -> str | None:
    """A metadata value when it is text, else None."""
    value = given.metadata.get(key)
    return value if isinstance(value, str) else None


def number_of(given: HookInput, key: str) -> float | None:
    """A metadata value when it is a finite number (true and false are none), else None."""
    value = given.metadata.get(key)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else None


def names_in(given: HookInput, key: str) -> tuple[str, ...] | None:
    """A metadata value that lists names with commas; None when it is no text."""
    text = text_of(given, key)
    if text is None:
        return None
    return tuple(name for part in text.split(",") if (name := part.strip()))


def call_identity(given: HookInput) -> bytes | None:
    """Which call it is, by what the model proposed, in 16 bytes; None when the mount cannot say."""
    fingerprint = text_of(given, "callFingerprint")
    return None if fingerprint is None else digest_of(fingerprint)


def content_of(given: HookInput) -> tuple[bytes | None, str | None]:
    """What was called and what came back, for telling apart calls of an agent whose ids start anew each round."""
    return call_identity(given), text_of(given, "resultFingerprint")


def digest_of(text: str) -> bytes:
    """16 bytes that stand for a text, however long it is."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def is_continuation(given: HookInput) -> bool:
    """Whether a turn_start carries the turn before it onward, rather than being a person's new prompt."""
    return given.metadata.get("requestContinuation") is True


def ended_normally(given: HookInput) -> bool:
    """Whether the model ended by itself: no stop reason at all, or one that means just that in some protocol."""
    reason = given.metadata.get("stopReason")
    if reason is None or reason in _NORMAL_ENDS:
        return True
    if not isinstance(reason, str):
        return False
    plain = _SEPARATORS.sub("_", reason.strip().lower())
    return plain in _NORMAL_ENDS or plain.startswith("stop_sequence")


def whole_text(given: HookInput) -> str | None:
    """The text, or None when there is none or when its end was cut away."""
    if given.text is None:
        return None
    length = number_of(given, "assistantTextChars")
    return None if length is not None and length > len(given.text) else given.text


def succeeded(given: HookInput) -> bool:
    """Whether an after_tool tells of a call that went well."""
    return given.metadata.get("resultKind") == "ok"
