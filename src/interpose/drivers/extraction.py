"""Reading the calls in a model's reply, and writing the messages that answer it, one strategy for each shape.

Knows: plain text, a bare call object, OpenAI chat messages and completions, items and responses of OpenAI's Responses
API, Anthropic messages. Does not know: which tools exist, how they run. Strategies keep nothing: one instance serves
many drivers and threads.

Shapes: https://platform.openai.com/docs/api-reference/chat, https://platform.openai.com/docs/api-reference/responses
and https://docs.anthropic.com/en/api/messages.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from interpose.contracts.json import JsonObject
from interpose.drivers.calls import ProposedCall, call_in, calls_in_text, proposed, with_last_cut_off
from interpose.drivers.prompts import PromptStrategy
from interpose.drivers.results import told

Reply: TypeAlias = str | JsonObject

_WHOLE = frozenset({"completed", "incomplete"})


@dataclass(frozen=True, slots=True)
class Told:
    """What the model is told about one of its calls."""

    call: ProposedCall
    text: str
    failed: bool


class ExtractionStrategy(ABC):
    """One shape of reply. The first strategy that owns a reply decides, also when it finds no call in it."""

    @abstractmethod
    def read(self, reply: Reply, prompts: PromptStrategy, *, streaming: bool) -> tuple[ProposedCall, ...] | None:
        """The calls of a reply in order, those that cannot be read with a problem; None for another shape.

        While `streaming`, none but those of a reply that can have nothing after it.
        """

    def messages(self, reply: Reply, answers: Sequence[Told], prompts: PromptStrategy) -> tuple[dict[str, Any], ...]:
        """What goes into the history: the reply and what became of its calls. This one writes both as plain text."""
        return (
            {"role": "assistant", "content": _history_text(reply)},
            {"role": prompts.result_role, "content": told_text(answers)},
        )


class OpenAIExtraction(ExtractionStrategy):
    """A chat message with `tool_calls`; null or empty there means that its text is no call either.

    A `finish_reason` put into the message says that it is whole. Of a whole chat completion the message of its first
    choice counts, with that choice's `finish_reason`.
    """

    def read(self, reply: Reply, _prompts: PromptStrategy, *, streaming: bool) -> tuple[ProposedCall, ...] | None:
        """Each function call with its id; the last one is a problem where the reply was cut off."""
        reply = _message(reply)
        if isinstance(reply, str) or "tool_calls" not in reply:
            return None
        if streaming and not reply.get("finish_reason"):
            return ()

        entries = reply["tool_calls"] or ()
        if not isinstance(entries, list | tuple):
            return (ProposedCall(None, "", {}, "tool_calls is not a list"),)
        calls = tuple(_openai_call(entry) for entry in entries)
        return with_last_cut_off(calls) if reply.get("finish_reason") == "length" else calls

    def messages(self, reply: Reply, answers: Sequence[Told], prompts: PromptStrategy) -> tuple[dict[str, Any], ...]:
        """The reply as it is and a `tool` message for each call; as text where a call has no id."""
        reply = _message(reply)
        if isinstance(reply, str) or any(each.call.call_id is None for each in answers):
            return super().messages(reply, answers, prompts)

        assistant = {"role": "assistant", **{key: value for key, value in reply.items() if key != "finish_reason"}}
        results = [{"role": "tool", "tool_call_id": each.call.call_id, "content": each.text} for each in answers]
        return (assistant, *results)


class ResponsesExtraction(ExtractionStrategy):
    """A `function_call` item of OpenAI's Responses API, or a whole response with its `output`.

    Without a `function_call` among its items the text of a response is no call either. Its `status` says that it is
    whole.
    """

    def read(self, reply: Reply, _prompts: PromptStrategy, *, streaming: bool) -> tuple[ProposedCall, ...] | None:
        """Each function call with its `call_id`; the last one is a problem where the reply was cut off."""
        items = _items(reply)
        if isinstance(reply, str) or items is None:
            return None
        status = reply.get("status")
        if streaming and not (isinstance(status, str) and status in _WHOLE):
            return ()

        found = [item for item in items if isinstance(item, Mapping) and item.get("type") == "function_call"]
        calls = tuple(proposed(item.get("call_id"), item.get("name"), item.get("arguments")) for item in found)
        return with_last_cut_off(calls) if status == "incomplete" else calls

    def messages(self, reply: Reply, answers: Sequence[Told], prompts: PromptStrategy) -> tuple[dict[str, Any], ...]:
        """The items as they are and a `function_call_output` for each call; as text where a call has no id."""
        items = _items(reply)
        if items is None or any(each.call.call_id is None for each in answers):
            return super().messages(reply, answers, prompts)

        results = [
            {"type": "function_call_output", "call_id": each.call.call_id, "output": each.text} for each in answers
        ]
        return (*items, *results)


class AnthropicExtraction(ExtractionStrategy):
    """A message whose content is a list of blocks; without a `tool_use` block its text is no call either.

    Its `stop_reason` says that it is whole.
    """

    def read(self, reply: Reply, _prompts: PromptStrategy, *, streaming: bool) -> tuple[ProposedCall, ...] | None:
        """Each `tool_use` block with its id; the last one is a problem where the reply was cut off."""
        if isinstance(reply, str) or not isinstance(reply.get("content"), list):
            return None
        if streaming and not reply.get("stop_reason"):
            return ()

        blocks = [block for block in reply["content"] if isinstance(block, Mapping) and block.get("type") == "tool_use"]
        calls = tuple(proposed(block.get("id"), block.get("name"), block.get("input")) for block in blocks)
        return with_last_cut_off(calls) if reply.get("stop_reason") == "max_tokens" else calls

    def messages(self, reply: Reply, answers: Sequence[Told], prompts: PromptStrategy) -> tuple[dict[str, Any], ...]:
        """The reply's blocks and one user message with a `tool_result` for each; as text where a call has no id."""
        if isinstance(reply, str) or any(each.call.call_id is None for each in answers):
            return super().messages(reply, answers, prompts)

        results = [
            {"type": "tool_result", "tool_use_id": each.call.call_id, "content": each.text, "is_error": each.failed}
            for each in answers
        ]
        return ({"role": "assistant", "content": reply["content"]}, {"role": "user", "content": results})


class ObjectExtraction(ExtractionStrategy):
    """A bare call object such as `{"tool": ..., "arguments": ...}`; a message with a role is none."""

    def read(self, reply: Reply, prompts: PromptStrategy, *, streaming: bool) -> tuple[ProposedCall, ...] | None:
        """The one call; nothing tells when such an object is whole."""
        if isinstance(reply, str) or "role" in reply:
            return None

        call = call_in(reply, prompts)
        if call is None:
            return None
        return () if streaming else (call,)


class TextExtraction(ExtractionStrategy):
    """Text, or a message whose content is text: calls are the JSON objects in it. It owns what nobody else did."""

    def read(self, reply: Reply, prompts: PromptStrategy, *, streaming: bool) -> tuple[ProposedCall, ...] | None:
        """Every call in the text. A bare text never tells that nothing follows; a message says so by its reason."""
        reply = _message(reply)
        if streaming and (isinstance(reply, str) or not (reply.get("finish_reason") or reply.get("stop_reason"))):
            return ()
        return calls_in_text(_text(reply), prompts)


DEFAULT_EXTRACTION: tuple[ExtractionStrategy, ...] = (
    OpenAIExtraction(),
    ResponsesExtraction(),
    AnthropicExtraction(),
    ObjectExtraction(),
    TextExtraction(),
)
"""All shapes, text last."""


def told_text(answers: Sequence[Told]) -> str:
    """One text for all: of one call its own, of several each behind its tool's name."""
    if len(answers) == 1:
        return answers[0].text
    return "\n\n".join(f"{each.call.tool_name or 'unnamed call'}: {each.text}" for each in answers)


def _openai_call(entry: Any) -> ProposedCall:
    if not isinstance(entry, Mapping):
        return ProposedCall(None, "", {}, "the call is not an object")

    function = entry.get("function")
    if not isinstance(function, Mapping):
        return ProposedCall(proposed(entry.get("id"), "?", {}).call_id, "", {}, "it is not a function call")
    return proposed(entry.get("id"), function.get("name"), function.get("arguments"))


def _message(reply: Reply) -> Reply:
    """Of a whole chat completion the message that it is about; any other reply is its own."""
    choices = None if isinstance(reply, str) else reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, Mapping) or not isinstance(first.get("message"), Mapping):
        return reply
    return {**first["message"], "finish_reason": first.get("finish_reason")}


def _items(reply: Reply) -> Sequence[Any] | None:
    """The items of a response of OpenAI's Responses API, or the one that the reply is; None for another shape."""
    if isinstance(reply, str):
        return None
    if reply.get("type") == "function_call":
        return (reply,)
    output = reply.get("output")
    return output if reply.get("object") == "response" and isinstance(output, list) else None


def _text(reply: Reply) -> str:
    reply = _message(reply)
    if isinstance(reply, str):
        return reply
    content = reply.get("content")
    return content if isinstance(content, str) else ""


def _history_text(reply: Reply) -> str:
    return _text(reply) or told(reply)
