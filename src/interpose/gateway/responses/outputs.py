"""Texts in the input of a responses request: of messages and of outputs, read and edited.

Knows: the shapes an output may have. Does not know: items, edits of a session.
"""

from typing import Any

from interpose.contracts.json import Json
from interpose.gateway.api import ResultEdit
from interpose.gateway.contents import annotated, is_read, read_text
from interpose.wire.jsonbytes import write_json


def input_text(text: str) -> dict[str, Any]:
    """A text part of the input."""
    return {"type": "input_text", "text": text}


def text_parts(text: str) -> list[Json]:
    """A text as parts of the input; none for an empty one."""
    return [input_text(text)] if text else []


def text_of(content: Json) -> str:
    """The text that the model sees of a content: a string, or its parts' texts and files joined by line ends."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(text for part in content if (text := read_text(part)) is not None)


def output_text_of(output: Json) -> str:
    """The text that the model sees of an output; of a shell's pieces what they printed."""
    if isinstance(output, dict):
        return write_json(output).decode()
    if not _is_printed(output):
        return text_of(output)
    return "".join(str(piece.get(stream) or "") for piece in output for stream in ("stdout", "stderr"))


def edited_output(output: Json, edit: ResultEdit) -> Json:
    """The output with its edit, in the shape it has; only a picture's can be replaced and not added to."""
    if isinstance(output, str | None):
        return edit.applied(output or "")
    if isinstance(output, dict):
        return output if edit.replacement is None else edit.applied("")
    if _is_printed(output):
        return _edited_pieces(output, edit)
    return annotated(output, edit, is_read, text_parts)


def _edited_pieces(pieces: list[Json], edit: ResultEdit) -> list[Json]:
    if edit.replacement is not None:
        return [{**pieces[0], "stdout": edit.applied(""), "stderr": ""}]
    edited = [dict(piece) for piece in pieces]
    if edit.front:
        edited[0]["stdout"] = f"{edit.front}\n\n{edited[0].get('stdout') or ''}"
    if edit.addition:
        edited[-1]["stdout"] = f"{edited[-1].get('stdout') or ''}\n\n{edit.addition}"
    return edited


def _is_printed(output: Json) -> bool:
    """Whether it is what a shell call printed, in pieces."""
    return (
        isinstance(output, list)
        and bool(output)
        and all(isinstance(piece, dict) and ("stdout" in piece or "stderr" in piece) for piece in output)
    )
