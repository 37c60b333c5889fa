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
    is_same,
    last_assistant,
    named,
    open_array,
    open_body,
    open_object,
    role_of,
    root_of,
    spoken,
    tools_of,
    value_of,
)
from interpose.gateway.chat.calls import LEGACY, legacy_id, read_call, read_legacy_call
from interpose.gateway.chat.history import Restoring, texts_of
from interpose.gateway.marks import occurrences
from interpose.gateway.wording import REMINDER_OPEN
from interpose.wire.jsonbytes import write_json

_RESULT_ROLES = ("tool", "function")


class ChatRequest:
    """The port `RequestView`. Raises Unreadable when the body is not JSON or its messages are no list."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._top = open_body(body)
        self._messages = [bytes(raw) for raw in open_array(self._top.get("messages"))]
        self._roles = [role_of(msgspec.Raw(message)) for message in self._messages]
        self._new_from = last_assistant(self._roles) + 1
        model = value_of(self._top.get("model"))
        self.model = model if isinstance(model, str) else None
        self.is_streamed = value_of(self._top.get("stream")) is True
        self.length = len(self._messages)
        newest = self._newest_prompt()
        self.turn = newest if newest and newest.position >= self._new_from else None
        self.turn_key = f"{newest.position}:{newest.digest}" if newest else None
        self.results = tuple(self._new_results())

    @cached_property
    def root(self) -> str:
        """As the port says: what the person said first."""
        return root_of(self._messages, self._roles)

    def occurrences(self, line: str) -> int:
        """As the port says."""
        return occurrences(texts_of(self._messages, self._roles), line)

    @cached_property
    def tools(self) -> list[Json]:
        """As the port says."""
        return tools_of(self._top.get("tools"))

    def tool_names(self) -> tuple[str, ...]:
        """As the port says; the older `functions` too."""
        tools = [tool for tool in self.tools if isinstance(tool, dict)]
        entries = [tool.get("custom" if tool.get("type") == "custom" else "function") for tool in tools]
        return named([*entries, *tools_of(self._top.get("functions"))])

    def rewritten(self, edits: Edits, tool_choice: ToolChoice | None) -> Rewritten:
        """The body with all edits; the client's own bytes when there is none."""
        messages = self._model_history(edits)
        choice = self._choice(tool_choice)
        if choice is None and is_same(messages, self._messages):
            return Rewritten(self.body)

        top = dict(self._top)
        top["messages"] = msgspec.Raw(write_json([msgspec.Raw(message) for message in messages]))
        if choice is not None:
            top["tool_choice"] = choice
        return Rewritten(write_json(top), choice_applied=choice is not None)

    def _model_history(self, edits: Edits) -> list[bytes]:
        """The messages as the model knows them; the same objects where that is what the client has."""
        edited = [self._edited(position, edits) for position in range(len(self._messages))]
        if not edits.restores:
            return edited
        restoring = Restoring(edits, self.root)
        messages: list[bytes] = []
        for role, message in zip(self._roles, edited, strict=True):
            messages += restoring.spoken(message) if role == "assistant" else [message]
        return messages

    def _newest_prompt(self) -> NewTurn | None:
        for position in range(len(self._messages) - 1, -1, -1):
            if self._roles[position] != "user":
                continue
            content = self._field(position, "content")
            prompt = _prompt_text(content)
            if prompt.strip():
                return NewTurn(position, content_digest(content), prompt, spoken(self._roles[:position]))
        return None

    def _new_results(self) -> Iterator[NewResult]:
        for position in range(self._new_from, len(self._messages)):
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

    def _call_id(self, position: int) -> str:
        if self._roles[position] == "function":
            return legacy_id(str(self._field(position, "name") or ""))
        return str(self._field(position, "tool_call_id") or "")

    def _call(self, call_id: str) -> tuple[str, JsonObject, str | None]:
        for position in range(self._new_from - 1, -1, -1):
            if self._roles[position] != "assistant":
                continue
            message = value_of(msgspec.Raw(self._messages[position]))
            for call in _calls(message):
                if call.call_id == call_id:
                    return call.name, call.arguments, call.problem
        return "", {}, "the call that this result answers is not in the history"

    def _edited(self, position: int, edits: Edits) -> bytes:
        """The message with its edits; the same object when there are none."""
        message = self._messages[position]
        role = self._roles[position]
        if role in _RESULT_ROLES and edits.edited_calls:
            return self._edited_result(position, edits)
        if role != "user" or position not in edits.edited_positions:
            return message

        content = self._field(position, "content")
        turn = edits.turn_edit(position, content_digest(content))
        if turn is None or turn.is_empty:
            return message
        return self._with_content(position, _prompted(content, turn))

    def _edited_result(self, position: int, edits: Edits) -> bytes:
        call_id = self._call_id(position)
        if call_id not in edits.edited_calls:
            return self._messages[position]
        content = self._field(position, "content")
        edit = edits.result_edit(call_id, content_digest(content))
        if edit is None or edit.is_empty:
            return self._messages[position]
        return self._with_content(position, _annotated(content, edit))

    def _field(self, position: int, name: str) -> Json:
        return value_of(open_object(msgspec.Raw(self._messages[position])).get(name))

    def _with_content(self, position: int, content: Json) -> bytes:
        fields = open_object(msgspec.Raw(self._messages[position]))
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


def _prompt_text(content: Json) -> str:
    """What the person wrote: text parts, without those that the agent itself put in as reminders."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return ""
    return content_text([part for part in content if not _is_reminder(part)])


def _is_reminder(part: Json) -> bool:
    text = part.get("text") if isinstance(part, dict) else None
    return isinstance(text, str) and text.lstrip().startswith(REMINDER_OPEN)


def _prompted(content: Json, turn: TurnEdit) -> Json:
    """The reminder before the first text of the person; a prompt that is replaced stands there in one part.

    A string stays a string: many servers that speak this API take no list.
    """
    if not isinstance(content, list):
        return framed(turn.reminder, content if turn.replacement is None else turn.replacement, "")
    texts = [at for at, part in enumerate(content) if _is_of_the_person(part)]
    place = texts[0] if texts else len(content)
    behind = content[place:]
    if turn.replacement is not None:
        kept = [part for at, part in enumerate(content) if at > place and at not in texts]
        behind = [*_text_parts(turn.replacement), *kept]
    return [*content[:place], *_text_parts(turn.reminder), *behind]


def _is_of_the_person(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and not _is_reminder(part)


def _annotated(content: Json, edit: ResultEdit) -> Json:
    if not isinstance(content, list):
        return edit.applied(content if isinstance(content, str) else "")
    parts = content if edit.replacement is None else _text_parts(edit.replacement)
    return [*_text_parts(edit.front), *parts, *_text_parts(edit.addition)]


def _text_parts(text: str) -> list[Json]:
    return [{"type": "text", "text": text}] if text else []
