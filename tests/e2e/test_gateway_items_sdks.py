"""The official SDKs of OpenAI's Responses and of Gemini through the gateway, and byte for byte what they get."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import openai
import pytest
from google import genai
from google.genai import types
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from interpose.contracts.stages import ToolCall, ToolResult
from interpose.testing.fakes import allow
from interpose.testing.upstream import RawBody, RawStream, Reply, ScriptedUpstream, Step, Text, Thinking, ToolUse
from tests.e2e.house import House
from tests.e2e.talkers import APIS

pytestmark = pytest.mark.e2e
LINE = "[interpose] Bash was refused by no-rm: not recursively"
RM = ToolUse("Bash", {"command": "rm -rf build"})
LS = ToolUse("Bash", {"command": "ls", "words": "ünï 😀"})
SCRIPT: list[Step] = [
    Reply(Thinking("Look."), Text("I will."), RM),
    Reply(Text("Then."), LS),
    Reply(RM, LS),
]


@pytest.fixture
def clients() -> Iterator[Callable[[str, str], Any]]:
    """Makes SDK clients that are closed at the end."""
    with ExitStack() as stack:

        def make(kind: str, url: str) -> Any:
            if kind == "openai":
                return stack.enter_context(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=10))
            options = types.HttpOptions(base_url=url, timeout=10_000)
            return stack.enter_context(genai.Client(api_key="k", http_options=options))

        yield make


def ask_responses(client: openai.OpenAI, *, stream: bool) -> Any:
    """One response; streamed, the one that the SDK puts together from the events."""
    if not stream:
        return client.responses.create(model="m", input="clean up")
    with client.responses.stream(model="m", input="clean up") as events:
        seen = [event.type for event in events]
        assert seen[-1] == "response.completed"
        return events.get_final_response()


def ask_gemini(client: genai.Client, *, stream: bool) -> tuple[str, list[Any], str]:
    """Text, calls and finish reason."""
    if not stream:
        chunks = [client.models.generate_content(model="m", contents="clean up")]
    else:
        chunks = list(client.models.generate_content_stream(model="m", contents="clean up"))
    candidates = [candidate for chunk in chunks for candidate in chunk.candidates or ()]
    parts = [part for one in candidates if one.content for part in one.content.parts or ()]
    text = "".join(part.text for part in parts if part.text and not part.thought)
    calls = [(part.function_call.name, part.function_call.args) for part in parts if part.function_call]
    reason = candidates[-1].finish_reason
    return text, calls, reason.value if reason else ""


@pytest.mark.parametrize("stream", [False, True])
def test_responses_refused_and_passed(stream: bool, clients: Callable[[str, str], Any]) -> None:
    """The refused call is a message in its place, behind the reasoning that led to it; the harmless one passes."""
    with House(SCRIPT) as house:
        client = clients("openai", house.prefixed(agent="codex"))
        refused, passed, both = (ask_responses(client, stream=stream) for _ in range(3))
        request = house.upstream.requests[0]

    assert [item.type for item in refused.output] == ["reasoning", "message", "message"]
    assert refused.output_text == f"I will.{LINE}"
    assert refused.status == passed.status == "completed"
    assert [item.type for item in passed.output] == ["message", "function_call"]
    assert json.loads(passed.output[1].arguments) == {"command": "ls", "words": "ünï 😀"}
    message, call = both.output
    assert isinstance(message, ResponseOutputMessage)
    assert isinstance(call, ResponseFunctionToolCall)
    assert (message.id.startswith("msg_"), both.output_text) == (True, LINE)
    assert (request.path, request.headers["authorization"]) == ("/v1/responses", "Bearer k")
    context = next(point for point in house.policy.points if isinstance(point, ToolCall)).context
    assert (context.agent, context.model, context.launch) == ("codex", "m", "l1")
    applied = [(record.outcome, record.handler) for record in house.journal.of_step("applied")]
    assert applied == [("refused", "no-rm"), ("released", ""), ("refused", "no-rm"), ("released", "")]


@pytest.mark.parametrize("stream", [False, True])
def test_gemini_refused_and_passed(stream: bool, clients: Callable[[str, str], Any]) -> None:
    """The same over Gemini; the model's name comes from the path."""
    with House(SCRIPT) as house:
        client = clients("gemini", house.url)
        refused, passed, both = (ask_gemini(client, stream=stream) for _ in range(3))
        request = house.upstream.requests[0]

    assert refused == (f"I will.\n\n{LINE}", [], "STOP")
    assert passed == ("Then.", [("Bash", {"command": "ls", "words": "ünï 😀"})], "STOP")
    assert both == (LINE, [("Bash", {"command": "ls", "words": "ünï 😀"})], "STOP")
    assert request.headers["x-goog-api-key"] == "k"
    assert request.path.startswith("/v1beta/models/m:" if "v1beta" in request.path else "/v1/models/m:")
    assert {point.context.model for point in house.policy.points} == {"m"}


def test_a_result_whose_history_the_provider_keeps_is_known_by_its_call(clients: Callable[[str, str], Any]) -> None:
    """With `previous_response_id` the request has the output alone; what was released tells which call it answers."""
    with House([Reply(LS), Reply(Text("seen"))], strict=False) as house:
        client = clients("openai", house.prefixed())
        first = client.responses.create(model="m", input="go")
        output = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "a.txt"}
        client.responses.create(model="m", input=[output], previous_response_id=first.id)
        (result,) = [point for point in house.policy.points if isinstance(point, ToolResult)]

    assert (result.tool_name, result.problem, result.output) == ("Bash", None, "a.txt")
    assert result.arguments["command"] == "ls"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS)
def test_what_nobody_changes_is_the_same_byte_for_byte(api: str, stream: bool) -> None:
    """Both ways: the upstream reads what was sent, the client what was answered."""
    reply = Reply(Thinking("Look."), Text("I will «look»."), LS, ToolUse("Read", {"path": "a"}))
    with ScriptedUpstream([reply]) as upstream:
        direct = APIS[api](upstream.url, stream=stream)
        direct.says("hi")
        sent = upstream.requests[0].body
    with House([reply], allow) as house:
        through = APIS[api](house.url, stream=stream)
        through.says("hi")

        assert through.raw == direct.raw
        assert house.upstream.requests[0].body == sent
        assert len([point for point in house.policy.points if isinstance(point, ToolCall)]) == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/responses", {"input": "hi", "stream": True}), ("/v1beta/models/m:streamGenerateContent", {"contents": []})],
)
def test_an_array_is_read_where_the_api_has_one(path: str, body: Any) -> None:
    """Gemini's clients get their array; of another API it is no reply, and nothing of it is let through."""
    parts = [{"functionCall": {"name": "Bash", "args": {"command": "rm -rf x"}}}]
    answer = json.dumps([{"candidates": [{"content": {"parts": parts}}]}]).encode()
    with House([RawBody(answer, "application/json")], strict=False) as house:
        status, _, got = house.raw("POST", path, json.dumps(body).encode())

    assert status == (200 if "models" in path else 502)
    assert b"rm -rf" not in got
    assert (LINE.encode() in got) == ("models" in path)


def test_a_stream_that_dies_is_told_in_each_apis_shape() -> None:
    """An error event of the Responses API, with a number behind the others; an error as the last item of an array."""
    created = b'event: response.created\ndata: {"type": "response.created", "sequence_number": 0, "response": {}}\n\n'
    chunk = b'[{"candidates": [{"content": {"parts": [{"text": "hi"}]}}]}'
    script: list[Step] = [RawStream([created], cut=True), RawStream([chunk], cut=True, content_type="application/json")]
    with House(script, strict=False) as house:
        _, _, responses = house.raw("POST", "/v1/responses", b'{"input": "hi"}')
        _, _, gemini = house.raw("POST", "/v1beta/models/m:streamGenerateContent", b'{"contents": []}')

    error = json.loads(responses.split(b"data: ")[-1])
    assert responses.startswith(created)
    assert (error["type"], error["sequence_number"]) == ("error", 1)
    assert "broke off" in error["message"]
    assert json.loads(gemini)[1]["error"]["status"] == "UNAVAILABLE"


def test_counting_and_listing_pass_unjudged(clients: Callable[[str, str], Any]) -> None:
    """They cannot carry a call: bytes as they come, no verdict, no note."""
    with House([]) as house:
        counted = clients("gemini", house.url).models.count_tokens(model="m", contents="hi")
        list(clients("openai", house.url).models.list())

    assert counted.total_tokens > 0
    assert house.policy.points == ()
    assert house.journal.of_step("skipped") == ()
