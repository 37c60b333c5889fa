"""A stand-in for a provider that costs next to nothing: `python upstream.py` prints its port.

The model's name says what is answered: `bench-whole` one small JSON body, `bench-burst` a stream as fast as it can be
written, a few events at a time, `bench-call` such a one that proposes a tool call, `bench-paced` an event each 20 ms
with the time of its making in it.
The path says in whose shape: Anthropic messages, or OpenAI chat completions.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator

import httptools
import uvloop

BURST_EVENTS = 300
PACED_EVENTS = 50
PACE_S = 0.02
EVENTS_A_WRITE = 8
WORDS = (" and", " so", " it", " goes on", " until", " the end")

_MODEL = re.compile(rb'"model"\s*:\s*"(?:\w+/)?bench-(\w+)(?:-chat)?"')
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n"
_STREAM_HEAD = _HEAD % b"text/event-stream" + b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
_ARGUMENTS = json.dumps({"command": "pytest -q tests/unit && git status --short"})


def events(api: str, texts: list[str], *, has_call: bool = False) -> Iterator[bytes]:
    """A whole stream, event by event: one for each text, and what the API has around them."""
    return _anthropic(texts, has_call=has_call) if api == "anthropic" else _chat(texts, has_call=has_call)


def texts_of(number: int) -> list[str]:
    """So many pieces of text, none like the one before (LiteLLM takes a model that repeats itself for broken)."""
    return [WORDS[place % len(WORDS)] + WORDS[place // 7 % len(WORDS)] for place in range(number)]


def burst(api: str, kind: str) -> bytes:
    """The body of a stream that comes at once, without HTTP's framing."""
    return b"".join(_burst_events(api, kind))


def _burst_events(api: str, kind: str) -> Iterator[bytes]:
    has_call = kind == "call"
    return events(api, texts_of(BURST_EVENTS // (2 if has_call else 1)), has_call=has_call)


def _anthropic(texts: list[str], *, has_call: bool) -> Iterator[bytes]:
    usage = {"input_tokens": 25, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-1", "content": []}
    yield _event({"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}})
    yield _event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for text in texts:
        yield _event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
    yield _event({"type": "content_block_stop", "index": 0})
    if has_call:
        block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
        yield _event({"type": "content_block_start", "index": 1, "content_block": block})
        for piece in _ARGUMENTS:
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield _event({"type": "content_block_delta", "index": 1, "delta": delta})
        yield _event({"type": "content_block_stop", "index": 1})
    reason = "tool_use" if has_call else "end_turn"
    yield _event({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 300}})
    yield _event({"type": "message_stop"})


def _event(data: dict[str, object]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def _chat(texts: list[str], *, has_call: bool) -> Iterator[bytes]:
    yield _chunk({"role": "assistant", "content": ""})
    for text in texts:
        yield _chunk({"content": text})
    if has_call:
        function = {"name": "bash", "arguments": ""}
        yield _chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
        for piece in _ARGUMENTS:
            yield _chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield _chunk({}, "tool_calls" if has_call else "stop")
    yield b"data: [DONE]\n\n"


def _chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": "gpt-5"}
    return f"data: {json.dumps({**chunk, 'system_fingerprint': 'fp_1', 'choices': [choice]})}\n\n".encode()


def _whole(api: str) -> bytes:
    if api == "anthropic":
        text = {"type": "text", "text": "It is done."}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-1"}
        usage = {"input_tokens": 25, "output_tokens": 5}
        body = {**head, "content": [text], "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
        return json.dumps(body).encode()
    message = {"role": "assistant", "content": "It is done."}
    usage = {"prompt_tokens": 25, "completion_tokens": 5, "total_tokens": 30}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_760_000_000, "model": "gpt-5"}
    return json.dumps({**head, "choices": choices, "usage": usage}).encode()


def _framed(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def _burst_reply(api: str, kind: str) -> list[bytes]:
    pieces = [_framed(piece) for piece in _burst_events(api, kind)]
    pieces = [_STREAM_HEAD, *pieces, b"0\r\n\r\n"]
    return [b"".join(pieces[at : at + EVENTS_A_WRITE]) for at in range(0, len(pieces), EVENTS_A_WRITE)]


def _whole_reply(api: str) -> list[bytes]:
    body = _whole(api)
    return [_HEAD % b"application/json" + b"content-length: %d\r\n\r\n" % len(body) + body]


class Provider(asyncio.Protocol):
    """One connection; every reply but the paced one is made beforehand."""

    def __init__(self, replies: dict[tuple[str, str], list[bytes]]) -> None:
        self._replies = replies
        self._parser = httptools.HttpRequestParser(self)
        self._body = bytearray()
        self._url = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Called by httptools."""
        self._url = url

    def on_body(self, body: bytes) -> None:
        """Called by httptools."""
        self._body += body

    def on_message_complete(self) -> None:
        """Called by httptools: the request is whole."""
        found = _MODEL.search(bytes(self._body))
        self._body.clear()
        kind = found.group(1).decode() if found else "whole"
        api = "chat" if self._url.endswith(b"/chat/completions") else "anthropic"
        if kind != "paced":
            self._burst(iter(self._replies[api, kind]))
            return
        self._pace(_paced(api))

    def _burst(self, pieces: Iterator[bytes]) -> None:
        """One write for each turn of the loop, so that they leave apart."""
        piece = next(pieces, None)
        if piece is not None and not self._transport.is_closing():
            self._transport.write(piece)
            asyncio.get_running_loop().call_soon(self._burst, pieces)

    def _pace(self, pieces: Iterator[Callable[[], bytes]]) -> None:
        piece = next(pieces, None)
        if self._transport.is_closing():
            return
        if piece is None:
            self._transport.write(b"0\r\n\r\n")
            return
        self._transport.write(piece())
        asyncio.get_running_loop().call_later(PACE_S, self._pace, pieces)


def _paced(api: str) -> Iterator[Callable[[], bytes]]:
    """What is written each time; the events around the texts go with the first and the last one."""
    parts = list(events(api, ["@0@"] * PACED_EVENTS))
    before = b"".join(_framed(part) for part in parts if parts.index(part) < _first_text(parts))
    texts = parts[_first_text(parts) : _first_text(parts) + PACED_EVENTS]
    after = b"".join(_framed(part) for part in parts[_first_text(parts) + PACED_EVENTS :])
    for number, text in enumerate(texts):
        head = _STREAM_HEAD + before if number == 0 else b""
        tail = after if number == PACED_EVENTS - 1 else b""
        yield (
            lambda text=text, head=head, tail=tail: (
                head + _framed(text.replace(b"@0@", b"@%d@" % time.monotonic_ns())) + tail
            )
        )


def _first_text(parts: list[bytes]) -> int:
    return next(number for number, part in enumerate(parts) if b"@0@" in part)


async def main() -> None:
    """Serves until it is killed."""
    replies = {(api, kind): _burst_reply(api, kind) for api in ("anthropic", "chat") for kind in ("burst", "call")}
    replies |= {(api, "whole"): _whole_reply(api) for api in ("anthropic", "chat")}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Provider(replies), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
