"""A question to a person as a value, and what can be wrong with an answer.

Knows: the states of a question, and what of a call people are shown. Does not know: where questions are kept.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from interpose.contracts.errors import InterposeError
from interpose.contracts.json import JsonObject
from interpose.secrets.masking import mask_json, mask_text

State: TypeAlias = Literal["waiting", "allowed", "denied", "expired", "withdrawn", "gone"]
"""`expired`: nobody answered in time. `withdrawn`: the call was given up. `gone`: the process that asked has ended."""

SHOWN_CHARS: Final = 256 * 1024
"""How much of a call's arguments is kept for people to see."""

_TEXT_CHARS: Final = 8_000
_CUT_CHARS: Final = 4_000

_ENDINGS: Final[Mapping[str, str]] = {
    "waiting": "waits",
    "allowed": "was answered with yes",
    "denied": "was answered with no",
    "expired": "expired: nobody answered in time, so the call was refused",
    "withdrawn": "was withdrawn: the call was given up before anybody answered",
    "gone": "leads nowhere: the process that asked has ended",
}


@dataclass(frozen=True, slots=True)
class Question:
    """One call that waits, or waited, for a person's yes.

    Attributes:
        id: what people call it by, such as q-7f3a.
        digest: `call_digest` of the real call; a yes is a yes to this digest.
        tool_name: the tool as it will be called.
        arguments: what it will be called with, secrets masked.
        is_whole: whether `arguments` is everything; False when it was too long to keep.
        reason, handler: why a person is asked, and by whom.
        agent, session, workspace, call_id: whose call it is; "" where unknown.
        pid, mark: the process that asks.
        asked_at, expires_at, settled_at: seconds since the epoch.
        state: whether it waits, or what became of it.
        who: where it was answered, in words; "" unless a person did.
    """

    id: str
    digest: str
    tool_name: str
    arguments: JsonObject
    is_whole: bool
    reason: str
    handler: str
    agent: str
    session: str
    workspace: str
    call_id: str
    pid: int
    mark: str
    asked_at: float
    expires_at: float
    state: State
    who: str
    settled_at: float | None

    @property
    def ending(self) -> str:
        """What became of it, in words."""
        return _ENDINGS[self.state] + (f" ({self.who})" if self.who else "")


class UnknownQuestionError(InterposeError):
    """There is no question with this id."""

    def __init__(self, question_id: str) -> None:
        self.question_id = question_id
        super().__init__(
            f"there is no question {question_id!r} (`interpose approvals list --all` shows those there are)"
        )


class NotWaitingError(InterposeError):
    """The question is settled, so an answer changes nothing."""

    def __init__(self, question: Question) -> None:
        self.question = question
        super().__init__(
            f"{question.id} no longer waits: it {question.ending} "
            "(`interpose approvals list` shows what waits; the agent may make the call again)"
        )


class OtherDigestError(InterposeError):
    """What was shown is not what the question is about."""

    def __init__(self, question_id: str, digest: str) -> None:
        self.question_id = question_id
        super().__init__(
            f"{question_id} is about another call than the one with digest {digest[:12]!r} "
            f"(look at it with `interpose approvals show {question_id}`)"
        )


class OwnQuestionError(InterposeError):
    """Whoever answers was started by whoever asks: that is an agent's program and not the person."""

    def __init__(self, question: Question) -> None:
        self.question = question
        super().__init__(
            f"{question.id} is asked by process {question.pid}, which started this one: "
            "a yes must come from a person (answer in your own terminal)"
        )


def shown_arguments(arguments: JsonObject) -> tuple[str, bool]:
    """The arguments as JSON text that may be kept and shown, and whether that is all of them.

    Secrets are masked first; what is then longer than 256 KiB loses the middle of its long texts. Pure.
    """
    try:
        text = _json(mask_json(arguments))
        if len(text) <= SHOWN_CHARS:
            return text, True
        text = _json(_shortened(json.loads(text)))
    except (AttributeError, TypeError, ValueError, RecursionError):  # keys that are no texts, circles, nested too deep
        text = _json({"as Python shows it": _cut(mask_text(_described(arguments)))})
    if len(text) > SHOWN_CHARS:
        text = _json({"its beginning": _cut(text)})
    return text, False


def shown_text(text: str) -> str:
    """A short text as it may be kept: secrets masked, its length bounded, storable as UTF-8."""
    return mask_text(text[: 4 * _TEXT_CHARS])[:_TEXT_CHARS].encode("utf-8", "backslashreplace").decode("utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, default=lambda other: mask_text(_described(other)))


def _described(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - a foreign `repr`; the person is told that it cannot be shown
        return f"<a {type(value).__name__} that cannot be shown: {type(error).__name__}>"


def _shortened(value: Any) -> Any:
    match value:
        case str():
            return _cut(value)
        case dict():
            return {key: _shortened(item) for key, item in value.items()}
        case list():
            left_out = [f"… ({len(value) - 50} more)"] if len(value) > 50 else []
            return [*map(_shortened, value[:50]), *left_out]
        case _:
            return value


def _cut(text: str) -> str:
    if len(text) <= _CUT_CHARS:
        return text
    half = _CUT_CHARS // 2
    return f"{text[:half]}… ({len(text) - 2 * half} characters are not shown) …{text[-half:]}"
