"""What of a generateContent request is new, and how the session's edits are written into it.

Knows: contents, parts, function responses, in both spellings. Does not know: verdicts.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import groupby
from operator import itemgetter

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import ToolChoice
from interpose.gateway.api import Edits, NewResult, NewTurn, Rewritten, Unreadable
from interpose.gateway.bodies import (
    RawObject,
    content_digest,
    is_same,
    listed,
    named,
    open_body,
    open_object,
    value_of,
)
from interpose.gateway.contents import is_reminder, is_written, prompted, read_text
from interpose.gateway.gemini.history import Restoring, texts_of
from interpose.gateway.gemini.parts import CALL, CALLING, RESPONSE, TOOL_CONFIG, member, read_call
from interpose.gateway.gemini.results import edited_response, error_text_of, files_text_of, text_of_response
from interpose.gateway.marks import occurrences
from interpose.gateway.reading import UNKNOWN_CALL, ReadRequest, ResultEdits, first_unseen
from interpose.wire.jsonbytes import write_json

_DECLARATIONS = ("functionDeclarations", "function_declarations")
_PERSON = ("user", "")
"""A content without a role is the person's."""


class GeminiRequest(ReadRequest):
    """The port `RequestView`. Raises Unreadable when the body is not JSON or its contents are no list.

    The model is in the path, so it is None here; and whether the reply is to be streamed.
    """

    def __init__(self, body: bytes) -> None:
        top = open_body(body, arguments="args")
        _refuse_wrapped(top)
        contents = [_content(raw, place) for place, raw in enumerate(listed(top.get("contents"), "contents"))]
        listed(top.get("tools"), "tools")
        self._values = [value_of(msgspec.Raw(content)) for content in contents]
        self._roles = [_role(value) for value in self._values]
        of_model = [role == "model" for role in self._roles]
        super().__init__(body, top, contents, first_unseen(of_model, [not is_model for is_model in of_model]))

    @cached_property
    def tools(self) -> list[Json]:
        """As the port says; a single one is a list of one."""
        return [value_of(raw) for raw in listed(self._top.get("tools"), "tools")]

    def _model_and_form(self) -> tuple[str | None, bool]:
        return None, False

    @cached_property
    def root(self) -> str:
        """As the port says: what the person said first."""
        first = next((value for value, role in zip(self._values, self._roles, strict=True) if role in _PERSON), None)
        return "" if first is None else content_digest(_parts(first))

    def occurrences(self, line: str) -> int:
        """As the port says."""
        return occurrences(texts_of(self._values), line)

    def tool_names(self) -> tuple[str, ...]:
        """As the port says; tools that the provider runs by itself have no names."""
        return named(entry for tool in self.tools for entry in _declared(tool))

    def rewritten(self, edits: Edits, tool_choice: ToolChoice | None) -> Rewritten:
        """The body with all edits; the client's own bytes when there is none."""
        return self._with_history("contents", self._edited_history(edits), self._tool_config(tool_choice))

    def _model_history(self, edits: Edits) -> list[bytes]:
        """The contents as the model knows them; the same objects where that is what the client has."""
        results = ResultEdits(edits)
        edited = [self._edited(position, edits, results) for position in range(len(self._history))]
        if not edits.restores:
            return edited
        restoring = Restoring(edits, self.root)
        contents: list[bytes] = []
        for role, group in groupby(zip(self._roles, edited, strict=True), key=itemgetter(0)):
            run = [content for _, content in group]
            contents += restoring.spoken(run) if role == "model" else map(restoring.heard, run)
        return [*contents, *restoring.between()]

    def _newest_prompt(self) -> NewTurn | None:
        for position in range(len(self._history) - 1, -1, -1):
            parts = _parts(self._values[position])
            if self._roles[position] not in _PERSON:
                continue
            prompt = "\n".join(read_text(part) or "" for part in parts if is_written(part))
            if prompt.strip():
                return NewTurn(position, _prompt_digest(parts), prompt, earlier=position)
        return None

    def _new_results(self) -> Iterator[NewResult]:
        for position in range(self._new_from, len(self._history)):
            for call_id, answered, call in self._answers(position):
                response = answered.get("response")
                failure = error_text_of(response)
                texts = (text_of_response(response), files_text_of(answered))
                yield NewResult(
                    call_id=call_id,
                    digest=content_digest(answered),
                    name=str(answered.get("name") or "") if call is None else call[0],
                    arguments={} if call is None else call[1],
                    output="\n".join(text for text in texts if text),
                    is_error=failure is not None,
                    problem=UNKNOWN_CALL if call is None else call[2],
                )

    def _told(self, position: int) -> Iterator[tuple[str, Json]]:
        for call_id, answered, _ in self._answers(position):
            yield call_id, answered

    def _answers(self, position: int) -> Iterator[tuple[str, JsonObject, tuple[str, JsonObject, str | None] | None]]:
        """The function responses of a content: call id, the response, and name, arguments, problem of its call.

        A response belongs to the call with its id, else to the first of its name that is not answered yet.
        """
        asked = self._calls_before(position)
        for part in _parts(self._values[position]):
            answered = member(part, RESPONSE)
            if not isinstance(answered, dict):
                continue
            own = str(answered.get("id") or "")
            found = next((call for call in asked if own and call[0] == own), None)
            found = found or next((call for call in asked if call[1][0] == answered.get("name")), None)
            if found is None:
                yield own, answered, None
                continue
            asked.remove(found)
            yield found[0], answered, found[1]

    def _calls_before(self, position: int) -> list[tuple[str, tuple[str, JsonObject, str | None]]]:
        """The calls of the model that the content at `position` answers; some clients keep a content a chunk."""
        last = next((at for at in range(position - 1, -1, -1) if self._roles[at] == "model"), -1)
        first = next((at + 1 for at in range(last, -1, -1) if self._roles[at] != "model"), 0)
        calls: list[tuple[str, tuple[str, JsonObject, str | None]]] = []
        for content in self._history[first : last + 1]:
            for raw in listed(open_object(msgspec.Raw(content)).get("parts"), "parts"):
                part = value_of(raw)
                if not isinstance(part, dict) or member(part, CALL) is None:
                    continue
                call = read_call(open_object(raw), len(calls))
                calls.append((call.call_id, (call.name, call.arguments, call.problem)))
        return calls

    def _edited(self, position: int, edits: Edits, results: ResultEdits) -> bytes:
        """The content with its edits; the same object when there are none."""
        content = self._history[position]
        has_results = bool(results) and any(True for _ in self._answers(position))
        if not has_results and position not in edits.edited_positions:
            return content

        fields = open_object(msgspec.Raw(content))
        raw_parts = listed(fields.get("parts"), "parts")
        edited = self._edited_results(position, raw_parts, results) if has_results else raw_parts
        digest = _prompt_digest(_parts(self._values[position]))
        turn = edits.turn_edit(position, digest) if position in edits.edited_positions else None
        if turn is not None and not turn.is_empty and self._roles[position] in _PERSON:
            edited = prompted(edited, turn, _is_prompt, _text_parts, _is_others)
        if is_same(edited, raw_parts):
            return content
        return write_json({**fields, "parts": msgspec.Raw(write_json(edited))})

    def _edited_results(self, position: int, raw_parts: list[msgspec.Raw], results: ResultEdits) -> list[msgspec.Raw]:
        answers = self._answers(position)
        edited: list[msgspec.Raw] = []
        for raw in raw_parts:
            part = value_of(raw)
            if not isinstance(part, dict) or not isinstance(member(part, RESPONSE), dict):
                edited.append(raw)
                continue
            call_id, value, _ = next(answers)
            edit = results.next(call_id, value)
            edited.append(raw if edit is None else edited_response(raw, edit))
        return edited

    def _tool_config(self, wanted: ToolChoice | None) -> RawObject:
        """The member that says how tools may be used, with its new value; none when that cannot be said."""
        if wanted is None or "tools" not in self._top:
            return {}
        if wanted.mode != "none" and wanted.tool_name not in self.tool_names():
            return {}
        calling: JsonObject = {"mode": "NONE"}
        if wanted.mode != "none":
            calling = {"mode": "ANY", "allowedFunctionNames": [wanted.tool_name]}
        key = next((name for name in TOOL_CONFIG if name in self._top), TOOL_CONFIG[0])
        known = value_of(self._top.get(key))
        config = dict(known) if isinstance(known, dict) else {}
        inner = next((name for name in CALLING if name in config), CALLING[0])
        return {key: msgspec.Raw(write_json({**config, inner: calling}))}


def _refuse_wrapped(top: RawObject) -> None:
    """Raises Unreadable for a request within another object: who reads that one is not asked for what stands here."""
    inner = top.get("request")
    if inner is not None and bytes(inner).startswith(b"{") and "contents" in open_object(inner):
        raise Unreadable(
            "its contents stand in `request`, as in Google's Code Assist; here they belong in the body itself"
        )


def _role(content: Json) -> str:
    role = content.get("role") if isinstance(content, dict) else None
    return role if isinstance(role, str) else ""


def _parts(content: Json) -> list[JsonObject]:
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part if isinstance(part, dict) else {} for part in parts] if isinstance(parts, list) else []


def _declared(tool: Json) -> list[Json]:
    declared = member(tool, _DECLARATIONS) if isinstance(tool, dict) else None
    return declared if isinstance(declared, list) else [declared]


def _content(raw: msgspec.Raw, place: int) -> bytes:
    """A content with its parts in a list."""
    fields = open_object(raw, f"contents[{place}]")
    parts = fields.get("parts")
    if parts is None or bytes(parts) == b"null" or bytes(parts).startswith(b"["):
        return bytes(raw)
    return write_json({**fields, "parts": listed(parts, f"contents[{place}].parts")})


def _prompt_digest(parts: list[JsonObject]) -> str:
    """Equal for prompts that say the same, whatever responses they stand beside."""
    return content_digest([part for part in parts if member(part, RESPONSE) is None])


def _is_prompt(part: msgspec.Raw) -> bool:
    return is_written(value_of(part))


def _is_others(part: msgspec.Raw) -> bool:
    value = value_of(part)
    return is_reminder(value) or (isinstance(value, dict) and member(value, RESPONSE) is not None)


def _text_parts(text: str) -> list[msgspec.Raw]:
    return [msgspec.Raw(write_json({"text": text}))] if text else []
