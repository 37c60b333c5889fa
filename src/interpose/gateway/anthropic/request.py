"""What of a messages request is new, and how the session's edits are written into it.

Knows: messages, content blocks, tool results. Does not know: verdicts.
"""

from collections.abc import Iterator
from functools import cached_property

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import ToolChoice
from interpose.gateway.anthropic.history import Restoring
from interpose.gateway.api import Edits, NewResult, NewTurn, ResultEdit, Rewritten
from interpose.gateway.bodies import (
    RawObject,
    content_digest,
    content_text,
    is_same,
    named,
    object_of,
    open_array,
    open_body,
    open_object,
    raw_text,
    roles_of,
    root_of,
    spoken,
    value_of,
)
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
from interpose.wire.strictjson import read_arguments

_SESSION = "_session_"
_RESULT_MARK = b'"tool_result"'


class _Block(msgspec.Struct):
    type: str = ""


class _Kinds(msgspec.Struct):
    content: str | list[_Block] = ""


_KINDS = msgspec.json.Decoder(_Kinds)


class AnthropicRequest(ReadRequest):
    """The port `RequestView`. Raises Unreadable when the body is not JSON or its messages are no list."""

    def __init__(self, body: bytes) -> None:
        top = open_body(body, arguments="input")
        messages = [bytes(raw) for raw in open_array(top.get("messages"), "messages")]
        self._roles = roles_of(messages, top.get("messages"))
        self._digests: dict[int, str] = {}
        of_model = [role == "assistant" for role in self._roles]
        super().__init__(body, top, messages, first_unseen(of_model, [role == "user" for role in self._roles]))

    @property
    def session(self) -> str | None:
        """As the port says: it stands in the user's id, as JSON or behind `_session_`."""
        metadata = value_of(self._top.get("metadata"))
        user = metadata.get("user_id") if isinstance(metadata, dict) else None
        return _session_in(user) if isinstance(user, str) else None

    @cached_property
    def root(self) -> str:
        """As the port says: what the person said first."""
        first = self._roles.index("user") if "user" in self._roles else None
        if first is not None and _RESULT_MARK not in self._history[first]:
            return self._prompt_digest(first)
        return root_of(self._history, self._roles)

    def tool_names(self) -> tuple[str, ...]:
        """As the port says."""
        return named(self.tools)

    def occurrences(self, line: str) -> int:
        """As the port says."""
        said = (entry for entry, role in zip(self._history, self._roles, strict=True) if role == "assistant")
        return lines_in(said, line)

    def rewritten(self, edits: Edits, tool_choice: ToolChoice | None) -> Rewritten:
        """The body with all edits; the client's own bytes when there is none."""
        choice = self._choice(tool_choice)
        chosen = {} if choice is None else {"tool_choice": choice}
        return self._with_history("messages", self._edited_history(edits), chosen)

    def _model_history(self, edits: Edits) -> list[bytes]:
        """The messages as the model knows them; the same objects where that is what the client has."""
        results = ResultEdits(edits)
        if not edits.restores:
            return [
                self._edited(position, edits, results) if role == "user" else self._history[position]
                for position, role in enumerate(self._roles)
            ]
        restoring = Restoring(edits, self.root)
        messages: list[bytes] = []
        for position, role in enumerate(self._roles):
            match role:
                case "assistant":
                    messages += restoring.spoken(self._history[position])
                case "user":
                    messages.append(restoring.heard(self._edited(position, edits, results)))
                case _:
                    messages += [*restoring.between(), self._history[position]]
        return [*messages, *restoring.between()]

    def _newest_prompt(self) -> NewTurn | None:
        for position in range(len(self._history) - 1, -1, -1):
            if self._roles[position] != "user" or _is_results(self._history[position]):
                continue
            content = self._content(position)
            prompt = prompt_text(content)
            if prompt.strip():
                return NewTurn(position, self._prompt_digest(position), prompt, spoken(self._roles[:position]))
        return None

    def _content(self, position: int) -> Json:
        return value_of(open_object(msgspec.Raw(self._history[position])).get("content"))

    def _prompt_digest(self, position: int) -> str:
        """What a message says beside its results, as a digest that is made once."""
        if position not in self._digests:
            self._digests[position] = _prompt_digest(self._content(position))
        return self._digests[position]

    def _new_results(self) -> Iterator[NewResult]:
        for message in self._history[self._new_from :]:
            yield from map(self._result, _results_in(message))

    def _told(self, position: int) -> Iterator[tuple[str, Json]]:
        for block in _results_in(self._history[position]) if self._roles[position] == "user" else ():
            yield str(block.get("tool_use_id") or ""), block.get("content", "")

    def _result(self, block: JsonObject) -> NewResult:
        call_id = str(block.get("tool_use_id") or "")
        name, arguments, problem = self._call(call_id)
        content = block.get("content", "")
        return NewResult(
            call_id=call_id,
            digest=content_digest(content),
            name=name,
            arguments=arguments,
            output=content_text(content),
            is_error=block.get("is_error") is True,
            problem=problem,
        )

    def _call(self, call_id: str) -> tuple[str, JsonObject, str | None]:
        mark = call_id.encode("utf-8", "replace")
        for position in range(self._new_from - 1, -1, -1):
            message = self._history[position]
            if self._roles[position] != "assistant" or mark not in message:
                continue
            for raw in _raw_blocks(message):
                block = open_object(raw)
                if value_of(block.get("type")) == "tool_use" and value_of(block.get("id")) == call_id:
                    arguments, problem = read_arguments(bytes(block.get("input") or b""))
                    return str(value_of(block.get("name")) or ""), arguments or {}, problem
        return "", {}, UNKNOWN_CALL

    def _edited(self, position: int, edits: Edits, results: ResultEdits) -> bytes:
        """The message with its edits; the same object when there are none."""
        message = self._history[position]
        has_results = bool(results) and _RESULT_MARK in message
        if not has_results and position not in edits.edited_positions:
            return message

        is_edited = position in edits.edited_positions
        turn = edits.turn_edit(position, self._prompt_digest(position)) if is_edited else None
        if not has_results and (turn is None or turn.is_empty):
            return message
        fields = open_object(msgspec.Raw(message))
        content = value_of(fields.get("content"))
        blocks = [msgspec.Raw(_text_block(content))] if isinstance(content, str) else _raw_blocks(message)
        edited = [_edited_block(block, results) for block in blocks]
        if turn is not None and not turn.is_empty:
            edited = prompted(edited, turn, _is_prompt, _text_blocks, _is_others)
        if is_same(edited, blocks):
            return message

        fields["content"] = msgspec.Raw(write_json(edited))
        return write_json(fields)

    def _choice(self, wanted: ToolChoice | None) -> msgspec.Raw | None:
        if wanted is None or "tools" not in self._top:
            return None
        if wanted.mode == "none":
            return msgspec.Raw(write_json({"type": "none"}))

        names = [value_of(open_object(tool).get("name")) for tool in open_array(self._top["tools"])]
        thinking = value_of(self._top.get("thinking"))
        is_thinking = isinstance(thinking, dict) and thinking.get("type") != "disabled"
        if wanted.tool_name not in names or is_thinking:
            return None
        return msgspec.Raw(write_json({"type": "tool", "name": wanted.tool_name}))


def _session_in(user: str) -> str | None:
    if not user.startswith("{"):
        return user.rpartition(_SESSION)[2] or None if _SESSION in user else None
    session = object_of(user.encode("utf-8", "replace")).get("session_id")
    return session if isinstance(session, str) and session else None


def _is_results(message: bytes) -> bool:
    """Whether a message holds results and nothing else, as most do in a long turn."""
    try:
        content = _KINDS.decode(message).content
    except msgspec.DecodeError:
        return False
    return isinstance(content, list) and all(block.type == "tool_result" for block in content)


def _prompt_digest(content: Json) -> str:
    """Equal for prompts that say the same, whatever results they stand beside: clients clear old ones."""
    if not isinstance(content, list):
        return content_digest(content)
    said = [block for block in content if not isinstance(block, dict) or block.get("type") != "tool_result"]
    return content_digest(said)


def _raw_blocks(message: bytes) -> list[msgspec.Raw]:
    content = open_object(msgspec.Raw(message)).get("content")
    if content is None or not bytes(content).startswith(b"["):
        return []
    return open_array(content)


def _results_in(message: bytes) -> Iterator[JsonObject]:
    if _RESULT_MARK not in message:
        return
    for raw in _raw_blocks(message):
        block = value_of(raw)
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield block


def _text_block(text: str) -> bytes:
    return write_json({"type": "text", "text": text})


def _is_prompt(block: msgspec.Raw) -> bool:
    return is_written_text(value_of(block))


def _is_read(block: msgspec.Raw) -> bool:
    return is_read_text(value_of(block))


def _is_others(block: msgspec.Raw) -> bool:
    value = value_of(block)
    return is_reminder(value) or (isinstance(value, dict) and value.get("type") == "tool_result")


def _edited_block(raw: msgspec.Raw, results: ResultEdits) -> msgspec.Raw:
    if _RESULT_MARK not in bytes(raw):
        return raw
    value = value_of(raw)
    if not isinstance(value, dict) or value.get("type") != "tool_result":
        return raw
    edit = results.next(str(value.get("tool_use_id") or ""), value.get("content", ""))
    if edit is None:
        return raw

    fields = open_object(raw)
    fields["content"] = _edited_content(fields, value.get("content"), edit)
    return msgspec.Raw(write_json(fields))


def _edited_content(fields: RawObject, content: Json, edit: ResultEdit) -> msgspec.Raw:
    if not isinstance(content, list):
        return raw_text(edit.applied(content if isinstance(content, str) else ""))

    return msgspec.Raw(write_json(annotated(open_array(fields["content"]), edit, _is_read, _text_blocks)))


def _text_blocks(text: str) -> list[msgspec.Raw]:
    return [msgspec.Raw(_text_block(text))] if text else []
