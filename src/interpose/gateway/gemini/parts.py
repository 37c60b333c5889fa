"""Parts of a content: which are calls, and what they propose.

Knows: the members of parts in both spellings, `functionCall` and `function_call`. Does not know: candidates, streams.
Source: https://ai.google.dev/api/caching#Part.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interpose.catalog.names import UNKNOWN_PREFIX
from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import ProposedCall
from interpose.gateway.bodies import RawObject, open_object, value_of
from interpose.kernel.canonical import canonical_hash
from interpose.kernel.ids import derived_id
from interpose.wire.jsonbytes import write_json
from interpose.wire.strictjson import read_arguments

CALL: Final = ("functionCall", "function_call")
RESPONSE: Final = ("functionResponse", "function_response")
SIGNATURE: Final = ("thoughtSignature", "thought_signature")
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
        return ProposedCall(
            "", f"{UNKNOWN_PREFIX}{name}", {}, f"a part of the kind {name!r}, which interpose cannot read"
        )

    call = value_of(raw)
    if not isinstance(call, dict) or all(name in fields for name in CALL):
        return ProposedCall("", f"{UNKNOWN_PREFIX}{CALL[0]}", {}, "a call that is no object, or is there twice")
    name = str(call.get("name") or "")
    call_id = call_id_of(call, value_of(member(fields, SIGNATURE)), ordinal)
    if any(call.get(piece) for piece in _PIECES):
        return ProposedCall(call_id, name, {}, "the arguments come in pieces, which interpose cannot read")
    arguments, problem = read_arguments(bytes(open_object(raw).get("args") or b""))
    if arguments is None and call.get("args") is None:
        arguments, problem = {}, None
    return ProposedCall(call_id, name, arguments or {}, problem)


def call_id_of(call: JsonObject, signature: Json, ordinal: int) -> str:
    """The call's own id, or else one that its copy in the history has too.

    Without a signature two equal calls at the same place of two contents have one id.
    """
    own = call.get("id")
    if isinstance(own, str) and own:
        return own
    told = signature if isinstance(signature, str) and signature else canonical_hash(call.get("args"))
    return derived_id("fc", str(call.get("name") or ""), str(ordinal), told)


def with_arguments(fields: RawObject, arguments: JsonObject) -> RawObject:
    """The part with other arguments; all its other members stay."""
    key = next(name for name in CALL if name in _telling(fields))
    call = {**open_object(fields[key]), "args": msgspec.Raw(write_json(arguments))}
    return {**fields, key: msgspec.Raw(write_json(call))}


def _telling(fields: RawObject) -> list[str]:
    """The members that say what a part is, beside those that run nothing; null says nothing."""
    return [name for name, raw in fields.items() if name not in HARMLESS and bytes(raw) != b"null"]
