"""Small clients of the four APIs that keep their history as the real ones do: what they were given, unedited."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from interpose.wire.sse import SseReader

TOOLS = ("Bash", "Read")
SCHEMA = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class Said:
    """One reply as a client shows it: its texts, its calls, and how it ended."""

    text: str
    calls: tuple[tuple[str, str, Any], ...]
    stop: str


class Talker:
    """One conversation. `status` and `raw` are of the last reply."""

    path = ""
    stops: ClassVar[Mapping[str, str]]
    """The API's words for the two ends, as `calls` and `done`."""

    def __init__(self, url: str, *, stream: bool) -> None:
        self.url = url
        self.stream = stream
        self.history: list[Any] = []
        self.more: Mapping[str, Any] = {}
        """Members of the body beside the usual ones."""
        self.raw = b""
        self.session: str | None = "one"
        """What it says that its session is called."""

    def says(self, text: str) -> Said:
        """The person speaks."""
        self.history.append(self.spoken(text))
        return self._ask()

    def answers(self, outputs: Mapping[str, str]) -> Said:
        """The tools answer the calls with these ids, in order."""
        self.history += self.answered(outputs)
        return self._ask()

    def spoken(self, text: str) -> Any:
        """A message of the person."""
        return {"role": "user", "content": text}

    def answered(self, outputs: Mapping[str, str]) -> list[Any]:
        """What is appended for the outputs."""
        raise NotImplementedError

    def body(self) -> dict[str, Any]:
        """The request."""
        raise NotImplementedError

    def take(self, chunks: list[Any]) -> Said:
        """Keeps a reply, given as its chunks or as the one whole body."""
        raise NotImplementedError

    def _ask(self) -> Said:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
        try:
            headers = {"content-type": "application/json"}
            if self.session is not None:
                headers["x-session-id"] = self.session
            connection.request("POST", address.path + self.path, json.dumps({**self.body(), **self.more}), headers)
            response = connection.getresponse()
            self.raw = response.read()
            assert response.status == 200, self.raw
        finally:
            connection.close()
        return self.take(self._chunks())

    def _chunks(self) -> list[Any]:
        if not self.raw.startswith((b"event:", b"data:")):
            value = json.loads(self.raw)
            return value if isinstance(value, list) else [value]
        datas = [event.data for event in SseReader().feed(self.raw)]
        return [json.loads(data) for data in datas if data is not None and data != b"[DONE]"]

    def _said(self, texts: list[str], calls: list[tuple[str, str, Any]], stop: str) -> Said:
        names = {word: name for name, word in self.stops.items()}
        if len(names) == 1:  # the API has one word for both
            assert stop in names
            return Said("\n\n".join(texts), tuple(calls), "calls" if calls else "done")
        return Said("\n\n".join(texts), tuple(calls), names[stop])


class Anthropic(Talker):
    """The messages API."""

    path = "/v1/messages"
    stops: ClassVar[Mapping[str, str]] = {"calls": "tool_use", "done": "end_turn"}

    def answered(self, outputs: Mapping[str, str]) -> list[Any]:
        """All results in one message."""
        results = [{"type": "tool_result", "tool_use_id": key, "content": text} for key, text in outputs.items()]
        return [{"role": "user", "content": results}]

    def body(self) -> dict[str, Any]:
        """The request."""
        tools = [{"name": name, "input_schema": SCHEMA} for name in TOOLS]
        return {"model": "m", "max_tokens": 9, "tools": tools, "messages": self.history, "stream": self.stream}

    def take(self, chunks: list[Any]) -> Said:
        """Blocks as they were."""
        blocks, stop = self._blocks(chunks) if self.stream else (chunks[0]["content"], chunks[0]["stop_reason"])
        self.history.append({"role": "assistant", "content": blocks})
        calls = [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
        return self._said([block["text"] for block in blocks if block["type"] == "text"], calls, stop)

    def _blocks(self, chunks: list[Any]) -> tuple[list[Any], str]:
        blocks: list[Any] = []
        stop = ""
        for chunk in chunks:
            match chunk["type"]:
                case "content_block_start":
                    blocks.append({**chunk["content_block"], "json": ""})
                case "content_block_delta":
                    delta = dict(chunk["delta"])
                    delta.pop("type")
                    blocks[chunk["index"]]["json"] += delta.pop("partial_json", "")
                    for name, piece in delta.items():
                        blocks[chunk["index"]][name] += piece
                case "message_delta":
                    stop = chunk["delta"]["stop_reason"]
        for block in blocks:
            text = block.pop("json")
            if block["type"] == "tool_use":
                block["input"] = json.loads(text or "{}")
        return blocks, stop


class Chat(Talker):
    """Chat completions."""

    path = "/v1/chat/completions"
    stops: ClassVar[Mapping[str, str]] = {"calls": "tool_calls", "done": "stop"}

    def answered(self, outputs: Mapping[str, str]) -> list[Any]:
        """A message for each result."""
        return [{"role": "tool", "tool_call_id": key, "content": text} for key, text in outputs.items()]

    def body(self) -> dict[str, Any]:
        """The request."""
        tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in TOOLS]
        return {"model": "m", "tools": tools, "messages": self.history, "stream": self.stream}

    def take(self, chunks: list[Any]) -> Said:
        """The message as it was."""
        choices = [choice for chunk in chunks for choice in chunk["choices"]]
        message = self._message(choices) if self.stream else choices[0]["message"]
        self.history.append(message)
        stop = next(choice["finish_reason"] for choice in choices if choice["finish_reason"])
        calls = [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls") or ()
        ]
        return self._said([message["content"]] if message["content"] else [], calls, stop)

    def _message(self, choices: list[Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        calls: dict[int, Any] = {}
        for delta in [choice["delta"] for choice in choices]:
            message["content"] += delta.get("content") or ""
            for entry in delta.get("tool_calls") or ():
                if entry["index"] not in calls:
                    calls[entry["index"]] = {**entry, "function": {**entry["function"], "arguments": ""}}
                calls[entry["index"]]["function"]["arguments"] += entry["function"]["arguments"]
        for call in calls.values():
            call.pop("index")
        return {**message, "tool_calls": list(calls.values())} if calls else message


class Responses(Talker):
    """The Responses API, without a conversation on the server."""

    path = "/v1/responses"
    stops: ClassVar[Mapping[str, str]] = {"done": "completed"}

    def answered(self, outputs: Mapping[str, str]) -> list[Any]:
        """An item for each result."""
        return [{"type": "function_call_output", "call_id": key, "output": text} for key, text in outputs.items()]

    def body(self) -> dict[str, Any]:
        """The request; the first one gives its input as a text."""
        is_first = len(self.history) == 1
        return {
            "model": "m",
            "tools": [{"type": "function", "name": name, "parameters": SCHEMA} for name in TOOLS],
            "input": self.history[0]["content"] if is_first else self.history,
            "include": ["reasoning.encrypted_content"],
            "store": False,
            "stream": self.stream,
        }

    def take(self, chunks: list[Any]) -> Said:
        """All output items as they were; streamed, the items that were done are those of the response."""
        response = chunks[-1]["response"] if self.stream else chunks[0]
        if self.stream:
            done = [chunk["item"] for chunk in chunks if chunk["type"] == "response.output_item.done"]
            assert done == response["output"]
        self.history += response["output"]
        texts = [part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"]]
        calls = [
            (item["call_id"], item["name"], json.loads(item["arguments"]))
            for item in response["output"]
            if item["type"] == "function_call"
        ]
        return self._said(texts, calls, response["status"])


class Gemini(Talker):
    """Gemini, streamed as events."""

    stops: ClassVar[Mapping[str, str]] = {"done": "STOP"}
    query = "?alt=sse"

    @property
    def path(self) -> str:  # type: ignore[override]  # of the way it is asked
        """The way of asking is in the path."""
        name = f"streamGenerateContent{self.query}" if self.stream else "generateContent"
        return f"/v1beta/models/m:{name}"

    def spoken(self, text: str) -> Any:
        """A content of the person."""
        return {"role": "user", "parts": [{"text": text}]}

    def answered(self, outputs: Mapping[str, str]) -> list[Any]:
        """All responses in one content."""
        names = {
            part["functionCall"]["id"]: part["functionCall"]["name"]
            for content in self.history
            for part in content["parts"]
            if "functionCall" in part
        }
        parts = [
            {"functionResponse": {"id": key, "name": names[key], "response": {"output": text}}}
            for key, text in outputs.items()
        ]
        return [{"role": "user", "parts": parts}]

    def body(self) -> dict[str, Any]:
        """The request."""
        return {"tools": [{"functionDeclarations": [{"name": name} for name in TOOLS]}], "contents": self.history}

    def take(self, chunks: list[Any]) -> Said:
        """All parts as they were, but for empty texts."""
        candidates = [chunk["candidates"][0] for chunk in chunks]
        parts = [part for candidate in candidates for part in candidate["content"]["parts"] if part.get("text") != ""]
        self.history.append({"role": "model", "parts": parts})
        text = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
        found = [part["functionCall"] for part in parts if "functionCall" in part]
        calls = [(call["id"], call["name"], call["args"]) for call in found]
        return self._said([text] if text else [], calls, candidates[-1]["finishReason"])


class GeminiArray(Gemini):
    """Gemini, streamed as one array."""

    query = ""


APIS: dict[str, type[Talker]] = {
    "anthropic": Anthropic,
    "chat": Chat,
    "responses": Responses,
    "gemini": Gemini,
    "gemini-array": GeminiArray,
}
