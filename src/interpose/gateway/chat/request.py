"""What of a chat request is new, and how the session's edits are written into it.

Knows: roles, contents, tool messages. Does not know: verdicts.
"""

from collections.abc import Iterator
from functools import cached_property

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import ToolChoice
from interpose.contracts.wording import framed
from interpose.gateway.api import Edits, NewResult, NewTurn, ProposedCall, ResultEdit, Rewritten, TurnEdit
from interpose.gateway.bodies import (
    content_digest,
    content_text,
    named,
    open_array,
    open_body,
    open_object,
    roles_of,
    spoken,
    tools_of,
    value_of,
)
from interpose.gateway.chat.calls import LEGACY, legacy_id, read_call, read_legacy_call
from interpose.gateway.chat.history import Restoring
from interpose.gateway.contents import (
    annotated,
    is_read_text,
    is_reminder,
    is_written_text,
    lines_in,
    prompt_text,
    prompted,
)
from interpose.gateway.reading import UNKNOWN_CALL, ReadRequest, ResultEdits, first_unseen
from interpose.wire.jsonbytes import write_json

_RESULT_ROLES = ("tool", "function")
_HEARD = ("user", *_RESULT_ROLES)


class ChatRequest(ReadRequest):
    """The port `RequestView`. Raises Unreadable when the body is not JSON or its messages are no list."""

    def __init__(self, body: bytes) -> None:
        top = open_body(body)
        messages = [bytes(raw) for raw in open_array(top.get("messages"), "messages")]
        self._roles = roles_of(messages, top.get("messages"))
        self._digests: dict[int, str] = {}
        of_model = [role == "assistant" for role in self._roles]
        heard = [role in _HEARD for role in self._roles]
        super().__init__(body, top, messages, first_unseen(of_model, heard))

    @cached_property
    def root(self) -> str:
        """As the port says: what the person said first."""
        return self._digest(self._roles.index("user")) if "user" in self._roles else ""

    def occurrences(self, line: str) -> int:
        """As the port says."""
        said = (entry for entry, role in zip(self._history, self._roles, strict=True) if role == "assistant")
        return lines_in(said, line)

    def tool_names(self) -> tuple[str, ...]:
        """As the port says; the older `functions` too."""
        tools = [tool for tool in self.tools if isinstance(tool, dict)]
        entries = [tool.get("custom" if tool.get("type") == "custom" else "function") for tool in tools]
        return named([*entries, *tools_of(self._top.get("functions"))])

    def rewritten(self, edits: Edits, tool_choice: ToolChoice | None) -> Rewritten:
        """The body with all edits; the client's own bytes when there is none."""
        choice = self._choice(tool_choice)
        chosen = {} if choice is None else {"tool_choice": choice}
        return self._with_history("messages", self._edited_history(edits), chosen)

    def _model_history(self, edits: Edits) -> list[bytes]:
        """The messages as the model knows them; the same objects where that is what the client has."""
        results = ResultEdits(edits)
        edited = [self._edited(position, edits, results) for position in range(len(self._history))]
        if not edits.restores:
            return edited
        restoring = Restoring(edits, self.root)
        messages: list[bytes] = []
        for role, message in zip(self._roles, edited, strict=True):
            messages += restoring.spoken(message) if role == "assistant" else [message]
        return messages

    def _newest_prompt(self) -> NewTurn | None:
        for position in range(len(self._history) - 1, -1, -1):
            if self._roles[position] != "user":
                continue
            content = self._field(position, "content")
            prompt = prompt_text(content)
            if prompt.strip():
                return NewTurn(position, self._digest(position), prompt, spoken(self._roles[:position]))
        return None

    def _new_results(self) -> Iterator[NewResult]:
        for position in range(self._new_from, len(self._history)):
            if self._roles[position] not in _RESULT_ROLES:
                continue
            call_id = self._call_id(position)
            name, arguments, problem = self._call(call_id)
            content = self._field(position, "content")
            yield NewResult(
                call_id=call_id,
                digest=content_digest(content),
                name=name,
                arguments=arguments,
                output=content_text(content),
                problem=problem,
            )

    def _told(self, position: int) -> Iterator[tuple[str, Json]]:
        if self._roles[position] in _RESULT_ROLES:
            yield self._call_id(position), self._field(position, "content")

    def _call_id(self, position: int) -> str:
        if self._roles[position] == "function":
            return legacy_id(str(self._field(position, "name") or ""))
        return str(self._field(position, "tool_call_id") or "")

    def _call(self, call_id: str) -> tuple[str, JsonObject, str | None]:
        for position in range(self._new_from - 1, -1, -1):
            if self._roles[position] != "assistant":
                continue
            message = value_of(msgspec.Raw(self._history[position]))
            for call in _calls(message):
                if call.call_id == call_id:
                    return call.name, call.arguments, call.problem
        return "", {}, UNKNOWN_CALL

    def _edited(self, position: int, edits: Edits, results: ResultEdits) -> bytes:
        """The message with its edits; the same object when there are none."""
        message = self._history[position]
        role = self._roles[position]
        if role in _RESULT_ROLES and results:
            return self._edited_result(position, results)
        if role != "user" or position not in edits.edited_positions:
            return message

        turn = edits.turn_edit(position, self._digest(position))
        if turn is None or turn.is_empty:
            return message
        return self._with_content(position, _prompted(self._field(position, "content"), turn))

    def _edited_result(self, position: int, results: ResultEdits) -> bytes:
        content = self._field(position, "content")
        edit = results.next(self._call_id(position), content)
        return self._history[position] if edit is None else self._with_content(position, _annotated(content, edit))

    def _digest(self, position: int) -> str:
        """What a message says, as a digest that is made once."""
        if position not in self._digests:
            self._digests[position] = content_digest(self._field(position, "content"))
        return self._digests[position]

    def _field(self, position: int, name: str) -> Json:
        return value_of(open_object(msgspec.Raw(self._history[position])).get(name))

    def _with_content(self, position: int, content: Json) -> bytes:
        fields = open_object(msgspec.Raw(self._history[position]))
        return write_json({**fields, "content": content})

    def _choice(self, wanted: ToolChoice | None) -> msgspec.Raw | None:
        if wanted is None or "tools" not in self._top:
            return None
        if wanted.mode == "none":
            return msgspec.Raw(b'"none"')

        tools = [value_of(tool) for tool in open_array(self._top["tools"])]
        functions = [tool.get("function") for tool in tools if isinstance(tool, dict)]
        if wanted.tool_name not in [function.get("name") for function in functions if isinstance(function, dict)]:
            return None
        return msgspec.Raw(write_json({"type": "function", "function": {"name": wanted.tool_name}}))


def _calls(message: Json) -> Iterator[ProposedCall]:
    if not isinstance(message, dict):
        return
    calls = message.get("tool_calls")
    for entry in calls if isinstance(calls, list) else ():
        if isinstance(entry, dict):
            yield read_call(entry)
    if isinstance(message.get(LEGACY), dict):
        yield read_legacy_call(message[LEGACY])


def _prompted(content: Json, turn: TurnEdit) -> Json:
    """The reminder before the first text of the person; a prompt that is replaced stands there in one part.

    A string stays a string: many servers that speak this API take no list.
    """
    if not isinstance(content, list):
        return framed(turn.reminder, content if turn.replacement is None else turn.replacement, "")
    return prompted(content, turn, is_written_text, _text_parts, is_reminder)


def _annotated(content: Json, edit: ResultEdit) -> Json:
    if not isinstance(content, list):
        return edit.applied(content if isinstance(content, str) else "")
    return annotated(content, edit, is_read_text, _text_parts)


def _text_parts(text: str) -> list[Json]:
    return [{"type": "text", "text": text}] if text else []
