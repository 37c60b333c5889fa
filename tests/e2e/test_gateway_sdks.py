"""The gateway on real sockets, with the real anthropic and openai SDKs."""

import asyncio
import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import anthropic
import openai
import pytest

from interpose.contracts.effects import NotifyOperator
from interpose.contracts.errors import ConfigError
from interpose.contracts.stages import Annotation, Point, ToolCall, ToolResult, TurnStart
from interpose.contracts.verdict import Notice, Reminder, Verdict
from interpose.gateway.app import Gateway, bound_to
from interpose.gateway.bodies import content_digest
from interpose.gateway.identity import unnamed
from interpose.gateway.server import Server, ThreadedServer, serve
from interpose.gateway.settings import GatewaySettings, Upstreams
from interpose.kernel.clock import SystemClock
from interpose.testing import anthropic as anthropic_api
from interpose.testing import chat as chat_api
from interpose.testing.fakes import FakePolicy, FakeWorkspaces, allow, refuse
from interpose.testing.upstream import (
    Failure,
    RawBody,
    RawStream,
    Reply,
    ScriptedUpstream,
    Step,
    Text,
    ToolUse,
)
from tests.e2e.house import House

pytestmark = pytest.mark.e2e
LINE = "[interpose] Bash was refused by no-rm: not recursively"
MESSAGES: Any = [{"role": "user", "content": "clean up"}]
RM = ToolUse("Bash", {"command": "rm -rf build"}, id="call_rm")
LS = ToolUse("Bash", {"command": "ls"}, id="call_ls")


@pytest.fixture
def clients() -> Iterator[Callable[..., Any]]:
    """Makes SDK clients that are closed at the end."""
    with ExitStack() as stack:

        def make(kind: str, url: str, **options: Any) -> Any:
            options = {"api_key": "sk-test", "max_retries": 0, "timeout": 10, **options}
            if kind == "anthropic":
                return stack.enter_context(anthropic.Anthropic(base_url=url, **options))
            return stack.enter_context(openai.OpenAI(base_url=f"{url}/v1", **options))

        yield make


def ask_anthropic(client: Any, *, stream: bool, messages: Any = MESSAGES) -> Any:
    """One message, streamed or not."""
    if not stream:
        return client.messages.create(model="m", max_tokens=99, messages=messages)
    with client.messages.stream(model="m", max_tokens=99, messages=messages) as events:
        return events.get_final_message()


def ask_chat(client: Any, *, stream: bool, messages: Any = MESSAGES) -> tuple[str, list[Any], str | None]:
    """Text, calls and finish reason of one completion, streamed or not."""
    if not stream:
        (choice,) = client.chat.completions.create(model="m", messages=messages).choices
        calls = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
        return choice.message.content or "", calls, choice.finish_reason
    text, finish = "", None
    pieces: dict[int, list[str]] = {}
    for chunk in client.chat.completions.create(model="m", messages=messages, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for entry in choice.delta.tool_calls or []:
                known = pieces.setdefault(entry.index, ["", "", ""])
                known[0] += entry.id or ""
                known[1] += entry.function.name or ""
                known[2] += entry.function.arguments or ""
    return text, [tuple(call) for call in pieces.values()], finish


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_calls_refused_and_passed(stream: bool, clients: Callable[..., Any]) -> None:
    """The refused call is a text with the reason; the harmless one reaches the agent untouched."""
    with House([Reply(Text("I will."), RM), Reply(Text("Then."), LS), Reply(RM, LS)]) as house:
        client = clients("anthropic", house.prefixed(agent="claude-code", cwd="/w/sub"))
        refused, passed, both = (ask_anthropic(client, stream=stream) for _ in range(3))
        paths = [request.path for request in house.upstream.requests]
        key = house.upstream.requests[0].headers["authorization"]

    assert [block.text for block in refused.content] == ["I will.", LINE]
    assert refused.stop_reason == "end_turn"
    assert passed.content[1].input == {"command": "ls"}
    assert passed.stop_reason == both.stop_reason == "tool_use"
    assert [block.type for block in both.content] == ["text", "tool_use"]
    assert set(paths) == {"/v1/messages"}
    assert key == "Bearer sk-test"
    call = next(point for point in house.policy.points if isinstance(point, ToolCall))
    context = call.context
    assert (context.mount, context.workspace, context.cwd, context.agent) == ("wire", "/w", "/w/sub", "claude-code")
    assert (context.session, context.launch, context.model) == (
        unnamed("/w", "s1", "", content_digest("clean up")),
        "l1",
        "m",
    )
    applied = [(record.outcome, record.handler, record.reason) for record in house.journal.of_step("applied")]
    assert applied[:2] == [("refused", "no-rm", "not recursively"), ("released", "", "")]
    assert "secret-1" not in repr(house.journal.records)


@pytest.mark.parametrize("stream", [False, True])
def test_chat_calls_refused_and_passed(stream: bool, clients: Callable[..., Any]) -> None:
    """The same over the other API, with the same words."""
    with House([Reply(Text("I will."), RM), Reply(Text("Then."), LS), Reply(RM, LS)]) as house:
        client = clients("openai", house.url)
        refused, passed, both = (ask_chat(client, stream=stream) for _ in range(3))

    assert refused == (f"I will.\n\n{LINE}", [], "stop")
    assert passed == ("Then.", [("call_ls", "Bash", '{"command": "ls"}')], "tool_calls")
    assert both == (LINE, [("call_ls", "Bash", '{"command": "ls"}')], "tool_calls")


def annotating(point: Point) -> Verdict:
    """Annotates calls and results, reminds at the start of a turn, and notifies the operator."""
    notice = (Notice("n", "k", "for the operator alone"),)
    match point:
        case ToolCall():
            return Verdict("a-1", point.stage, "allowed", annotations=(Annotation("h", "warn", "from the call"),))
        case ToolResult():
            lines = (*point.annotations, Annotation("h", "info", "from the result"))
            return Verdict("a-2", point.stage, "allowed", annotations=lines, notices=notice)
        case TurnStart():
            reminders = (Reminder("h", "info", "run the tests"), Reminder("g", "warn", "and commit"))
            return Verdict("a-3", point.stage, "allowed", reminders=reminders, notices=notice)
        case _:
            return allow(point)


REMINDER = "<system-reminder>\nrun the tests\n\nand commit\n</system-reminder>"
NOTES = "[interpose:warn] from the call\n[interpose:info] from the result"


def test_anthropic_annotations_and_reminders_are_made_again(clients: Callable[..., Any]) -> None:
    """Each later request carries the same edits, also after a retry and when the client rewrites its contents."""
    script: list[Step] = [Reply(LS), Reply(Text("seen")), Reply(Text("seen")), Reply(Text("end"))]
    with House(script, annotating) as house:
        client = clients("anthropic", house.prefixed())
        first = ask_anthropic(client, stream=True)
        result = {"type": "tool_result", "tool_use_id": first.content[0].id, "content": "out"}
        history = [*MESSAGES, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        ask_anthropic(client, stream=False, messages=history)
        ask_anthropic(client, stream=False, messages=history)
        marked = {"type": "text", "text": "clean up", "cache_control": {"type": "ephemeral"}}
        moved = [{"role": "user", "content": [marked]}, *history[1:]]
        more = [*moved, {"role": "assistant", "content": "seen"}, {"role": "user", "content": "thanks"}]
        ask_anthropic(client, stream=False, messages=more)
        bodies = [request.json["messages"] for request in house.upstream.requests]
        points = [point.stage for point in house.policy.points]

    reminder = {"type": "text", "text": REMINDER}
    assert bodies[0][0]["content"] == [reminder, {"type": "text", "text": "clean up"}]
    assert bodies[1] == bodies[2]
    assert bodies[1][0] == bodies[0][0]
    assert bodies[1][2]["content"] == [{**result, "content": f"out\n\n{NOTES}"}]
    assert bodies[3][0]["content"] == [reminder, marked]
    assert bodies[3][1:3] == bodies[1][1:3]
    assert bodies[3][4]["content"][0] == reminder
    assert points == ["turn.start", "tool.call", "tool.result", "turn.end", "turn.start", "turn.end"]
    assert "operator alone" not in json.dumps(bodies)
    assert NotifyOperator("", "").kind == "notify_operator"


def test_chat_annotations_and_reminders_are_made_again(clients: Callable[..., Any]) -> None:
    """The same over the other API."""
    with House([Reply(LS), Reply(Text("seen")), Reply(Text("end"))], annotating) as house:
        client = clients("openai", house.prefixed())
        _, calls, _ = ask_chat(client, stream=True)
        call = {"id": calls[0][0], "type": "function", "function": {"name": calls[0][1], "arguments": calls[0][2]}}
        history = [
            *MESSAGES,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "out"},
        ]
        ask_chat(client, stream=False, messages=history)
        more = [*history, {"role": "assistant", "content": "seen"}, {"role": "user", "content": "thanks"}]
        ask_chat(client, stream=False, messages=more)
        bodies = [request.json["messages"] for request in house.upstream.requests]
        result = next(point for point in house.policy.points if isinstance(point, ToolResult))

    assert bodies[0][0]["content"] == f"{REMINDER}\n\nclean up"
    assert bodies[1][0] == bodies[0][0]
    assert bodies[1][2]["content"] == f"out\n\n{NOTES}"
    assert bodies[2][:3] == bodies[1]
    assert bodies[2][4]["content"] == f"{REMINDER}\n\nthanks"
    assert (result.tool_name, result.arguments, result.output) == ("Bash", {"command": "ls"}, "out")


def test_sessions_are_told_by_headers_and_else_are_their_own() -> None:
    """A header names the session; without one each conversation is its own; the header of ours stays here."""
    with House([Reply(Text("x"))] * 4) as house:
        body = json.dumps({"messages": MESSAGES}).encode()
        other = json.dumps({"messages": [{"role": "user", "content": "something else"}]}).encode()
        for headers in (
            {"X-Claude-Code-Session-Id": "cc"},
            {"x-session-id": "oc", "X-Interpose-Session": "mine"},
            {},
        ):
            house.raw("POST", "/v1/messages", body, headers)
        house.raw("POST", "/v1/messages", other)
        sessions = [point.context.session for point in house.policy.points if isinstance(point, TurnStart)]
        sent = [request.headers for request in house.upstream.requests]

    assert sessions[:2] == ["cc", "mine"]
    assert len(set(sessions)) == 4
    assert house.policy.points[0].context.workspace == ""
    assert sent[0]["x-claude-code-session-id"] == "cc"
    assert "x-interpose-session" not in {name.lower() for name in sent[1]}


def test_a_request_that_nobody_edits_arrives_as_it_was_sent() -> None:
    """Bytes, query, unknown headers and betas reach the upstream; compressed bodies arrive plain."""
    body = b'{ "model":"m",\n "messages": [ {"role":"user","content":"hi"} ], "n": 1.0 }'
    headers = {"anthropic-beta": "x-2027-01-01,y", "x-odd": "1", "Connection": "x-hop", "x-hop": "1"}
    with House([Reply(Text("x"))] * 3) as house:
        house.raw("POST", "/v1/messages?beta=true", body, headers)
        zipped = {"content-encoding": "gzip", "accept-encoding": "br"}
        assert house.raw("POST", "/v1/messages", gzip.compress(body), zipped)[0] == 200
        house.raw("POST", "/v1/messages/", body)
        first, second = house.upstream.requests[:2]

    assert first.body == second.body == body
    assert first.path == "/v1/messages?beta=true"
    assert (first.headers["anthropic-beta"], first.headers["x-odd"]) == ("x-2027-01-01,y", "1")
    assert "x-hop" not in {name.lower() for name in first.headers}
    assert second.headers["accept-encoding"] == "identity"
    assert [point.stage for point in house.policy.points] == ["turn.start", "turn.end"]


@pytest.mark.parametrize(
    ("method", "path", "is_known"),
    [
        ("POST", "/v1/embeddings", False),
        ("POST", "/v1beta/models/g:countTokens", True),
        ("POST", "/v1/responses/compact", False),
        ("POST", "/v1internal:streamGenerateContent?alt=sse", False),
        ("GET", "/v1/models", True),
        ("HEAD", "/", True),
    ],
)
def test_what_is_not_judged_passes_untouched(method: str, path: str, is_known: bool) -> None:
    """It goes through byte for byte; the journal says which of it could have carried a call."""
    body = b"any \xff bytes" if method == "POST" else None
    with House([RawBody(b"reply \xff", "application/json")], strict=False) as house:
        _, _, answer = house.raw(method, path, body, {"accept-encoding": "zstd"})
        (request,) = house.upstream.requests

    assert (request.method, request.path, request.body) == (method, path, body or b"")
    assert request.headers["accept-encoding"] == "zstd"
    assert answer == b"reply \xff" or is_known
    notes = [record.outcome for record in house.journal.of_step("skipped")]
    assert notes == ([] if is_known else ["unjudged"])
    assert house.policy.points == ()


def test_upstream_by_api_and_by_launch() -> None:
    """Shared paths are told apart by headers; a launch's own upstream, path and all, replaces every other."""
    with House([]) as house, ScriptedUpstream([]) as other:
        nowhere = "http://127.0.0.1:9"
        urls = Upstreams(f"{other.url}/base/v1", nowhere, house.upstream.url)
        with ThreadedServer(house.another(upstreams=urls)) as server:
            house.url = server.url
            house.raw("GET", "/v1/models", None, {"anthropic-version": "2026-10-21"})
            house.raw("GET", "/v1/models", None, {"x-goog-api-key": "k"})
            house.raw("GET", "/v1/models?key=k")
            prefix = urlsplit(house.prefixed(upstream=f"{other.url}/own")).path
            house.raw("GET", f"{prefix}/v1/models")
            status, _, _ = house.raw("GET", "/v1/models")

    assert [request.path for request in other.requests] == ["/base/v1/models", "/own/v1/models"]
    assert [request.path for request in house.upstream.requests] == ["/v1/models", "/v1/models?key=k"]
    assert status == 502


def test_a_launch_that_nobody_knows() -> None:
    """The error is in the API's shape, says the way out, and the journal does not learn the secret."""
    with House([]) as house:
        status, _, answer = house.raw("POST", "/l/not-a-secret/v1/messages", b"{}")
        chat = house.raw("POST", "/l/not-a-secret/v1/chat/completions", b"{}")[2]

    assert status == 404
    assert json.loads(answer)["type"] == "error"
    assert "interpose run" in json.loads(answer)["error"]["message"]
    assert json.loads(chat)["error"]["code"] is None
    assert "not-a-secret" not in repr(house.journal.records)


def test_a_port_of_its_own_belongs_to_one_launch() -> None:
    """A client that takes no path is bound by its port."""
    with House([Reply(Text("x"))]) as house:
        _, secret = house.launches.register(workspace="/w")
        gateway = house.another(upstreams=Upstreams(house.upstream.url))
        with ThreadedServer(bound_to(gateway, secret)) as own:
            house.url = own.url
            status, _, _ = house.raw("POST", "/v1/messages", json.dumps({"messages": MESSAGES}).encode())

    assert status == 200
    assert house.policy.points[0].context.launch == "l1"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Upgrade": "websocket", "Connection": "Upgrade"}, 426),
        ({"Host": "LOCALHOST:99"}, 200),
        ({"Host": "[::1]:4747"}, 200),
    ],
)
def test_who_may_speak_to_it(headers: dict[str, str], status: int) -> None:
    """Other names, web pages and WebSockets are turned away before anything else happens."""
    with House([RawBody(b"{}", "application/json")]) as house:
        answered, _, body = house.raw("GET", "/v1/responses", None, headers)

    assert answered == status
    assert status == 200 or "interpose" in json.loads(body)["error"]["message"]
    assert (len(house.upstream.requests) == 1) == (status == 200)


def test_health() -> None:
    """Other processes recognise the gateway by it."""
    with House([]) as house:
        status, _, body = house.raw("GET", "/healthz")

    assert status == 200
    assert json.loads(body)["name"] == "interpose"
    assert set(json.loads(body)) == {"name", "version", "pid"}


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"<html>", {}, 400),
        (b'{"messages": [', {}, 400),
        (b"x" * 3000, {}, 413),
        (gzip.compress(b" " * 100_000), {"content-encoding": "gzip"}, 413),
        (b"not gzip", {"content-encoding": "gzip"}, 400),
        (b"{}", {"content-encoding": "lzma"}, 415),
    ],
)
def test_bodies_that_cannot_be_read(path: str, body: bytes, headers: dict[str, str], status: int) -> None:
    """One error in the API's shape, one line in the journal, and the gateway stays up."""
    with House([Reply(Text("x"))], body_bytes=2000) as house:
        answered, _, answer = house.raw("POST", path, body, headers)
        again, _, _ = house.raw("POST", path, json.dumps({"messages": MESSAGES}).encode())

    assert (answered, again) == (status, 200)
    error = json.loads(answer)
    assert ("type" in error) == (path == "/v1/messages")
    assert "interpose" in error["error"]["message"]
    (failed,) = house.journal.of_step("failed")
    assert failed.reason == error["error"]["message"]
    assert [record.data["status"] for record in house.journal.of_step("request")] == [status, 200]


def test_upstream_down_and_an_upstreams_own_errors(clients: Callable[..., Any]) -> None:
    """Nobody listening is a 502 in the API's shape; an upstream's own error passes with its status."""
    with House([], upstreams=Upstreams("http://127.0.0.1:9", "http://127.0.0.1:9")) as house:
        with pytest.raises(anthropic.InternalServerError, match="cannot reach"):
            ask_anthropic(clients("anthropic", house.url), stream=False)
        with pytest.raises(openai.InternalServerError, match="cannot reach"):
            ask_chat(clients("openai", house.url), stream=True)
        assert len(house.journal.of_step("failed")) == 2
    with House([Failure(429, "slow down"), Failure(503, b"<html>no</html>", "text/html")]) as house:
        with pytest.raises(anthropic.RateLimitError, match="slow down"):
            ask_anthropic(clients("anthropic", house.url), stream=True)
        status, headers, body = house.raw("POST", "/v1/messages", json.dumps({"messages": MESSAGES}).encode())
        assert (status, headers["content-type"], body) == (503, "text/html", b"<html>no</html>")


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        (RawBody(b"<html>log in</html>"), 502, ["failed"]),
        (RawBody(b"<html>", "application/json"), 502, ["failed"]),
        (RawBody(b"hello", "text/plain"), 502, ["failed"]),
        (RawBody(b"", "text/plain"), 200, []),
        (RawBody(b"{}", "text/plain"), 200, []),
        (RawBody(b": note\n\n", ""), 200, ["cut_short"]),
    ],
)
def test_replies_that_cannot_be_judged_do_not_pass(path: str, answer: RawBody, status: int, told: list[str]) -> None:
    """What is not read as JSON or events is a 502; what only lacks a proper type is judged as what it is."""
    with House([answer]) as house:
        answered, _, body = house.raw("POST", path, json.dumps({"messages": MESSAGES}).encode())

    assert answered == status
    assert status == 200 or "upstream" in json.loads(body)["error"]["message"]
    assert [record.outcome for record in house.journal.of_step("failed")] == told


@pytest.mark.parametrize(("path", "end"), [("/v1/messages", b"message_stop"), ("/v1/chat/completions", b"[DONE]")])
def test_a_stream_that_never_tells_its_end_is_journalled_so(path: str, end: bytes) -> None:
    """It passes as it came, and whoever asks why the agent stopped finds the reason; an event of a finish is enough."""
    frames = list((anthropic_api if path == "/v1/messages" else chat_api).stream(Reply(Text("So.")), 1, {}))
    whole, cut = (b"".join(some) for some in (frames, frames[:2]))
    with House([RawBody(body, "text/event-stream") for body in (whole, cut, b"")]) as house:
        bodies = [house.raw("POST", path, json.dumps({"messages": MESSAGES}).encode())[2] for _ in range(3)]

    assert bodies == [whole, cut, b""]
    assert end in whole
    assert [record.outcome for record in house.journal.of_step("failed")] == ["cut_short"] * 2


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
def test_a_call_that_is_cut_short_is_journalled_once(path: str) -> None:
    """The line of the dropped call says it all: what came of it was not let through."""
    reply = Reply(Text("So."), ToolUse("Bash", {"command": "ls"}))
    frames = list((anthropic_api if path == "/v1/messages" else chat_api).stream(reply, 1, {}))
    begun = next(place for place, frame in enumerate(frames) if b"Bash" in frame)
    with House([RawBody(b"".join(frames[: begun + 1]), "text/event-stream")]) as house:
        body = house.raw("POST", path, json.dumps({"messages": MESSAGES}).encode())[2]

    assert b"ended before the call was complete" in body
    assert [record.outcome for record in house.journal.of_step("failed")] == ["dropped"]


def test_an_untyped_reply_is_judged_all_the_same() -> None:
    """Leaving out the content type does not get a call past the policy."""
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "rm -rf /"}}
    start = {"type": "content_block_start", "index": 0, "content_block": call}
    stop = {"type": "content_block_stop", "index": 0}
    stream = "".join(f"event: {data['type']}\ndata: {json.dumps(data)}\n\n" for data in (start, stop)).encode()
    bodies = [json.dumps({"content": [call], "stop_reason": "tool_use"}).encode(), stream]
    with House([RawBody(body, "text/html") for body in bodies]) as house:
        answers = [house.raw("POST", "/v1/messages", json.dumps({"messages": MESSAGES}).encode())[2] for _ in bodies]

    assert all(LINE.encode() in answer and b"tool_use" not in answer for answer in answers)


def test_a_stream_that_dies_in_a_held_call(clients: Callable[..., Any]) -> None:
    """The call is dropped, the SDK raises the API's error, the journal says both."""
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    start = {"type": "content_block_start", "index": 0, "content_block": call}
    head = {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": "m",
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    }
    chunks = [f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode() for data in (head, start)]
    with House([RawStream(chunks, cut=True)]) as house:
        with pytest.raises(anthropic.APIStatusError, match="broke off"):
            ask_anthropic(clients("anthropic", house.url), stream=True)
        house.until(lambda: bool(house.journal.of_step("request")))
        failed = [(record.outcome, record.wire_name) for record in house.journal.of_step("failed")]

    assert failed == [("upstream_died", ""), ("dropped", "Bash")]


def test_text_arrives_while_a_call_is_held(clients: Callable[..., Any]) -> None:
    """The client has the text before the upstream has finished the call."""
    gate = threading.Event()
    text = b'data: {"choices": [{"index": 0, "delta": {"content": "words"}, "finish_reason": null}]}\n\n'
    entry = b'{"index": 0, "id": "c", "function": {"name": "Bash", "arguments": "{}"}}'
    call = b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [' + entry + b']}, "finish_reason": null}]}\n\n'
    with House([RawStream([call, text, gate, b"data: [DONE]\n\n"])]) as house:
        chunks = clients("openai", house.url).chat.completions.create(model="m", messages=MESSAGES, stream=True)
        first = next(chunks)
        gate.set()
        rest = list(chunks)

    assert first.choices[0].delta.content == "words"
    assert rest[0].choices[0].delta.tool_calls[0].function.name == "Bash"


def test_a_client_that_hangs_up_cancels_the_upstream(clients: Callable[..., Any]) -> None:
    """The upstream's connection is cut, the journal says so, and the next request is served."""
    gate = threading.Event()
    text = b'data: {"choices": [{"index": 0, "delta": {"content": "words"}, "finish_reason": null}]}\n\n'
    with House([RawStream([text, gate, text]), Reply(Text("x"))]) as house:
        client = clients("openai", house.url)
        chunks = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        next(chunks)
        chunks.close()
        house.until(lambda: [r.outcome for r in house.journal.of_step("request")] == ["client_gone"])
        gate.set()
        assert ask_chat(client, stream=False)[0] == "x"


def test_a_policy_that_fails_refuses_calls_and_nothing_else(clients: Callable[..., Any]) -> None:
    """A broken policy never lets a call go, and never breaks the turn."""

    def broken(point: Point) -> Verdict:
        raise RuntimeError("broken rule")

    with House([Reply(Text("So."), LS)], broken) as house:
        message = ask_anthropic(clients("anthropic", house.url), stream=True)

    assert [block.type for block in message.content] == ["text", "text"]
    assert "the policy failed: RuntimeError: broken rule" in message.content[1].text


def test_a_refused_turn_and_a_withheld_result(clients: Callable[..., Any]) -> None:
    """The turn does not start, and a reply says why; a withheld output is replaced by the reason."""

    def judge(point: Point) -> Verdict:
        is_refused = isinstance(point, TurnStart) or (isinstance(point, ToolResult) and "key" in point.output)
        return refuse(point, "secret", "guard") if is_refused else allow(point)

    call = {"type": "tool_use", "id": "t", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "the key"}
    history = [*MESSAGES, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    with House([Reply(Text("x"))], judge) as house:
        client = clients("anthropic", house.prefixed())
        told = ask_anthropic(client, stream=False)
        ask_anthropic(client, stream=False, messages=history)
        (request,) = house.upstream.requests

    sent = request.json["messages"][2]["content"][0]["content"]
    assert told.content[0].text == "[interpose] the turn was refused by guard: secret"
    assert sent == "the output of Read was withheld by guard: secret"


def test_a_taken_port_and_a_host_that_does_not_exist() -> None:
    """The error names the port and the way out."""
    with House([]) as house:
        port = urlsplit(house.url).port or 0
        with pytest.raises(ConfigError, match=rf"port {port} on 127\.0\.0\.1: is taken .*--port"):
            ThreadedServer(house.another(), port=port)
        with pytest.raises(ConfigError, match="no such address"):
            ThreadedServer(house.another(), host="no.such.host.invalid")


class Counted(Sequence[bytes]):
    """Chunks that know how far they were read."""

    def __init__(self, chunk: bytes, count: int) -> None:
        self.chunk = chunk
        self.limit = count
        self.read = 0

    def __len__(self) -> int:
        return self.limit

    def __getitem__(self, index: Any) -> Any:
        if index >= self.limit:
            raise IndexError
        self.read = max(self.read, index + 1)
        return self.chunk


def test_a_slow_client_slows_the_upstream_down() -> None:
    """The upstream is read no faster than the client reads, so that nothing piles up here."""
    event = (
        b'data: {"choices": [{"index": 0, "delta": {"content": "' + b"x" * 65_000 + b'"}, "finish_reason": null}]}\n\n'
    )
    chunks = Counted(event, 1000)
    body = json.dumps({"messages": MESSAGES}).encode()
    with House([RawStream(chunks)]) as house:
        address = urlsplit(house.url)
        with socket.create_connection((str(address.hostname), address.port), timeout=10) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            client.recv(10)
            seen = -1
            while seen != chunks.read:
                seen = chunks.read
                threading.Event().wait(0.2)
            stalled_at = chunks.read

    assert stalled_at < 500


def test_stopping_lets_an_open_stream_end(clients: Callable[..., Any]) -> None:
    """A stream that runs when the server is told to stop still arrives whole."""
    gate = threading.Event()
    text = b'data: {"choices": [{"index": 0, "delta": {"content": "words"}, "finish_reason": null}]}\n\n'
    with House([RawStream([text, gate, text, b"data: [DONE]\n\n"])]) as house:
        server = ThreadedServer(house.another(upstreams=Upstreams(openai=house.upstream.url)), drain_timeout_s=5)
        with server:
            chunks = clients("openai", server.url).chat.completions.create(model="m", messages=MESSAGES, stream=True)
            next(chunks)
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            gate.set()
            rest = list(chunks)
            stopping.join(10)

    assert [chunk.choices[0].delta.content for chunk in rest] == ["words"]
    assert not stopping.is_alive()


def test_served_in_a_loop_of_the_callers() -> None:
    """`serve` runs until it is stopped, binds before it says so, and gives the port back."""
    bound: list[Server] = []

    async def run() -> tuple[int, bytes]:
        is_bound = asyncio.Event()

        def note(server: Server) -> None:
            bound.append(server)
            is_bound.set()

        with House([]) as house:
            serving = asyncio.ensure_future(
                serve(house.another(), host="127.0.0.1", port=0, drain_timeout_s=1, on_bound=note)
            )
            await is_bound.wait()
            house.url = bound[0].url
            status, _, body = await asyncio.to_thread(house.raw, "GET", "/healthz")
            bound[0].stop()
            await serving
        return status, body

    status, body = asyncio.run(run())

    assert status == 200
    assert json.loads(body)["name"] == "interpose"
    with ThreadedServer(bound_to_nothing, port=bound[0].port) as again:
        assert again.port == bound[0].port


async def bound_to_nothing(scope: Any, receive: Any, send: Any) -> None:
    """An application that only starts and stops."""
    while scope["type"] == "lifespan":
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def test_a_fault_of_our_own_is_told_and_the_gateway_stays_up() -> None:
    """A port that raises what it must not is a 500 in the API's shape for that request alone."""

    class Broken(FakeWorkspaces):
        def policy(self, root: str | None) -> FakePolicy:
            raise RuntimeError("no such table")

    body = json.dumps({"messages": MESSAGES}).encode()
    with House([RawBody(b"{}", "application/json")]) as house:
        gateway = Gateway(
            GatewaySettings(upstreams=Upstreams(house.upstream.url, house.upstream.url)),
            workspaces=Broken(),
            launches=house.launches,
            journal=house.journal,
            clock=SystemClock(),
        )
        with ThreadedServer(gateway) as server:
            house.url = server.url
            status, _, answer = house.raw("POST", "/v1/messages", body)
            other, _, _ = house.raw("GET", "/v1/models")

    assert (status, other) == (500, 200)
    assert "RuntimeError: no such table" in json.loads(answer)["error"]["message"]
    assert house.upstream.requests[0].method == "GET"
