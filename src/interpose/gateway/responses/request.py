"""What of a responses request is new, and how the session's edits are written into it.

Knows: input items, their contents, outputs of calls. Does not know: verdicts, items that the provider keeps.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import ToolChoice
from interpose.gateway.api import Edits, Mark, NewResult, NewTurn, Resumed, Rewritten, TurnEdit
from interpose.gateway.bodies import (
    content_digest,
    is_same,
    named,
    open_body,
    open_object,
    raw_text,
    spoken,
    tools_of,
    value_of,
)
from interpose.gateway.contents import is_reminder, is_written, lines_in, prompted, without_reminders
from interpose.gateway.reading import UNKNOWN_CALL, ReadRequest, ResultEdits, first_unseen
from interpose.gateway.responses.answers import answer_of
from interpose.gateway.responses.history import Restoring, is_stored, items_of
from interpose.gateway.responses.items import qualified, read_call
from interpose.gateway.responses.outputs import edited_output, input_text, output_text_of, text_of, text_parts
from interpose.wire.jsonbytes import write_json

_OUTPUT = "_output"
_NO_RESULTS = ("program_output", "tool_search_output")
"""Outputs that no call of the client's has, or that say which tools there are. All others are results, of types not
known yet too."""
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


class ResponsesRequest(ReadRequest):
    """The port `RequestView`. Raises Unreadable when the body is not JSON or its input is neither text nor a list."""

    def __init__(self, body: bytes) -> None:
        top = open_body(body)
        items = [bytes(item) for item in items_of(top.get("input"))]
        self._heads = [_head(item) for item in items]
        self._after = value_of(top.get("previous_response_id"))
        of_model = [_is_of_the_model(head) for head in self._heads]
        super().__init__(body, top, items, first_unseen(of_model, [_is_heard(head) for head in self._heads]))

    @property
    def session(self) -> str | None:
        """As the port says: the client's metadata, or the conversation that the provider keeps."""
        metadata = value_of(self._top.get("client_metadata"))
        named = metadata.get("session_id") if isinstance(metadata, dict) else None
        return next((name for name in (named, self._conversation) if isinstance(name, str) and name), None)

    @property
    def follows(self) -> tuple[str, ...]:
        """As the port says."""
        heads = enumerate(self._heads)
        items = (self._field(at, "id") for at, head in heads if head.type == "item_reference")
        return tuple(name for name in (self._after, *items) if isinstance(name, str) and name)

    @property
    def is_stored(self) -> bool:
        """As the port says."""
        return is_stored(self._top)

    @cached_property
    def root(self) -> str:
        """As the port says: what the person said first, in whichever form."""
        first = next((at for at, head in enumerate(self._heads) if head.role == "user"), None)
        return "" if first is None else content_digest(_listed(self._field(first, "content")))

    def occurrences(self, line: str) -> int:
        """As the port says."""
        spoken_items = (item for item, head in zip(self._history, self._heads, strict=True) if head.role == "assistant")
        return lines_in(spoken_items, line)

    def tool_names(self) -> tuple[str, ...]:
        """As the port says; a hosted tool, which has no name, goes by its type."""
        return named({"name": name} for tool in self.tools for name in _names(tool))

    def rewritten(self, edits: Edits, tool_choice: ToolChoice | None) -> Rewritten:
        """The body with all edits; the client's own bytes when there is none. Input that is edited becomes a list."""
        items = self._edited_history(edits)
        choice = self._choice(tool_choice)
        resumed = self._resumed(edits)
        answers = [_owed(mark) for mark in resumed.owed] if resumed else []
        owed = [answer for answer in answers if answer is not None]
        if choice is None and resumed is None and is_same(items, self._history):
            return Rewritten(self.body)

        top = dict(self._top)
        if owed or not is_same(items, self._history):
            top["input"] = msgspec.Raw(write_json([*owed, *map(msgspec.Raw, items)]))
        if resumed is not None and self._after:
            top["previous_response_id"] = raw_text(resumed.response_id) if resumed.response_id else msgspec.Raw(b"null")
        if choice is not None:
            top["tool_choice"] = choice
        return Rewritten(write_json(top), choice_applied=choice is not None)

    def unsent(self, edits: Edits, reply: JsonObject) -> Mapping[str, Resumed]:
        """As the port says: a conversation that the provider keeps goes on without this request's items, which are
        owed to it.
        """
        if not self.is_stored:
            return {}
        earlier = self._resumed(edits)
        before = self._after if isinstance(self._after, str) else ""
        items = (Mark(value_of(msgspec.Raw(item)), "", ends_round=False) for item in self._edited_history(edits))
        resumed = Resumed(earlier.response_id if earlier else before, (*(earlier.owed if earlier else ()), *items))
        names = (reply.get("id"), self._conversation)
        return {name: resumed for name in names if isinstance(name, str) and name}

    def _model_history(self, edits: Edits) -> list[bytes]:
        """The items as the model knows them; the same objects where that is what the client has."""
        results = ResultEdits(edits)
        edited = [self._edited(position, edits, results) for position in range(len(self._history))]
        if not edits.restores:
            return edited
        restoring = Restoring(edits, self.root)
        items: list[bytes] = []
        for item, head in zip(edited, self._heads, strict=True):
            match head:
                case _Head(role="assistant"):
                    items += restoring.item(item, is_message=True)
                case _Head(type="item_reference" | "", role=""):
                    items += restoring.reference(item)
                case _Head(type=kind) if kind.endswith("_call"):
                    items += restoring.item(item, is_message=False)
                case _:
                    items.append(item)
        return items

    def _resumed(self, edits: Edits) -> Resumed | None:
        """What a conversation that the provider keeps goes on from, where the client does not know it."""
        known = self._after or self._conversation
        return edits.resumed(known) if isinstance(known, str) and known else None

    @property
    def _conversation(self) -> Json:
        """The id of the conversation that the provider keeps, or None."""
        conversation = value_of(self._top.get("conversation"))
        return conversation.get("id") if isinstance(conversation, dict) else conversation

    def _newest_prompt(self) -> NewTurn | None:
        for position in range(len(self._history) - 1, -1, -1):
            if self._heads[position].role != "user":
                continue
            content = self._field(position, "content")
            prompt = text_of(without_reminders(_listed(content)))
            if prompt.strip():
                earlier = spoken([head.role for head in self._heads[:position]])
                return NewTurn(position, self._digest(content), prompt, earlier)
        return None

    def _new_results(self) -> Iterator[NewResult]:
        for position in range(self._new_from, len(self._history)):
            kind = self._heads[position].type
            if not _is_output(kind):
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

    def _told(self, position: int) -> Iterator[tuple[str, Json]]:
        if _is_output(self._heads[position].type):
            yield self._call_id(position), self._field(position, "output")

    def _call_id(self, position: int) -> str:
        return str(self._field(position, "call_id") or self._field(position, "id") or "")

    def _call(self, call_id: str) -> tuple[str, JsonObject, str | None]:
        mark = call_id.encode("utf-8", "replace")
        for position in range(self._new_from - 1, -1, -1):
            item = self._history[position]
            if self._heads[position].type.endswith("_call") and mark in item:
                call = read_call(msgspec.Raw(item))
                if call.call_id == call_id:
                    return call.name, call.arguments, call.problem
        return "", {}, UNKNOWN_CALL

    def _edited(self, position: int, edits: Edits, results: ResultEdits) -> bytes:
        """The item with its edits; the same object when there are none."""
        head = self._heads[position]
        if _is_output(head.type) and results:
            return self._edited_result(position, results)
        if head.role != "user" or position not in edits.edited_positions:
            return self._history[position]

        content = self._field(position, "content")
        turn = edits.turn_edit(position, self._digest(content))
        if turn is None or turn.is_empty:
            return self._history[position]
        return self._with(position, "content", _prompted(content, turn))

    def _edited_result(self, position: int, results: ResultEdits) -> bytes:
        output = self._field(position, "output")
        edit = results.next(self._call_id(position), output)
        return self._history[position] if edit is None else self._with(position, "output", edited_output(output, edit))

    def _field(self, position: int, name: str) -> Json:
        return value_of(open_object(msgspec.Raw(self._history[position])).get(name))

    def _with(self, position: int, name: str, value: Json) -> bytes:
        return write_json({**open_object(msgspec.Raw(self._history[position])), name: value})

    def _digest(self, content: Json) -> str:
        """Equal for contents that say the same at the same place of a conversation that the provider keeps."""
        listed = _listed(content)
        return content_digest({"content": listed, "after": self._after} if self._after else listed)

    @cached_property
    def tools(self) -> list[Json]:
        """As the port says; those that ride in an input item too."""
        tools = tools_of(self._top.get("tools"))
        for item, head in zip(self._history, self._heads, strict=True):
            if head.type == "additional_tools":
                tools = [*tools, *tools_of(open_object(msgspec.Raw(item)).get("tools"))]
        return tools

    def _choice(self, wanted: ToolChoice | None) -> msgspec.Raw | None:
        if wanted is None or not self.tools:
            return None
        if wanted.mode == "none":
            return msgspec.Raw(b'"none"')

        for tool in self.tools:
            kind = tool.get("type") if isinstance(tool, dict) else None
            if kind in ("function", "custom") and tool.get("name") == wanted.tool_name:
                return msgspec.Raw(write_json({"type": kind, "name": wanted.tool_name}))
        return None


def _owed(mark: Mark) -> dict[str, Any] | None:
    """The item that the provider waits for: a result, or what it was never sent."""
    return answer_of(mark.entry, mark.answer) if mark.answer else mark.entry


def _head(item: bytes) -> _Head:
    try:
        return _HEAD.decode(item)
    except msgspec.DecodeError:
        return _Head()


def _is_of_the_model(head: _Head) -> bool:
    return head.role == "assistant" or head.type.endswith("_call") or head.type in _OF_THE_MODEL


def _is_output(kind: str) -> bool:
    return kind.endswith(_OUTPUT) and kind not in _NO_RESULTS


def _is_heard(head: _Head) -> bool:
    """Whether an item is the person's or a tool's."""
    return head.role == "user" or _is_output(head.type) or head.type == "mcp_approval_response"


def _names(tool: Json) -> Iterator[str]:
    if not isinstance(tool, dict):
        return
    if tool.get("type") != "namespace":
        yield str(tool.get("name") or tool.get("type") or "")
        return
    for inner in tool.get("tools") or ():
        if isinstance(inner, dict):
            yield qualified(tool.get("name"), inner.get("name"))


def _listed(content: Json) -> Json:
    """The content in one form: clients send the same prompt as a text first and as a list later."""
    return [input_text(content)] if isinstance(content, str) else content


def _prompted(content: Json, turn: TurnEdit) -> list[Json]:
    """The reminder before the first text of the person; a prompt that is replaced stands there in one part."""
    listed = _listed(content)
    return prompted(listed if isinstance(listed, list) else [], turn, is_written, text_parts, is_reminder)
