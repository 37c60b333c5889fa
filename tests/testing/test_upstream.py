"""The scripted upstream on real sockets, and with the real SDKs."""

import json
import threading
from collections.abc import Callable
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from interpose.contracts.errors import MisuseError
from interpose.testing.upstream import (
    Failure,
    RawBody,
    RawStream,
    RecordedRequest,
    Reply,
    ScriptedUpstream,
    Slow,
    Step,
    Text,
    Thinking,
    ToolUse,
)

STREAMS = Path(__file__).parent / "data"
ASK: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def post(upstream: ScriptedUpstream, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Status and body of one POST."""
    connection = HTTPConnection(upstream.url.removeprefix("http://"), timeout=5)
    try:
        connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body), headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def frames(stream: bytes) -> list[Any]:
    """The data of each frame of a stream, with what is counted or random left out."""
    datas = [line[6:] for line in stream.decode().splitlines() if line.startswith("data: ")]
    values = [data if data == "[DONE]" else json.loads(data) for data in datas]
    for value in values:
        if isinstance(value, dict):
            value.pop("usage", None)
            value.get("message", {}).pop("usage", None)
            if "signature" in value.get("delta", {}):
                value["delta"]["signature"] = "signed"
    return values


def test_an_anthropic_stream_has_the_shape_of_the_real_one() -> None:
    """Event for event as recorded, apart from counted tokens."""
    recorded = (STREAMS / "anthropic.txt").read_bytes()
    reply = Reply(
        Thinking("Look first."), Text("I will run it."), ToolUse("Bash", {"command": "ls -la"}, "toolu_000000000002")
    )
    with ScriptedUpstream([reply]) as upstream:
        status, body = post(upstream, "/v1/messages", ASK | {"model": "scripted", "stream": True})
    assert status == 200
    assert b"event: message_start\ndata: " in body
    assert frames(body) == frames(recorded)


def test_a_chat_stream_has_the_shape_of_the_real_one() -> None:
    """Chunk for chunk as recorded, with the usage chunk that was asked for."""
    recorded = (STREAMS / "chat.txt").read_bytes()
    reply = Reply(Text("I will run it."), ToolUse("bash", {"command": "ls -la"}, "call_000000000002"))
    ask = ASK | {"model": "scripted", "stream": True, "stream_options": {"include_usage": True}}
    with ScriptedUpstream([reply, reply]) as upstream:
        _, body = post(upstream, "/v1/chat/completions", ask)
        _, bare = post(upstream, "/v1/chat/completions", ask | {"stream_options": {}})
    assert frames(body) == frames(recorded)
    assert len(frames(bare)) == len(frames(body)) - 1


TOOL_USE: Any = {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}


def see_result(request: RecordedRequest) -> Reply:
    """A model that repeats what the tool told it."""
    return Reply(Text(f"saw {request.json['messages'][-1]['content'][0]['content']}"))


def test_the_anthropic_sdk_gets_two_turns() -> None:
    """A call, then an answer that depends on the result; every request is kept."""
    with ScriptedUpstream([Reply(Text("hi"), ToolUse("Bash", {"command": "ls"})), see_result]) as upstream:
        with anthropic.Anthropic(api_key="k", base_url=upstream.url) as client:
            first = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}])
            call = first.content[1]
            assert isinstance(call, anthropic.types.ToolUseBlock)
            assert (call.name, call.input, first.stop_reason) == ("Bash", {"command": "ls"}, "tool_use")
            with client.messages.stream(
                model="m",
                max_tokens=9,
                messages=[
                    {"role": "user", "content": "go"},
                    {"role": "assistant", "content": [TOOL_USE | {"id": call.id}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "a.txt"}]},
                ],
            ) as stream:
                assert stream.get_final_text() == "saw a.txt"
        first_request = upstream.requests[0]
        assert (len(upstream.requests), upstream.remaining) == (2, 0)
        assert (first_request.method, first_request.path) == ("POST", "/v1/messages")
        assert "Anthropic-Version" in first_request.headers
        assert json.loads(first_request.body) == first_request.json


def test_the_openai_sdk_gets_both_forms() -> None:
    """Whole and streamed replies give the same calls."""
    with ScriptedUpstream([Reply(ToolUse("bash", {"command": "ls"}))] * 2) as upstream:  # noqa: SIM117 - two subjects
        with openai.OpenAI(api_key="k", base_url=f"{upstream.url}/v1") as client:
            whole = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
            calls = whole.choices[0].message.tool_calls
            assert calls is not None
            assert calls[0].type == "function"
            assert json.loads(calls[0].function.arguments) == {"command": "ls"}
            assert calls[0].id == "call_000000000001"
            text = ""
            with client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "go"}], stream=True
            ) as chunks:
                for chunk in chunks:
                    for piece in chunk.choices[0].delta.tool_calls or ():
                        assert piece.function is not None
                        text += piece.function.arguments or ""
            assert json.loads(text) == {"command": "ls"}


@pytest.mark.parametrize(("path", "key"), [("/v1/messages", "request_id"), ("/v1/chat/completions", "error")])
def test_a_used_up_script_says_so_in_the_apis_shape(path: str, key: str) -> None:
    """The error names how many entries there were."""
    with ScriptedUpstream([Reply(Text("once"))]) as upstream:
        assert post(upstream, path, ASK)[0] == 200
        status, body = post(upstream, path, ASK)
    assert status == 500
    assert key in json.loads(body)
    assert "it had 1 entry," in json.loads(body)["error"]["message"]


UNANSWERED_ANTHROPIC = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
    {"role": "user", "content": "well?"},
]
UNASKED_ANTHROPIC = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t9", "content": "x"}]}]
ANSWERED_TWICE = [
    *UNANSWERED_ANTHROPIC[:2],
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}] * 2},
]
UNANSWERED_CHAT = [
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {}}]},
    {"role": "user", "content": "well?"},
]
UNASKED_CHAT = [{"role": "tool", "tool_call_id": "c9", "content": "x"}]


@pytest.mark.parametrize(
    ("path", "messages", "culprit"),
    [
        ("/v1/messages", UNANSWERED_ANTHROPIC, "t1"),
        ("/v1/messages", UNANSWERED_ANTHROPIC[:2], "t1"),
        ("/v1/messages", UNASKED_ANTHROPIC, "t9"),
        ("/v1/messages", ANSWERED_TWICE, "multiple"),
        ("/v1/messages", [], "at least one"),
        ("/v1/chat/completions", UNANSWERED_CHAT, "c1"),
        ("/v1/chat/completions", UNANSWERED_CHAT[:1], "c1"),
        ("/v1/chat/completions", UNASKED_CHAT, "c9"),
        ("/v1/chat/completions", [], "at least one"),
        ("/v1/chat/completions", ["x"], "not an object"),
    ],
)
def test_a_history_that_the_api_would_refuse_is_refused(path: str, messages: Any, culprit: str) -> None:
    """Status 400 naming the culprit, and no entry is taken; with strict off it is answered."""
    with ScriptedUpstream([Reply(Text("ok"))]) as upstream:
        status, body = post(upstream, path, {"model": "m", "messages": messages})
        assert (status, upstream.remaining) == (400, 1)
        assert culprit in json.loads(body)["error"]["message"]
        assert post(upstream, path, b"<html>")[0] == 400
    with ScriptedUpstream([Reply(Text("ok"))], strict=False) as upstream:
        assert post(upstream, path, {"model": "m", "messages": messages})[0] == 200


def test_a_forced_tool_must_be_offered() -> None:
    """The API refuses a choice of what is not there."""
    forced = ASK | {"tool_choice": {"type": "tool", "name": "Bash"}}
    with ScriptedUpstream([Reply(Text("ok"))]) as upstream:
        status, body = post(upstream, "/v1/messages", forced)
        assert (status, "'Bash' not found" in json.loads(body)["error"]["message"]) == (400, True)
        assert post(upstream, "/v1/messages", forced | {"tools": [{"name": "Bash"}]})[0] == 200


def test_to_the_letter_a_key_and_max_tokens_are_wanted() -> None:
    """No key is a 401, no max_tokens a 400, for messages alone; with both it answers."""
    with ScriptedUpstream([Reply(Text("ok"))] * 2, to_the_letter=True) as upstream:
        assert post(upstream, "/v1/messages", ASK | {"max_tokens": 9})[0] == 401
        assert post(upstream, "/v1/messages?key=k", {"messages": ASK["messages"]})[0] == 400
        assert post(upstream, "/v1/messages?key=k", ASK | {"max_tokens": 9})[0] == 200
        assert post(upstream, "/v1/chat/completions?key=k", ASK)[0] == 200


def test_answered_calls_pass_the_check() -> None:
    """A history in order is taken by both APIs."""
    answered = [*UNANSWERED_ANTHROPIC[:2], {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}]
    chat = [UNANSWERED_CHAT[0], {"role": "tool", "tool_call_id": "c1", "content": "x"}]
    with ScriptedUpstream([Reply(Text("ok"))] * 2) as upstream:
        assert post(upstream, "/v1/messages", {"messages": answered})[0] == 200
        assert post(upstream, "/v1/chat/completions", {"messages": chat})[0] == 200


def test_failures_and_raw_bodies_are_sent_as_they_are() -> None:
    """An error in the API's shape, an error of raw bytes, an HTML page with status 200."""
    script: list[Step] = [Failure(529, "busy"), Failure(502, b"<p>", "text/html"), RawBody(b"<html>")]
    with ScriptedUpstream(script) as upstream:
        status, body = post(upstream, "/v1/messages", ASK)
        assert (status, json.loads(body)["error"]) == (529, {"type": "overloaded_error", "message": "busy"})
        assert post(upstream, "/v1/messages", ASK) == (502, b"<p>")
        assert post(upstream, "/v1/messages", ASK) == (200, b"<html>")


def test_a_cut_stream_ends_in_the_middle() -> None:
    """The bytes arrive, and then the connection is gone without an end."""
    with ScriptedUpstream([RawStream([b"data: a\n\n", b"data: b\n\n"], cut=True)]) as upstream:  # noqa: SIM117 - two subjects
        with pytest.raises(IncompleteRead) as caught:
            post(upstream, "/v1/messages", ASK)
    assert caught.value.partial == b"data: a\n\ndata: b\n\n"


def test_a_gate_holds_a_reply_and_the_middle_of_a_stream() -> None:
    """What stands before the gate arrives; the rest only when it is opened."""
    gate, first = threading.Event(), threading.Event()
    with ScriptedUpstream([RawStream([b"one", gate, b"two"]), Slow(Reply(Text("late")), first)]) as upstream:
        connection = HTTPConnection(upstream.url.removeprefix("http://"), timeout=5)
        connection.request("POST", "/v1/messages", json.dumps(ASK))
        response = connection.getresponse()
        assert response.read(3) == b"one"
        gate.set()
        assert response.read() == b"two"
        connection.close()

        threading.Timer(0.01, first.set).start()
        assert post(upstream, "/v1/messages", ASK)[0] == 200
        assert upstream.hangups == 0


def test_a_client_that_hangs_up_is_counted() -> None:
    """A test can wait until the upstream has seen it, and closing does not wait for the gate."""
    with ScriptedUpstream([RawStream([b"one", threading.Event(), b"two"])]) as upstream:
        connection = HTTPConnection(upstream.url.removeprefix("http://"), timeout=5)
        connection.request("POST", "/v1/messages", json.dumps(ASK))
        response = connection.getresponse()
        assert response.read(3) == b"one"
        assert not upstream.wait_for_hangup(timeout_s=0.01)
        response.close()
        connection.close()
        assert upstream.wait_for_hangup()


def test_what_is_no_turn_takes_no_entry() -> None:
    """Counting tokens and listing models leave the script alone; a path of no API needs raw bytes."""
    with ScriptedUpstream([Reply(Text("ok")), RawBody(b"{}", "application/json")]) as upstream:
        assert post(upstream, "/v1/messages/count_tokens?beta=true", ASK)[0] == 200
        connection = HTTPConnection(upstream.url.removeprefix("http://"), timeout=5)
        connection.request("GET", "/v1/models")
        assert json.loads(connection.getresponse().read())["data"] == []
        connection.close()
        assert upstream.remaining == 2
        assert "/v1/embeddings" in json.loads(post(upstream, "/v1/embeddings", ASK)[1])["error"]["message"]
        assert post(upstream, "/v1/embeddings", ASK) == (200, b"{}")
        assert upstream.requests[0].path == "/v1/messages/count_tokens?beta=true"


def test_chunked_bodies_and_compressed_ones_are_kept_as_sent() -> None:
    """A request of unknown length is read whole; encoded bytes are not decoded behind the test's back."""
    with ScriptedUpstream([RawBody(b"{}")] * 2) as upstream:
        connection = HTTPConnection(upstream.url.removeprefix("http://"), timeout=5)
        connection.request("POST", "/x", iter([b"ab", b"cd"]), encode_chunked=True)
        connection.getresponse().read()
        connection.close()
        post(upstream, "/x", b"\x1f\x8bnot really", {"Content-Encoding": "gzip"})
        assert [request.body for request in upstream.requests] == [b"abcd", b"\x1f\x8bnot really"]
        assert upstream.requests[0].json is None


def test_many_clients_share_one_script() -> None:
    """Each entry is taken once, whoever comes first."""
    with ScriptedUpstream([Reply(Text(f"{number}")) for number in range(16)]) as upstream:
        bodies: list[bytes] = []
        ask: Callable[[], None] = lambda: bodies.append(post(upstream, "/v1/messages", ASK)[1])  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        texts = sorted(int(json.loads(body)["content"][0]["text"]) for body in bodies)
        assert texts == list(range(16))


def test_misuse_is_named() -> None:
    """No url before it runs, and one `with` for each upstream; a longer script can be given while it runs."""
    upstream = ScriptedUpstream()
    with pytest.raises(MisuseError, match="before it runs"):
        _ = upstream.url
    with upstream:
        upstream.extend([Reply(Text("more"), stop_reason="max_tokens")])
        assert json.loads(post(upstream, "/v1/messages", ASK)[1])["stop_reason"] == "max_tokens"
        threads = threading.active_count()
    assert threading.active_count() < threads
    with pytest.raises(MisuseError, match="has been used"):
        upstream.__enter__()
