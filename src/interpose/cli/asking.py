"""How a question looks: a block that a person can read, in which nothing of the call can hide or pose as our words.

Knows: labels, wrapping, what is left out. Does not know: where the answer is typed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.cells import chop_cells
from rich.text import Text

from interpose.trust.questions import Question

LINES_SHOWN: Final = 60
"""So many lines of a call's arguments are shown; of what is longer, the beginning and the end."""

UNNAMED: Final = "(unnamed)"
"""An agent that nobody named."""

_LABEL: Final = 13
_NARROWEST: Final = 24
_TAIL: Final = 20


def question_block(question: Question, *, now: float, width: int, place: tuple[int, int] = (1, 1)) -> Text:
    """The question with everything that a person needs for an answer; `place` is its number among those that wait."""
    number, count = place
    heading = "a call waits for your yes" if question.state == "waiting" else "a call that waited for your yes"
    heading += f" ({number} of {count})" if count > 1 else ""
    told = Text(f"── {heading} ──\n", style="note")
    for label, value, style in _rows(question, now):
        for piece in _wrapped(label, value, width):
            told.append(piece[:_LABEL], style="dim")
            told.append(piece[_LABEL:] + "\n", style=style)
    return told


def question_json(question: Question) -> dict[str, Any]:
    """The question for machines."""
    return {name: value for name, value in asdict(question).items() if name != "mark"} | {"ending": question.ending}


def subject(question: Question, chars: int) -> str:
    """What the call does, on one line of at most so many characters."""
    told = next((value for name in _TOLD_FIRST if isinstance(value := question.arguments.get(name), str)), None)
    text = visible((told if told is not None else json.dumps(question.arguments, ensure_ascii=False))[: 4 * chars])
    return text if len(text) <= chars else text[: chars - 1] + "…"


def visible(text: str) -> str:
    """`text` with every character that does not print as its escape, line ends too."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


_TOLD_FIRST: Final = ("command", "path", "file_path", "url", "query", "pattern", "prompt", "description")


def _rows(question: Question, now: float) -> Iterator[tuple[str, Sequence[str], str]]:
    yield "agent", [question.agent or UNNAMED], ""
    if question.workspace:
        yield "workspace", [question.workspace], ""
    yield "tool", [question.tool_name], "name"
    yield from _arguments(question)
    yield "why", question.reason.splitlines() or ["no reason was given"], ""
    if question.handler:
        yield "asked by", [question.handler], ""
    yield "question", [f"{question.id}  (digest {question.digest[:12]})"], ""
    if question.state == "waiting":
        left_s = max(0.0, question.expires_at - now)
        yield "answer", [f"within {left_s:.0f} s, or the call is refused"], ""
        return
    yield "answer", [f"it {question.ending}"], ""


def _arguments(question: Question) -> Iterator[tuple[str, Sequence[str], str]]:
    arguments: Mapping[str, Any] = question.arguments
    command = arguments.get("command")
    rest = arguments
    if isinstance(command, str) and command:
        yield "command", _shortened(command.split("\n")), "bold"
        rest = {name: value for name, value in arguments.items() if name != "command"}
    if rest:
        yield "arguments", _shortened(json.dumps(rest, indent=2, ensure_ascii=False).split("\n")), ""
    elif not arguments:
        yield "arguments", ["none"], ""
    if not question.is_whole:
        yield "note", ["the arguments are too long to be shown whole: parts of them are left out"], "problem"


def _shortened(lines: Sequence[str]) -> Sequence[str]:
    if len(lines) <= LINES_SHOWN:
        return lines
    left_out = len(lines) - LINES_SHOWN
    return [
        *lines[: LINES_SHOWN - _TAIL],
        f"… {left_out} lines are not shown here: `interpose approvals show ID --json` has them …",
        *lines[-_TAIL:],
    ]


def _wrapped(label: str, value: Sequence[str], width: int) -> Iterator[str]:
    """Wrapped here and not by the terminal, so that no text of the call ever stands in the column of our labels."""
    start = f"  {label:<{_LABEL - 3}} "
    for line in value:
        for piece in chop_cells(visible(line), max(_NARROWEST, width - _LABEL)) or [""]:
            yield start + piece
            start = " " * _LABEL
