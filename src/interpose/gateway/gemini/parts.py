"""Parts of a content: which are calls, and what they propose.

Knows: the members of parts in both spellings, `functionCall` and `function_call`. Does not know: candidates, streams.
Source: https://ai.google.dev/api/caching#Part.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import ProposedCall
from interpose.gateway.bodies import RawObject, open_object, value_of
from interpose.gateway.proposed import name_in, unknown_call, with_name
from interpose.kernel.canonical import lenient_hash
from interpose.kernel.ids import derived_id
from interpose.wire.jsonbytes import write_json
from interpose.wire.strictjson import read_arguments

CALL: Final = ("functionCall", "function_call")
RESPONSE: Final = ("functionResponse", "function_response")
SIGNATURE: Final = ("thoughtSignature", "thought_signature")
TOOL_CONFIG: Final = ("toolConfig", "tool_config")
CALLING: Final = ("functionCallingConfig", "function_calling_config")
_PIECES: Final = ("partialArgs", "partial_args", "willContinue", "will_continue")

_CAMEL: Final = (
    "text",
    "thought",
    "thoughtSignature",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "functionResponse",
    "toolCall",
    "toolResponse",
    "videoMetadata",
    "mediaResolution",
    "mediaProcessing",
    "partMetadata",
    "audioTranscription",
    "speechMetadata",
    "documentMetadata",
    "spreadsheetMetadata",
    "audioMetadata",
)
HARMLESS: Final = frozenset(
    {*_CAMEL, *("".join(f"_{char.lower()}" if char.isupper() else char for char in name) for name in _CAMEL)}
)
"""Members of parts that run nothing at the client; code and tools among them run at the provider."""

ONE_TEXT: Final = re.compile(
    rb'"parts"\s*:\s*\[\s*\{\s*"text"\s*:\s*"(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)"\s*'
    rb'(?P<thought>,\s*"thought"\s*:\s*true\s*)?(?:,\s*"thoughtSignature"\s*:\s*"[^"\\]*"\s*)?\}\s*\]'
)
"""The parts of a chunk that says one text and nothing else."""

OTHER_CANDIDATE: Final = re.compile(rb'"index"\s*:\s*[^0\s]')
"""Where a chunk has another candidate than the first."""


def member(fields: Mapping[str, Any], names: tuple[str, str]) -> Any:
    """The member in either spelling, or None."""
    first = fields.get(names[0])
    return fields.get(names[1]) if first is None else first


def is_call(fields: RawObject) -> bool:
    """Whether a part is a call, or a thing that nobody knows, which is taken for one."""
    return bool(_telling(fields))


def read_call(fields: RawObject, ordinal: int) -> ProposedCall:
    """The call of one complete part. `ordinal` counts the calls before it in its content, for calls without an id."""
    raw = next((fields[name] for name in CALL if name in _telling(fields)), None)
    if raw is None:
        name = _telling(fields)[0]
        return unknown_call("", name, f"a part of the kind {name!r}, which interpose cannot read")

    call = value_of(raw)
    if not isinstance(call, dict) or all(name in fields for name in CALL):
        return unknown_call("", CALL[0], "a call that is no object, or is there twice")
    name = name_in(call.get("name"))
    call_id = call_id_of(call, value_of(member(fields, SIGNATURE)), ordinal)
    if any(call.get(piece) for piece in _PIECES):
        pieces = ProposedCall(call_id, name, {}, "the arguments come in pieces, which interpose cannot read")
        return with_name(pieces, CALL[0])
    arguments, problem = read_arguments(bytes(open_object(raw).get("args") or b""))
    if arguments is None and call.get("args") is None:
        arguments, problem = {}, None
    return with_name(ProposedCall(call_id, name, arguments or {}, problem), CALL[0])


def own_id(fields: RawObject) -> str:
    """The id that the provider gave the call of this part; "" for none."""
    call = value_of(next((fields[name] for name in CALL if name in _telling(fields)), None))
    given = call.get("id") if isinstance(call, dict) else None
    return given if isinstance(given, str) else ""


def call_id_of(call: JsonObject, signature: Json, ordinal: int) -> str:
    """The call's own id, or else one that its copy in the history has too.

    Without a signature two equal calls at the same place of two contents have one id.
    """
    own = call.get("id")
    if isinstance(own, str) and own:
        return own
    told = signature if isinstance(signature, str) and signature else lenient_hash(call.get("args"))
    return derived_id("fc", str(call.get("name") or ""), str(ordinal), told)


def with_arguments(fields: RawObject, arguments: JsonObject, call_id: str = "") -> RawObject:
    """The part with other arguments; all its other members stay.

    `call_id` is for a call that would be known by its arguments; one with an id of its own keeps that.
    """
    key = next(name for name in CALL if name in _telling(fields))
    call = open_object(fields[key])
    if call_id and not value_of(call.get("id")):
        call = {"id": msgspec.Raw(write_json(call_id)), **call}
    call["args"] = msgspec.Raw(write_json(arguments))
    return {**fields, key: msgspec.Raw(write_json(call))}


def with_own_arguments(fields: RawObject, arguments: JsonObject, ordinal: int) -> RawObject:
    """What `with_arguments` changed, with the model's own `arguments` again, and without an id that was not its own."""
    key = next(name for name in CALL if name in _telling(fields))
    call = {**open_object(fields[key]), "args": msgspec.Raw(write_json(arguments))}
    bare = {name: raw for name, raw in call.items() if name != "id"}
    signature = value_of(member(fields, SIGNATURE))
    unnamed: JsonObject = {name: value_of(raw) for name, raw in bare.items()}
    is_ours = value_of(call.get("id")) == call_id_of(unnamed, signature, ordinal)
    return {**fields, key: msgspec.Raw(write_json(bare if is_ours else call))}


def proposes(part: Json) -> bool:
    """As `is_call`, of a part that has been read."""
    return isinstance(part, dict) and any(name not in HARMLESS and value is not None for name, value in part.items())


def spoken_text(part: Json) -> str:
    """What a part tells the person; "" for a thought and for all that is no text."""
    text = part.get("text") if isinstance(part, dict) and part.get("thought") is not True else None
    return text if isinstance(text, str) else ""


def answer_of(entry: Json, text: str) -> Json:
    """The response to a refused call, as the model is told it, in the spelling of the call."""
    key, answer = next((key, answer) for key, answer in zip(CALL, RESPONSE, strict=True) if entry.get(key) is not None)
    call = entry[key]
    own = {"id": call["id"]} if call.get("id") else {}
    return {answer: {**own, "name": call.get("name") or "", "response": {"error": text}}}


def grows(part: Json) -> str | None:
    """What a part is a piece of: "text" or "thought"; None for one that stands for itself, as with a signature."""
    if not isinstance(part, dict) or not isinstance(part.get("text"), str):
        return None
    if len(part) == 1:
        return "text"
    return "thought" if len(part) == 2 and part.get("thought") is True else None


def is_empty(part: Json) -> bool:
    """Whether a part is a piece of a text or thought that says nothing: clients keep it, or not."""
    return grows(part) is not None and not part["text"]


def joined(parts: Iterable[Json]) -> list[Json]:
    """The parts, neighbouring pieces of one text or thought as one, without empty ones; the rest as it was."""
    together: list[Json] = []
    for kind, group in groupby((part for part in parts if not is_empty(part)), key=grows):
        pieces = list(group)
        if kind is None:
            together += pieces
            continue
        together.append({**pieces[0], "text": "".join(piece["text"] for piece in pieces)})
    return together


def _telling(fields: RawObject) -> list[str]:
    """The members that say what a part is, beside those that run nothing; null says nothing."""
    return [name for name, raw in fields.items() if name not in HARMLESS and bytes(raw) != b"null"]
