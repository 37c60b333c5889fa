"""The scripted upstream as the Responses and Gemini APIs."""

import json
from pathlib import Path
from typing import Any

import openai
import pytest

from interpose.testing.upstream import Failure, Reply, ScriptedUpstream, Text, Thinking, ToolUse
from tests.testing.test_upstream import post

STREAMS = Path(__file__).parent / "data"
RESPONSES, GEMINI = "/v1/responses", "/v1beta/models/m:generateContent"
GEMINI_STREAM = "/v1beta/models/m:streamGenerateContent?alt=sse"
TURN = {"role": "user", "parts": [{"text": "go"}]}
CALL = {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]}
RESULT = {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {}}}]}
ASK: dict[str, Any] = {"contents": [TURN]}


_COUNTED = ("usage", "usageMetadata", "thoughtSignature")


def uncounted(value: Any) -> Any:
    """The value without what is counted or signed."""
    if isinstance(value, list):
        return [uncounted(item) for item in value]
    if isinstance(value, dict):
        return {key: uncounted(item) for key, item in value.items() if key not in _COUNTED}
    return value


def frames(stream: bytes) -> list[Any]:
    """The data of each frame."""
    return [uncounted(json.loads(line[6:])) for line in stream.decode().splitlines() if line.startswith("data: ")]


def test_a_responses_stream_has_the_shape_of_the_real_one() -> None:
    """Event for event as recorded, names and numbers of the events too."""
    recorded = (STREAMS / "responses.txt").read_bytes()
    call = ToolUse("exec_command", {"cmd": "ls -la"}, "call_000000000005")
    with ScriptedUpstream([Reply(Thinking("Look first."), Text("I will run it."), call)]) as upstream:
        status, body = post(upstream, RESPONSES, {"model": "scripted", "input": "go", "stream": True})

    assert status == 200
    assert frames(body) == frames(recorded)
    assert [line for line in body.splitlines() if line.startswith(b"event:")] == [
        line for line in recorded.splitlines() if line.startswith(b"event:")
    ]


def test_a_gemini_stream_has_the_shape_of_the_real_one() -> None:
    """Chunk for chunk and line end for line end as recorded."""
    recorded = (STREAMS / "gemini.txt").read_bytes()
    call = ToolUse("run_shell_command", {"command": "ls -la"}, "000000000002")
    with ScriptedUpstream([Reply(Thinking("Look first."), Text("I will run it."), call)]) as upstream:
        status, body = post(upstream, GEMINI_STREAM, ASK)

    assert status == 200
    assert frames(body) == frames(recorded)
    assert body.count(b"\r\n\r\n") == recorded.count(b"\r\n\r\n")


def test_the_openai_sdk_gets_responses_in_both_forms() -> None:
    """Whole and streamed replies give the same call and the same text."""
    reply = Reply(Text("I will look."), ToolUse("shell", {"command": "ls"}))
    with (
        ScriptedUpstream([reply, reply]) as upstream,
        openai.OpenAI(api_key="k", base_url=f"{upstream.url}/v1") as client,
    ):
        whole = client.responses.create(model="m", input="go")
        with client.responses.stream(model="m", input="go") as stream:
            streamed = stream.get_final_response()

    for response in (whole, streamed):
        assert response.output_text == "I will look."
        call = response.output[1]
        assert call.type == "function_call"
        assert (call.name, json.loads(call.arguments)) == ("shell", {"command": "ls"})


def test_a_whole_gemini_reply_ends_with_its_reason() -> None:
    """Parts in order in one candidate."""
    with ScriptedUpstream([Reply(Text("hi"), ToolUse("ls", {}))]) as upstream:
        body = json.loads(post(upstream, GEMINI, ASK)[1])

    (candidate,) = body["candidates"]
    assert [next(iter(part)) for part in candidate["content"]["parts"]] == ["text", "functionCall"]
    assert candidate["finishReason"] == "STOP"


@pytest.mark.parametrize(
    ("path", "body", "culprit"),
    [
        (RESPONSES, {"input": []}, "'input'"),
        (RESPONSES, {"input": [{"type": "function_call", "call_id": "c1"}]}, "c1"),
        (RESPONSES, {"input": [{"type": "function_call_output", "call_id": "c9"}]}, "c9"),
        (RESPONSES, {"input": ["x"]}, "not an object"),
        (GEMINI, {"contents": []}, "not specified"),
        (GEMINI, {"contents": [TURN, CALL]}, "no function response"),
        (GEMINI, {"contents": [TURN, CALL, TURN]}, "(0) must equal"),
        (GEMINI, {"contents": [TURN, RESULT]}, "(1) must equal"),
        (GEMINI_STREAM, [], "not a JSON object"),
    ],
)
def test_a_history_that_the_api_would_refuse_is_refused(path: str, body: Any, culprit: str) -> None:
    """Status 400 in the API's shape, naming the culprit, and no entry is taken."""
    with ScriptedUpstream([Reply(Text("ok"))]) as upstream:
        status, answer = post(upstream, path, body)
        assert (status, upstream.remaining) == (400, 1)
    assert culprit in json.loads(answer)["error"]["message"]


def test_answered_calls_pass_the_check() -> None:
    """A history in order is taken by both APIs."""
    items = [{"type": kind, "call_id": "c1"} for kind in ("custom_tool_call", "custom_tool_call_output")]
    with ScriptedUpstream([Reply(Text("ok"))] * 2) as upstream:
        assert post(upstream, RESPONSES, {"input": items})[0] == 200
        assert post(upstream, GEMINI, {"contents": [TURN, CALL, RESULT]})[0] == 200


def test_errors_have_each_apis_shape() -> None:
    """The words of a Failure stand where the API's clients look for them."""
    with ScriptedUpstream([Failure(503, "busy"), Failure(503, "busy")]) as upstream:
        of_responses = json.loads(post(upstream, RESPONSES, {"input": "go"})[1])
        of_gemini = json.loads(post(upstream, GEMINI_STREAM, ASK)[1])

    assert of_responses["error"] == {"message": "busy", "type": "server_error", "param": None, "code": None}
    assert of_gemini["error"] == {"code": 503, "message": "busy", "status": "UNAVAILABLE"}


def test_counting_tokens_takes_no_entry() -> None:
    """Gemini's counting leaves the script alone."""
    with ScriptedUpstream([Reply(Text("ok"))]) as upstream:
        status, body = post(upstream, "/v1beta/models/m:countTokens", ASK)
        assert (status, upstream.remaining) == (200, 1)
    assert json.loads(body)["totalTokens"] > 0
