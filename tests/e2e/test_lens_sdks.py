"""The official SDKs read a reply that is made of several of the model's, and their next request is taken."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import openai
import pytest
from google import genai
from google.genai import types

from interpose.contracts.stages import Point, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.contracts.verdict import Verdict
from interpose.testing.fakes import allow, refuse
from interpose.testing.responses import whole
from interpose.testing.upstream import RawBody, Reply, Step, Text, Thinking, ToolUse
from tests.e2e.house import House, no_rm

pytestmark = pytest.mark.e2e
LINE = "[interpose] Bash was refused by no-rm: not recursively"
TOLD = "Bash was refused by no-rm: not recursively"
RM = ToolUse("Bash", {"command": "rm -rf build"}, id="call_rm")
LS = ToolUse("Bash", {"command": "ls"}, id="call_ls")
ANSWER = {"type": "function_call_output", "call_id": "call_ls", "output": "a.txt"}
REFUSED = {"type": "function_call_output", "call_id": "call_rm", "output": TOLD}
JSON = "application/json"


@pytest.fixture
def openai_at() -> Iterator[Callable[[str], openai.OpenAI]]:
    """Makes clients that are closed at the end."""
    with ExitStack() as stack:
        yield lambda url: stack.enter_context(
            openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=10)
        )


def ask_responses(client: openai.OpenAI, *, stream: bool, **request: Any) -> Any:
    """One response; streamed, the one that the SDK puts together, which must be the one that its events add up to."""
    tools = [{"type": "function", "name": "Bash", "parameters": {}, "strict": False}]
    request = {"model": "m", "tools": tools, **request}
    if not stream:
        return client.responses.create(**request)
    with client.responses.stream(**request) as events:
        done = [event.item.to_dict() for event in events if event.type == "response.output_item.done"]
        final = events.get_final_response()
    assert [{**item, "id": None} for item in done] == [{**_plain(item), "id": None} for item in final.output]
    return final


def _plain(item: Any) -> dict[str, Any]:
    """The item as it came, without what the SDK adds."""
    told: dict[str, Any] = item.to_dict()
    told.pop("parsed_arguments", None)
    for part in told.get("content") or ():
        part.pop("parsed", None)
    return told


@pytest.mark.parametrize("stream", [False, True])
def test_responses_in_rounds_with_the_whole_history(stream: bool, openai_at: Callable[[str], openai.OpenAI]) -> None:
    """Thoughts, calls and texts of all rounds are one response; sent back, the strict provider takes it."""
    script: list[Step] = [
        Reply(Thinking("hm"), Text("I clean up."), RM),
        Reply(Thinking("then"), Text("Then not."), LS),
        Reply(Text("Done.")),
    ]
    kept: dict[str, Any] = {"store": False, "include": ["reasoning.encrypted_content"]}
    with House(script, on_refusal="continue") as house:
        client = openai_at(house.prefixed())
        first = ask_responses(client, stream=stream, input="clean up", **kept)
        history = [{"role": "user", "content": "clean up"}, *(_plain(item) for item in first.output), ANSWER]
        second = ask_responses(client, stream=stream, input=history, **kept)
        prompts, sent = house.upstream.prompts, house.upstream.requests

    kinds = ["reasoning", "message", "message", "reasoning", "message", "function_call"]
    assert [item.type for item in first.output] == kinds
    assert first.output_text == f"I clean up.{LINE}Then not."
    assert (first.status, second.output_text) == ("completed", "Done.")
    assert first.id == "resp_000000000001"
    assert [prompt.cached_tokens for prompt in prompts[1:]] == [prompt.tokens for prompt in prompts[:-1]]
    assert all(TOLD in json.dumps(one.json) and LINE not in json.dumps(one.json) for one in sent[1:])


@pytest.mark.parametrize("stream", [False, True])
def test_responses_in_rounds_whose_history_the_provider_keeps(
    stream: bool, openai_at: Callable[[str], openai.OpenAI]
) -> None:
    """The client goes on from the response that it knows, the provider from its own; each call has its output there."""
    script: list[Step] = [Reply(RM), Reply(Text("Then not.")), Reply(RM, LS), Reply(Text("Done.")), Reply(Text("Bye."))]
    with House(script, on_refusal="continue", strict=False) as house:
        client = openai_at(house.prefixed())
        first = ask_responses(client, stream=stream, input="go")
        second = ask_responses(client, stream=stream, input="and then", previous_response_id=first.id)
        third = ask_responses(client, stream=stream, input=[ANSWER], previous_response_id=second.id)
        ask_responses(client, stream=stream, input="bye", previous_response_id=third.id)
        sent = [request.json for request in house.upstream.requests]

    assert (first.id, third.output_text) == ("resp_000000000001", "Done.")
    assert [item.type for item in second.output] == ["message", "function_call"]
    own = [None, None, *(f"resp_{number:012d}" for number in (2, 3, 4))]
    assert [one.get("previous_response_id") for one in sent] == own
    assert [one["input"] for one in sent[2:]] == ["and then", [REFUSED, ANSWER], "bye"]


def test_a_refused_prompt_in_a_history_that_the_provider_keeps(
    openai_at: Callable[[str], openai.OpenAI],
) -> None:
    """It goes on from the provider's own last response, which gets the reason in the prompt's place."""

    def careful(point: Point) -> Verdict:
        if isinstance(point, TurnStart) and "hunter2" in point.prompt:
            return refuse(point, "a password", "secrets")
        return allow(point)

    withheld = {
        "role": "user",
        "content": [{"type": "input_text", "text": "the prompt was withheld by secrets: a password"}],
    }
    with House([Reply(Text("One.")), Reply(Text("Two.")), Reply(Text("Three."))], careful, strict=False) as house:
        client = openai_at(house.prefixed())
        before: Any = None

        def say(text: str) -> None:
            nonlocal before
            after = {"previous_response_id": before} if before else {}
            before = ask_responses(client, stream=True, input=text, **after).id

        for text in ("it is hunter2", "go on", "or is it hunter2", "hunter2 then", "go on"):
            say(text)
        sent = [request.json for request in house.upstream.requests]

    first, second = sent
    assert first["input"] == [withheld, {"role": "user", "content": "go on"}]
    assert second["input"] == [withheld, withheld, {"role": "user", "content": "go on"}]
    assert [one.get("previous_response_id") for one in sent] == [None, "resp_000000000001"]


@pytest.mark.parametrize("on_refusal", ["continue", "tell"])
@pytest.mark.parametrize("stream", [False, True])
def test_responses_in_rounds_whose_items_are_named(
    stream: bool, on_refusal: str, openai_at: Callable[[str], openai.OpenAI]
) -> None:
    """A client names items by their ids; those that the provider never made are sent in full."""

    def nudging(point: Point) -> Verdict:
        if isinstance(point, TurnEnd) and point.text == "Done.":
            return allow(point)._replace(continuation="run the tests first")
        return no_rm(point)

    rounds: list[Step] = [Reply(Thinking("hm"), RM), Reply(Text("Done.")), Reply(Text("They pass."))]
    script = [*(rounds if on_refusal == "continue" else rounds[:1]), Reply(Text("Bye."))]
    with House(script, nudging, on_refusal=on_refusal, strict=False) as house:
        client = openai_at(house.prefixed())
        first = ask_responses(client, stream=stream, input="go")
        names = [{"type": "item_reference", "id": item.id} for item in first.output]
        ask_responses(client, stream=stream, input=["go", *names, "bye"])
        *_, sent = [request.json["input"] for request in house.upstream.requests]

    if on_refusal == "tell":
        told = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": LINE}]}
        assert sent == ["go", names[0], told, "bye"]
        return
    kinds = ["item_reference", "function_call", "function_call_output", "item_reference", "message", "item_reference"]
    assert [item["type"] for item in sent[1:-1]] == kinds
    assert (sent[2]["call_id"], sent[3]) == ("call_rm", REFUSED)
    assert "run the tests first" in sent[5]["content"][0]["text"]


@pytest.mark.parametrize("on_refusal", ["continue", "tell"])
def test_responses_in_rounds_in_a_conversation(on_refusal: str, openai_at: Callable[[str], openai.OpenAI]) -> None:
    """It is kept under an id of its own, which all requests name; what it waits for is answered once."""

    def said(number: int, *items: Any) -> Step:
        response = whole(Reply(), number, {})
        conversation = {"id": "conv_1"}
        return RawBody(json.dumps({**response, "conversation": conversation, "output": items}).encode(), JSON)

    rm, ls = (
        {"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": "Bash", "arguments": arguments}
        for name, arguments in (("call_rm", RM.arguments), ("call_ls", LS.arguments))
    )
    text = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": []}
    alone = [said(1, rm), *([said(2, text)] if on_refusal == "continue" else [])]
    script = [*alone, said(3, rm, ls), said(4, text), said(5, text)]
    with House(script, on_refusal=on_refusal, strict=False) as house:
        client = openai_at(house.prefixed())
        for given in ("go", "and then", [ANSWER], "bye"):
            ask_responses(client, stream=False, input=given, conversation="conv_1")
        sent = [request.json for request in house.upstream.requests]

    then = {"role": "user", "content": "and then"}
    ahead = [[REFUSED], "and then"] if on_refusal == "continue" else [[REFUSED, then]]
    assert [one["input"] for one in sent] == ["go", *ahead, [REFUSED, ANSWER], "bye"]
    assert {one["conversation"] for one in sent} == {"conv_1"}


def test_responses_in_rounds_of_a_kept_history_with_other_arguments(
    openai_at: Callable[[str], openai.OpenAI],
) -> None:
    """The provider has the call as the model made it, so the output alone is sent, with a note; a nudge is kept too."""

    def changing(point: Point) -> Verdict:
        match point:
            case ToolCall():
                return allow(point)._replace(outcome="patched", arguments={"command": "ls -l"})
            case TurnEnd(text="Done."):
                return allow(point)._replace(continuation="run the tests first")
            case _:
                return allow(point)

    script: list[Step] = [Reply(LS), Reply(Text("Done.")), Reply(Text("They pass.")), Reply(Text("Bye."))]
    with House(script, changing, on_refusal="continue", strict=False) as house:
        client = openai_at(house.prefixed())
        first = ask_responses(client, stream=True, input="go")
        second = ask_responses(client, stream=True, input=[ANSWER], previous_response_id=first.id)
        ask_responses(client, stream=True, input="bye", previous_response_id=second.id)
        sent = [request.json for request in house.upstream.requests]
        (result,) = [point for point in house.policy.points if isinstance(point, ToolResult)]

    assert json.loads(first.output[0].arguments) == {"command": "ls -l"}
    assert (result.arguments, result.tool_name) == ({"command": "ls -l"}, "Bash")
    assert [item["type"] for item in sent[1]["input"]] == ["function_call_output"]
    assert "other arguments than yours" in sent[1]["input"][0]["output"]
    assert second.id == "resp_000000000002"
    assert "run the tests first" in second.output_text
    assert [one.get("previous_response_id") for one in sent] == [None, first.id, second.id, "resp_000000000003"]
    assert [item["role"] for item in sent[2]["input"]] == ["user"]


def ask_chat(client: openai.OpenAI, *, stream: bool, messages: list[Any]) -> Any:
    """One completion; streamed, the one that the SDK puts together, with its events read on the way."""
    tools: Any = [{"type": "function", "function": {"name": "Bash", "parameters": {}}}]
    if not stream:
        return client.chat.completions.create(model="m", messages=messages, tools=tools)
    options: Any = {"include_usage": True}
    with client.chat.completions.stream(model="m", messages=messages, tools=tools, stream_options=options) as events:
        texts = [event.delta for event in events if event.type == "content.delta"]
        final = events.get_final_completion()
    assert "".join(texts) == final.choices[0].message.content
    return final


@pytest.mark.parametrize("stream", [False, True])
def test_chat_in_rounds(stream: bool, openai_at: Callable[[str], openai.OpenAI]) -> None:
    """Three replies are one completion with one role, one finish and one usage; its message is taken back as it is."""
    script: list[Step] = [
        Reply(Text("I clean up."), RM),
        Reply(Text("Once more."), RM),
        Reply(Text("Then not."), LS),
        Reply(Text("Done.")),
    ]
    with House(script, on_refusal="continue") as house:
        client = openai_at(house.prefixed())
        history: list[Any] = [{"role": "user", "content": "clean up"}]
        first = ask_chat(client, stream=stream, messages=history)
        (choice,) = first.choices
        answer = {"role": "tool", "tool_call_id": "call_ls", "content": "a.txt"}
        history += [choice.message.to_dict(), answer]
        second = ask_chat(client, stream=stream, messages=history)
        prompts = house.upstream.prompts
        sent = [request.json["messages"] for request in house.upstream.requests]

    assert choice.message.content == f"I clean up.\n\n{LINE}\n\nOnce more.\n\n{LINE}\n\nThen not."
    assert (choice.message.role, choice.finish_reason) == ("assistant", "tool_calls")
    assert [(call.id, call.function.arguments) for call in choice.message.tool_calls] == [("call_ls", LS.arguments)]
    assert first.id == "chatcmpl-000000000001"
    assert first.usage.completion_tokens > second.usage.completion_tokens
    assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens
    assert second.choices[0].message.content == "Done."
    assert [prompt.cached_tokens for prompt in prompts[1:]] == [prompt.tokens for prompt in prompts[:-1]]
    roles = ["user", *["assistant", "tool"] * 3]
    assert [[message["role"] for message in messages] for messages in sent] == [roles[:1], roles[:3], roles[:5], roles]


def say_gemini(chat: Any, message: Any, *, stream: bool) -> list[Any]:
    """All chunks of one reply, or the one that it is; the chat keeps it as the SDK does."""
    return list(chat.send_message_stream(message)) if stream else [chat.send_message(message)]


@pytest.mark.parametrize("stream", [False, True])
def test_gemini_in_rounds(stream: bool) -> None:
    """Three replies are one with one head, one end and one count; the SDK's own history of it is taken back."""
    script: list[Step] = [
        Reply(Thinking("hm"), Text("I clean up."), RM),
        Reply(Text("Once more."), RM),
        Reply(Text("Then not."), LS),
        Reply(Text("Done.")),
        Reply(Text("Bye.")),
    ]
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="Bash")])
    config = types.GenerateContentConfig(tools=[tool])
    with House(script, on_refusal="continue") as house, ExitStack() as stack:
        options = types.HttpOptions(base_url=house.prefixed(), timeout=10_000)
        client = stack.enter_context(genai.Client(api_key="k", http_options=options))
        chat = client.chats.create(model="m", config=config)
        first = say_gemini(chat, "clean up", stream=stream)
        answer = types.FunctionResponse(id="call_ls", name="Bash", response={"output": "a.txt"})
        second = say_gemini(chat, types.Part(function_response=answer), stream=stream)
        say_gemini(chat, "bye", stream=stream)
        prompts = house.upstream.prompts
        sent = [request.json["contents"] for request in house.upstream.requests]

    parts = [part for chunk in first for part in chunk.candidates[0].content.parts]
    spoken = "".join(part.text for part in parts if part.text and not part.thought)
    assert spoken == f"I clean up.\n\n{LINE}\n\nOnce more.\n\n{LINE}\n\nThen not."
    calls = [part.function_call for part in parts if part.function_call]
    assert [(call.id, call.args) for call in calls] == [("call_ls", {"command": "ls"})]
    assert {chunk.response_id for chunk in first} == {"000000000001"}
    assert [chunk.candidates[0].finish_reason for chunk in first if chunk.candidates[0].finish_reason] == ["STOP"]
    usage, later = first[-1].usage_metadata, second[-1].usage_metadata
    assert usage.candidates_token_count > later.candidates_token_count
    assert usage.total_token_count == usage.prompt_token_count + usage.candidates_token_count
    assert "".join(chunk.text or "" for chunk in second) == "Done."
    assert [prompt.cached_tokens for prompt in prompts[1:4]] == [prompt.tokens for prompt in prompts[:3]]
    roles = ["user", *["model", "user"] * 3]
    assert [[content["role"] for content in contents] for contents in sent[:4]] == [
        roles[:1],
        roles[:3],
        roles[:5],
        roles,
    ]
    assert sent[4][: len(roles)] == sent[3]
    assert all(TOLD in json.dumps(contents) and LINE not in json.dumps(contents) for contents in sent[1:])
