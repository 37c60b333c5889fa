"""What of a responses request is new, and how the session's edits are written into it.

Knows: input items, their contents, outputs of calls. Does not know: verdicts, items that the provider keeps.
"""

from collections.abc import Iterator

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import ToolChoice
from interpose.gateway.api import Edits, NewResult, NewTurn, ResultEdit, Rewritten, TurnEdit
from interpose.gateway.bodies import (
    content_digest,
    named,
    open_array,
    open_body,
    open_object,
    spoken,
    tools_of,
    value_of,
)
from interpose.gateway.responses.items import qualified, read_call
from interpose.gateway.responses.outputs import edited_output, input_text, output_text_of, text_of
from interpose.gateway.wording import REMINDER_OPEN
from interpose.wire.jsonbytes import write_json

_OUTPUT = "_call_output"
_OF_THE_MODEL = frozenset(
    {
        "reasoning",
        "compaction",
        "compaction_summary",
        "item_reference",
        "mcp_list_tools",
        "mcp_approval_request",
        "program",
        "program_output",
    }
)
"""Types of items that come from the model or stand for what it said, beside calls and messages."""


class _Head(msgspec.Struct):
    type: str = ""
    role: str = ""


_HEAD = msgspec.json.Decoder(_Head)


class ResponsesRequest:
    """The port `RequestView`. Raises Unreadable when the body is not JSON or its input is neither text nor a list."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._top = open_body(body)
        self._items = _items(self._top.get("input"))
        self._heads = [_head(item) for item in self._items]
        model_items = [at for at, head in enumerate(self._heads) if _is_of_the_model(head)]
        self._new_from = model_items[-1] + 1 if model_items else 0
        self._after = value_of(self._top.get("previous_response_id"))
        model = value_of(self._top.get("model"))
        self.model = model if isinstance(model, str) else None
        newest = self._newest_prompt()
        self.turn = newest if newest and newest.position >= self._new_from else None
        self.turn_key = f"{newest.position}:{newest.digest}" if newest else None
        self.results = tuple(self._new_results())

    @property
    def is_streamed(self) -> bool:
        """As the port says."""
        return False

    @property
    def root(self) -> str:
        """As the port says."""
        return ""

    @property
    def length(self) -> int:
        """As the port says."""
        return 0

    def occurrences(self, line: str) -> int:  # noqa: ARG002
        """As the port says."""
        return 0

    def tool_names(self) -> tuple[str, ...]:
        """As the port says; a hosted tool, which has no name, goes by its type."""
        return named({"name": name} for tool in self._tools() for name in _names(tool))

    def rewritten(self, edits: Edits, tool_choice: ToolChoice | None) -> Rewritten:
        """The body with all edits; the client's own bytes when there is none. Input that is edited becomes a list."""
        items = [self._edited(position, edits) for position in range(len(self._items))]
        choice = self._choice(tool_choice)
        is_same = all(new is old for new, old in zip(items, self._items, strict=True))
        if choice is None and is_same:
            return Rewritten(self.body)

        top = dict(self._top)
        if not is_same:
            top["input"] = msgspec.Raw(write_json([msgspec.Raw(item) for item in items]))
        if choice is not None:
            top["tool_choice"] = choice
        return Rewritten(write_json(top), choice_applied=choice is not None)

    def _newest_prompt(self) -> NewTurn | None:
        for position in range(len(self._items) - 1, -1, -1):
            if self._heads[position].role != "user":
                continue
            content = self._field(position, "content")
            prompt = text_of(_without_reminders(content))
            if prompt.strip():
                earlier = spoken([head.role for head in self._heads[:position]])
                return NewTurn(position, self._digest(content), prompt, earlier)
        return None

    def _new_results(self) -> Iterator[NewResult]:
        for position in range(self._new_from, len(self._items)):
            kind = self._heads[position].type
            if not kind.endswith(_OUTPUT):
                continue
            call_id = self._call_id(position)
            name, arguments, problem = self._call(call_id)
            output = self._field(position, "output")
            yield NewResult(
                call_id=call_id,
                digest=content_digest(output),
                name=name,
                arguments=arguments,
                output=output_text_of(output),
                is_error=kind == "apply_patch_call_output" and self._field(position, "status") == "failed",
                problem=problem,
            )

    def _call_id(self, position: int) -> str:
        return str(self._field(position, "call_id") or self._field(position, "id") or "")

    def _call(self, call_id: str) -> tuple[str, JsonObject, str | None]:
        mark = call_id.encode("utf-8", "replace")
        for position in range(self._new_from - 1, -1, -1):
            item = self._items[position]
            if self._heads[position].type.endswith("_call") and mark in item:
                call = read_call(msgspec.Raw(item))
                if call.call_id == call_id:
                    return call.name, call.arguments, call.problem
        return "", {}, "the call that this result answers is not in the history"

    def _edited(self, position: int, edits: Edits) -> bytes:
        """The item with its edits; the same object when there are none."""
        head = self._heads[position]
        if head.type.endswith(_OUTPUT) and edits.edited_calls:
            return self._edited_result(position, edits)
        if head.role != "user" or position not in edits.edited_positions:
            return self._items[position]

        content = self._field(position, "content")
        turn = edits.turn_edit(position, self._digest(content))
        if turn is None or turn.is_empty:
            return self._items[position]
        return self._with(position, "content", _reminded(content, turn))

    def _edited_result(self, position: int, edits: Edits) -> bytes:
        call_id = self._call_id(position)
        if call_id not in edits.edited_calls:
            return self._items[position]
        output = self._field(position, "output")
        edit: ResultEdit | None = edits.result_edit(call_id, content_digest(output))
        if edit is None or edit.is_empty:
            return self._items[position]
        return self._with(position, "output", edited_output(output, edit))

    def _field(self, position: int, name: str) -> Json:
        return value_of(open_object(msgspec.Raw(self._items[position])).get(name))

    def _with(self, position: int, name: str, value: Json) -> bytes:
        return write_json({**open_object(msgspec.Raw(self._items[position])), name: value})

    def _digest(self, content: Json) -> str:
        """Equal for contents that say the same at the same place of a conversation that the provider keeps."""
        listed = [input_text(content)] if isinstance(content, str) else content
        return content_digest({"content": listed, "after": self._after} if self._after else listed)

    def _tools(self) -> list[Json]:
        tools = tools_of(self._top.get("tools"))
        for item, head in zip(self._items, self._heads, strict=True):
            if head.type == "additional_tools":
                tools = [*tools, *tools_of(open_object(msgspec.Raw(item)).get("tools"))]
        return tools

    def _choice(self, wanted: ToolChoice | None) -> msgspec.Raw | None:
        if wanted is None or not self._tools():
            return None
        if wanted.mode == "none":
            return msgspec.Raw(b'"none"')

        for tool in self._tools():
            kind = tool.get("type") if isinstance(tool, dict) else None
            if kind in ("function", "custom") and tool.get("name") == wanted.tool_name:
                return msgspec.Raw(write_json({"type": kind, "name": wanted.tool_name}))
        return None


def _items(raw: msgspec.Raw | None) -> list[bytes]:
    """The input as items; a text is one message of the person."""
    if raw is not None and bytes(raw).startswith(b'"'):
        return [write_json({"role": "user", "content": raw})]
    return [bytes(item) for item in open_array(raw)]


def _head(item: bytes) -> _Head:
    try:
        return _HEAD.decode(item)
    except msgspec.DecodeError:
        return _Head()


def _is_of_the_model(head: _Head) -> bool:
    return head.role == "assistant" or head.type.endswith("_call") or head.type in _OF_THE_MODEL


def _names(tool: Json) -> Iterator[str]:
    if not isinstance(tool, dict):
        return
    if tool.get("type") != "namespace":
        yield str(tool.get("name") or tool.get("type") or "")
        return
    for inner in tool.get("tools") or ():
        if isinstance(inner, dict):
            yield qualified(tool.get("name"), inner.get("name"))


def _without_reminders(content: Json) -> Json:
    """The content without what the agent itself put in as reminders."""
    parts = [input_text(content)] if isinstance(content, str) else content
    return [part for part in parts if not _is_reminder(part)] if isinstance(parts, list) else parts


def _is_reminder(part: Json) -> bool:
    text = part.get("text") if isinstance(part, dict) else None
    return isinstance(text, str) and text.lstrip().startswith(REMINDER_OPEN)


def _reminded(content: Json, turn: TurnEdit) -> list[Json]:
    """Always a list, since clients send the same prompt as a text first and as a list later."""
    parts: list[Json] = content if isinstance(content, list) else [input_text(str(content or ""))]
    place = next(
        (
            at
            for at, part in enumerate(parts)
            if isinstance(part, dict) and isinstance(part.get("text"), str) and not _is_reminder(part)
        ),
        len(parts),
    )
    return [*parts[:place], input_text(turn.reminder), *parts[place:]]
