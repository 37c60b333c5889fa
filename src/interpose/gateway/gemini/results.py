"""What a function response says, and how an edit is written into it.

Knows: the members under which agents put a tool's text. Does not know: contents, edits of a session.
"""

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.wording import framed
from interpose.gateway.api import ResultEdit
from interpose.gateway.bodies import open_object, value_of
from interpose.gateway.documents import document_text
from interpose.gateway.gemini.parts import RESPONSE
from interpose.wire.jsonbytes import write_json

_TEXTS = ("output", "result", "content", "error")
"""Members of a response that hold its text, in the order in which they are looked for."""

_OURS = "interpose"
"""The member that carries our lines where a response has no text of its own."""


def text_of_response(response: Json) -> str:
    """The text that the model sees: the response's own, else the response as JSON."""
    name = _text_name(response)
    if name is not None:
        return str(response[name])
    return "" if response is None else write_json(response).decode()


def files_text_of(answered: JsonObject) -> str:
    """The texts of the files that stand beside a response."""
    texts = (document_text(part) for part in _files(answered))
    return "\n".join(text for text in texts if text)


def error_text_of(response: Json) -> str | None:
    """The text of a response that says that the tool failed, else None."""
    return str(response["error"]) if isinstance(response, dict) and response.get("error") else None


def edited_response(raw: msgspec.Raw, edit: ResultEdit) -> msgspec.Raw:
    """The part with its function response edited; of an output that is replaced pictures may stay, files of text go."""
    fields = open_object(raw)
    key = next(name for name in RESPONSE if fields.get(name) is not None)
    answered = open_object(fields[key])
    response = value_of(answered.get("response"))
    changed: dict[str, Json] = {**answered, "response": _edited(response, edit)}
    if edit.replacement is not None:
        changed.pop("parts", None)
        kept = [part for part in _files(value_of(fields[key])) if document_text(part) is None]
        if edit.keeps_rest and kept:
            changed["parts"] = kept
    return msgspec.Raw(write_json({**fields, key: changed}))


def _edited(response: Json, edit: ResultEdit) -> Json:
    name = _text_name(response)
    if edit.replacement is not None and not (edit.keeps_rest and name is not None):
        return {name or _TEXTS[0]: edit.applied("")}
    if name is not None:
        return {**response, name: edit.applied(str(response[name]))}
    members = response if isinstance(response, dict) else {}
    lines = {_OURS: framed(edit.front, edit.addition)}
    return {**lines, **members} if edit.front else {**members, **lines}


def _files(answered: JsonObject) -> list[Json]:
    parts = answered.get("parts")
    return parts if isinstance(parts, list) else [] if parts is None else [parts]


def _text_name(response: Json) -> str | None:
    if not isinstance(response, dict):
        return None
    return next((name for name in _TEXTS if isinstance(response.get(name), str)), None)
