"""Contents made of parts: what the person wrote in them, and where the edits of a session stand in them.

Knows: texts, and the reminders that agents put in by themselves. Does not know: how an API writes a part.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from interpose.contracts.json import Json
from interpose.gateway.api import ResultEdit, TurnEdit
from interpose.gateway.bodies import content_text, open_object, value_of
from interpose.gateway.documents import document_text
from interpose.gateway.marks import OURS, occurrences
from interpose.gateway.wording import REMINDER_CLOSE, REMINDER_OPEN

T = TypeVar("T")

_REMINDER = re.compile(f"{re.escape(REMINDER_OPEN)}.*?{re.escape(REMINDER_CLOSE)}", re.DOTALL)


def prompt_text(content: Json) -> str:
    """What the person wrote: a text, or the text parts without those that the agent itself put in as reminders."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return content_text(without_reminders(parts))


def without_reminders(content: Json) -> Json:
    """The content without the parts that the agent itself put in as reminders; the same where it has no parts."""
    return [part for part in content if not is_reminder(part)] if isinstance(content, list) else content


def is_written(part: Json) -> bool:
    """Whether a part has words of the person's, a file's too, and not a reminder of the agent's own."""
    return is_read(part) and not is_reminder(part)


def is_written_text(part: Json) -> bool:
    """As `is_written`, where the API says of each part what it is."""
    return is_read_text(part) and not is_reminder(part)


def is_read(part: Json) -> bool:
    """Whether a part has a text that is judged, its own or that of a file."""
    return read_text(part) is not None


def read_text(part: Json) -> str | None:
    """The text of a part that is judged, its own or that of a file; None where it has neither."""
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else document_text(part)


def is_read_text(part: Json) -> bool:
    """As `is_read`, where the API says of each part what it is."""
    return isinstance(part, dict) and (part.get("type") == "text" or document_text(part) is not None)


def is_reminder(part: Json) -> bool:
    """Whether a part is reminders that the agent itself put in, and nothing else."""
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(text, str) or not text.lstrip().startswith(REMINDER_OPEN):
        return False
    return not _REMINDER.sub("", text).strip()


def prompted(
    parts: list[T],
    turn: TurnEdit,
    is_prompt: Callable[[T], bool],
    text_parts: Callable[[str], list[T]],
    is_others: Callable[[T], bool],
) -> list[T]:
    """The reminder before the first part that `is_prompt`; what stands before it stays first, as results have to.

    A prompt that is replaced stands there in one part. `text_parts` makes parts of a text, none of an empty one.
    Of a message that was refused only what `is_others` is left: results, and the agent's own reminders.
    """
    if turn.refusal is not None:
        return [*filter(is_others, parts), *text_parts(turn.replacement or "")]
    prompts = [at for at, part in enumerate(parts) if is_prompt(part)]
    place = prompts[0] if prompts else len(parts)
    behind = parts[place:]
    if turn.replacement is not None:
        kept = [part for at, part in enumerate(parts) if at > place and at not in prompts]
        behind = [*text_parts(turn.replacement), *kept]
    return [*parts[:place], *text_parts(turn.reminder), *behind]


def annotated(
    parts: list[T], edit: ResultEdit, is_text: Callable[[T], bool], text_parts: Callable[[str], list[T]]
) -> list[T]:
    """The parts of a result, or what replaces those that are texts or all, between what stands before and below."""
    shown = parts
    if edit.replacement is not None:
        shown = text_parts(edit.replacement)
        if edit.keeps_rest:
            place = next((at for at, part in enumerate(parts) if is_text(part)), 0)
            shown = [*parts[:place], *shown, *(part for part in parts[place:] if not is_text(part))]
    return [*text_parts(edit.front), *shown, *text_parts(edit.addition)]


def lines_in(messages: Iterable[bytes], line: str) -> int:
    """How often the texts of these messages have this line of ours."""
    return occurrences((text for message in messages if OURS in message for text in _texts(message)), line)


def _texts(message: bytes) -> Iterator[str]:
    content = value_of(open_object(msgspec.Raw(message)).get("content"))
    if isinstance(content, str):
        yield content
        return
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
