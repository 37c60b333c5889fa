"""Reading calls from replies of every shape, also while they are being received."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.errors import MisuseError
from interpose.drivers.calls import ProposedCall, calls_in_text, is_whole_call, might_be_call
from interpose.drivers.extraction import AnthropicExtraction
from interpose.drivers.prompts import PromptStrategy
from tests.drivers.making import Leaf, anthropic_message, call_text, openai_message

SECONDS_OF_NOISE = 0.5

PROMPTS = PromptStrategy.default()
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3)
PROSE = st.text(alphabet=st.characters(exclude_characters='{}"`~'), max_size=30)


def runs_of(reply: Any, *, streaming: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """What a driver runs for a reply."""
    driver = Leaf()
    driver.process_llm_response(reply, streaming=streaming)
    return driver.runs


@pytest.mark.parametrize(
    "reply",
    [
        '{"tool": "echo", "arguments": {"text": "hi"}}',
        'I will.\n{"tool": "echo", "arguments": {"text": "hi"}}\nDone.',
        '```json\n{"tool": "echo", "arguments": {"text": "hi"}}\n```',
        '<tool_call>{"name": "echo", "arguments": {"text": "hi"}}</tool_call>',
        'Look {here}: { "tool_name" : "echo", "parameters": {"text": "hi"}}',
        '{"arguments": "{\\"text\\": \\"hi\\"}", "tool": "echo"}',
        {"tool": "echo", "arguments": {"text": "hi"}},
        {"name": "echo", "arguments": '{"text": "hi"}'},
        {"role": "assistant", "content": '{"tool": "echo", "arguments": {"text": "hi"}}'},
        {"role": "assistant", "name": "helper", "content": '{"tool": "echo", "arguments": {"text": "hi"}}'},
        openai_message(("a", "echo", '{"text": "hi"}')),
        openai_message(("a", "echo", {"text": "hi"})),
        openai_message(("", "echo", '{"text": "hi"}')),
        anthropic_message(("a", "echo", {"text": "hi"})),
    ],
)
def test_a_call_in_any_shape(reply: Any) -> None:
    """Runs once, with the arguments as they were meant."""
    assert runs_of(reply) == [("echo", {"text": "hi"})]


@pytest.mark.parametrize(
    "reply",
    [
        {"role": "assistant", "content": call_text("echo"), "tool_calls": None},
        {"role": "assistant", "content": call_text("echo"), "tool_calls": []},
        {"role": "assistant", "content": [{"type": "text", "text": call_text("echo")}], "stop_reason": "end_turn"},
        {"role": "assistant", "name": "echo", "content": "hello"},
        {"name": "echo"},
        {"tool": {"name": "echo"}},
        '{"tool": {"name": "echo"}}',
        '{"name": "echo", "age": 3}',
        '{"example": {"tool": "echo", "arguments": {}}}',
        'a text with {braces} and "tool"',
    ],
)
def test_what_only_looks_like_a_call_does_not_run(reply: Any) -> None:
    """A native message without calls, an object inside of another, an answer that has a name."""
    assert runs_of(reply) == []


@given(PROSE, st.lists(ARGUMENTS, min_size=1, max_size=3), PROSE)
def test_every_call_in_a_text_is_found(before: str, arguments: list[dict[str, Any]], after: str) -> None:
    """In order and exactly, whatever stands around them."""
    texts = [json.dumps({"tool": "echo", "arguments": each}, ensure_ascii=False) for each in arguments]
    found = calls_in_text(before + after.join(texts) + after, PROMPTS)
    assert found == tuple(ProposedCall(None, "echo", each) for each in arguments)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"tool": "echo", "arguments": {"text": "h', "it is not JSON, or not complete"),
        ('```\n{"tool": "echo", "arguments": {text: 1}}\n```', "it is not JSON, or not complete"),
        ('{"tool": "echo", "tool": "fail", "arguments": {}}', "the arguments have the key 'tool' twice"),
        ('{"tool": "echo", "text": "hi"}', "arguments belong into 'arguments', and it has 'text' instead"),
        ('{"tool": "echo", "arguments": [1]}', "the arguments are a value of type list, not an object"),
        ('{"tool": "echo", "arguments": null}', "the arguments are null, not an object"),
        ('{"tool": "echo", "arguments": {"a": 1e999}}', "the arguments contain the number 1e999"),
    ],
)
def test_a_call_that_cannot_be_read_says_why(text: str, problem: str) -> None:
    """And does not run."""
    (call,) = calls_in_text(text, PROMPTS)
    assert call.arguments == {}
    assert call.problem is not None
    assert call.problem.startswith(problem)
    assert runs_of(text) == []


def test_a_call_alone_needs_no_arguments() -> None:
    """There are none, which is not the same as unreadable ones."""
    assert runs_of('{"tool": "echo"}') == [("echo", {})]
    assert runs_of(openai_message(("a", "echo", ""))) == [("echo", {})]


@given(ARGUMENTS, st.data())
def test_no_prefix_of_a_text_runs_while_streaming(arguments: dict[str, Any], data: st.DataObject) -> None:
    """Nor does the whole, as another call may follow, until a reason says that it ended; it might be a call."""
    text = call_text("echo", **arguments)
    cut = data.draw(st.integers(0, len(text) - 1))
    assert runs_of(text[:cut], streaming=True) == []
    assert not is_whole_call(text[:cut], PROMPTS)
    assert cut == 0 or might_be_call(text[:cut], PROMPTS)
    assert is_whole_call(text, PROMPTS)
    assert runs_of(text, streaming=True) == []
    for reason in ("finish_reason", "stop_reason"):
        ended = {"role": "assistant", "content": text, reason: "stop"}
        assert runs_of(ended, streaming=True) == [("echo", arguments)]
        assert runs_of({**ended, reason: None}, streaming=True) == []


def test_a_text_of_several_calls_that_is_being_received_runs_each_once() -> None:
    """Whatever pieces it comes in: nothing runs until it is given whole."""
    text = call_text("echo", text="a") + call_text("fail")
    early = [run for cut in range(len(text) + 1) for run in runs_of(text[:cut], streaming=True)]
    assert early == []
    assert runs_of(text) == [("echo", {"text": "a"}), ("fail", {})]


@pytest.mark.parametrize(
    "text", ["```json\n" + call_text("echo") + "\n```", call_text("echo") * 2, "so: " + call_text("echo")]
)
def test_while_streaming_nothing_is_guessed(text: str) -> None:
    """What more could follow, or must be healed, waits until the reply is whole."""
    assert runs_of(text, streaming=True) == []
    assert runs_of(text) != []


def test_a_message_that_is_being_received_waits_for_its_end() -> None:
    """Without a reason why it ended, the next call or the rest of the arguments may still come."""
    whole = anthropic_message(("a", "echo", {"text": "hi"}))
    assert runs_of({**whole, "stop_reason": None}, streaming=True) == []
    assert runs_of(whole, streaming=True) == [("echo", {"text": "hi"})]
    message = openai_message(("a", "echo", ""))
    assert runs_of(message, streaming=True) == []
    assert runs_of({**message, "finish_reason": "tool_calls"}, streaming=True) == [("echo", {})]
    assert runs_of({"tool": "echo", "arguments": {}}, streaming=True) == []


def test_the_last_call_of_a_reply_that_was_cut_off_does_not_run() -> None:
    """Its arguments may be the beginning of what was meant, even when they can be read."""
    calls: list[tuple[str, str, Any]] = [("a", "echo", {"text": "1"}), ("b", "echo", {})]
    cut = {
        "anthropic": anthropic_message(*calls, stop_reason="max_tokens"),
        "openai": {**openai_message(*calls), "finish_reason": "length"},
    }
    for reply in cut.values():
        response = Leaf().process_llm_response(reply)
        assert [record.outcome for record in response.tool_calls] == ["executed", "failed"]
        assert "cut off at its longest length" in str(response.retry_prompt)
        assert "finish_reason" not in response.messages[0]
    assert runs_of(anthropic_message(stop_reason="max_tokens")) == []


def test_calls_without_an_id_are_answered_in_plain_text() -> None:
    """An API could not match an answer to them."""
    for reply in (openai_message(("", "echo", '{"text": "hi"}')), anthropic_message(("", "echo", {"text": "hi"}))):
        assistant, told = Leaf().process_llm_response(reply).messages
        assert assistant["role"] == "assistant"
        assert told == {"role": "system", "content": "hi"}


def test_a_list_of_strategies_of_ones_own() -> None:
    """With the API's shape alone, a text is never a call."""
    driver = Leaf(extraction=[AnthropicExtraction()])
    assert driver.process_llm_response(call_text("echo")).tool_calls == ()
    assert driver.process_llm_response(anthropic_message(("a", "echo", {"text": "hi"}))).call_executed


def test_a_text_full_of_openings_is_read_in_bounded_time() -> None:
    """Only so many are looked at."""
    assert calls_in_text('{"a": ' * 50_000, PROMPTS) == ()
    assert might_be_call('{"a": ' * 10, PROMPTS) is False


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_error(text: str) -> None:
    """Whatever a model writes."""
    calls_in_text(text, PROMPTS)
    might_be_call(text, PROMPTS)
    is_whole_call(text, PROMPTS)


@pytest.mark.parametrize(
    "end",
    [
        '"abc',
        '"abc\\',
        '"\\u12',
        "",
        "tru",
        "-",
        "1.",
        "1e",
        "[",
        "[1, ",
        '{"a',
        '{"a":',
        '{"a": {"tool": "echo"}, "b": "',
    ],
)
def test_a_call_that_is_cut_off_behind_prose_is_no_answer(end: str) -> None:
    """The model is told to write it again, and nothing inside of it runs."""
    for before in ("Okay: ", call_text("echo") + " and ", "```json\n", '{"a": 1} {"b": x} '):
        calls = calls_in_text(f'{before}{{"tool": "fail", "arguments": {{"r": {end}', PROMPTS)
        assert [call.problem for call in calls[:-1]] == [None] * (len(calls) - 1)
        assert (calls[-1].tool_name, calls[-1].problem) == ("fail", "it is not JSON, or not complete")


def test_what_stands_behind_an_unreadable_call_may_be_a_part_of_it() -> None:
    """So it does not run; a mention of a call in an answer stays an answer."""
    broken = '{"tool": "fail", "arguments": {"text": bad, "x": ' + call_text("echo") + "}}"
    (call,) = calls_in_text(f"So: {broken}", PROMPTS)
    assert (call.tool_name, call.problem) == ("fail", "it is not JSON, or not complete")
    assert calls_in_text('Write {"tool": "name", ...} to call one.', PROMPTS) == ()


def test_no_number_of_other_objects_hides_a_call() -> None:
    """Whole ones are passed over; among too many broken ones the model is told to write the call again."""
    other = '{"a": 1} '
    assert [call.tool_name for call in calls_in_text(other * 5000 + call_text("echo"), PROMPTS)] == ["echo"]
    assert calls_in_text(other * 5000, PROMPTS) == ()
    nested = '{"a": ' * 20_000
    (call,) = calls_in_text(nested + "x " + call_text("echo"), PROMPTS)
    assert call.problem == "there are too many broken JSON objects in the text to find the call"
    assert calls_in_text(nested, PROMPTS) == ()


@pytest.mark.parametrize(
    "piece", ['{"a": ', '{"a": {"b" ', '{"a', '{"tool" ', '{"a": [', '{"name": "', "{" + " " * 9, "```{"]
)
def test_hostile_texts_take_time_that_grows_with_their_length_alone(piece: str) -> None:
    """Four times the openings that never close take about four times as long, not sixteen times."""

    def seconds(chars: int) -> float:
        text = piece * (chars // len(piece)) + call_text("echo")
        started = time.process_time()
        calls_in_text(text, PROMPTS)
        return time.process_time() - started

    few, many = (min(seconds(chars), seconds(chars)) for chars in (100_000, 400_000))
    assert many < 10 * few + SECONDS_OF_NOISE


ITEM = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "echo",
    "arguments": '{"text": "hi"}',
    "status": "completed",
}


def completion(message: dict[str, Any], finish_reason: str = "stop") -> dict[str, Any]:
    """A whole chat completion of OpenAI's."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-9",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
    }


def response(*items: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    """A whole response of OpenAI's Responses API."""
    return {"id": "resp_1", "object": "response", "status": status, "output": list(items)}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "reply",
    [
        completion(openai_message(("a", "echo", '{"text": "hi"}')), "tool_calls"),
        completion({"role": "assistant", "content": '{"tool": "echo", "arguments": {"text": "hi"}}'}),
        ITEM,
        response({"type": "reasoning", "id": "rs_1", "summary": []}, ITEM),
    ],
)
def test_a_call_in_the_whole_answer_of_an_api(reply: Any, streaming: bool) -> None:
    """It is found where that API puts it, and the answer says that it is whole."""
    assert runs_of(reply, streaming=streaming) == [("echo", {"text": "hi"})]


@pytest.mark.parametrize(
    "reply",
    [
        completion({"role": "assistant", "content": "hello"}),
        {"object": "chat.completion", "choices": []},
        {"object": "chat.completion", "choices": [None]},
        response({"type": "message", "content": [{"type": "output_text", "text": call_text("echo")}]}),
        response(),
    ],
)
def test_a_whole_answer_without_a_call(reply: Any) -> None:
    """Nothing runs."""
    assert runs_of(reply) == []


def test_an_item_that_is_still_coming_does_not_run() -> None:
    """Until its status says that it is whole; a cut off one is a problem."""
    assert runs_of({**ITEM, "status": "in_progress"}, streaming=True) == []
    assert runs_of(response(ITEM, status="incomplete")) == []


def test_what_a_completion_is_told() -> None:
    """The message and its results, as for the message alone."""
    message = openai_message(("a", "echo", '{"text": "hi"}'))
    told = Leaf().process_llm_response(completion(message, "tool_calls")).messages
    assert told == Leaf().process_llm_response(message).messages


def test_what_the_responses_api_is_told() -> None:
    """All items that it sent, in order, then an output for each call by its call_id."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    told = {"type": "function_call_output", "call_id": "call_1", "output": "hi"}
    assert Leaf().process_llm_response(ITEM).messages == (ITEM, told)
    assert Leaf().process_llm_response(response(thought, ITEM)).messages == (thought, ITEM, told)
    (said, heard) = Leaf().process_llm_response({**ITEM, "call_id": None}).messages
    assert (said["role"], heard["content"]) == ("assistant", "hi")


def test_an_object_of_an_sdk_is_told_what_to_pass() -> None:
    """The message of a library that has `model_dump` says so."""

    class Message:
        """As an SDK has it."""

        def model_dump(self) -> dict[str, Any]:
            """Plain."""
            return {}

    for reply, said in ((Message(), r"Message: expected .* which its \.model_dump\(\) gives$"), (5, "JSON object$")):
        with pytest.raises(MisuseError, match=said):
            Leaf().process_llm_response(reply)  # type: ignore[arg-type]
