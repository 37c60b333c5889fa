"""The four APIs side by side: codecs, scripted streams, and what a client makes of a reply."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import Codec, ProposedCall
from interpose.gateway.chat import CHAT
from interpose.gateway.gemini import GEMINI
from interpose.gateway.responses import RESPONSES
from interpose.testing import anthropic, chat, gemini, responses
from interpose.testing.script import Reply
from interpose.wire.sse import SseReader

CODECS: dict[str, Codec] = {
    "anthropic": ANTHROPIC,
    "chat": CHAT,
    "responses": RESPONSES,
    "gemini": GEMINI,
    "gemini-array": GEMINI,
}
"""By name; Gemini's streams come as events and as one array."""

DIALECTS: dict[str, ModuleType] = {
    "anthropic": anthropic,
    "chat": chat,
    "responses": responses,
    "gemini": gemini,
    "gemini-array": gemini,
}
Judge = Callable[[ProposedCall], Verdict]


@dataclass(frozen=True)
class Message:
    """What a client puts together: all that was said in one text, the calls in order, why it ended."""

    text: str
    calls: list[tuple[str, str, Any]]
    stop: str | None


def judging(refused: frozenset[str] = frozenset(), patched: frozenset[str] = frozenset()) -> Judge:
    """A judge that refuses and patches the calls of the given names."""

    def judge(call: ProposedCall) -> Verdict:
        if call.name in refused:
            return Verdict("a-1", "tool.call", "refused", Refusal("no-" + call.name.lower(), "not here"))
        if call.name in patched:
            return Verdict("a-1", "tool.call", "patched", arguments={"changed": [call.name, "ü"]})
        return Verdict("a-1", "tool.call", "allowed")

    return judge


def frames_of(api: str, reply: Reply) -> list[bytes]:
    """The reply as the API streams it, piece by piece."""
    request = {"stream_options": {"include_usage": True}} if api == "chat" else {}
    frames = list(DIALECTS[api].stream(reply, 1, request))
    return list(gemini.array(frames)) if api == "gemini-array" else frames


def message_of(api: str, stream: bytes) -> Message:
    """What a client makes of a stream; checks that indexes, ids, numbers and final objects agree."""
    match api:
        case "anthropic":
            return _anthropic(datas_of(api, stream))
        case "chat":
            return _chat(datas_of(api, stream))
        case "responses":
            return _responses(datas_of(api, stream))
        case _:
            return _gemini(datas_of(api, stream))


def datas_of(api: str, stream: bytes) -> list[dict[str, Any]]:
    """The JSON of each chunk."""
    if api == "gemini-array":
        return list(json.loads(stream))
    events = SseReader().feed(stream)
    return [json.loads(event.data) for event in events if event.data is not None and event.data != b"[DONE]"]


def error_of(api: str, stream: bytes) -> str:
    """The message of the error at the end of a stream; checks its shape."""
    data = datas_of(api, stream)[-1]
    if api == "responses":
        assert data["type"] == "error"
        assert isinstance(data["sequence_number"], int)
        return str(data["message"])
    assert ("type" in data) == (api == "anthropic")
    return str(data["error"]["message"])


def whole_message(api: str, body: bytes) -> Message:
    """What a client makes of a reply that is not streamed."""
    value = json.loads(body)
    match api:
        case "anthropic":
            blocks = value["content"]
            texts = [block["text"] for block in blocks if block["type"] == "text"]
            calls = [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
            return Message("\n\n".join(texts), calls, value["stop_reason"])
        case "chat":
            (choice,) = value["choices"]
            entries = choice["message"].get("tool_calls") or []
            calls = [(e["id"], e["function"]["name"], json.loads(e["function"]["arguments"] or "{}")) for e in entries]
            return Message(choice["message"].get("content") or "", calls, choice["finish_reason"])
        case "responses":
            return _of_output(value)
        case _:
            return _gemini([value])


def stop_of(api: str, *, calls: bool) -> str:
    """The word with which a coherent reply ends."""
    if api == "anthropic":
        return "tool_use" if calls else "end_turn"
    if api == "chat":
        return "tool_calls" if calls else "stop"
    return "completed" if api == "responses" else "STOP"


def _anthropic(datas: Iterable[dict[str, Any]]) -> Message:
    blocks: list[dict[str, Any]] = []
    stop = None
    for data in datas:
        match data["type"]:
            case "content_block_start":
                assert data["index"] == len(blocks)
                blocks.append({**data["content_block"], "pieces": "", "open": True})
            case "content_block_delta":
                assert blocks[data["index"]]["open"]
                delta = data["delta"]
                blocks[data["index"]]["pieces"] += delta.get("text", "") + delta.get("partial_json", "")
            case "content_block_stop":
                blocks[data["index"]]["open"] = False
            case "message_delta":
                stop = data["delta"]["stop_reason"]
    assert not any(block["open"] for block in blocks)
    calls = [(b["id"], b["name"], json.loads(b["pieces"] or "{}")) for b in blocks if b["type"] == "tool_use"]
    return Message("\n\n".join(b["pieces"] for b in blocks if b["type"] == "text"), calls, stop)


def _chat(datas: Iterable[dict[str, Any]]) -> Message:
    text, stop = "", None
    calls: dict[int, list[str]] = {}
    for data in datas:
        for choice in data["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            stop = choice["finish_reason"] or stop
            for entry in delta.get("tool_calls", []):
                call = calls.setdefault(entry["index"], [entry.get("id", ""), "", ""])
                call[1] += entry["function"].get("name") or ""
                call[2] += entry["function"].get("arguments") or ""
    assert list(calls) == list(range(len(calls)))
    return Message(text, [(call_id, name, json.loads(given or "{}")) for call_id, name, given in calls.values()], stop)


def _responses(datas: list[dict[str, Any]]) -> Message:
    """Put together from the deltas alone; the items that are done and the response at the end must be the same."""
    numbers = [data["sequence_number"] for data in datas]
    assert sorted(set(numbers)) == numbers
    items: dict[int, dict[str, Any]] = {}
    done: dict[int, Any] = {}
    for data in datas:
        index: Any = data.get("output_index")
        match data["type"]:
            case "response.output_item.added":
                assert index == len(items)
                items[index] = {**data["item"], "pieces": ""}
            case "response.output_text.delta" | "response.function_call_arguments.delta":
                assert items[index]["id"] == data["item_id"]
                items[index]["pieces"] += data["delta"]
            case "response.output_text.done":
                assert items[index]["pieces"] == data["text"]
            case "response.function_call_arguments.done":
                assert items[index]["pieces"] == data["arguments"]
            case "response.output_item.done":
                assert (items[index]["type"], items[index]["id"]) == (data["item"]["type"], data["item"]["id"])
                done[index] = data["item"]
    final = datas[-1]["response"]
    assert [done[index] for index in range(len(items))] == final["output"]
    message = _of_output(final)
    spoken = [item["pieces"] for item in items.values() if item["type"] == "message"]
    asked = [json.loads(item["pieces"] or "{}") for item in items.values() if item["type"] == "function_call"]
    assert (message.text, [call[2] for call in message.calls]) == ("\n\n".join(spoken), asked)
    return message


def _of_output(response: dict[str, Any]) -> Message:
    texts: list[str] = []
    calls: list[tuple[str, str, Any]] = []
    for item in response["output"]:
        if item["type"] == "message":
            texts += [part["text"] for part in item["content"]]
        if item["type"] == "function_call":
            calls.append((item["call_id"], item["name"], json.loads(item["arguments"] or "{}")))
    return Message("\n\n".join(texts), calls, response["status"])


def _gemini(datas: Iterable[dict[str, Any]]) -> Message:
    text, stop = "", None
    calls: list[tuple[str, str, Any]] = []
    for data in datas:
        (candidate,) = data["candidates"]
        stop = candidate.get("finishReason", stop)
        for part in candidate["content"]["parts"]:
            assert len(part.keys() & {"text", "functionCall"}) == 1
            if "functionCall" in part:
                call = part["functionCall"]
                calls.append((call["id"], call["name"], call["args"]))
            elif not part.get("thought"):
                text += part["text"]
    return Message(text, calls, stop)
