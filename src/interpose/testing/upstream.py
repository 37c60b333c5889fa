"""A real HTTP server on loopback that stands in for a paid model.

Knows: which answer of a script comes next, and how to put it on a socket. Does not know: what is tested with it.
It speaks Anthropic messages, OpenAI chat completions, OpenAI Responses and Gemini generateContent, streamed and not,
and is as strict as they are about calls that are proposed and never answered.
"""

import asyncio
import json
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import ModuleType, TracebackType
from typing import Any, Self

from aiohttp import web

from interpose.contracts.errors import MisuseError
from interpose.contracts.json import Json
from interpose.testing import anthropic, chat, gemini, responses
from interpose.testing.script import (
    Answer,
    Failure,
    Part,
    RawBody,
    RawStream,
    RecordedRequest,
    Reply,
    Slow,
    Step,
    Text,
    Thinking,
    ToolUse,
)
from interpose.testing.strict import PromptCache, PromptUse

__all__ = [
    "Answer",
    "Failure",
    "Part",
    "RawBody",
    "RawStream",
    "RecordedRequest",
    "Reply",
    "ScriptedUpstream",
    "Slow",
    "Step",
    "Text",
    "Thinking",
    "ToolUse",
]

_START_TIMEOUT_S = 10.0
_GATE_SLICE_S = 0.05
_WAITING_THREADS = 32
_BODY_LIMIT_BYTES = 256 * 1024 * 1024
_KEY_HEADERS = ("x-api-key", "authorization", "x-goog-api-key")
_DIALECTS: tuple[tuple[re.Pattern[str], ModuleType], ...] = (
    (re.compile(r"/messages$"), anthropic),
    (re.compile(r"/chat/completions$"), chat),
    (re.compile(r"/responses$"), responses),
    (re.compile(r":(streamG|g)enerateContent$"), gemini),
)


@dataclass(frozen=True, slots=True)
class _Exchange:
    request: web.Request
    recorded: RecordedRequest
    dialect: ModuleType | None
    """The API that is spoken; None for a path that none of them has."""

    @property
    def is_streamed(self) -> bool:
        if self.dialect is gemini:
            return self.request.path.endswith(":streamGenerateContent")
        return isinstance(self.recorded.json, dict) and bool(self.recorded.json.get("stream"))

    def error(self, status: int, message: str) -> web.Response:
        return web.json_response((self.dialect or chat).error(status, message), status=status)


class ScriptedUpstream:
    """A model that follows a script: `with ScriptedUpstream([Reply(Text("hi"))]) as upstream: upstream.url`.

    Each POST takes the next entry, except those that count tokens. A script that is used up answers 500 in the API's
    shape and says so; a request that the real API would refuse answers 400 and takes no entry, unless `strict` is off.
    With `to_the_letter` so does what short tests leave out: a request without a key (401), and one for messages without
    `max_tokens`.
    GET answers an empty list. It runs in a thread of its own from `with` to the end of it; any thread may read
    `requests` and `hangups`, and any number of clients may be served at once.
    """

    def __init__(self, script: Sequence[Step] = (), *, strict: bool = True, to_the_letter: bool = False) -> None:
        self._strict = strict
        self._to_the_letter = to_the_letter
        self._lock = threading.Lock()
        self._script = list(script)
        self._script_length = len(self._script)
        self._requests: list[RecordedRequest] = []
        self._hangups = 0
        self._hangup = threading.Condition(self._lock)
        self._replies = 0
        self._calls = 0
        self._cache = PromptCache()
        self._prompts: list[PromptUse] = []
        self._port: int | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._start_error: Exception | None = None

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end. Raises MisuseError outside of `with`."""
        if self._port is None:
            raise MisuseError("ScriptedUpstream has no url before it runs: use it as `with ScriptedUpstream(...) as …`")
        return f"http://127.0.0.1:{self._port}"

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """Every request so far, in the order of arrival."""
        with self._lock:
            return tuple(self._requests)

    @property
    def prompts(self) -> tuple[PromptUse, ...]:
        """The size of each prompt that was answered with a Reply, and how much of its start was unchanged."""
        with self._lock:
            return tuple(self._prompts)

    @property
    def remaining(self) -> int:
        """How many entries of the script have not been taken."""
        with self._lock:
            return len(self._script)

    @property
    def hangups(self) -> int:
        """How many clients went away before their answer was complete."""
        with self._lock:
            return self._hangups

    def wait_for_hangup(self, count: int = 1, timeout_s: float = 5.0) -> bool:
        """Waits until `count` clients in all have gone away in the middle; False when that took too long."""
        with self._hangup:
            return self._hangup.wait_for(lambda: self._hangups >= count, timeout_s)

    def extend(self, script: Sequence[Step]) -> None:
        """Appends to the script of a running upstream."""
        with self._lock:
            self._script.extend(script)
            self._script_length += len(script)

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise MisuseError("this ScriptedUpstream has been used: make a new one for each `with`")
        self._thread = threading.Thread(target=self._run, name="scripted-upstream", daemon=True)
        self._thread.start()
        if not self._ready.wait(_START_TIMEOUT_S):
            raise MisuseError(f"ScriptedUpstream did not start within {_START_TIMEOUT_S:g} s")
        if self._start_error is not None:
            raise MisuseError(f"ScriptedUpstream could not start: {self._start_error}") from self._start_error
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join()
        self._port = None

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._start_error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_default_executor(ThreadPoolExecutor(_WAITING_THREADS, "scripted-upstream"))
        app = web.Application(client_max_size=_BODY_LIMIT_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # The recorded bodies are the bytes that were sent; a client that hangs up ends its handler.
        runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, auto_decompress=False, shutdown_timeout=0.1
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self._port = runner.addresses[0][1]
            self._ready.set()
            await self._stop.wait()
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        recorded = RecordedRequest(request.method, request.raw_path, request.headers, body, _parsed(body))
        exchange = _Exchange(request, recorded, _dialect(request.path))
        with self._lock:
            self._requests.append(recorded)
        try:
            return await self._answer(exchange)
        except (asyncio.CancelledError, ConnectionResetError):
            self._count_hangup()
            raise

    def _count_hangup(self) -> None:
        with self._hangup:
            if self._stop is None or not self._stop.is_set():
                self._hangups += 1
                self._hangup.notify_all()

    async def _answer(self, exchange: _Exchange) -> web.StreamResponse:
        request, recorded = exchange.request, exchange.recorded
        if request.method != "POST":
            return web.json_response({"object": "list", "data": []})
        if request.path.endswith("/count_tokens"):
            return web.json_response({"input_tokens": len(recorded.body) // 4})
        if request.path.endswith(":countTokens"):
            return web.json_response({"totalTokens": len(recorded.body) // 4})

        fault = exchange.dialect.fault(recorded.json) if exchange.dialect is not None and self._strict else None
        if fault is not None:
            return exchange.error(400, fault)
        left_out = _left_out(exchange) if self._to_the_letter else None
        if left_out is not None:
            return exchange.error(*left_out)
        with self._lock:
            step = self._script.pop(0) if self._script else None
        if step is None:
            entries = "1 entry" if self._script_length == 1 else f"{self._script_length} entries"
            message = f"the script is used up: it had {entries}, and this POST is one more"
            return exchange.error(500, message)
        answer = await asyncio.to_thread(step, recorded) if callable(step) else step
        return await self._play(exchange, answer)

    async def _play(self, exchange: _Exchange, answer: Answer) -> web.StreamResponse:
        match answer:
            case Slow(reply, gate):
                await _opened(gate)
                return await self._play(exchange, reply)
            case Failure(status, body, content_type):
                if isinstance(body, str) and content_type == "application/json":
                    return exchange.error(status, body)
                raw = body.encode() if isinstance(body, str) else body
                return web.Response(status=status, body=raw, content_type=content_type)
            case RawBody(body, content_type, status):
                return web.Response(status=status, body=body, content_type=content_type)
            case RawStream():
                return await _write_stream(exchange.request, answer)
            case Reply():
                return await self._reply(exchange, answer)

    async def _reply(self, exchange: _Exchange, reply: Reply) -> web.StreamResponse:
        if exchange.dialect is None:
            path = exchange.request.path
            return exchange.error(
                500, f"a Reply speaks the APIs of models, and {path} is none of their paths: use RawBody"
            )

        if not isinstance(exchange.recorded.json, dict):
            return exchange.error(400, "the body is not a JSON object")

        cached = self._use(exchange)
        numbered, number = self._numbered(reply, "toolu" if exchange.dialect is anthropic else "call")
        if not exchange.is_streamed:
            body = exchange.dialect.whole(numbered, number, exchange.recorded.json, cached)
            return web.json_response(body, status=reply.status)

        frames = tuple(exchange.dialect.stream(numbered, number, exchange.recorded.json, cached))
        if exchange.dialect is gemini and exchange.request.query.get("alt") != "sse":
            chunks = RawStream(tuple(gemini.array(frames)), content_type="application/json")
            return await _write_stream(exchange.request, chunks, reply.status)
        return await _write_stream(exchange.request, RawStream(frames), reply.status)

    def _use(self, exchange: _Exchange) -> int:
        """Counts the prompt; how many of its tokens are known from an earlier one."""
        body = exchange.recorded.json
        if exchange.dialect is None or exchange.dialect.fault(body) is not None:
            return 0
        model = exchange.request.path.rpartition(":")[0] if exchange.dialect is gemini else str(body.get("model"))
        with self._lock:
            use = self._cache.use(f"{exchange.dialect.__name__} {model}", exchange.dialect.prompt(body))
            self._prompts.append(use)
        return use.cached_tokens

    def _numbered(self, reply: Reply, prefix: str) -> tuple[Reply, int]:
        """The reply with an id for each call, and its own number."""
        with self._lock:
            self._replies += 1
            parts: list[Part] = []
            for part in reply.parts:
                if isinstance(part, ToolUse) and part.id is None:
                    self._calls += 1
                    parts.append(replace(part, id=f"{prefix}_{self._calls:012d}"))
                    continue
                parts.append(part)
            return Reply(*parts, stop_reason=reply.stop_reason, status=reply.status), self._replies


def _left_out(exchange: _Exchange) -> tuple[int, str] | None:
    """The status and the words for a request that lacks what only a real provider asks for."""
    request = exchange.request
    if not any(request.headers.get(name) for name in _KEY_HEADERS) and not request.query.get("key"):
        return 401, "no API key: it is sent in x-api-key, authorization or x-goog-api-key"
    body = exchange.recorded.json
    if exchange.dialect is anthropic and isinstance(body, dict) and not isinstance(body.get("max_tokens"), int):
        return 400, "max_tokens: Field required"
    return None


def _parsed(body: bytes) -> Json:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _dialect(path: str) -> ModuleType | None:
    return next((dialect for pattern, dialect in _DIALECTS if pattern.search(path)), None)


async def _opened(gate: threading.Event) -> None:
    # In slices, so that the waiting thread ends soon after its client has gone or the server stops.
    while not await asyncio.to_thread(gate.wait, _GATE_SLICE_S):
        continue


async def _write_stream(request: web.Request, stream: RawStream, status: int = 200) -> web.StreamResponse:
    headers: Mapping[str, Any] = {"Content-Type": stream.content_type, "Cache-Control": "no-cache"}
    response = web.StreamResponse(status=status, headers=headers)
    await response.prepare(request)
    for chunk in stream.chunks:
        if isinstance(chunk, threading.Event):
            await _opened(chunk)
            continue
        await response.write(chunk)

    if not stream.cut:
        await response.write_eof()
        return response
    if request.transport is not None:
        request.transport.close()
    return response
